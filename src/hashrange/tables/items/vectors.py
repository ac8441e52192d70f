"""The vectors of items: the rules for them, their form in an index entry, and the log of changed entries.

An item holds a vector as an ordinary list of numbers. A vector index keeps it at 32-bit precision: in an
index entry, the vector attribute is a binary value, the numbers as little-endian floats one after the other.
So an entry is an item in stored form like any other, and its size is what the service charges for a write:
4 bytes for each dimension, the attribute's name, and the other projected attributes.

An index also has a log, in the space `Vector.changes`, so that the vectors that a search keeps in memory can
follow the writes of all servers (`hashrange.vectors`):

    (space, "log", sequence)  → the partition and the sort of an entry that was written or removed, and the
                                digest of its record, zeros if it was removed
    (space, "from", "")       → the sequence number below which the log was trimmed, 8 bytes

A body may run over records that are no longer current, before the engine finds that out and runs it again.
What is kept beyond the body's end must not depend on such records. So the digest tells whether an entry is
that of the log, and the log's own place is read by a scan, which an engine reads together with the log.

Filling a new index, or a restored table, writes no log, because nobody can search it yet.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from decimal import Context, Decimal
from hashlib import blake2b
from itertools import islice
from struct import Struct
from typing import Any, Final, NamedTuple

from hashrange.encoding import PARTITION_BYTES
from hashrange.errors import ValidationException
from hashrange.limits import NUMBER_DIGITS_MAX
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions.table import Index, KeyAttribute, Table, Vector
from hashrange.tables.items.capacity import VECTOR_BYTES_OF_DIMENSION
from hashrange.values import AttributeValue, Item, item_size, kind
from hashrange.values.numbers import normalise

LOG: Final = b"log"
_FROM: Final = b"from"

KEPT_CHANGES: Final = 10_000
"""How many changes the log of an index keeps; twice as many until it is trimmed."""

_DIGEST_BYTES: Final = 8
FLOAT_MAX: Final = 3.4028234663852886e38
_FLOAT_MAX_SHOWN: Final = "3.4028235E38"
_INFINITE: Final = 2**128 - 2**103
"""The smallest number that is rounded to infinity: half a step above the largest float."""

_INVALID: Final = "One or more parameter values were invalid. "
_FLOAT: Final = "32-bit floating point number"
_ALL_DIGITS: Final = Context(prec=NUMBER_DIGITS_MAX)

_FLOATS: Final[dict[int, Struct]] = {}


def check(index: Index, vector: Vector, item: Item, before: Item | None) -> None:
    """Raise `ValidationException` if `item` has a vector, or a filter attribute, that the index cannot hold.

    An update may keep what the item had `before`: the index left the item out, and still does ([report]
    dynoxide). The words: [report] paritysuite's and dynoxide's captures of August to October 2026, us-east-1.
    """
    for attribute in vector.filters:
        value = item.get(attribute.name)
        if value is not None and attribute.type not in value and not _stays(attribute.name, item, before):
            raise mismatch(index, attribute, value)
    value = item.get(vector.attribute)
    if value is not None:
        problem = _problem(vector, value)
        if problem and not _stays(vector.attribute, item, before):
            raise ValidationException(f"{_INVALID}{problem} IndexName: {index.name}")


def mismatch(index: Index, attribute: KeyAttribute, value: AttributeValue) -> ValidationException:
    """The error for an attribute of the search schema that has another type."""
    return ValidationException(
        f"{_INVALID}Attribute '{attribute.name}' type mismatch. Expected: {attribute.type}, "
        f"Actual: {kind(value)}. IndexName: {index.name}"
    )


def _stays(name: str, item: Item, before: Item | None) -> bool:
    return before is not None and before.get(name) == item.get(name)


def _problem(vector: Vector, value: dict[str, Any]) -> str:
    """What is wrong with a vector; "" if nothing is. Some of the texts have no full stop."""
    name, members = vector.attribute, value.get("L")
    if members is None:
        return f"Invalid type for parameter {name}, Expected: {_FLOAT} list"
    if len(members) != vector.dimensions:
        return f"Invalid size for parameter {name}, Expected: {vector.dimensions}, Actual: {len(members)}"
    for place, member in enumerate(members):
        number = member.get("N")
        if number is None:
            return f"Invalid type for parameter {name}[{place}], Expected: {_FLOAT}, Actual: {kind(member)}."
        if _is_beyond(number):
            return (
                f"Invalid value for parameter {name}[{place}], Value: {_scientific(number)} is outside valid "
                f"range [-{_FLOAT_MAX_SHOWN}, {_FLOAT_MAX_SHOWN}]."
            )
    return ""


def _is_beyond(number: str) -> bool:
    """Whether a number in normal form, rounded to a 32-bit float, would be infinite."""
    # Shorter texts are smaller numbers: a text in normal form has no exponent.
    return len(number) > NUMBER_DIGITS_MAX and abs(int(number.partition(".")[0])) >= _INFINITE


def _scientific(number: str) -> str:
    """A number in normal form as Java shows it: 1E+39."""
    return str(Decimal(number).normalize(_ALL_DIGITS))


def fits(vector: Vector, item: Item) -> bool:
    """Whether the index has an entry of an item whose key fits: it has a sound vector and sound filters."""
    value = item.get(vector.attribute)
    if value is None or _problem(vector, value):
        return False
    return all(name not in item or type_ in item[name] for name, type_ in vector.filters)


def billed_size(table: Table, item: Item, size: int) -> int:
    """The bytes that a write of `item`, which has `size` bytes, is charged for: a vector counts as 4 bytes
    for each dimension, whatever its digits.

    [report] paritysuite's captures of October 9, 2026, in two regions. A list of another length, which the
    filling of an index has left out, counts as any other list [assumed].
    """
    rest, floats = dict(item), 0
    for vector in table.vectors:
        value = rest.get(vector.attribute)
        if value is not None and len(value.get("L", ())) == vector.dimensions:
            del rest[vector.attribute]
            floats += len(vector.attribute.encode()) + VECTOR_BYTES_OF_DIMENSION * vector.dimensions
    # The other attributes are measured, because the numbers of a vector take longer.
    return item_size(rest) + floats if floats else size


def packed(vector: Vector, value: dict[str, Any]) -> dict[str, str]:
    """The value that the vector attribute has in an index entry, for a sound vector."""
    floats = _rounded(vector.dimensions, [float(member["N"]) for member in value["L"]])
    return {"B": b64encode(floats).decode()}


def _rounded(dimensions: int, numbers: list[float]) -> bytes:
    """The nearest 32-bit floats of numbers that are not beyond their range."""
    try:
        return floats_of(dimensions).pack(*numbers)
    except OverflowError:
        # A number just below half the step to infinity, where the 64-bit float has already been rounded up.
        return floats_of(dimensions).pack(*[min(max(number, -FLOAT_MAX), FLOAT_MAX) for number in numbers])


def floats_of(dimensions: int) -> Struct:
    """The form of a vector with this many dimensions."""
    struct = _FLOATS.get(dimensions)
    if struct is None:
        struct = _FLOATS[dimensions] = Struct(f"<{dimensions}f")
    return struct


def query(numbers: list[str]) -> bytes | None:
    """The vector of a search as floats; None if a number is beyond their range."""
    wide = list(map(float, numbers))
    try:
        return floats_of(len(wide)).pack(*wide)
    except OverflowError:
        is_beyond = any(_is_beyond(normalise(number)) for number in numbers)
        return None if is_beyond else _rounded(len(wide), wide)


# ------------------------------------------------------------------------------------- the log


class EntryChange(NamedTuple):
    """A change in the log of an index: its number, the place of the entry, and the digest of its record."""

    number: int
    partition: bytes
    sort: bytes
    digest: bytes


def digest_of(record: bytes | None) -> bytes:
    """The digest of an entry's record; None: there is none."""
    return bytes(_DIGEST_BYTES) if record is None else blake2b(record, digest_size=_DIGEST_BYTES).digest()


def note(txn: Transaction, vector: Vector, places: Mapping[tuple[bytes, bytes], bytes | None]) -> None:
    """Log the new records of the entries at these places."""
    for (partition, sort), record in places.items():
        txn.append(vector.changes, LOG, partition + sort + digest_of(record))
    txn.count(vector.changes, len(places), 0)


def changes(reader: Reader, vector: Vector, after: int) -> list[EntryChange] | None:
    """The changes after a sequence number. None if they are more than the log keeps, or if some of them were
    trimmed."""
    if after < trimmed_below(reader, vector) - 1:
        return None
    rows = list(islice(reader.scan(vector.changes, LOG, (after + 1).to_bytes(8)), KEPT_CHANGES + 1))
    if len(rows) > KEPT_CHANGES:
        return None
    end = -_DIGEST_BYTES
    return [
        EntryChange(int.from_bytes(place), value[:PARTITION_BYTES], value[PARTITION_BYTES:end], value[end:])
        for place, value in rows
    ]


def position(reader: Reader, vector: Vector) -> int:
    """The sequence number of the last change that the reader shows."""
    for place, _ in reader.scan(vector.changes, LOG, reverse=True, likely=1):
        return int.from_bytes(place)
    return max(0, trimmed_below(reader, vector) - 1)


def trimmed_below(reader: Reader, vector: Vector) -> int:
    """The sequence number below which changes were trimmed."""
    for _, stored in reader.scan(vector.changes, _FROM, likely=1):
        return int.from_bytes(stored)
    return 0


def is_long(reader: Reader, vector: Vector) -> bool:
    """Whether the log should be trimmed."""
    return reader.totals(vector.changes).records >= 2 * KEPT_CHANGES


def trim(txn: Transaction, vector: Vector, limit: int) -> int:
    """Remove at most `limit` of the changes that are too many; returns how many it removed."""
    count = min(limit, txn.totals(vector.changes).records - KEPT_CHANGES)
    low = trimmed_below(txn, vector).to_bytes(8)
    places = [place for place, _ in islice(txn.scan(vector.changes, LOG, low), max(0, count))]
    for place in places:
        txn.delete(vector.changes, LOG, place)
    if places:
        txn.put(vector.changes, _FROM, b"", (int.from_bytes(places[-1]) + 1).to_bytes(8))
        txn.count(vector.changes, -len(places), 0)
    return len(places)
