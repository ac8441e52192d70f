"""The reference model: DynamoDB's tables as dicts, and every read as a sort of all items.

It takes the requests that a machine makes up in their simplest form (plain arguments) and gives what
DynamoDB would answer. Slow and obvious on purpose. Shares nothing with the implementation but
`hashrange.values`, which gives sizes and the normal form of numbers.

Where DynamoDB promises nothing (the order of items with equal index keys, the order of a Scan), neither
does the model: see `Selected`.
"""

from __future__ import annotations

import copy
import struct
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil
from typing import Any, NamedTuple

from hashrange.values import AttributeValue, Item, admit_value, item_size
from model.expressions import Action, Condition, Refused, create, holds, plain_item, token, update

FIVE_YEARS = 5 * 365 * 24 * 3600
TOKEN_SECONDS = 600
FLOAT_INFINITE = Decimal((2**25 - 1) * 2**103)
"""What is rounded to infinity: half a step above the largest 32-bit float."""

Key = tuple[Any, ...]


class Attribute(NamedTuple):
    """A key attribute."""

    name: str
    type: str


@dataclass(frozen=True)
class Vector:
    """What a vector index has beside its HASH, which is its partition key."""

    attribute: str
    dimensions: int
    distance: str
    filters: tuple[Attribute, ...]


@dataclass(frozen=True)
class IndexDefinition:
    """A secondary index, or a vector index. `included` is None where everything is projected."""

    name: str
    is_global: bool
    partition: tuple[Attribute, ...]
    sort: tuple[Attribute, ...]
    included: tuple[str, ...] | None
    vector: Vector | None = None

    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes that must have their types where an item has them."""
        return self.partition + self.sort + (self.vector.filters if self.vector else ())


@dataclass
class TableDefinition:
    """A table and its indexes."""

    name: str
    partition: Attribute
    sort: Attribute | None
    indexes: list[IndexDefinition] = field(default_factory=list)

    def key_attributes(self) -> list[Attribute]:
        return [self.partition] + ([self.sort] if self.sort else [])

    def index(self, name: str) -> IndexDefinition:
        return next(index for index in self.indexes if index.name == name)


class Cost(NamedTuple):
    """Capacity units: on the table and on each index; for a vector index, bytes."""

    table: float
    indexes: dict[str, float]


class Written(NamedTuple):
    """The effect of one write."""

    before: Item | None
    after: Item | None
    cost: Cost


@dataclass
class Selected:
    """What a Query or Scan must return over all its pages.

    `shown` are all the items read, in order, before the filter; items with equal `order` may come in any
    order among themselves.
    """

    shown: list[Item]
    order: list[Any]
    sizes: list[int]


@dataclass
class Write:
    """One write: put (`item` is whole), update, delete or check."""

    action: str
    table: str
    item: Item
    condition: Condition | None = None
    actions: list[Action] = field(default_factory=list)


class Table:
    """One table's items."""

    def __init__(self, definition: TableDefinition) -> None:
        self.definition = definition
        self.items: dict[Key, Item] = {}
        self.ttl: str | None = None

    def key_of(self, item: Item) -> Key:
        """The primary key, comparable. Raises `Refused` where the item has none that is valid."""
        key = []
        for name, type_ in self.definition.key_attributes():
            value = item.get(name)
            if value is None or type_ not in value or (type_ != "N" and not value[type_]):
                raise Refused("ValidationException")
            key.append(token(value))
        return tuple(key)

    def check_index_keys(self, item: Item) -> None:
        names = {attribute.name for attribute in self.definition.key_attributes()}
        empty: set[bool] = set()
        for index in self.definition.indexes:
            for name, type_ in index.attributes():
                value = item.get(name)
                if name in names or value is None:
                    continue
                # A filter of a vector index may be empty.
                is_filter = index.vector is not None and (name, type_) in index.vector.filters
                if type_ not in value or (type_ != "N" and not value[type_] and not is_filter):
                    empty.add(type_ in value)
            if index.vector and not is_sound(index.vector, item.get(index.vector.attribute)):
                empty.add(False)
        if empty:
            raise Refused("ValidationException", empty_key=empty.pop() if len(empty) == 1 else None)

    def projected(self, index: IndexDefinition, item: Item) -> Item | None:
        """What an index holds of an item, or None."""
        if any(attribute.name not in item for attribute in index.partition + index.sort):
            return None
        names = {a.name for a in [*self.definition.key_attributes(), *index.attributes()]}
        if index.vector:
            name = index.vector.attribute
            if name not in item:
                return None
            item = {**item, name: packed(item[name])}
            names.add(name)
        if index.included is None:
            return item
        return {name: value for name, value in item.items() if name in names or name in index.included}

    def entries(self, index: IndexDefinition) -> list[Item]:
        """Everything that an index holds."""
        return [entry for item in self.items.values() if (entry := self.projected(index, item)) is not None]

    def write(self, write: Write) -> Written:
        """Do one write. Raises `Refused`, and then nothing has changed."""
        key = self.key_of(write.item)
        before = self.items.get(key)
        if write.action == "put":
            codes = ["ValidationException"]
            if write.condition is not None and not holds(write.condition, before or {}):
                codes.append("ConditionalCheckFailedException")
            try:
                self.check_index_keys(write.item)
            except Refused as refused:
                # Which of the two is found first, no document says.
                empty_key = None if refused.empty_key and len(codes) > 1 else refused.empty_key
                raise Refused(*codes, empty_key=empty_key) from None
        if write.condition is not None and not holds(write.condition, before or {}):
            raise Refused("ConditionalCheckFailedException")
        if write.action == "check":
            return Written(before, before, Cost(max(1, ceil(self.billed_size(before) / 1024)), {}))
        after: Item | None = None
        if write.action == "put":
            after = copy.deepcopy(write.item)
        elif write.action == "update":
            if before is not None:
                after = update(write.actions, before)
            else:
                after = create(write.actions, write.item)
            if after is not None:
                self.check_index_keys(after)
        cost = self.write_cost(before, after)
        if after is not None:
            self.items[key] = after
        elif before is not None:
            del self.items[key]
        return Written(before, after, cost)

    def billed_size(self, item: Item | None) -> int:
        """The bytes that a write of an item is charged for: those of a vector are the bytes of its floats."""
        whole = dict(item or {})
        for index in self.definition.indexes:
            if index.vector and "L" in whole.get(index.vector.attribute, {}):
                whole[index.vector.attribute] = packed(whole[index.vector.attribute])
        return item_size(whole)

    def write_cost(self, before: Item | None, after: Item | None) -> Cost:
        def units(*items: Item | None) -> int:
            return max(1, ceil(max(item_size(item) if item else 0 for item in items) / 1024))

        costs: dict[str, float] = {}
        for index in self.definition.indexes:
            old = self.projected(index, before) if before else None
            new = self.projected(index, after) if after else None
            if old is None and new is None:
                continue
            price = entry_bytes if index.vector else units
            if old is None or new is None:
                costs[index.name] = price(old, new)
            elif self.index_key(index, old) != self.index_key(index, new):
                costs[index.name] = price(old) + price(new)
            elif plain_item(old) != plain_item(new):
                costs[index.name] = price(old, new)
        table = max(1, ceil(max(self.billed_size(before), self.billed_size(after)) / 1024))
        return Cost(table, costs)

    @staticmethod
    def index_key(index: IndexDefinition, item: Item) -> Key:
        return tuple(token(item[attribute.name]) for attribute in index.partition + index.sort)

    def select(
        self,
        index_name: str | None,
        partition: list[AttributeValue],
        tests: list[tuple[str, str, list[AttributeValue]]],
        *,
        reverse: bool,
    ) -> Selected:
        """What a Query selects; `tests` are `(attribute, operator, operands)` on the sort key."""
        attributes: Sequence[Attribute]
        sorts: Sequence[Attribute]
        if index_name is None:
            found = list(self.items.values())
            attributes, sort = [self.definition.partition], self.definition.sort
            sorts = (sort,) if sort else ()
        else:
            index = self.definition.index(index_name)
            found = self.entries(index)
            attributes, sorts = index.partition, index.sort
        wanted = [token(value) for value in partition]
        found = [item for item in found if [token(item[name]) for name, _ in attributes] == wanted]
        for name, operator, operands in tests:
            found = [item for item in found if _selects(item[name], operator, operands)]

        def order(item: Item) -> Any:
            return tuple(token(item[attribute.name]) for attribute in sorts)

        found.sort(key=order, reverse=reverse)
        return Selected(found, [order(item) for item in found], [item_size(item) for item in found])

    def expire(self, now: float) -> int:
        """Delete what has expired; how many items that were."""
        if self.ttl is None:
            return 0
        gone = [
            key
            for key, item in self.items.items()
            if "N" in item.get(self.ttl, {})
            and max(1, int(now) - FIVE_YEARS) <= int(Decimal(item[self.ttl]["N"])) <= int(now)
        ]
        for key in gone:
            del self.items[key]
        return len(gone)


def is_sound(vector: Vector, value: AttributeValue | None) -> bool:
    """Whether an item may have this value where the index looks for its vector."""
    if value is None:
        return True
    members = value.get("L", [])
    return len(members) == vector.dimensions and all(
        "N" in member and abs(Decimal(member["N"])) < FLOAT_INFINITE for member in members
    )


def packed(value: AttributeValue) -> AttributeValue:
    """The form in which a vector index holds a vector: its floats, so that equal floats are no change."""
    floats = struct.pack(f"<{len(value['L'])}f", *(float(member["N"]) for member in value["L"]))
    return {"B": b64encode(floats).decode()}


def entry_bytes(*items: Item | None) -> int:
    """The bytes of writing an entry of a vector index."""
    return max(1024, *(item_size(item) if item else 0 for item in items))


def _selects(value: AttributeValue, operator: str, operands: list[AttributeValue]) -> bool:
    mine = token(value)
    given = [token(operand) for operand in operands]
    if mine is None or None in given:
        raise AssertionError("a key is a string, a number or binary")
    bounds: list[Any] = [one[1] for one in given if one is not None]
    tests: dict[str, Callable[[], bool]] = {
        "=": lambda: mine[1] == bounds[0],
        "<": lambda: mine[1] < bounds[0],
        "<=": lambda: mine[1] <= bounds[0],
        ">": lambda: mine[1] > bounds[0],
        ">=": lambda: mine[1] >= bounds[0],
        "BETWEEN": lambda: bounds[0] <= mine[1] <= bounds[1],
        "begins_with": lambda: mine[1][: len(bounds[0])] == bounds[0],
    }
    return tests[operator]()


_REASONS = {
    "ConditionalCheckFailedException": "ConditionalCheckFailed",
    "ValidationException": "ValidationError",
}


class Model:
    """All tables, and the answers given to tokens."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.tokens: dict[str, tuple[Any, float]] = {}

    def transact(self, writes: list[Write], token_: str | None, payload: Any, now: float) -> bool:
        """TransactWriteItems; whether it had an effect (False: a repeated token). Raises `Refused`."""
        if token_ is not None and token_ in self.tokens and now < self.tokens[token_][1]:
            if self.tokens[token_][0] != payload:
                raise Refused("IdempotentParameterMismatchException")
            return False
        keys: set[Any] = set()
        for write in writes:
            try:
                key = (write.table, self.tables[write.table].key_of(write.item))
            except Refused:
                continue
            if key in keys:
                raise Refused("ValidationException")
            keys.add(key)
        saved = {name: dict(table.items) for name, table in self.tables.items()}
        reasons: list[tuple[str, ...]] = []
        empty_keys: set[bool | None] = set()
        for write in writes:
            try:
                self.tables[write.table].write(write)
                reasons.append(("None",))
            except Refused as refused:
                reasons.append(tuple(_REASONS[code] for code in refused.codes))
                empty_keys.add(refused.empty_key)
        if set(reasons) != {("None",)}:
            for name, items in saved.items():
                self.tables[name].items = items
            if True in empty_keys:
                raise Refused("ValidationException")
            also = ["ValidationException"] if None in empty_keys else []
            raise Refused("TransactionCanceledException", *also, reasons=reasons)
        if token_ is not None:
            self.tokens[token_] = (payload, int(now) + TOKEN_SECONDS)
        return True


def admitted(given: Any) -> Any:
    """A copy of a value, or of a tree of tuples and lists that holds values, with numbers in normal form."""
    if isinstance(given, dict):
        copied = copy.deepcopy(given)
        admit_value(copied)
        return copied
    if isinstance(given, tuple | list):
        return type(given)(map(admitted, given))
    return given


def admitted_item(item: Item) -> Item:
    """As `admitted`, for an item."""
    return {name: admitted(value) for name, value in item.items()}
