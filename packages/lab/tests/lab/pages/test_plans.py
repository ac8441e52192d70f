"""The page of plans: what the counted load would cost on demand, provisioned and reserved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from consoles import Browser, fill, opened, parsed
from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock
from hashrange.database import Database
from hashrange.prices import load, published
from hashrange.server import running
from hashrange_lab.money import meter
from hashrange_lab.money.plans import Comparison, compare
from hashrange_lab.money.scaling import Policy
from hashrange_lab.money.statement import Statement

PAGE = "/console/costs/plans"
_BEGAN = 1_790_000_000.0


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory(clock=VirtualClock(_BEGAN, frozen=True)) as database:
        fill(database)
        yield database


def text_of(page: str) -> str:
    return " ".join(parsed(page).text.split())


def use(database: Database) -> None:
    """Two hours in which the table is written and read; the index is written in the first minute only."""
    assert isinstance(database.clock, VirtualClock)
    key: Any = {"pk": {"S": "a"}, "sk": {"N": "1"}}
    database.execute("PutItem", {"TableName": "orders", "Item": {**key, "kind": {"S": "k"}}})
    for _ in range(12):
        for _ in range(5):
            database.execute("GetItem", {"TableName": "orders", "Key": key, "ConsistentRead": True})
        database.clock.advance(600)


def expected(database: Database, *indexes: str, policy: Policy | None = None) -> Comparison:
    """What the function below the command says of some parts of the table."""
    counting = meter.running(database)
    assert counting is not None
    counted = counting.counted("us-east-1")
    statement = Statement(counted, published().region("us-east-1"))
    series = [part for part in counted.series if part.index in indexes]
    return compare(series, statement.region, statement.rates_of, policy or Policy())


def test_the_plans_are_those_of_the_command(database: Database, browser: Browser) -> None:
    meter.begin(database, published())
    use(database)
    status, page = browser.ask(PAGE)
    said = text_of(page)
    assert status == 200
    plans = expected(database, "", "by-kind").plans
    assert [plan.name for plan in plans][:2] == ["on demand", "provisioned, auto scaling"]
    assert f"CheapestOn demand A month of it{plans[0].a_month} The next, {plans[1].name}" in said
    for plan in plans:
        assert f"{plan.a_month} {plan.cost}" in said
    for (_, index), [cheapest, *_] in expected(database, "", "by-kind").places.items():
        assert f"orders {index or 'the table'} {cheapest.name.capitalize()} $" in said
        assert f" {cheapest.about}" in said
    assert "What these figures leave out" in said
    assert "A month is this load of 1 h 51 min again and again." in said


@pytest.mark.parametrize(
    ("place", "indexes"),
    [
        ("", ("", "by-kind")),
        ("orders", ("", "by-kind")),
        ("orders/", ("",)),
        ("orders/by-kind", ("by-kind",)),
    ],
)
def test_a_table_or_an_index_is_chosen(
    database: Database, browser: Browser, place: str, indexes: tuple[str, ...]
) -> None:
    meter.begin(database, published())
    use(database)
    page = browser.ask(f"{PAGE}?place={place}&minimum=7&maximum=9&target=50")[1]
    compared = expected(database, *indexes, policy=Policy(7, 9, 0.5))
    for plan in compared.plans:
        assert f"{plan.a_month} {plan.cost}" in text_of(page)
    assert f'<option value="{place}"' + (" selected>" if place else ">") in page
    assert ("By table and index" in page) == (len(indexes) > 1)
    # The index has one minute.
    assert ("too short to predict a month" in page) == (indexes == ("by-kind",))


def test_what_was_not_counted_cannot_be_chosen(database: Database, browser: Browser) -> None:
    meter.begin(database, published())
    assert "there is no load to compare" in browser.ask(PAGE)[1]
    use(database)
    status, page = browser.ask(f"{PAGE}?place=<b>")
    assert status == 400
    assert "Nothing was counted of &#39;&lt;b&gt;&#39;." in page


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("minimum=5&maximum=4", "Minimum 5 is more than maximum 4."),
        ("minimum=0", "Minimum is a whole number from 1 to 40,000."),
        ("maximum=40001", "Maximum is a whole number from 1 to 40,000."),
        ("maximum=" + "9" * 5_000, "Maximum is a whole number from 1 to 40,000."),
        ("target=19", "Target is a whole number from 20 to 90."),
        ("target=%D9%A5%D9%A0", "Target is a whole number from 20 to 90."),
        ("target=0.7", "Target is a whole number from 20 to 90."),
    ],
)
def test_a_wrong_number_is_refused_beside_the_form(
    database: Database, browser: Browser, query: str, says: str
) -> None:
    meter.begin(database, published())
    use(database)
    status, page = browser.ask(f"{PAGE}?{query}")
    assert status == 400
    assert says in page
    name, _, given = query.partition("&")[0].partition("=")
    assert f'name="{name}" value="' in page
    assert given.startswith("%") or f'value="{given}"' in page


def test_plans_without_prices_are_not_called_the_cheapest(
    database: Database, browser: Browser, tmp_path: Any
) -> None:
    meter.begin(database, published())
    use(database)
    said = text_of(browser.ask(f"{PAGE}?region=eu-west-3")[1])
    assert "Cheapest of those with all prices" in said
    assert "On demand no price" in said
    assert browser.ask(f"{PAGE}?region=mars")[0] == 400
    path = tmp_path / "prices.toml"
    path.write_text("date = 2030-01-01\n[regions.us-east-1]\nstorage = 1\n")
    meter.end(database)
    meter.begin(database, load(path))
    use(database)
    said = text_of(browser.ask(PAGE)[1])
    assert "cheapest" not in said
    assert "of 2030-01-01 from" in said


def test_a_plan_that_throttles_is_named(database: Database, browser: Browser) -> None:
    meter.begin(database, published())
    key: Any = {"pk": {"S": "a"}, "sk": {"N": "1"}}
    for _ in range(400):
        database.execute("GetItem", {"TableName": "orders", "Key": key, "ConsistentRead": True})
    said = text_of(browser.ask(f"{PAGE}?maximum=1")[1])
    # (a unit a second for a minute, and nothing is saved at the start)
    assert "CheapestProvisioned, auto scaling" in said
    assert "This plan would have throttled 340 units, so it looks cheaper than it is." in said


def test_a_read_only_console_shows_the_plans(database: Database) -> None:
    admin = bind_admin(0, read_only=True)
    with running(database, admin=admin):
        browser = opened(admin)
        assert "so it cannot start counting" in browser.ask(PAGE)[1]
        meter.begin(database, published())
        use(database)
        status, page = browser.ask(PAGE)
        assert status == 200
        assert "data-post" not in page
        assert "A month of this load" in page
