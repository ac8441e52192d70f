"""The statements of a store's schema, and their arguments.

Refuses to know: who sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hashrange_postgres.cache import Key, Known, Range
from hashrange_postgres.wire.connections import Bytes, Numbers

_UNKNOWN: Final = -1  # in the place of a record's version
RANGE_BYTES_MAX: Final = 64 * 1024
"""A range that is fetched together with records ends after about this many bytes."""

NO_NUMBERS: Final = Numbers()
NO_BYTES: Final = Bytes()


class Arguments(NamedTuple):
    """The arguments of `commit_group` in `schema.sql`, which describes them. There, each name begins with
    `in_`. Nobody changes an array that is here."""

    # Who commits, under which locks.
    server: int = 0
    epoch: int = 0
    version: int = 0
    exclusive_ms: int = 0
    locks: bool = False
    catalog: int = 0
    changes_catalog: bool = False
    # What was read and what is written, in the order of the addresses; and how much there is of each kind.
    space: Numbers = NO_NUMBERS
    partition: Bytes = NO_BYTES
    sort: Bytes = NO_BYTES
    seen: Numbers = NO_NUMBERS
    op: Numbers = NO_NUMBERS
    value: Bytes = NO_BYTES
    present: int = 0
    new: int = 0
    absent: int = 0
    updates: int = 0
    puts: int = 0
    deletes: int = 0
    blind_deletes: int = 0
    # What is added to totals.
    count_space: Numbers = NO_NUMBERS
    count_records: Numbers = NO_NUMBERS
    count_bytes: Numbers = NO_NUMBERS
    # The logs, the greatest of all their new stamps, and what is appended, each to one of the logs (from 1).
    log_space: Numbers = NO_NUMBERS
    log_partition: Bytes = NO_BYTES
    log_stamp_at: Numbers = NO_NUMBERS
    log_stamp: int | None = None
    appended_log: Numbers = NO_NUMBERS
    appended_value: Bytes = NO_BYTES
    # The last moment of the bodies that keep records under their stamps, how many they are, and the records,
    # each of one of the bodies (from 0).
    moment: int | None = None
    bodies: int = 0
    kept_body: Numbers = NO_NUMBERS
    kept_space: Numbers = NO_NUMBERS
    kept_partition: Bytes = NO_BYTES
    kept_sort: Bytes = NO_BYTES
    kept_value: Bytes = NO_BYTES
    # Of a body that holds the store's lock: the spaces in which it took numbers, the last of all these
    # numbers, its stamp, the spaces it deleted.
    last_space: Numbers = NO_NUMBERS
    last: int | None = None
    body_stamp: int | None = None
    cleared: Numbers = NO_NUMBERS
    # The format that the engine knows.
    format: int = 0


_COMMIT_ARGUMENTS: Final = ", ".join(f"in_{name} => %s" for name in Arguments._fields)


class Statements:
    """The statements of one schema."""

    __slots__ = (
        "commit",
        "fetch",
        "fetch_logs",
        "fetch_ranges",
        "lock",
        "lock_records",
        "marks",
        "scan",
        "schema",
        "told",
    )

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self.fetch = f"SELECT n, version, value FROM {schema}.fetch(%s, %s, %s, %s)"
        columns = "n, version, value, partition, sort"
        self.fetch_ranges = f"SELECT {columns} FROM {schema}.fetch_ranges({_places(12)}, '{{}}', '{{}}')"
        self.fetch_logs = f"SELECT {columns} FROM {schema}.fetch_logs({_places(12)})"
        self.marks = f"SELECT mark_space, mark FROM {schema}.marks()"
        self.scan = f"SELECT partition, sort, version, value FROM {schema}.scan({_places(10)})"
        self.lock_records = f"SELECT n, version, value FROM {schema}.lock_records({_places(5)})"
        self.told = f"SELECT catalog, value FROM {schema}.told()"
        self.lock = f"SELECT {schema}.take_lock(%s)"
        self.commit = f"SELECT outcome, catalog FROM {schema}.commit_group({_COMMIT_ARGUMENTS})"


def _places(count: int) -> str:
    return ", ".join(["%s"] * count)


def arrays_of(keys: Iterable[Key]) -> tuple[Numbers, Bytes, Bytes]:
    """Addresses as the arrays that the functions of `schema.sql` take."""
    spaces, partitions, sorts = Numbers(), Bytes(), Bytes()
    for space, partition, sort in keys:
        spaces.append(space)
        partitions.append(partition)
        sorts.append(sort)
    return spaces, partitions, sorts


def arrays_to_fetch(keys: Sequence[Key], known: Mapping[Key, Known]) -> list[Any]:
    """Addresses, and the known versions of their records, as `Statements.fetch` takes them."""
    versions = Numbers()
    for key in keys:
        record = known.get(key)
        versions.append(record[1] if record is not None else _UNKNOWN)
    return [*arrays_of(keys), versions]


def arrays_of_ranges(ranges: Sequence[Range]) -> list[Any]:
    """Ranges as the arrays that `Statements.fetch_ranges` and `fetch_logs` take after those of records."""
    spaces, reverse, rows = Numbers(), Numbers(), Numbers()
    places: tuple[Bytes, Bytes, Bytes, Bytes] = (Bytes(), Bytes(), Bytes(), Bytes())
    for space, low_partition, low_sort, high_partition, high_sort, is_reverse, rows_max in ranges:
        spaces.append(space)
        for array, place in zip(places, (low_partition, low_sort, high_partition, high_sort), strict=True):
            array.append(place)
        reverse.append(is_reverse)
        rows.append(rows_max)
    return [spaces, *places, reverse, rows, RANGE_BYTES_MAX]
