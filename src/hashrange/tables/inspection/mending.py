"""Puts right what the checker found, where the rest of the store says how.

Records that nothing owns are deleted: no request can reach them. `kept_lines` shows them, so that they can be
kept elsewhere before.

What was being built, an index or a restored table, is built from the beginning: of what it had so far, some
may be among the lost records.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
import orjson

from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.tables.background import restoring
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Index, Table
from hashrange.tables.inspection.check import check, decoded
from hashrange.tables.inspection.problems import BITE_RECORDS, Mend, Problem, Progress
from hashrange.tables.writes import backfill, builds

PASSES_MAX = 5


def mend(engine: Engine, *, progress: Progress | None = None) -> Iterator[Problem]:
    """Put right the problems that can be, and yield each before that; `check` reports the others."""
    yield from _build_anew(engine)
    for _ in range(PASSES_MAX):  # again, because a repair can uncover another problem at the same address
        mends: list[Mend] = []
        for problem in check(engine, progress=progress):
            if problem.mend is not None:
                mends.append(problem.mend)
                yield problem
        if not mends:
            return
        for start in range(0, len(mends), BITE_RECORDS):
            engine.write(partial(_apply, mends=mends[start : start + BITE_RECORDS]))


def kept_lines(reader: Reader, space: int) -> Iterator[bytes]:
    """The records of a space as lines of JSON: items as in an export, everything else in hexadecimal."""
    for partition, sort, record in reader.scan_space(space):
        try:
            yield orjson.dumps({"Item": decoded(record)}) + b"\n"
        except ValueError:
            yield orjson.dumps({"Record": [partition.hex(), sort.hex(), record.hex()]}) + b"\n"


def _build_anew(engine: Engine) -> Iterator[Problem]:
    for name, table in engine.read(lambda reader: list(catalog.every_definition(reader))):
        if isinstance(table, Table) and table.restore is not None:
            engine.write(partial(_restore_anew, name=name))
            yield Problem(name, "the table was being restored, and is restored from the beginning")
        elif isinstance(table, Table):
            for index in table.indexes:
                if index.backfilling:
                    engine.write(partial(_empty, name=name, space=index.space))
                    yield Problem(
                        name, "the index was being filled, and is filled from the beginning", index.name
                    )


def _restore_anew(txn: Transaction, name: str) -> None:
    """Take the items away that were restored so far: of these, some may be among the lost records."""
    table = catalog.find_full(txn, name)
    if table is None or table.restore is None:
        return
    builds.forget(txn, restoring.build_of(table))
    for space in catalog.spaces_of(table):
        txn.delete_space(space)
    indexes_ = tuple(index.placed(partial(catalog.new_space, txn)) for index in table.indexes)
    collection_space = catalog.new_space(txn) if table.collection_space else 0
    space = catalog.new_space(txn)
    catalog.save(
        txn,
        msgspec.structs.replace(
            table, space=space, indexes=indexes_, collection_space=collection_space
        ),
    )


def _empty(txn: Transaction, name: str, space: int) -> None:
    """Take the entries of an index that is being filled away, and let its build begin again."""
    table = catalog.find_full(txn, name)
    if table is None:
        return
    changed: list[Index] = []
    for index in table.indexes:
        if index.space == space:
            for own in index.spaces():
                txn.delete_space(own)
            builds.forget(txn, backfill.build_of(index))
            index = index.placed(partial(catalog.new_space, txn))
        changed.append(index)
    catalog.save(txn, msgspec.structs.replace(table, indexes=tuple(changed)))


def _apply(txn: Transaction, mends: list[Mend]) -> None:
    for mend_one in mends:
        mend_one(txn)
