"""Plans how a statement reads its items: finds the terms of its WHERE clause that bind the key.

Rules: the terms that AND joins at the top are examined one by one. An equality of the partition key with a
value makes a query. IN, or equalities joined by OR, make several queries, one after the other. Otherwise the
statement makes a scan. Comparisons of the sort key with values narrow a query; several of them narrow it
together. The other terms are the filter. UPDATE, DELETE and single reads need an equality on every key
attribute. Statements cannot read indexes whose key has several partition or sort attributes.

Source: Developer Guide, "PartiQL select statements for DynamoDB".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Final, Literal, NamedTuple, TypeAlias

from hashrange import encoding
from hashrange.errors import INVALID, ValidationException
from hashrange.expressions.conditions import Test, compile_condition
from hashrange.expressions.tree import (
    And,
    Between,
    Call,
    Comparison,
    ConditionTree,
    In,
    Not,
    Operand,
    Or,
    Path,
    Value,
    joined,
    walk,
)
from hashrange.limits import PARTIQL_IN_KEYS_MAX
from hashrange.partiql.prepared import Prepared, Values
from hashrange.tables.definitions.table import KeyAttribute, KeySchema
from hashrange.tables.items import keys
from hashrange.tables.reads import ranges
from hashrange.tables.reads.ranges import ReadSource
from hashrange.values import AttributeValue, Item

KEY_TYPE: Final = "Key attribute's data type should match its data type in table's schema: Key {}"
INCOMPLETE_KEY: Final = "Where clause does not contain a mandatory equality on all key attributes"
_TOO_MANY_KEYS: Final = "The IN operator is provided with too many operands; number of operands: {}"
REPEATED: Final = "Multiple conditions on same key {}. Only single item Update/Insert/Delete are supported"

_OVERLAP: Final = "Overlapping conditions with range keys are not supported in where clause"

_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PLANS_MAX: Final = 8


class Term(NamedTuple):
    """A comparison of a top-level attribute with values. `operator` is an operator of key conditions, or IN
    or OR: the attribute equals one of several values."""

    attribute: str
    operator: str
    values: tuple[str, ...]


class Access(NamedTuple):
    """How to read a table or index.

    `partition` holds the values that the partition key may have; it is empty for a scan. `equal` is the
    equality of the sort key, `narrow` are its other comparisons. `rest` is the filter, `filtered` the
    attributes that it uses. `key` maps each key attribute to its value if all are bound by equality;
    `repeated` is a key attribute that has two equalities. `has_in`: an IN binds the partition key.
    `branches` are the sides of an OR at the top, if each of them binds the partition key.
    """

    partition: tuple[str, ...]
    equal: Term | None
    narrow: tuple[Term, ...]
    rest: Test | None
    filtered: frozenset[str]
    key: dict[str, str] | None
    repeated: str | None
    has_in: bool
    branches: tuple[Branch, ...]


class Branch(NamedTuple):
    """One side of an OR: the value of the partition key, and the comparisons of the sort key."""

    partition: str
    narrow: tuple[Term, ...]


class Spans(NamedTuple):
    """The distinct partition keys of a query, packed, in ascending order, with their values; and the bounds
    of the sort key. The address of a partition is computed when it is read."""

    packed: list[bytes]
    keys: dict[bytes, AttributeValue]
    low: bytes
    high: bytes | None


Way: TypeAlias = Literal["get", "query", "scan"]


def way_of(access: Access, *, on_index: bool) -> Way:
    """How a SELECT reads: one item by its key, partitions by queries, or everything."""
    if access.key is not None and not on_index:
        return "get"
    return "query" if access.partition else "scan"


def plan(prepared: Prepared, key: KeySchema) -> Access:
    """How a statement with a condition reads a table or index with this key. Cached with the statement."""
    access: Access | None = prepared.plans.get(key)
    if access is None:
        if len(prepared.plans) >= _PLANS_MAX:
            prepared.plans.clear()
        access = prepared.plans[key] = _plan(prepared, key)
    return access


def _plan(prepared: Prepared, key: KeySchema) -> Access:
    conjuncts = [] if prepared.where is None else joined(prepared.where, And)
    terms = [_term(conjunct) for conjunct in conjuncts]
    used: set[int] = set()
    bound: Term | None = None
    equal: Term | None = None
    narrow: list[Term] = []
    if key.is_simple:
        bound = _bind_partition(key, terms, used)
        if bound is not None and key.sort:
            equal = _bind_sort(key.sort[0], terms, used, narrow)
    remaining = [conjunct for number, conjunct in enumerate(conjuncts) if number not in used]
    return Access(
        () if bound is None else bound.values,
        equal,
        tuple(narrow),
        compile_condition(reduce(And, remaining), prepared.names) if remaining else None,
        frozenset(name for conjunct in remaining for name in _attributes(conjunct)),
        _whole_key(key, bound, equal),
        _repeated(key, terms),
        bound is not None and bound.operator == "IN",
        _branches(prepared.where, key),
    )


def _branches(where: ConditionTree | None, key: KeySchema) -> tuple[Branch, ...]:
    """The sides of an OR, if each reads a range of the sort key in one partition; otherwise ()."""
    if not isinstance(where, Or) or not key.is_simple or not key.sort:
        return ()
    branches: list[Branch] = []
    for side in joined(where, Or):
        conjuncts = joined(side, And)
        if any(_is_negative(conjunct, key) for conjunct in conjuncts):
            return ()
        terms = [_term(conjunct) for conjunct in conjuncts]
        number = _find(terms, key.partition[0].name, ("=",))
        term = None if number is None else terms[number]
        if term is None:
            return ()
        name = key.sort[0].name
        on_sort = [sort_term for sort_term in terms if sort_term and sort_term.attribute == name]
        narrow = [sort_term for sort_term in on_sort if sort_term.operator != "OR"]
        branches.append(Branch(term.values[0], tuple(narrow)))
    return tuple(branches)


def _is_negative(conjunct: ConditionTree, key: KeySchema) -> bool:
    """Whether a condition negates a test of a key attribute."""
    negates = isinstance(conjunct, Not) or (isinstance(conjunct, Comparison) and conjunct.operator == "<>")
    return negates and not {name for name, _ in key.attributes()}.isdisjoint(_attributes(conjunct))


def _attributes(tree: ConditionTree) -> Iterator[str]:
    """The attributes that a condition uses."""
    for node in walk(tree):
        if isinstance(node, Path):
            yield str(node.elements[0])


def _term(node: ConditionTree) -> Term | None:
    match node:
        case Comparison(operator, Path((str() as name,)), Value(value)) if operator in _MIRRORED:
            return Term(name, operator, (value,))
        case Comparison(operator, Value(value), Path((str() as name,))) if operator in _MIRRORED:
            return Term(name, _MIRRORED[operator], (value,))
        case Between(Path((str() as name,)), Value(low), Value(high)):
            return Term(name, "BETWEEN", (low, high))
        case Call("begins_with", (Path((str() as name,)), Value(value))):
            return Term(name, "begins_with", (value,))
        case In(Path((str() as name,)), choices):
            return _choice(name, choices)
        case Or():
            parts = [_term(part) for part in joined(node, Or)]
            first = parts[0]
            if first is not None and all(
                part is not None and part.attribute == first.attribute and part.operator in ("=", "IN", "OR")
                for part in parts
            ):
                return Term(
                    first.attribute, "OR", tuple(name for part in parts if part for name in part.values)
                )
    return None


def _choice(name: str, choices: Sequence[Operand]) -> Term | None:
    values = tuple(choice.name for choice in choices if isinstance(choice, Value))
    return Term(name, "IN", values) if len(values) == len(choices) else None


def _bind_partition(key: KeySchema, terms: Sequence[Term | None], used: set[int]) -> Term | None:
    name = key.partition[0].name
    number = _find(terms, name, ("=",))
    if number is None:
        number = _find(terms, name, ("IN", "OR"))
    if number is None:
        return None
    used.add(number)
    return terms[number]


def _find(terms: Sequence[Term | None], name: str, operators: tuple[str, ...]) -> int | None:
    for number, term in enumerate(terms):
        if term is not None and term.attribute == name and term.operator in operators:
            return number
    return None


def _bind_sort(
    attribute: KeyAttribute, terms: Sequence[Term | None], used: set[int], narrow: list[Term]
) -> Term | None:
    number = _find(terms, attribute.name, ("=",))
    if number is not None:
        used.add(number)
        return terms[number]
    for number, term in enumerate(terms):
        if term is not None and term.attribute == attribute.name and term.operator not in ("IN", "OR"):
            narrow.append(term)
            used.add(number)
    return None


def _whole_key(key: KeySchema, bound: Term | None, equal: Term | None) -> dict[str, str] | None:
    if bound is None or bound.operator != "=" or (equal is None and key.sort):
        return None
    return {term.attribute: term.values[0] for term in (bound, equal) if term is not None}


def _repeated(key: KeySchema, terms: Sequence[Term | None]) -> str | None:
    """A key attribute with more than one equality."""
    equal = [term.attribute for term in terms if term is not None and term.operator == "="]
    return next((name for name, _ in key.attributes() if equal.count(name) > 1), None)


def key_of(access: Access, schema: KeySchema, values: Values) -> Item:
    """The primary key that a statement names. Raises `ValidationException` if it does not name all of it."""
    if access.key is None:
        raise ValidationException(INCOMPLETE_KEY)
    key = {attribute.name: values[access.key[attribute.name]] for attribute in schema.attributes()}
    for attribute in schema.attributes():
        check_type(attribute, key[attribute.name])
    return key


def check_type(attribute: KeyAttribute, value: AttributeValue) -> None:
    """Raise `ValidationException` if a key attribute's value has the wrong type."""
    if attribute.type not in value:
        raise ValidationException(KEY_TYPE.format(attribute.name))


def spans(source: ReadSource, access: Access, values: Values) -> Spans:
    """The partitions and bounds of a query. Raises `ValidationException` for values that cannot be keys."""
    if access.has_in and len(access.partition) > PARTIQL_IN_KEYS_MAX:
        raise ValidationException(_TOO_MANY_KEYS.format(len(access.partition)))
    partition_values = [values[name] for name in access.partition]
    key_values = _key_values(source.key.partition[0], partition_values, access.has_in)
    by_packed = {encoding.pack_component(value): value for value in key_values}
    low, high = _bounds(source, access, values)
    if high is not None and low >= high:
        return Spans([], {}, low, high)
    return Spans(sorted(by_packed), by_packed, low, high)


def check_apart(source: ReadSource, access: Access, values: Values) -> None:
    """Raise `ValidationException` if two sides of an OR read some of the same sort keys of one partition.

    [report] paritysuite, captures of 2026: a side without a condition on the sort key overlaps too; sides
    that negate a test of a key attribute are not checked. That equal sides overlap is [assumed].
    """
    ranges_of: dict[bytes, list[_Range]] = {}
    narrowed: set[bytes] = set()
    for branch in access.branches:
        value = values[branch.partition]
        if source.key.partition[0].type not in value:
            return
        packed = encoding.pack_component(value)
        if branch.narrow:
            narrowed.add(packed)
        ranges_of.setdefault(packed, []).extend(_ranges(source, branch, values))
    for packed in narrowed:
        end: bytes | None = b""
        for low, high in sorted(ranges_of[packed], key=_low):
            if end is None or low < end:
                raise ValidationException(_OVERLAP)
            end = high


_Range: TypeAlias = tuple[bytes, bytes | None]


def _low(range_: _Range) -> bytes:
    return range_[0]


def _ranges(source: ReadSource, branch: Branch, values: Values) -> set[_Range]:
    """The ranges of sort bytes that one side of an OR reads; values of a wrong type give none."""
    intersections: set[_Range] = {ranges.sort_bounds(source.index is not None, (), None, ())}
    for term in branch.narrow:
        operands = [values[name] for name in term.values]
        if any(source.key.sort[0].type not in operand for operand in operands):
            return set()
        choices = [[operand] for operand in operands] if term.operator == "IN" else [operands]
        operator = "=" if term.operator == "IN" else term.operator
        allowed = {ranges.sort_bounds(source.index is not None, (), operator, choice) for choice in choices}
        common = (_intersection(first, second) for first in intersections for second in allowed)
        intersections = {range_ for range_ in common if range_ is not None}
    return intersections


def _intersection(first: _Range, second: _Range) -> _Range | None:
    low = max(first[0], second[0])
    high = second[1] if first[1] is None else first[1] if second[1] is None else min(first[1], second[1])
    return (low, high) if high is None or low < high else None


def _key_values(attribute: KeyAttribute, values: list[AttributeValue], has_in: bool) -> list[AttributeValue]:
    # As in DynamoDB Local: the first value of IN must have the right type; later values of a wrong type match
    # no item.
    if has_in or len(values) == 1:
        check_type(attribute, values[0])
    return [keys.checked(value, attribute, is_sort=False) for value in values if attribute.type in value]


def _bounds(source: ReadSource, access: Access, values: Values) -> tuple[bytes, bytes | None]:
    """The bounds of the sort key, from all terms on the sort key together."""
    is_index = source.index is not None
    if access.equal is not None:
        operands = _operands(source.key.sort[0], access.equal, values)
        return ranges.sort_bounds(is_index, (), "=", operands)
    low, high = ranges.sort_bounds(is_index, (), None, ())
    for term in access.narrow:
        operands = _operands(source.key.sort[0], term, values)
        above, below = ranges.sort_bounds(is_index, (), term.operator, operands)
        low = max(low, above)
        high = below if high is None else high if below is None else min(high, below)
    return low, high


def _operands(attribute: KeyAttribute, term: Term, values: Values) -> list[AttributeValue]:
    operands = [values[name] for name in term.values]
    for value in operands:
        check_type(attribute, value)
        if term.operator == "begins_with":
            if attribute.type == "N":
                raise ValidationException(f"{INVALID}Condition parameter type does not match schema type")
        else:
            keys.checked(value, attribute, is_sort=True)
    return operands
