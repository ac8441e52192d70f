"""What the machines make up: tables, keys, items, conditions and updates.

Keys come from small pools, so that they meet again. The pools hold values that order-preserving bytes easily
get wrong: 00 and FF bytes, prefixes of each other, astral and surrogate-range neighbours, numbers of 38
digits at both ends of the range.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from hashrange.values import AttributeValue, Item
from model.expressions import Action, Condition, token
from model.reference import Attribute, IndexDefinition, TableDefinition, Vector, admitted

TTL_ATTRIBUTE = "ttl"
START = 1_700_000_000

_STRINGS = ["a", "ab", "a\x00", "a\x00\x00", "a\x01", "b", "\x7f", "é", "\ue000", "\uffff", "𝄞"]
_STRINGS += ["z" * 70, "z" * 71]
_BINARY = [b"\x00", b"\x00\x00", b"\x00\x01", b"\x00\xff", b"a", b"a\x00", b"a\xff", b"\xff", b"\xff\xff"]
_NUMBERS = [
    "0", "1", "-1", "2", "10", "-10", "100", "1.5", "-1.5", "0.001", "1e-130", "-1e-130", "9.9e-130",
    "9" * 38, "-" + "9" * 38, "9.9999999999999999999999999999999999999e125",
    "-9.9999999999999999999999999999999999999e125", "1e125",
    "12345678901234567890123456789012345678", "12345678901234567890123456789012345679",
    "0.12345678901234567890123456789012345678",
]  # fmt: skip


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


@st.composite
def numbers(draw: st.DrawFn) -> str:
    """Any number that DynamoDB takes, in any spelling."""
    digits = str(draw(st.integers(1, 10 ** draw(st.integers(1, 38)) - 1)))
    leading = draw(st.one_of(st.integers(-3, 5), st.integers(-130, 125)))
    sign = draw(st.sampled_from(["", "-"]))
    return f"{sign}{digits[0]}.{digits[1:] or '0'}e{leading}"


def strings(min_size: int = 0) -> st.SearchStrategy[str]:
    return st.text(st.characters(codec="utf-8"), min_size=min_size, max_size=4)


def keys(type_: str) -> st.SearchStrategy[AttributeValue]:
    """Key values of one type."""
    content: st.SearchStrategy[str]
    if type_ == "S":
        content = st.sampled_from(_STRINGS) | strings(1)
    elif type_ == "N":
        content = st.sampled_from(_NUMBERS) | numbers()
    else:
        content = (st.sampled_from(_BINARY) | st.binary(min_size=1, max_size=3)).map(encoded)
    return st.builds(lambda text: {type_: text}, content)


scalars = st.one_of(
    st.builds(lambda n: {"N": str(n)}, st.integers(-3, 3)),
    keys("N"),
    st.builds(lambda s: {"S": s}, st.sampled_from(["", *_STRINGS])),
    st.builds(lambda b: {"B": encoded(b)}, st.sampled_from([b"", *_BINARY])),
    st.sampled_from([{"BOOL": True}, {"BOOL": False}, {"NULL": True}]),
)
_members = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True)
sets = st.one_of(
    st.builds(lambda m: {"SS": m}, _members),
    st.builds(lambda m: {"NS": m}, st.lists(st.sampled_from(["1", "2", "-3"]), min_size=1, unique=True)),
    st.builds(lambda m: {"BS": [encoded(one.encode()) for one in m]}, _members),
)
lists = st.builds(lambda members: {"L": members}, st.lists(scalars, max_size=3))
maps = st.builds(
    lambda members: {"M": members}, st.dictionaries(st.sampled_from("kj"), scalars | lists, max_size=2)
)
large = st.builds(lambda n: {"S": "x" * n}, st.integers(900, 5_000))
values = st.one_of(scalars, sets, lists, maps)

# Few numbers, so that vectors are often equal, and scores more often.
components = st.sampled_from(["0", "1", "-1", "2", "0.1", "0.10000000000000000001", "1e-30"])
vectors: st.SearchStrategy[AttributeValue] = st.lists(components, min_size=2, max_size=2).map(
    lambda numbers: {"L": [{"N": number} for number in numbers]}
)
_UNSOUND: list[AttributeValue] = [
    {"L": [{"N": "1"}]},
    {"L": [{"N": "1"}, {"S": "1"}]},
    {"L": [{"N": "1"}, {"N": "3.5e38"}]},
    {"NS": ["1", "2"]},
    {"S": "1"},
]

_times = st.builds(lambda n: {"N": str(START + n)}, st.integers(-10, 100))
# Attributes that no index uses, with the values that they mostly have.
_FREE: dict[str, st.SearchStrategy[AttributeValue]] = {
    "v": values,
    "n": st.builds(lambda n: {"N": str(n)}, st.integers(-3, 3)),
    "l": lists,
    "m": maps,
    "q": sets,
    "x": scalars | large,
    "e": vectors,
    TTL_ATTRIBUTE: _times | _times | scalars,
}
# Attributes that indexes use, with their types.
_INDEXED = {"g": "S", "h": "N", "b": "B"}


def _index(
    name: str, is_global: bool, partition: str, sort: str, included: tuple[str, ...] | None
) -> IndexDefinition:
    types = {**_INDEXED, "p": "S", "k": "N"}
    return IndexDefinition(
        name,
        is_global,
        tuple(Attribute(one, types[one]) for one in partition),
        tuple(Attribute(one, types[one]) for one in sort),
        included,
    )


LATE_INDEX = _index("late", True, "h", "b", ("v",))


def _vector_index(
    name: str, partition: str, filters: str, distance: str, included: tuple[str, ...] | None
) -> IndexDefinition:
    vector = Vector("e", 2, distance, tuple(Attribute(each, _INDEXED[each]) for each in filters))
    return replace(_index(name, True, partition, "", included), vector=vector)


LATE_VECTOR_INDEX = _vector_index("late", "", "h", "EUCLIDEAN", ("n",))


def definitions() -> list[TableDefinition]:
    """The tables of every history."""
    return [
        TableDefinition("plain", Attribute("p", "B"), Attribute("k", "S")),
        TableDefinition(
            "local",
            Attribute("p", "S"),
            Attribute("k", "N"),
            [
                _index("by-b", False, "p", "b", None),
                _index("by-g", False, "p", "g", ()),
                _index("by-h", False, "p", "h", ("v", "n")),
                _index("g-keys", True, "g", "", ()),
                _index("g-included", True, "g", "h", ("v",)),
            ],
        ),
        TableDefinition(
            "global",
            Attribute("p", "N"),
            None,
            [
                _index("g-all", True, "g", "b", None),
                _index("b-keys", True, "b", "", ()),
                _index("g-h", True, "g", "h", ("m",)),
                _index("several", True, "gh", "b", None),
            ],
        ),
        TableDefinition(
            "vectors",
            Attribute("p", "S"),
            Attribute("k", "N"),
            [
                _vector_index("near", "", "gh", "COSINE", None),
                _vector_index("scoped", "g", "b", "DOT_PRODUCT", ()),
            ],
        ),
    ]


def create_request(definition: TableDefinition) -> dict[str, Any]:
    """The CreateTable request of a definition."""
    attributes = set(definition.key_attributes())
    for index in definition.indexes:
        attributes.update(index.attributes())
    request: dict[str, Any] = {
        "TableName": definition.name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, t in sorted(attributes)],
        "KeySchema": _key_schema((definition.partition,), (definition.sort,) if definition.sort else ()),
    }
    for is_global, member in ((False, "LocalSecondaryIndexes"), (True, "GlobalSecondaryIndexes")):
        indexes = [
            index_request(index)
            for index in definition.indexes
            if index.is_global == is_global and index.vector is None
        ]
        if indexes:
            request[member] = indexes
    near = [vector_index_request(index, index.vector) for index in definition.indexes if index.vector]
    if near:
        request["VectorIndexes"] = near
    return request


def index_request(index: IndexDefinition) -> dict[str, Any]:
    """A secondary index as CreateTable and UpdateTable take it."""
    return {
        "IndexName": index.name,
        "KeySchema": _key_schema(index.partition, index.sort),
        "Projection": _projection(index),
    }


def vector_index_request(index: IndexDefinition, vector: Vector) -> dict[str, Any]:
    """A vector index as CreateTable and UpdateTable take it."""
    request: dict[str, Any] = {
        "IndexName": index.name,
        "VectorAttribute": {"AttributeName": vector.attribute},
        "Projection": _projection(index),
        "Dimensions": vector.dimensions,
        "DistanceFunction": vector.distance,
    }
    roles = (("HASH", index.partition), ("INLINE_FILTER", vector.filters))
    schema = [
        {"AttributeName": attribute.name, "SearchSchemaElementType": role}
        for role, attributes in roles
        for attribute in attributes
    ]
    if schema:
        request["SearchSchema"] = schema
    return request


def _projection(index: IndexDefinition) -> dict[str, Any]:
    if index.included is None:
        return {"ProjectionType": "ALL"}
    if not index.included:
        return {"ProjectionType": "KEYS_ONLY"}
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.included)}


def _key_schema(partition: tuple[Attribute, ...], sort: tuple[Attribute, ...]) -> list[dict[str, str]]:
    return [{"AttributeName": a.name, "KeyType": "HASH"} for a in partition] + [
        {"AttributeName": a.name, "KeyType": "RANGE"} for a in sort
    ]


def key_items(definition: TableDefinition) -> st.SearchStrategy[Item]:
    """Primary keys, from a pool so small that they meet again."""
    small = {"S": _STRINGS, "N": _NUMBERS, "B": [*map(encoded, _BINARY)]}
    parts: dict[str, st.SearchStrategy[AttributeValue]] = {}
    for position, (name, type_) in enumerate(definition.key_attributes()):
        if position == 0 and definition.sort is not None:
            parts[name] = st.sampled_from([{type_: text} for text in small[type_][:3]])
        else:
            parts[name] = keys(type_)
    return st.fixed_dictionaries(parts)


@st.composite
def items(draw: st.DrawFn, definition: TableDefinition) -> Item:
    """Whole items; now and then with an index key of the wrong type."""
    item = draw(key_items(definition))
    for name, type_ in _INDEXED.items():
        choice = draw(st.integers(0, 19))
        if choice > 5:
            common = {"S": _STRINGS[:3], "N": ["1", "2", "1e125"], "B": [*map(encoded, _BINARY[:3])]}[type_]
            item[name] = {type_: draw(st.sampled_from(common))} if choice > 9 else draw(keys(type_))
        elif choice == 0:
            item[name] = draw(scalars)
    for name in draw(st.sets(st.sampled_from([*sorted(_FREE), TTL_ATTRIBUTE, TTL_ATTRIBUTE]), max_size=4)):
        item[name] = draw(_FREE[name])
    if definition.name == "vectors" and (choice := draw(st.integers(0, 19))) > 2:
        item["e"] = draw(vectors if choice > 3 else st.sampled_from(_UNSOUND))
    return item


_paths = st.one_of(
    st.sampled_from([(name,) for name in [*_FREE, *_INDEXED]]),
    st.sampled_from([("m", "k"), ("m", "j"), ("l", 0), ("l", 1), ("v", "k"), ("v", 0)]),
)
_comparable = st.one_of(*map(keys, ("S", "N", "B")), _FREE["n"])
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


def in_order(one: AttributeValue, other: AttributeValue) -> list[AttributeValue]:
    """Two key values of one type, the lower first."""
    return sorted((one, other), key=lambda value: token(admitted(value)))  # type: ignore[arg-type,return-value]


_between: st.SearchStrategy[Condition] = st.builds(
    lambda path, bounds: ("between", path, *in_order(*bounds)),
    _paths,
    st.sampled_from("SNB").flatmap(lambda type_: st.tuples(keys(type_), keys(type_))),
)
_tests: st.SearchStrategy[Condition] = st.one_of(
    st.tuples(st.sampled_from(["exists", "missing"]), _paths),
    st.tuples(st.just("type"), _paths, st.sampled_from(["S", "N", "B", "SS", "NS", "L", "M", "BOOL"])),
    st.tuples(st.just("begins"), _paths, keys("S") | keys("B")),
    st.tuples(st.just("contains"), _paths, scalars),
    st.tuples(st.just("compare"), _paths, st.sampled_from(_OPERATORS), _comparable),
    st.tuples(st.just("compare"), _paths, st.sampled_from(["=", "<>"]), values),
    _between,
    st.tuples(st.just("in"), _paths, st.lists(values, min_size=1, max_size=3)),
    st.tuples(st.just("size"), _paths, st.sampled_from(["=", "<", "<=", ">", ">="]), st.integers(0, 3)),
)
conditions: st.SearchStrategy[Condition] = st.recursive(
    _tests,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
    ),
    max_leaves=3,
)


def filters(excluded: set[str], only: tuple[str, ...] | None) -> st.SearchStrategy[Condition]:
    """Conditions that do not use the attributes of a key, or use `only` some attributes."""
    if only is not None:
        return st.builds(_about, conditions, st.sampled_from(only))
    return conditions.filter(lambda tree: not _uses(tree, excluded))


def _search_test(attribute: Attribute) -> st.SearchStrategy[Condition]:
    name, type_ = attribute
    common = {"S": _STRINGS[:3], "N": ["1", "2", "1e125"], "B": [*map(encoded, _BINARY[:3])]}[type_]
    values_ = st.sampled_from([{type_: text} for text in common]) | keys(type_)
    path = st.just((name,))
    tests = [
        st.tuples(st.just("compare"), path, st.sampled_from(_OPERATORS), values_),
        st.tuples(st.just("compare"), path, st.just("="), values_),
        st.tuples(st.just("in"), path, st.lists(values_, min_size=1, max_size=3)),
        st.tuples(st.just("contains"), path, values_),
        st.tuples(st.sampled_from(["exists", "missing"]), path),
        st.builds(lambda bounds: ("between", (name,), *in_order(*bounds)), st.tuples(values_, values_)),
    ]
    if type_ != "N":
        tests.append(st.tuples(st.just("begins"), path, values_))
    return st.one_of(tests)


def search_conditions(filters: tuple[Attribute, ...]) -> st.SearchStrategy[Condition]:
    """Conditions of a vector search on these filter attributes."""
    return st.recursive(
        st.one_of(*map(_search_test, filters)),
        lambda inner: st.one_of(
            st.tuples(st.just("not"), inner),
            st.tuples(st.sampled_from(["and", "or"]), inner, inner),
        ),
        max_leaves=3,
    )


def _about(tree: Condition, name: str) -> Condition:
    """A condition with all its paths led into one attribute."""
    if tree[0] in ("not", "and", "or"):
        return (tree[0], *(_about(inner, name) for inner in tree[1:]))
    return (tree[0], (name, *tree[1][1:]), *tree[2:])


def _uses(tree: Condition, names: set[str]) -> bool:
    if tree[0] in ("not", "and", "or"):
        return any(_uses(inner, names) for inner in tree[1:])
    return tree[1][0] in names


_operands = st.one_of(
    st.tuples(st.just("value"), values),
    st.tuples(st.just("path"), _paths),
    st.tuples(st.just("default"), _paths, values),
    st.tuples(st.sampled_from(["plus", "minus"]), st.just(("n",)) | _paths, keys("N") | _FREE["n"]),
    st.tuples(st.just("append"), st.just(("l",)) | _paths, lists),
)


@st.composite
def _action(draw: st.DrawFn, path: tuple[Any, ...]) -> Action:
    kinds = ["set", "remove"]
    if len(path) == 1:
        kinds += ["add", "delete"]
    kind = draw(st.sampled_from(kinds))
    if kind == "set":
        name = path[0]
        if len(path) == 1 and draw(st.booleans()):
            value = keys(_INDEXED[name]) if name in _INDEXED else _FREE[name]
            return ("set", path, ("value", draw(value)))
        return ("set", path, draw(_operands))
    if kind == "remove":
        return ("remove", path)
    if kind == "add":
        return ("add", path, draw(sets | _FREE["n"]))
    return ("delete", path, draw(sets))


@st.composite
def updates(draw: st.DrawFn, min_size: int) -> list[Action]:
    """Actions on paths that do not overlap; none is an update without an expression."""
    chosen: list[tuple[Any, ...]] = []
    for path in draw(st.lists(_paths, min_size=min_size, max_size=4, unique=True)):
        if all(_apart(path, other) for other in chosen):
            chosen.append(path)
    return [draw(_action(path)) for path in chosen]


def _apart(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two paths neither overlap nor need one value to be a list and a map at once."""
    if one[0] != other[0]:
        return True
    return len(one) == len(other) == 2 and type(one[1]) is type(other[1])
