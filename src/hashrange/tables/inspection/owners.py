"""Names the owners of spaces, for messages about damage: the storage itself knows only numbers of spaces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from hashrange.storage.api import Reader
from hashrange.storage.failures import StorageError
from hashrange.tables import streams
from hashrange.tables.definitions import catalog, dropped
from hashrange.tables.definitions import table as tables
from hashrange.tables.definitions.table import Table
from hashrange.tables.spaces import (
    ACCESS_SPACE,
    BACKFILL_SPACE,
    BACKUP_SPACE,
    BULK_SPACE,
    CATALOG_SPACE,
    CONSOLE_SPACE,
    DELIVERY_SPACE,
    EXPORT_SPACE,
    HOLD_SPACE,
    IMPORT_SPACE,
    LAG_SPACE,
    SERVER_SPACE,
    TOKEN_SPACE,
)


def owners(reader: Reader) -> list[tuple[int, str]]:
    """The spaces, each with a text that names its contents, as far as the catalog can be read."""
    named = [
        (CATALOG_SPACE, "the catalog"),
        (TOKEN_SPACE, "the tokens of transactions"),
        (LAG_SPACE, "the changes that wait for lagging indexes"),
        (BACKFILL_SPACE, "the progress of index builds"),
        (HOLD_SPACE, "the holds on items"),
        (IMPORT_SPACE, "the imports"),
        (EXPORT_SPACE, "the exports"),
        (BACKUP_SPACE, "the backups"),
        (BULK_SPACE, "the bulk operations"),
        (SERVER_SPACE, "the servers that share the background work"),
        (CONSOLE_SPACE, "what the users of the console saved"),
        (DELIVERY_SPACE, "the progress of deliveries to Kinesis"),
        (ACCESS_SPACE, "the access keys"),
    ]
    for _, stored in catalog.stored_definitions(reader):
        with suppress(msgspec.MsgspecError, ValueError):
            named += _of_table(tables.decode(stored))
    for name, dropped_table in dropped.every(reader):
        if isinstance(dropped_table, dropped.Dropped):
            named += [(space, f"the deleted table {name}") for space in dropped.spaces_of(dropped_table)]
    with suppress(msgspec.MsgspecError, ValueError, StorageError):
        for stream in streams.all_streams(reader):
            named.append((stream.space, f"the stream of {stream.full_name}"))
    return named


def _of_table(table: Table) -> Iterator[tuple[int, str]]:
    yield table.space, f"table {table.full_name}"
    for index in table.indexes:
        for space in index.spaces():
            yield space, f"index {index.name} of {table.full_name}"
    if table.collection_space:
        yield table.collection_space, f"the sizes of item collections of {table.full_name}"
    if table.ttl is not None:
        yield table.ttl.space, f"the expiry queue of {table.full_name}"
    if table.outbox is not None:
        yield table.outbox.space, f"the changes of {table.full_name} for Kinesis"
    if table.history is not None:
        for span in table.history.spans:
            yield span.space, f"the history of {table.full_name}"
