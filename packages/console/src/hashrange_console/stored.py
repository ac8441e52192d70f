"""What the users of the console save, in the store of the tables: all browsers share
it, and it survives a restart if the store does.

    (CONSOLE_SPACE, "query", "/" name)             → a saved query
    (CONSOLE_SPACE, "entities", scope / table)     → the entities of a table, as a user corrected them

Each is a small record that is written as a whole, in one transaction.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hashrange.server.admin.aside import aside
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.jobs.job_records import Records
from hashrange.tables.spaces import CONSOLE_SPACE
from hashrange_console.reach import Refused, View

QUERIES_MAX: Final = 500
NAME_CHARACTERS_MAX: Final = 100


class SavedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page that asks for data: its address. Its name is its id; all scopes share the names."""

    id: str
    address: str
    scope: str = ""


class EntityRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entity of a table: its name, and which items are of it.

    `partition` and `sort` are patterns of the table's key, in which * stands for any text; `sort` is "" for a
    table without a sort key. If `attribute` is given, it must have the text `value`; the item must have the
    attributes in `has`.
    """

    name: str
    partition: str
    sort: str = ""
    attribute: str = ""
    value: str = ""
    has: tuple[str, ...] = ()


class SavedEntities(msgspec.Struct, frozen=True, kw_only=True):
    """The entities of a table, whose name is the id."""

    id: str
    scope: str
    rules: tuple[EntityRule, ...]


_ENTITIES: Final = Records(CONSOLE_SPACE, SavedEntities, b"entities")
_QUERIES: Final = Records(CONSOLE_SPACE, SavedQuery, b"query")


def named(text: str) -> str:
    """A name that may be given. Raises `Refused`."""
    name = " ".join(text.split())
    if not name:
        raise Refused("Give it a name.")
    if len(name) > NAME_CHARACTERS_MAX:
        raise Refused(f"A name has at most {NAME_CHARACTERS_MAX} characters.")
    return name


async def queries(view: View) -> list[SavedQuery]:
    """The saved queries, in the order of their names."""
    return await aside(view.request, lambda database: database.engine.read(lambda r: [*_QUERIES.every(r)]))


async def save_query(view: View, query: SavedQuery, before: str) -> None:
    """Save a query; `before` is its name until now, "" for a new one. Raises `Refused`."""

    def body(txn: Transaction) -> str:
        old = _QUERIES.find(txn, "", before) if before else None
        if before and old is None:
            return f"There is no saved query {before!r} any more."
        if query.id != before and _QUERIES.find(txn, "", query.id) is not None:
            return f"There is a saved query {query.id!r} already."
        if old is None and len([*_QUERIES.every(txn)]) >= QUERIES_MAX:
            return f"There are {QUERIES_MAX} saved queries. Delete one first."
        if old is not None:
            _QUERIES.forget(txn, old)
        _QUERIES.save(txn, query)
        return ""

    if problem := await aside(view.request, lambda database: database.engine.write(body)):
        raise Refused(problem)


async def delete_query(view: View, name: str) -> None:
    """Delete a saved query; nothing happens if there is none."""

    def body(txn: Transaction) -> None:
        if (query := _QUERIES.find(txn, "", name)) is not None:
            _QUERIES.forget(txn, query)

    await aside(view.request, lambda database: database.engine.write(body))


async def entities(view: View, table: str) -> tuple[EntityRule, ...]:
    """The entities of a table as a user corrected them; none if nobody did. Raises `Refused`."""
    scope = view.full_scope

    def body(reader: Reader) -> tuple[EntityRule, ...]:
        corrected = _ENTITIES.find(reader, scope, table)
        return corrected.rules if corrected is not None else ()

    return await aside(view.request, lambda database: database.engine.read(body))


async def save_entities(view: View, table: str, rules: tuple[EntityRule, ...]) -> None:
    """Save the entities of a table; with no rules, forget them."""
    record = SavedEntities(id=table, scope=view.full_scope, rules=rules)

    def body(txn: Transaction) -> None:
        if rules:
            _ENTITIES.save(txn, record)
        else:
            _ENTITIES.forget(txn, record)

    await aside(view.request, lambda database: database.engine.write(body))
