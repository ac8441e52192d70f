"""SELECT: one page of a query, of several queries one after the other, or of a scan.

Rules: Limit and 1 MB count before the filter, as in Query and Scan, and the same code reads and counts. A
page also ends after a number of partitions, because a page that finds no item could otherwise take very long
[assumed]. A next token names the last record of the page, or the partition with which the next page begins.
It is valid only for the same statement and parameters.

Source: API reference, ExecuteStatement.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from hashrange import encoding, pace
from hashrange.errors import SerializationException, ValidationException
from hashrange.expressions import paths
from hashrange.limits import PARTIQL_IN_PAGE_ITEMS_MAX, PARTIQL_PAGE_PARTITIONS_MAX
from hashrange.partiql import access as accesses
from hashrange.partiql.access import Access, Spans
from hashrange.partiql.prepared import Bound, Prepared, Projection
from hashrange.partiql.statements import Select, show
from hashrange.storage.api import Reader
from hashrange.tables.definitions.table import KeySchema, Table
from hashrange.tables.items import capacity, keys, records
from hashrange.tables.items.capacity import Consumed
from hashrange.tables.reads import ranges, sources
from hashrange.tables.reads.ranges import Begun, Page, ReadSource
from hashrange.values import AttributeValue, Item, admit_item

INVALID_TOKEN: Final = "Invalid NextToken"
_OTHER_TOKEN: Final = "NextToken does not match request"
_NO_INDEX: Final = "The table does not have the specified index"
_GSI_CONSISTENT: Final = "Strongly consistent read is not supported on Global Secondary Indexes"
_NO_WHERE: Final = "Must have WHERE clause in the statement when using ORDER BY clause."
_NO_PARTITION: Final = (
    "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."
)
# Measured on the service in the autumn of 2026; DynamoDB Local has the same words.
_SEVERAL_ATTRIBUTES: Final = (
    "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE "
    "keys."
)
_NOT_IN_KEY: Final = "Variable reference {} in ORDER BY clause must be part of the primary key"


class Selected(NamedTuple):
    """A page: its items (fragments or dicts), the token of the next page (None at the end), the key of the
    last record if the page ended at a record, and the consumed capacity."""

    items: list[Any]
    next_token: str | None
    last_key: Item | None
    consumed: Consumed


class _Token(msgspec.Struct, frozen=True, array_like=True):
    """The content of a next token: its kind, the digest of statement and parameters, and, by its kind, the
    last key or the key of the next partition."""

    kind: int
    statement: bytes
    key: dict[str, dict[str, Any]]


class _Start(NamedTuple):
    """The start of a page: a key, and the address of the record after which the page starts; None: at the
    start of the key's partition."""

    key: Item
    position: tuple[bytes, bytes] | None


_AFTER_RECORD: Final = 1
_AT_PARTITION: Final = 2
_decode_token = msgspec.msgpack.Decoder(_Token).decode


@dataclass(slots=True)
class _Walk:
    """The state of a walk over the records of a page: how large the page was when each partition began, and
    whether the walk `goes_on` in the last of these; the last record, if it stopped at `items_max` and more
    records follow; and the partition key before which it stopped.

    A SELECT with IN on the partition key has pages of up to 10 items, and a token only if more items follow
    [docs].
    """

    items_max: int | None
    limit: int | None
    page: Page = field(default_factory=lambda: Page([], None))
    began: list[int] = field(default_factory=list)
    goes_on: bool = False
    cut: bytes | None = None
    before: AttributeValue | None = None

    @property
    def likely(self) -> int | None:
        """How many records are likely to be read from one partition."""
        return self.limit if self.items_max is None else self.items_max + 1

    def begin(self) -> None:
        """Begin with a partition."""
        if not self.goes_on:
            self.began.append(self.page.size)
        self.goes_on = False

    def rest(self, source: ReadSource, reached: bytes) -> _Start:
        """The start of the rest of the page, after the record `reached`. Later partitions begin again."""
        while self.began[-1] == self.page.size:
            self.began.pop()
        self.goes_on = True
        return _Start(ranges.key_in(source, reached), ranges.position_after(source, reached))

    def cut_off(self) -> None:
        """Forget the partitions that begin after the end of the page, if fetching items has shortened it."""
        while self.page.last is not None and self.began[-1] >= self.page.size:  # (the first began at 0)
            self.began.pop()

    def sizes(self) -> list[int]:
        """The bytes read from each partition."""
        ends = [*self.began[1:], self.page.size]
        return [end - begin for begin, end in zip(self.began, ends, strict=False)] or [0]


class _Order(NamedTuple):
    """Whether the partitions are in descending order, and whether the items of each partition are."""

    partitions: bool
    items: bool


def select(
    reader: Reader,
    table: Table,
    bound: Bound,
    begun: Begun,
    *,
    consistent: bool,
    limit: int | None,
    token: str | None,
) -> Selected:
    """One page of a SELECT; if the turn ends, `begun` may keep what was read. Raises
    `ValidationException`."""
    prepared = bound.prepared
    statement = prepared.statement
    assert isinstance(statement, Select)
    _check_index(table, statement)
    source = _open_source(table, statement, consistent=consistent)
    keys.check_scalars(table, prepared.nested)
    project = prepared.projection
    if project is not None:
        sources.check_projected(source, project.attributes)
    access = accesses.plan(prepared, source.key)
    if access.partition:
        sources.check_filter(source, access.filtered)
    if access.branches:
        accesses.check_apart(source, access, bound.values)
    order = _order(statement, access, source.key)
    start = None if token is None else _start(token, bound, source)
    walk: _Walk | None = begun.take(source)
    if walk is None or walk.page.reached is None:
        walk = _Walk(PARTIQL_IN_PAGE_ITEMS_MAX if access.has_in else None, limit)
    elif not walk.page.ended:
        start = walk.rest(source, walk.page.reached)
    page = walk.page
    way = accesses.way_of(access, on_index=source.index is not None)
    if way == "get":
        key = accesses.key_of(access, source.key, bound.values)
        rows = _get(reader, source, key, walk) if start is None else iter(())
    elif way == "query":
        rows = _query(reader, source, accesses.spans(source, access, bound.values), order, start, walk)
    else:
        rows = _scan(reader, source, start, walk)
    fetches = project is not None and bool(sources.missing_attributes(source, project.attributes))
    read: list[bytes] = []
    if fetches:
        limit = sources.FETCHED_MAX if limit is None else min(limit, sources.FETCHED_MAX)
        rows = sources.noted(rows, read)
    matching, fetched_units = page.records, 0.0
    try:
        ranges.read_page(rows, limit=limit, test=_test(access, bound), page=page)
        if fetches:
            matching, fetched_units = sources.fetch(reader, source, read, page, consistent=consistent)
            walk.cut_off()
        items = shown(matching, project)
    except pace.TurnOver:
        if way != "get":  # PostgreSQL's cache, which may be old, knows single records
            begun.keep(source, walk)
        raise
    units = sum(capacity.read_units(size, consistent=consistent) for size in walk.sizes())
    last = page.last or walk.cut
    last_key = None if last is None else ranges.key_in(source, last)
    next_token = None if last_key is None else _token(bound, _AFTER_RECORD, last_key)
    if next_token is None and walk.before is not None:
        next_token = _token(bound, _AT_PARTITION, {source.key.partition[0].name: walk.before})
    return Selected(
        items,
        next_token,
        last_key,
        sources.consumed(statement.table, source, units, fetched_units),
    )


def _check_index(table: Table, statement: Select) -> None:
    """Refuse an index that statements cannot read, then a `COUNT(*)`."""
    index = None if statement.index is None else table.index(statement.index)
    if index is not None and index.vector is None and not index.key.is_simple:
        raise ValidationException(_SEVERAL_ATTRIBUTES)
    if statement.refusal is not None:
        raise ValidationException(statement.refusal)


def _open_source(table: Table, statement: Select, *, consistent: bool) -> ReadSource:
    """The table or index that a SELECT reads. The errors have the wording of statements.

    [report] floci pull request 2953, dynoxide issue 179: measured on the service; paritysuite's captures to
    October 2026 for a vector index without WHERE.
    """
    if statement.index is not None:
        index = table.index(statement.index)
        if index is None:
            raise ValidationException(_NO_INDEX)
        if index.vector is not None:
            scanned = statement.where is None
            raise ValidationException(sources.VECTOR_SCANNED if scanned else sources.VECTOR_QUERIED)
        if index.kind == "global" and consistent:
            raise ValidationException(_GSI_CONSISTENT)
    return sources.open_source(table, statement.index, consistent=consistent)


def single_key(table: Table, bound: Bound) -> Item | None:
    """The key of the item, if a SELECT names an item by its whole key and has no other condition; else None.

    Raises `ValidationException` for a key of the wrong type, and for an index that statements cannot read.
    """
    statement = bound.prepared.statement
    if not isinstance(statement, Select):
        return None
    _check_index(table, statement)
    if statement.index is not None:
        return None
    access = accesses.plan(bound.prepared, table.key)
    if access.key is None or access.rest is not None:
        return None
    return accesses.key_of(access, table.key, bound.values)


def _test(access: Access, bound: Bound) -> Callable[[Item], bool] | None:
    if access.rest is None:
        return None
    rest, values = access.rest, bound.values
    return lambda item: rest(item, values)


def _query(
    reader: Reader, source: ReadSource, spans: Spans, order: _Order, start: _Start | None, walk: _Walk
) -> Iterator[bytes]:
    """The records of all partitions, in order. Raises `ValidationException` if `start` is in no partition."""
    packed = spans.packed[::-1] if order.partitions else spans.packed
    after: bytes | None = None
    if start is not None:
        value = start.key.get(source.key.partition[0].name)
        first = b"" if value is None else encoding.pack_component(value)
        if first not in spans.keys:
            raise ValidationException(INVALID_TOKEN)
        packed = packed[packed.index(first) :]
        after = None if start.position is None else start.position[1]
    return _walk_partitions(reader, source, spans, packed, order, after, walk)


def _walk_partitions(
    reader: Reader,
    source: ReadSource,
    spans: Spans,
    packed: list[bytes],
    order: _Order,
    after: bytes | None,
    walk: _Walk,
) -> Iterator[bytes]:
    """The records of the partitions; in the first partition only those after the sort bytes `after`."""
    for key in packed:
        if not walk.goes_on and len(walk.began) == PARTIQL_PAGE_PARTITIONS_MAX:
            walk.before = spans.keys[key]
            return
        pace.point()
        walk.begin()
        partition = encoding.partition_of_one(spans.keys[key])
        for record in ranges.query_records(
            reader,
            source,
            partition,
            spans.low,
            spans.high,
            reverse=order.items,
            start=after,
            likely=walk.likely,
        ):
            if walk.page.scanned == walk.items_max:
                walk.cut = walk.page.reached
                return
            yield record
        after = None


def _get(reader: Reader, source: ReadSource, key: Item, walk: _Walk) -> Iterator[bytes]:
    """The record of a whole key, if there is one."""
    record = reader.get(source.space, *keys.address_of_key(source.key, key))
    if record is not None:
        walk.begin()
        yield record


def _scan(reader: Reader, source: ReadSource, start: _Start | None, walk: _Walk) -> Iterator[bytes]:
    walk.begin()
    position = None if start is None else start.position
    yield from ranges.scan_records(reader, source, 0, 1, position, walk.likely)


def _order(statement: Select, access: Access, key: KeySchema) -> _Order:
    """The order of an ORDER BY clause. Raises `ValidationException` if the key cannot give this order."""
    if not statement.order:
        return _Order(partitions=False, items=False)
    if statement.where is None:
        raise ValidationException(_NO_WHERE)
    if not access.partition:
        raise ValidationException(_NO_PARTITION)
    partition_names = {attribute.name for attribute in key.partition}
    sort_names = {attribute.name for attribute in key.sort}
    partitions = items = False
    for name, descends in reversed(statement.order):
        if name in partition_names:
            partitions = descends
        elif name in sort_names:
            items = descends
        else:
            raise ValidationException(_NOT_IN_KEY.format(name))
    return _Order(partitions, items)


def shown_single(record: bytes, project: Projection | None) -> Any:
    """The result of a SELECT in a batch or transaction, in which the parts of an item keep their paths.

    Source: observed on DynamoDB Local.
    """
    if project is None:
        return records.fragment_of(record)
    return records.shown(record, partial(paths.pick, trie=project.paths))


def shown(rows: list[bytes], project: Projection | None) -> Any:
    """The results of a SELECT: its columns of each record."""
    return records.list_of(rows, None if project is None else partial(columns_of, project=project))


def columns_of(item: Item, project: Projection) -> Item:
    """The columns of one item; columns whose paths find no value are left out."""
    shown_columns: Item = {}
    for name, path in project.columns:
        value = item.get(path[0]) if len(path) == 1 else paths.read(item, path)  # type: ignore[arg-type]
        if value is not None:
            shown_columns[name] = value
    return shown_columns


def _digest(bound: Bound) -> bytes:
    """A digest of the statement (without regard to spaces) and its parameters; a token is valid only for
    it."""
    parameters: list[AttributeValue] = [
        bound.values[f"?{number}"] for number in range(bound.prepared.statement.parameters)
    ]
    return _statement_digest(bound.prepared, orjson.dumps(parameters))


def _statement_digest(prepared: Prepared, parameters: bytes) -> bytes:
    return blake2b(show(prepared.statement).encode() + b"\x00" + parameters, digest_size=12).digest()


def _token(bound: Bound, kind: int, key: Item) -> str:
    return urlsafe_b64encode(msgspec.msgpack.encode(_Token(kind, _digest(bound), key))).decode()


def _start(token: str, bound: Bound, source: ReadSource) -> _Start:
    """The start that a token names. Raises `ValidationException` for a token of another statement, or one
    that was not made here."""
    try:
        content = _decode_token(urlsafe_b64decode(token.encode()))
        admit_item(content.key)
        is_known = content.kind in (_AFTER_RECORD, _AT_PARTITION)
        matches = content.statement == _digest(bound)
        if is_known and matches:
            after = content.kind == _AFTER_RECORD
            return _Start(content.key, ranges.start_position(source, content.key) if after else None)
    except (Base64Error, UnicodeError, ValueError, msgspec.DecodeError):
        raise ValidationException(INVALID_TOKEN) from None
    except (SerializationException, ValidationException):
        raise ValidationException(INVALID_TOKEN) from None
    raise ValidationException(_OTHER_TOKEN if is_known else INVALID_TOKEN)
