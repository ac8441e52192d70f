"""A drill: restores a copy to a scratch directory, checks the store, and takes a digest of each table.

The digest of a space does not depend on the order of its records, and is that of `hashrange copy`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hashrange.storage.api import Engine, Reader
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.tables.definitions import catalog
from hashrange.tables.inspection.check import check

_DIGEST_BYTES = 16


class TableDigest(NamedTuple):
    """A table: its name, the number of its items, and a digest of them."""

    table: str
    items: int
    digest: str


def digests(engine: Engine) -> list[TableDigest]:
    """The digests of all tables, at one moment."""
    return engine.read(lambda reader: list(_digests(reader)))


def _digests(reader: Reader) -> Iterator[TableDigest]:
    for table in catalog.definitions(reader):
        total, items = 0, 0
        for partition, sort, value in reader.scan_space(table.space):
            record = hashlib.blake2b(digest_size=_DIGEST_BYTES)
            for part in (partition, sort, value):
                record.update(len(part).to_bytes(4))
                record.update(part)
            total = (total + int.from_bytes(record.digest())) % (1 << (8 * _DIGEST_BYTES))
            items += 1
        yield TableDigest(table.name, items, total.to_bytes(_DIGEST_BYTES).hex())


def examine(directory: Path) -> tuple[list[TableDigest], list[str]]:
    """The digests of the tables in a data directory, and all that is wrong with the store. Raises
    StorageError."""
    engine = EmbeddedEngine(directory)
    try:
        problems = [str(problem) for problem in check(engine)]
        return digests(engine), problems
    finally:
        engine.close()
