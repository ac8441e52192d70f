"""A book of prices: regions, their rates, the date and the sources of the figures.

The package has one, `published.toml`; `load` reads a file of the same form. Numbers are read as `Decimal`, so
no price is rounded. Refuses to fill gaps: a region has the rates that its file names.
"""

from __future__ import annotations

import datetime
import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from hashrange.prices.money import Money, priced
from hashrange.prices.rates import RATES, Rates, Reservation

_CURRENCY: Final = "USD"
_RESERVED: Final = {"1_year": 1, "3_years": 3}
_RESERVATION: Final = ("read_upfront", "read_hour", "write_upfront", "write_hour")
_INFREQUENT: Final = "infrequent_access"
INFREQUENT_ACCESS: Final = "STANDARD_INFREQUENT_ACCESS"
"""The table class of the API that has rates of its own."""


class WrongPrices(ValueError):
    """A file of prices that cannot be used; the text names the place and the remedy."""


class UnknownRegion(ValueError):
    """A region without prices; the text lists the regions that have some."""


@dataclass(frozen=True, slots=True)
class Region:
    """The prices of a region: those of the table classes Standard and Standard-Infrequent Access, and of
    reserved capacity. `sources` are texts."""

    code: str
    name: str
    sources: tuple[str, ...]
    standard: Rates
    infrequent: Rates
    reservations: tuple[Reservation, ...]

    def rates(self, table_class: str = "") -> Rates:
        """The rates of a table class, as the API names it."""
        return self.infrequent if table_class == INFREQUENT_ACCESS else self.standard


@dataclass(frozen=True, slots=True)
class Book:
    """Prices by region. `date` is that of the newest source, `origin` the file's name, "" for the
    package's."""

    date: str
    regions: Mapping[str, Region]
    origin: str = ""

    def region(self, code: str) -> Region:
        """The prices of a region. Raises `UnknownRegion`."""
        region = self.regions.get(code)
        if region is None:
            near = difflib.get_close_matches(code, self.regions, 1, 0.8)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownRegion(
                f"There are no prices of the region {code!r}.{hint} There are those of "
                f"{', '.join(sorted(self.regions))}; a file for --prices may have others."
            )
        return region


@cache
def published() -> Book:
    """The prices of the package."""
    text = resources.files("hashrange.prices").joinpath("published.toml").read_text(encoding="utf-8")
    return _parsed(text, "")


def on_demand(region: str, *, reads: float = 0.0, writes: float = 0.0, table_class: str = "") -> Money:
    """What request units cost on demand, by the prices of the package; "no price" as a text, if there is none
    for the region."""
    place = published().regions.get(region)
    rates = place.rates(table_class) if place is not None else Rates()
    return priced(rates, "read_requests", reads) + priced(rates, "write_requests", writes)


def load(path: str | Path) -> Book:
    """The prices of a file. Raises `WrongPrices`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise WrongPrices(f"The prices in {path} cannot be read: {reason}.") from None
    return _parsed(text, str(path))


def _parsed(text: str, origin: str) -> Book:
    name = origin or "published.toml"
    try:
        content = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise WrongPrices(f"{name} is not TOML: {error}.") from None
    if content.get("currency", _CURRENCY) != _CURRENCY:
        raise WrongPrices(f"{name}: the currency is {content['currency']!r}; only {_CURRENCY} is known.")
    date = content.get("date", "")
    if not isinstance(date, datetime.date | str):
        raise WrongPrices(f"{name}: the date is {date!r}; write it as 2026-10-01.")
    regions, sources = content.get("regions"), content.get("sources", {})
    if not isinstance(regions, dict) or not regions or not isinstance(sources, dict):
        raise WrongPrices(f"{name} has no prices; it needs tables such as [regions.us-east-1].")
    book = {code: _region(f"{name}: regions.{code}", code, given, sources) for code, given in regions.items()}
    return Book(str(date), book, origin)


def _region(where: str, code: str, given: Any, sources: Mapping[str, Any]) -> Region:
    if not isinstance(given, dict):
        raise WrongPrices(f"{where} is not a table; write [regions.{code}].")
    rest = dict(given)
    name, named = rest.pop("name", code), rest.pop("sources", [])
    infrequent, reserved = rest.pop(_INFREQUENT, {}), rest.pop("reserved", {})
    if not isinstance(named, list) or not isinstance(infrequent, dict) or not isinstance(reserved, dict):
        raise WrongPrices(
            f"{where}: `sources` is a list of names, `{_INFREQUENT}` and `reserved` are tables."
        )
    return Region(
        code,
        str(name),
        tuple(str(sources.get(source, source)) for source in named),
        _rates(where, rest),
        _rates(f"{where}.{_INFREQUENT}", infrequent),
        tuple(_reservation(f"{where}.reserved", term, prices) for term, prices in reserved.items()),
    )


def _rates(where: str, given: Mapping[str, Any]) -> Rates:
    for rate in given:
        if rate not in RATES:
            raise WrongPrices(f"{where}: there is no rate {rate!r}; there are {', '.join(RATES)}.")
    return Rates({rate: _price(f"{where}.{rate}", price) for rate, price in given.items()})


def _reservation(where: str, term: str, given: Any) -> Reservation:
    if term not in _RESERVED:
        raise WrongPrices(f"{where}: there is no term {term!r}; there are {', '.join(_RESERVED)}.")
    if not isinstance(given, dict) or sorted(given) != sorted(_RESERVATION):
        raise WrongPrices(f"{where}.{term} needs exactly {', '.join(_RESERVATION)}.")
    return Reservation(
        _RESERVED[term], *[_price(f"{where}.{term}.{name}", given[name]) for name in _RESERVATION]
    )


def _price(where: str, given: Any) -> Decimal:
    if isinstance(given, bool) or not isinstance(given, int | Decimal):
        raise WrongPrices(f"{where} is {given!r}; write a number of dollars, as 0.125.")
    price = Decimal(given)
    if not price.is_finite() or price < 0:
        raise WrongPrices(f"{where} is {given}; a price is 0 or more.")
    return price
