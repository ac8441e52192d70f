"""The prices of the package: exact, sourced, and replaced by a file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from hashrange.prices import RATES, UnknownRegion, WrongPrices, dollars, load, on_demand, published
from hashrange.prices.rates import Rates


def test_the_published_prices_have_a_date_and_sources() -> None:
    book = published()
    assert book.date == "2026-10-01"
    assert len(book.regions) == 25
    for code, region in book.regions.items():
        assert region.code == code
        assert region.name
        assert region.sources
        assert all(" " in source for source in region.sources), "a source is named by its text"
        assert region.standard.prices.keys() <= RATES.keys()
        assert all(price > 0 for price in region.standard.prices.values())


def test_sums_are_exact() -> None:
    rates = published().region("us-east-1").standard
    assert rates.cost("write_requests", 1) == Decimal("0.000000625")
    assert rates.cost("read_requests", 0.5) == Decimal("0.0000000625")
    assert rates.cost("write_requests", 10**15) == Decimal("625000000")
    total = Decimal(0)
    for _ in range(1_600):
        total += rates.cost("read_requests", 0.5) or 0
    assert total == Decimal("0.0001")


def test_a_price_that_no_source_has_is_none() -> None:
    region = published().region("eu-west-3")
    assert region.standard.of("read_capacity") == Decimal("0.0001544")
    assert region.standard.of("read_requests") is None
    assert region.standard.cost("read_requests", 7) is None


def test_units_on_demand_have_a_price() -> None:
    both = on_demand("us-east-1", reads=1_000_000, writes=2_000_000)
    assert (both.amount, str(both)) == (Decimal("1.375"), "$1.38")
    infrequent = on_demand("us-east-1", reads=0.5, table_class="STANDARD_INFREQUENT_ACCESS")
    assert infrequent.amount == Decimal("0.0000000775")
    assert str(on_demand("nowhere-1", reads=1)) == str(on_demand("eu-west-3", reads=7)) == "no price"


def test_table_classes_and_reservations() -> None:
    region = published().region("us-west-2")
    assert region.rates().of("storage") == Decimal("0.25")
    assert region.rates("STANDARD").of("storage") == Decimal("0.25")
    assert region.rates("STANDARD_INFREQUENT_ACCESS").of("storage") == Decimal("0.10")
    assert [term.years for term in region.reservations] == [1, 3]
    # 150 dollars at once for a year of 8,760 hours, and 0.0128 for each of them
    assert region.reservations[0].hourly(writes=True) == Decimal("0.0128") + Decimal(150) / 8_760


def test_an_unknown_region_names_those_that_are_known() -> None:
    message = r"no prices of the region 'us-west-11'\. Did you mean 'us-west-1'\? There are those of af-south"
    with pytest.raises(UnknownRegion, match=message):
        published().region("us-west-11")


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "$0"),
        ("1234.565", "$1,234.56"),
        ("0.5", "$0.50"),
        ("0.125", "$0.12"),
        ("0.00000125", "$0.0000012"),
        ("0.999", "$1.00"),
        ("1", "$1.00"),
    ],
)
def test_amounts_for_people(amount: str, text: str) -> None:
    assert dollars(Decimal(amount)) == text
    assert dollars(None) == "no price"


OWN = """
date = 2027-01-01
[sources]
contract = "our contract"
[regions.mars-north-1]
name = "Mars"
sources = ["contract"]
read_requests = 0.1
write_requests = 1
[regions.mars-north-1.infrequent_access]
read_requests = 0.2
[regions.mars-north-1.reserved.1_year]
read_upfront = 1
read_hour = 0.5
write_upfront = 2
write_hour = 0.25
"""


def test_a_file_takes_the_place_of_the_published_prices(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(OWN, encoding="utf-8")
    book = load(path)
    region = book.region("mars-north-1")
    assert (book.date, book.origin, region.name, region.sources) == (
        "2027-01-01", str(path), "Mars", ("our contract",),
    )  # fmt: skip
    assert region.standard == Rates({"read_requests": Decimal("0.1"), "write_requests": Decimal(1)})
    assert region.infrequent.of("read_requests") == Decimal("0.2")
    assert region.reservations[0].write_hour == Decimal("0.25")
    with pytest.raises(UnknownRegion):
        book.region("us-east-1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[regions.x", "is not TOML"),
        ("date = 2027-01-01", r"has no prices; it needs tables such as \[regions.us-east-1\]"),
        ('currency = "EUR"', "the currency is 'EUR'; only USD is known"),
        ("date = 1\n[regions.x]", "the date is 1; write it as 2026-10-01"),
        ("[regions]\nx = 1", r"regions.x is not a table; write \[regions.x\]"),
        ("[regions.x]\nreads = 1", "there is no rate 'reads'; there are read_requests, "),
        ('[regions.x]\nread_requests = "1"', "read_requests is '1'; write a number of dollars, as 0.125"),
        ("[regions.x]\nread_requests = -1", "read_requests is -1; a price is 0 or more"),
        ("[regions.x]\nread_requests = nan", "a price is 0 or more"),
        ("[regions.x]\nread_requests = true", "write a number of dollars"),
        ("[regions.x]\nsources = 1", "`sources` is a list of names"),
        ("[regions.x.reserved.2_years]", "no term '2_years'; there are 1_year, 3_years"),
        ("[regions.x.reserved.1_year]\nread_hour = 1", "1_year needs exactly read_upfront, read_hour"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(WrongPrices, match=message):
        load(path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(WrongPrices, match="cannot be read: No such file"):
        load(tmp_path / "none.toml")
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(WrongPrices, match="it is not text in UTF-8"):
        load(path)
