"""`hashrange costs`, the options of `hashrange serve`, and the admin plane's /v1/costs."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import logs, main
from hashrange.cli.admin import bind_admin
from hashrange.cli.serving import serve as serving
from hashrange.clock import VirtualClock
from hashrange.database import Caller, Database
from hashrange.prices import published
from hashrange.server import running
from hashrange_lab.money import meter
from unit.test_admin import ask
from vector_tables import index_of, listed
from worlds import create

START = 1_767_225_600.0
FRONT = Caller(agent="Boto3/1.40 app/shop-front")


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory(clock=VirtualClock(START, frozen=True)) as database:
        create(database, "orders", "pk")
        yield database


@pytest.fixture
def url(database: Database) -> Iterator[str]:
    listening = bind_admin(0)
    with running(database, admin=listening):
        yield listening.url


def costs(url: str, *arguments: str) -> Result:
    place = ["--admin-url", url] if url else []
    return CliRunner().invoke(main, ["costs", *arguments, *place], prog_name="hashrange")


def spend(database: Database, number: int = 10) -> None:
    for place in range(number):
        item = {"pk": {"S": str(place)}}
        database.execute("PutItem", {"TableName": "orders", "Item": item}, FRONT)
    for _ in range(number):
        database.execute("Scan", {"TableName": "orders", "FilterExpression": "attribute_exists(x)"}, FRONT)


def test_a_server_that_does_not_count_says_what_to_do(url: str) -> None:
    result = costs(url, "show")
    assert result.exit_code == 1
    assert "does not count what requests cost. Run `hashrange costs start`" in result.output


def test_start_show_reset_and_stop(url: str, database: Database) -> None:
    assert costs(url, "start").output.endswith("shows what requests cost from now on\n")
    assert "No request has consumed anything yet." in costs(url, "show").output
    spend(database)
    lines = costs(url, "show", "--reset").output.splitlines()
    assert lines[1].startswith(
        "On demand in us-east-1, prices of 2026-10-01; counted since 2026-01-01T00:00:00"
    )
    assert lines[4].split() == ["orders", "PutItem", "10", "0", "10", "$0", "$0.0000062", "$0.0000062"]
    assert lines[5].split() == ["orders", "Scan", "10", "5", "0", "$0.00000062", "$0", "$0.00000062"]
    assert lines[6].split() == ["total", "20", "5", "10", "$0.00000062", "$0.0000062", "$0.0000069"]
    assert lines[8] == "Each month, regardless of requests:"
    assert "No request has consumed anything yet." in costs(url, "show").output
    assert costs(url, "stop").output.endswith("not counting\n")
    assert meter.running(database) is None


def test_by_program_and_region(url: str, database: Database) -> None:
    meter.begin(database, published())
    spend(database)
    output = costs(url, "show", "--by", "caller", "--region", "eu-central-1").output
    assert "On demand in eu-central-1" in output
    assert ["shop-front", "20", "5", "10", "$0.00000076", "$0.0000076", "$0.0000084"] in [
        line.split() for line in output.splitlines()
    ]
    output = costs(url, "show", "--region", "eu-west-3").output
    assert "Left out, because no source has a price in eu-west-3: read_requests (a million read" in output
    assert "no price" in output
    result = costs(url, "show", "--region", "mars")
    assert (result.exit_code, "no prices of the region 'mars'" in result.output) == (1, True)


def test_searches_of_vectors_are_priced_or_named(url: str, database: Database) -> None:
    vector, index = listed([1] * 768), index_of(dimensions=768)
    database.execute("UpdateTable", {"TableName": "orders", "VectorIndexUpdates": [{"Create": index}]})
    meter.begin(database, published())
    database.execute("PutItem", {"TableName": "orders", "Item": {"pk": {"S": "a"}, "v": vector}})
    search = {"TableName": "orders", "IndexName": "near", "SearchVector": vector["L"], "TopK": 1}
    for _ in range(3):
        shown = database.execute("SearchVectors", {**search, "ReturnConsumedCapacity": "TOTAL"})
    searched = Decimal(3 * shown["ConsumedCapacity"]["VectorSearchRequestBytes"])
    totals = {
        line["operation"]: line
        for line in orjson.loads(costs(url, "show", "--format", "json").stdout)["lines"]
    }
    assert totals["SearchVectors"]["requests"] == 3
    assert Decimal(totals["SearchVectors"]["dollars"]) == searched / 1024**3 * Decimal("0.002")
    output = costs(url, "show", "--region", "eu-west-1").output
    assert ["orders", "SearchVectors", "3", "0", "0", "$0", "$0", "no", "price"] in [
        line.split() for line in output.splitlines()
    ]
    told = [line for line in output.splitlines() if "no source has a price" in line]
    assert told == [
        "Left out, because no source has a price in eu-west-1: vector_searches (a GB searched in vector "
        "indexes), vector_writes (a GB written to vector indexes). --prices FILE can name it."
    ]
    assert output.index(told[0]) < output.index("SearchVectors"), "it is told before the sums"


def test_json_has_every_digit(url: str, database: Database) -> None:
    meter.begin(database, published())
    spend(database)
    result = CliRunner().invoke(
        main, ["costs", "show", "--format", "json", "--admin-url", url], prog_name="hashrange"
    )
    shown = orjson.loads(result.stdout)
    assert shown["total"] == {
        "requests": 20,
        "read_units": 5.0,
        "write_units": 10.0,
        "dollars": "0.000006875",
    }
    assert [(line["operation"], line["caller"]) for line in shown["lines"]] == [
        ("PutItem", "shop-front"), ("Scan", "shop-front"),
    ]  # fmt: skip
    assert sum(Decimal(line["dollars"]) for line in shown["lines"]) == Decimal("0.000006875")
    [advice] = shown["advice"]
    assert advice["kind"] == "scan"
    assert Decimal(advice["saved_dollars"]) == 5 * Decimal("0.000000125")
    assert shown["missing_prices"] == []


def test_advice(url: str, database: Database) -> None:
    meter.begin(database, published())
    assert "There is no advice" in costs(url, "advice").output
    spend(database)
    output = costs(url, "advice").output
    assert "- Scan on orders (filter attribute_exists(x)) reads 100 items and returns nothing." in output
    assert "  10 requests read 100 items and returned 0; they cost 5 read units, $0.00000062." in output


def test_load_and_compare(url: str, database: Database, tmp_path: Path) -> None:
    meter.begin(database, published())
    spend(database)
    result = CliRunner().invoke(main, ["costs", "load", "--admin-url", url], prog_name="hashrange")
    assert result.stdout == ("at,table,index,read_units,write_units\n2026-01-01T00:00:00.000Z,orders,,5,10\n")
    live = costs(url, "compare").output
    path = tmp_path / "load.csv"
    path.write_text(result.stdout, encoding="utf-8")
    kept = costs("", "compare", str(path)).output
    assert "A load of 1 min in us-east-1, prices of 2026-10-01." in kept
    assert kept.splitlines()[3].split()[:3] == ["on", "demand", "$0.0000069"]
    assert live.splitlines()[1:] == kept.splitlines()
    result = CliRunner().invoke(
        main, ["costs", "compare", str(path), "--format", "json"], prog_name="hashrange"
    )
    plans = {plan["plan"]: plan for plan in orjson.loads(result.stdout)["plans"]}
    assert plans["on demand"]["dollars"] == "0.000006875"
    assert plans["provisioned, auto scaling"]["dollars"] == "0.00078"


def test_a_steady_day_is_cheapest_reserved(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    lines = [f"{START + minute * 60},orders,{6_000 * 60},{1_200 * 60}" for minute in range(1_440)]
    path.write_text("at,table,read_units,write_units\n" + "\n".join(lines), encoding="utf-8")
    output = costs("", "compare", str(path), "--target", "60", "--region", "us-west-2").output
    assert output.splitlines()[3].startswith("reserved for 3 years, auto scaling")
    assert "10,000 read and 2,000 write units reserved" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--minimum", "5", "--maximum", "4"], "--minimum 5 is more than --maximum 4"),
        (["--target", "95"], "95 is not in the range 20<=x<=90"),
        (["--region", "mars"], "no prices of the region 'mars'"),
        (["--prices", "none.toml"], "The prices in none.toml cannot be read"),
    ],
)
def test_wrong_options_of_compare(tmp_path: Path, arguments: list[str], message: str) -> None:
    path = tmp_path / "load.csv"
    path.write_text("at,table,read_units,write_units\n0,a,1,1\n", encoding="utf-8")
    result = costs("", "compare", str(path), *arguments)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.output.split())


def test_a_wrong_file_of_loads_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("at,table\n", encoding="utf-8")
    result = costs("", "compare", str(path))
    assert (result.exit_code, "The first line has no column" in result.output) == (1, True)


def test_the_prices_and_their_sources() -> None:
    output = costs("", "prices").output
    assert "us-east-1       US East (N. Virginia)       on demand" in output
    assert "eu-west-3       Europe (Paris)" in output
    output = costs("", "prices", "us-west-2").output
    assert "AWS Price List API, service AmazonDynamoDB, all products of us-west-2, asked 2026-09-06" in output
    assert ["write_requests", "$0.625", "$0.78"] in [line.split()[:3] for line in output.splitlines()]
    assert "100 units reserved for 3 years: reading $36 at once and $0.0016 an hour" in output


def test_the_admin_plane(url: str, database: Database) -> None:
    assert ask(url, "/v1/costs") == (200, {"costs": None})
    status, shown = ask(url, "/v1/costs", {"record": True})
    assert (status, shown["costs"]["rows"]) == (200, [])
    spend(database, 1)
    shown = ask(url, "/v1/costs")[1]["costs"]
    assert (shown["since"], shown["region"]) == (START, "us-east-1")
    assert [(row["operation"], row["requests"]) for row in shown["rows"]] == [("PutItem", 1), ("Scan", 1)]
    assert shown["series"] == [{"table": "orders", "index": "", "minutes": [[int(START), 0.5, 1.0, 0]]}]
    assert ask(url, "/v1/costs", {"record": True, "reset": True})[1]["costs"]["rows"] == []
    assert ask(url, "/v1/costs", {"record": False}) == (200, {"costs": None})
    assert ask(url, "/v1/costs", {"begin": True})[0] == 400


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[meter.Meter | None]:
    """The meter of each server that a command started."""
    meters: list[meter.Meter | None] = []
    monkeypatch.setattr(serving, "serve", lambda database, **_: meters.append(meter.running(database)))
    monkeypatch.setattr(logs, "configure", lambda *_: None)
    return meters


def test_the_options_of_the_server(started: list[meter.Meter | None], tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text("[regions.us-east-1]\nread_requests = 1\n", encoding="utf-8")
    serve = ["serve", "--memory", "--port", "0"]
    for options in ([], ["--costs"], ["--prices", str(path)]):
        result = CliRunner().invoke(main, [*serve, *options], prog_name="hashrange")
        assert result.exit_code == 0, result.output
    without, published_prices, own_prices = started
    assert without is None
    assert published_prices is not None
    assert published_prices.book is published()
    assert own_prices is not None
    assert own_prices.book.origin == str(path)
    path.write_text("[regions]", encoding="utf-8")
    result = CliRunner().invoke(main, [*serve, "--prices", str(path)], prog_name="hashrange")
    assert result.exit_code == 2
    assert "has no prices; it needs tables such as [regions.us-east-1]" in " ".join(result.output.split())
