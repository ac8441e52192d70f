"""Saved queries: pages that ask for data, kept by the server under a name, for all browsers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from starlette.responses import Response

from hashrange.server.admin.application import json, read_json
from hashrange_console import stored
from hashrange_console.reach import Refused, View
from hashrange_console.stored import SavedQuery

_ADDRESS_CHARACTERS_MAX: Final = 20_000
_PASSING: Final = ("start", "back", "run", "plan")
"""Parameters that are not of a query, but of one look at it."""

_ROW: Final = ("attr", "op", "type", "value", "value2")
"""The parameters of a condition, in the order of the form."""
_TELLING: Final = ("statement", "table", "attr", "op", "value")


class Save(msgspec.Struct, forbid_unknown_fields=True):
    """A query under a name; `before`: the name that it has until now."""

    name: str
    address: str
    before: str = ""


class Delete(msgspec.Struct, forbid_unknown_fields=True):
    """A saved query to delete."""

    name: str


@dataclass(frozen=True, slots=True)
class ListedQuery:
    """A saved query as the page lists it. `about` are the words of its conditions."""

    name: str
    address: str
    about: str

    @property
    def run_address(self) -> str:
        return f"{self.address}&run=1"


async def shown(view: View) -> dict[str, Any]:
    """What the page shows: the saved queries, and the address of this page, "" if it asks for nothing."""
    saved = await stored.queries(view)
    queries = [ListedQuery(query.id, query.address, _about(query.address)) for query in saved]
    asks = view.given("table") or view.given("statement")
    return {"saved": queries, "address": address_of(str(view.request.url)) if asks else ""}


async def save(view: View) -> Response:
    """Save a query, or give it another name."""
    sent = await read_json(view.request, Save)
    query = SavedQuery(id=stored.named(sent.name), address=address_of(sent.address))
    await stored.save_query(view, query, sent.before)
    return json({"name": query.id})


async def delete(view: View) -> Response:
    """Delete a saved query."""
    sent = await read_json(view.request, Delete)
    await stored.delete_query(view, sent.name)
    return json({})


def address_of(url: str) -> str:
    """The address of a query, without what belongs to one look at it. Raises `Refused`."""
    parts = urlsplit(url)
    if parts.path != "/console/ask" or not parts.query:
        raise Refused("Only a page that asks for data can be saved.")
    address = f"/console/ask?{urlencode([*_lasting(parse_qsl(parts.query, keep_blank_values=True))])}"
    if len(address) > _ADDRESS_CHARACTERS_MAX:
        raise Refused("This query is too long to be saved.")
    return address


def _lasting(given: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The parameters of a query, without those of conditions that are empty."""
    is_empty = False
    for name, value in given:
        if name == "attr":
            is_empty = not value.strip()
        if name not in _PASSING and not (is_empty and name in _ROW):
            yield name, value


def _about(address: str) -> str:
    given = parse_qsl(urlsplit(address).query, keep_blank_values=True)
    return " ".join(value for name, value in given if name in _TELLING and value)
