"""Properties of the expression languages, over trees, items and texts that Hypothesis makes up.

The evaluators in this file walk the trees in the plainest way, over Python values instead of wire values;
they share nothing with the package but the trees.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange import expressions
from hashrange.errors import ValidationException
from hashrange.expressions import Substitutions, Update
from hashrange.expressions.conditions import compile_condition
from hashrange.expressions.lexer import ExpressionError
from hashrange.expressions.parser import parse_condition, parse_projection, parse_update
from hashrange.expressions.tree import (
    Add,
    And,
    Arithmetic,
    Between,
    Call,
    Comparison,
    Delete,
    In,
    Not,
    Or,
    Path,
    ProjectionTree,
    Remove,
    Set,
    UpdateTree,
    Value,
    show,
)
from hashrange.expressions.updates import compile_update
from hashrange.values import admit_item, admit_value, numbers

# ---- values and items -------------------------------------------------------------------------------

TEXTS = st.text(alphabet="ab\u00e9\U0001d11e", max_size=3)
NUMBERS = st.sampled_from(["0", "1", "-1", "2", "1.5", "10", "99999999999999999999999999999999999999"])
BINARIES = st.binary(max_size=2).map(lambda data: base64.b64encode(data).decode())

SCALARS = st.one_of(
    st.builds(lambda text: {"S": text}, TEXTS),
    st.builds(lambda text: {"N": text}, NUMBERS),
    st.builds(lambda text: {"B": text}, BINARIES),
    st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
    st.just({"NULL": True}),
    st.builds(lambda members: {"SS": members}, st.lists(TEXTS, min_size=1, max_size=3, unique=True)),
    st.builds(lambda members: {"NS": members}, st.lists(NUMBERS, min_size=1, max_size=3, unique=True)),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda members: {"L": members}, st.lists(inner, max_size=3)),
        st.builds(
            lambda members: {"M": members}, st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
        ),
    ),
    max_leaves=4,
)
ITEMS = st.dictionaries(st.sampled_from(["a", "b", "d"]), VALUES, max_size=3)
NAMES = {"#d": "d"}

# ---- trees ------------------------------------------------------------------------------------------

ELEMENTS = st.one_of(st.sampled_from(["a", "b", "#d"]), st.integers(0, 3))
PATHS = st.builds(
    lambda first, rest: Path((first, *rest)),
    st.sampled_from(["a", "b", "#d"]),
    st.lists(ELEMENTS, max_size=2),
)
PLACEHOLDERS = st.builds(Value, st.sampled_from([":u", ":v", ":w"]))
SIMPLE: st.SearchStrategy[Any] = st.one_of(PATHS, PLACEHOLDERS)
OPERANDS: st.SearchStrategy[Any] = st.one_of(
    SIMPLE, st.builds(lambda operand: Call("size", (operand,)), SIMPLE)
)
COMPARISONS: st.SearchStrategy[Any] = st.one_of(
    st.builds(Comparison, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), OPERANDS, OPERANDS),
    st.builds(Between, OPERANDS, OPERANDS, OPERANDS),
    st.builds(In, OPERANDS, st.lists(OPERANDS, min_size=1, max_size=3).map(tuple)),
    st.builds(
        lambda name, path: Call(name, (path,)),
        st.sampled_from(["attribute_exists", "attribute_not_exists"]),
        PATHS,
    ),
    st.builds(
        lambda name, one, other: Call(name, (one, other)),
        st.sampled_from(["begins_with", "contains", "attribute_type"]),
        OPERANDS,
        OPERANDS,
    ),
)
CONDITIONS: st.SearchStrategy[Any] = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(st.builds(And, inner, inner), st.builds(Or, inner, inner), st.builds(Not, inner)),
    max_leaves=8,
)
UPDATE_OPERANDS: st.SearchStrategy[Any] = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds(lambda path, default: Call("if_not_exists", (path, default)), PATHS, inner),
        st.builds(lambda one, other: Call("list_append", (one, other)), inner, inner),
    ),
    max_leaves=3,
)
RIGHT_SIDES: st.SearchStrategy[Any] = st.one_of(
    UPDATE_OPERANDS,
    st.builds(Arithmetic, st.sampled_from("+-"), UPDATE_OPERANDS, UPDATE_OPERANDS),
)
CLAUSES: list[st.SearchStrategy[Any]] = [
    st.lists(st.builds(Set, PATHS, RIGHT_SIDES), max_size=3),
    st.lists(st.builds(Remove, PATHS), max_size=2),
    st.lists(st.builds(Add, PATHS, PLACEHOLDERS), max_size=2),
    st.lists(st.builds(Delete, PATHS, PLACEHOLDERS), max_size=2),
]
UPDATES = st.builds(
    lambda clauses: UpdateTree(tuple(action for clause in clauses for action in clause)),
    st.tuples(*CLAUSES).flatmap(lambda clauses: st.permutations(list(clauses))),
).filter(lambda tree: bool(tree.actions))

# ---- parse and print --------------------------------------------------------------------------------


@given(CONDITIONS)
def test_printing_and_parsing_a_condition_gives_it_back(tree: Any) -> None:
    assert parse_condition(show(tree)) == tree


@given(UPDATES)
def test_printing_and_parsing_an_update_gives_it_back(tree: UpdateTree) -> None:
    assert parse_update(show(tree))[0] == tree


@given(st.lists(PATHS, min_size=1, max_size=4))
def test_printing_and_parsing_a_projection_gives_it_back(paths: list[Path]) -> None:
    tree = ProjectionTree(tuple(paths))
    assert parse_projection(show(tree)) == tree


# ---- conditions: the compiled function against a walk over the tree -----------------------------------


def model(value: dict[str, Any] | None) -> Any:
    """The value as `(type, Python value)`; None stays None."""
    if value is None:
        return None
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return kind, content.encode()
        case "N":
            return kind, Decimal(content)
        case "B":
            return kind, base64.b64decode(content)
        case "L":
            return kind, [model(member) for member in content]
        case "M":
            return kind, {name: model(member) for name, member in content.items()}
        case "SS":
            return kind, {member.encode() for member in content}
        case "NS":
            return kind, {Decimal(member) for member in content}
        case _:
            return kind, content


def look_up(item: Any, path: Path) -> Any:
    value: Any = ("M", item)
    for element in path.elements:
        name = NAMES.get(element, element) if isinstance(element, str) else element
        if isinstance(name, str):
            value = value[1].get(name) if value[0] == "M" else None
        else:
            value = value[1][name] if value[0] == "L" and name < len(value[1]) else None
        if value is None:
            return None
    return value


def evaluate(operand: Any, item: Any, values: Any) -> Any:
    match operand:
        case Path():
            return look_up(item, operand)
        case Value(name):
            return values[name]
        case Call("size", (inner,)):
            value = evaluate(inner, item, values)
            if value is None or value[0] in ("N", "BOOL", "NULL"):
                return None
            if value[0] == "S":
                return "N", Decimal(len(value[1].decode().encode("utf-16-le")) // 2)
            return "N", Decimal(len(value[1]))
    raise AssertionError(operand)


def ordered(one: Any, other: Any, accept: Callable[[Any, Any], bool]) -> bool:
    if one is None or other is None or one[0] != other[0] or one[0] not in ("S", "N", "B"):
        return False
    return accept(one[1], other[1])


def holds(tree: Any, item: Any, values: Any) -> bool:
    def value(operand: Any) -> Any:
        return evaluate(operand, item, values)

    match tree:
        case And(left, right):
            return holds(left, item, values) and holds(right, item, values)
        case Or(left, right):
            return holds(left, item, values) or holds(right, item, values)
        case Not(inner):
            return not holds(inner, item, values)
        case Comparison("=", left, right):
            return value(left) is not None and value(left) == value(right)
        case Comparison("<>", left, right):
            return value(left) is None or value(left) != value(right)
        case Comparison(operator, left, right):
            accept = {
                "<": lambda a, b: a < b,
                "<=": lambda a, b: a <= b,
                ">": lambda a, b: a > b,
                ">=": lambda a, b: a >= b,
            }[operator]
            return ordered(value(left), value(right), accept)
        case Between(operand, low, high):
            return ordered(value(low), value(operand), lambda a, b: a <= b) and ordered(
                value(operand), value(high), lambda a, b: a <= b
            )
        case In(operand, choices):
            return value(operand) is not None and any(value(operand) == value(choice) for choice in choices)
        case Call("attribute_exists", (path,)):
            return value(path) is not None
        case Call("attribute_not_exists", (path,)):
            return value(path) is None
        case Call(function, (first, second)):
            one, other = value(first), value(second)
            return one is not None and other is not None and function_holds(function, one, other)
    raise AssertionError(tree)


def function_holds(function: str, one: Any, other: Any) -> bool:
    if function == "attribute_type":
        return bool(other[0] == "S" and other[1].decode() == one[0])
    if function == "begins_with":
        return bool(one[0] == other[0] and one[0] in ("S", "B") and one[1].startswith(other[1]))
    if one[0] == "L":
        return other in one[1]
    if one[0] in ("S", "B"):
        return bool(other[0] == one[0] and other[1] in one[1])
    return bool(one[0] in ("SS", "NS") and other[0] == one[0][0] and other[1] in one[1])


@given(CONDITIONS, ITEMS, st.tuples(VALUES, VALUES, VALUES))
def test_a_compiled_condition_agrees_with_the_walked_tree(tree: Any, item: Any, three: Any) -> None:
    values = dict(zip((":u", ":v", ":w"), three, strict=True))
    admit_item(item)
    for value in three:
        admit_value(value)
    expected = holds(
        tree,
        {name: model(value) for name, value in item.items()},
        {name: model(value) for name, value in values.items()},
    )
    assert compile_condition(tree, NAMES)(item, values) is expected


# ---- updates: the compiled function against changes made one by one ------------------------------------


class RefusedError(Exception):
    pass


GONE: Any = object()


def wire_value(item: Any, elements: tuple[Any, ...]) -> Any:
    value: Any = {"M": item}
    for element in elements:
        if isinstance(element, str):
            value = value.get("M", {}).get(element)
        else:
            members = value.get("L", [])
            value = members[element] if element < len(members) else None
        if value is None:
            return None
    return value


def right_side(operand: Any, item: Any, values: Any) -> Any:
    match operand:
        case Value(name):
            return values[name]
        case Path(elements):
            value = wire_value(item, real(elements))
            if value is None:
                raise RefusedError
            return value
        case Call("if_not_exists", (Path(elements), default)):
            value = wire_value(item, real(elements))
            # (the default is read even if it is not needed: a missing one fails the update)
            other = right_side(default, item, values)
            return other if value is None else value
        case Call("list_append", (one, other)):
            parts = [right_side(part, item, values) for part in (one, other)]
            if any("L" not in part for part in parts):
                raise RefusedError
            return {"L": parts[0]["L"] + parts[1]["L"]}
        case Arithmetic(operator, one, other):
            parts = [right_side(part, item, values) for part in (one, other)]
            if any("N" not in part for part in parts):
                raise RefusedError
            calculate = numbers.add if operator == "+" else numbers.subtract
            return {"N": calculate(parts[0]["N"], parts[1]["N"])}
    raise AssertionError(operand)


def real(elements: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(NAMES.get(element, element) if isinstance(element, str) else element for element in elements)


def new_value(action: Any, item: Any, values: Any) -> Any:
    if isinstance(action, Set):
        return right_side(action.value, item, values)
    if isinstance(action, Remove):
        return GONE
    old = wire_value(item, real(action.path.elements))
    operand = values[action.value.name]
    ((kind, content),) = operand.items()
    if old is None:
        return operand if isinstance(action, Add) else GONE
    allowed = ("N", "SS", "NS") if isinstance(action, Add) else ("SS", "NS")
    if kind not in old or kind not in allowed:
        raise RefusedError
    if kind == "N":
        return {"N": numbers.add(old["N"], content)}
    if isinstance(action, Add):
        return {kind: old[kind] + [member for member in content if member not in old[kind]]}
    left = [member for member in old[kind] if member not in content]
    return {kind: left} if left else GONE


def update_walk(tree: UpdateTree, item: Any, values: Any) -> Any:
    """The item after the changes, made one by one; removed list elements leave their place at the end."""
    result = copy.deepcopy(item)
    holes: list[list[Any]] = []

    def length(action: Any) -> int:
        last = action.path.elements[-1]
        return last if isinstance(last, int) else 0

    for action in sorted(tree.actions, key=length):
        elements = real(action.path.elements)
        new = new_value(action, item, values)
        if new is not GONE:
            new = copy.deepcopy(new)
        parent = {"M": item} if len(elements) == 1 else wire_value(item, elements[:-1])
        kind = "M" if isinstance(elements[-1], str) else "L"
        if parent is None or kind not in parent:
            raise RefusedError
        target = wire_value(result, elements[:-1])[kind] if len(elements) > 1 else result
        if kind == "M":
            if new is GONE:
                target.pop(elements[-1], None)
            else:
                target[elements[-1]] = new
        elif elements[-1] < len(parent["L"]):
            target[elements[-1]] = new
            holes.append(target)
        elif new is not GONE:
            target.append(new)
    for hole in holes:
        hole[:] = [element for element in hole if element is not GONE]
    return result


def without_clashes(tree: UpdateTree) -> tuple[UpdateTree, Any]:
    """The actions of `tree` whose paths do not get in the way of those before them, and their program."""
    actions: tuple[Any, ...] = ()
    program: Any = {}
    for action in tree.actions:
        try:
            program = compile_update(UpdateTree((*actions, action)), NAMES)
        except ExpressionError:
            continue
        actions = (*actions, action)
    return UpdateTree(actions), program


@given(UPDATES, ITEMS, st.tuples(VALUES, VALUES, VALUES))
def test_a_compiled_update_agrees_with_changes_made_one_by_one(tree: Any, item: Any, three: Any) -> None:
    tree, program = without_clashes(tree)
    values = dict(zip((":u", ":v", ":w"), three, strict=True))
    admit_item(item)
    update = Update(program, values, frozenset())
    before = copy.deepcopy((item, values))
    try:
        expected = update_walk(tree, item, values)
    except (RefusedError, ValidationException):
        with pytest.raises(ValidationException):
            update.apply(item)
    else:
        assert update.apply(item) == expected
    assert (item, values) == before


# ---- texts --------------------------------------------------------------------------------------------

WORDS = (
    "a b #d :v :w ( ) [ ] . , = <> < <= > >= + - 0 1 01 AND or NOT in BETWEEN SET remove ADD DELETE size "
    "contains begins_with if_not_exists list_append attribute_exists _ # : ' \u00e9 data"
)
SOUP = st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join)


@given(st.one_of(st.text(max_size=30), SOUP), VALUES)
def test_no_text_raises_anything_but_a_validation_exception(text: str, value: Any) -> None:
    for prepare in (
        expressions.condition,
        expressions.key_condition,
        expressions.projection,
        expressions.update,
    ):
        substitutions = Substitutions({"#d": "d"}, {":v": copy.deepcopy(value), ":w": {"N": "1"}})
        try:
            result: Any = prepare(text, substitutions)
            if prepare is expressions.update:
                result.apply({"a": {"L": [{"N": "1"}]}})
            elif prepare is expressions.key_condition:
                result.comparisons()
            elif prepare is expressions.condition:
                result.test({"a": {"L": [{"N": "1"}]}})
        except ValidationException as error:
            assert error.message


@pytest.mark.parametrize(
    "piece", ["(", "NOT ", "size(", "a.", "a[", "NOT (", "a=b AND (", "if_not_exists(a,", "((a)"]
)
@pytest.mark.parametrize("head", ["", "SET a = "])
def test_deep_nesting_is_refused_without_exhausting_the_stack(piece: str, head: str) -> None:
    text = (head + piece * 4096)[:4096]
    for prepare in (expressions.condition, expressions.update, expressions.projection):
        with pytest.raises(ValidationException):
            prepare(text, Substitutions())
