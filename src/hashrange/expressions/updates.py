"""Update expressions: compile a tree to a function from an item to the item after the update.

Rules: the given item is never changed. Every right-hand side and every path reads the item as it was before
the update. List indexes past the end append, in ascending order. The paths of an update never overlap, so
its actions form a trie, and each map or list on a path is copied once.
Source: Developer Guide, "Update expressions".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from hashrange import pace
from hashrange.errors import TOO_DEEP, ValidationException
from hashrange.expressions.lexer import ExpressionError
from hashrange.expressions.memo import BRIEF_CHARS_MAX, memo_of, with_memo
from hashrange.expressions.operands import update_steps
from hashrange.expressions.parser import parse_update
from hashrange.expressions.paths import Leaf, ResolvedPath, Trie, grow, pick, read, reader
from hashrange.expressions.preparing import (
    CACHED_EXPRESSIONS_MAX,
    Compiled,
    NamesKey,
    Values,
    judge,
    placeholders,
    prepare,
    resolve,
)
from hashrange.expressions.substitutions import Substitutions
from hashrange.expressions.tree import (
    Action,
    Add,
    Arithmetic,
    Call,
    Operand,
    Path,
    Remove,
    Set,
    UpdateTree,
    Value,
    walk,
)
from hashrange.expressions.words import UPDATE, check_words
from hashrange.limits import ITEM_BYTES_MAX, NESTING_LEVELS_MAX
from hashrange.values import AttributeValue, Item, in_order, levels, numbers, value_size

MISSING_ATTRIBUTE = "The provided expression refers to an attribute that does not exist in the item"
INVALID_PATH = "The document path provided in the update expression is invalid for update"
WRONG_TYPE = "An operand in the update expression has an incorrect data type"

_TOO_LARGE: Final[AttributeValue] = {"S": "x" * (ITEM_BYTES_MAX + 1)}

Compute: TypeAlias = Callable[[Item, Values], "AttributeValue | None"]
Change: TypeAlias = Callable[["AttributeValue | None", Item, Values], "AttributeValue | None"]
"""Computes the value at a path after the update from the old value, the old item, and the request's values.
None: no value."""


class Update:
    """An update with the values of its request; `attributes` are the top-level names that it changes.

    `computed` are the attributes whose new value depends on the item. `charges` is set if the charge of the
    expression may exceed the limit of an item's size.
    """

    __slots__ = ("attributes", "changes", "charges", "computed", "values")

    def __init__(
        self,
        changes: Trie,
        values: Values,
        attributes: frozenset[str],
        computed: frozenset[str] = frozenset(),
        charges: Charges | None = None,
    ) -> None:
        self.changes = changes
        self.values = values
        self.attributes = attributes
        self.computed = computed
        self.charges = charges

    def given(self) -> Item:
        """The attributes that the update sets to values of its request, whatever the item is."""
        attributes: Item = {}
        for name, node in self.changes.items():
            if isinstance(node, Leaf) and name not in self.computed:
                value = node.content(None, attributes, self.values)
                if value is not None:
                    attributes[str(name)] = value
        return attributes

    def apply(self, item: Item) -> Item:
        """The item after the update. Raises ValidationException if the update cannot be applied to the item.

        Lists that are longer than an item can hold are not joined: a text that is too large takes their
        place, so that the item is still refused for its size.
        """
        memo = memo_of(self.values)
        if memo is None:
            return _apply_map(item, self.changes, item, self.values)
        memo.appended = 0
        updated = _apply_map(item, self.changes, item, self.values)
        memo.forget_item()
        return updated

    def create(self, key: Item) -> Item:
        """The item that the update makes if there is none yet: `apply` to an item of only the key, except
        that removals do nothing, even those with a path of several parts ([report] Alternator's authors).
        """
        changes = {name: node for name, node in self.changes.items() if not _only_removes(node)}
        return _apply_map(key, changes, key, self.values)

    def changed_paths(self, item: Item) -> Item:
        """A sparse copy of `item`, which is the item before or after the update, with only the paths that the
        update changes.

        In the item after the update, the path of a removed list element shows the element that moved there
        ([report] paritysuite pull request 107, for RETURNING MODIFIED NEW).
        """
        return pick(item, self.changes)

    def charge(self, item: Item) -> int:
        """The charge of the expression in bytes, for an update of `item`; 0 if it cannot reach the limit."""
        return 0 if self.charges is None else _charge(self.charges, item, self.values)


class Charges(NamedTuple):
    """The charge of an update expression, which may not exceed the limit of an item's size.

    It is the sum of `fixed` bytes, the size of each value in `values` (a value that is named twice counts
    twice), and, for each `(path, placeholder)` of `additions`, the size of the members that it adds to a set.
    """

    fixed: int
    values: tuple[str, ...]
    additions: tuple[tuple[ResolvedPath, str], ...]


# [report] dynoxide issues 187 and 210, paritysuite's captures of 2026: the gate bisected to the byte.
# The charge of ADD beside its value is [assumed].
_UPDATE_BYTES: Final = 3
_WRITE_BYTES: Final = 19
_REMOVAL_BYTES: Final = 1
_LATER_ELEMENT_BYTES: Final = 4
_PATH_BYTES: Final = 1
_PATH_ELEMENT_BYTES: Final = 14
OPERATOR_BYTES: Final = {"+": 34, "-": 37, "if_not_exists": 39, "list_append": 37}


def _charges(tree: UpdateTree, names: dict[str, str]) -> Charges:
    fixed = _UPDATE_BYTES
    values: list[str] = []
    additions: list[tuple[ResolvedPath, str]] = []
    for action in tree.actions:
        path = resolve(action.path, names)
        fixed += _element_bytes(path[0])
        fixed += sum([_LATER_ELEMENT_BYTES + _element_bytes(element) for element in path[1:]])
        match action:
            case Set(_, operand):
                fixed += _WRITE_BYTES
                for node in walk(operand):
                    match node:
                        case Value(name):
                            values.append(name)
                        case Path():
                            fixed += _PATH_BYTES
                            for element in resolve(node, names):
                                fixed += _PATH_ELEMENT_BYTES + _element_bytes(element)
                        case Arithmetic(operator) | Call(operator):
                            fixed += OPERATOR_BYTES[operator]
            case Add(_, Value(name)):
                fixed += _WRITE_BYTES
                additions.append((path, name))
            case _:
                fixed += _REMOVAL_BYTES
    return Charges(fixed, tuple(values), tuple(additions))


def _element_bytes(element: str | int) -> int:
    # A list index costs its digits.
    return len(str(element).encode("utf-8", "surrogatepass"))


def _charge(charges: Charges, item: Item, values: Values) -> int:
    sizes: dict[str, int] = {}
    total = charges.fixed
    for name in charges.values:
        if name not in sizes:
            sizes[name] = value_size(values[name])
        total += sizes[name]
    for path, name in charges.additions:
        total += _added_size(read(item, path), values[name])
    return total


def _added_size(old: AttributeValue | None, value: AttributeValue) -> int:
    """The size that ADD adds to a value; for a set, the size of the new members."""
    for name in ("SS", "NS", "BS"):
        if old is not None and name in old and name in value:
            old_members = frozenset(old[name])
            return value_size({name: [member for member in value[name] if member not in old_members]})
    return value_size(value)


def update(text: str, substitutions: Substitutions) -> Update:
    """Prepare an update expression. Raises ValidationException."""
    compiled = prepare(_compile_cached, _compile, text, substitutions, "UpdateExpression")
    values = substitutions.values
    if len(text) > BRIEF_CHARS_MAX:
        values = with_memo(values)
    changes, computed, charges = compiled.program
    # A value is at most as large as all values together.
    uses = len(charges.values) + len(charges.additions)
    may_be_large = charges.fixed + uses * substitutions.size > ITEM_BYTES_MAX
    return Update(changes, values, compiled.attributes, computed, charges if may_be_large else None)


def _compile(text: str, names_key: NamesKey) -> Compiled[tuple[Trie, frozenset[str], Charges]]:
    names = dict(names_key)
    tree, repeated = parse_update(text)
    check_words(tree, UPDATE)
    if repeated:
        # [report] dynalite's recordings: after reserved words and unknown functions
        raise ExpressionError(f'The "{repeated}" section can only be used once in an update expression;')
    steps, sound = judge(update_steps(tree, names))
    changes: Trie = compile_update(tree, names) if sound else {}
    charges = _charges(tree, names) if sound else Charges(0, (), ())
    used = replace(placeholders(tree, names), attributes=frozenset(map(str, changes)))
    return Compiled((changes, computed_attributes(tree, names), charges), used, steps)


_compile_cached = lru_cache(CACHED_EXPRESSIONS_MAX)(_compile)


def compile_update(tree: UpdateTree, names: dict[str, str]) -> Trie:
    """The changes of a checked tree. Raises ExpressionError if its paths conflict."""
    return grow([(resolve(action.path, names), _change(action, names)) for action in tree.actions])


def computed_attributes(tree: UpdateTree, names: dict[str, str]) -> frozenset[str]:
    """The top-level attributes whose new value depends on the item: those that are not set to a value of the
    request as a whole, nor removed, nor the target of an ADD or DELETE."""
    return frozenset(
        [
            str(resolve(action.path, names)[0])
            for action in tree.actions
            if len(action.path.elements) > 1
            or (isinstance(action, Set) and not isinstance(action.value, Value))
        ]
    )


def _change(action: Action, names: dict[str, str]) -> Change:
    match action:
        case Set(_, operand):
            compute = _operand(operand, names)
            level = len(action.path.elements)
            if level > 1:
                return _set_nested(compute, level)
            return lambda old, item, values: compute(item, values)
        case Remove():
            return remove
        case Add(_, Value(name)):
            return lambda old, item, values: add(old, values[name])
        case _:
            return _Deletion(action.value.name)


class _Deletion:
    """DELETE: a change that removes members from a set."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, old: AttributeValue | None, item: Item, values: Values) -> AttributeValue | None:
        return delete(old, values[self._name])


def _only_removes(node: Trie | Leaf) -> bool:
    """Whether all changes below a node only remove."""
    if isinstance(node, Leaf):
        return node.content is remove or isinstance(node.content, _Deletion)
    return all(_only_removes(below) for below in node.values())


def _set_nested(compute: Compute, level: int) -> Change:
    """SET below the top level: refuses a value that would make the item nest too deeply."""

    def run(old: AttributeValue | None, item: Item, values: Values) -> AttributeValue | None:
        value = compute(item, values)
        if value is not None and ("L" in value or "M" in value):
            memo = memo_of(values)
            deep = levels(value) if memo is None else memo.levels(value, item)
            if level - 1 + deep > NESTING_LEVELS_MAX:
                raise ValidationException(TOO_DEEP)
        return value

    return run


def _operand(operand: Operand, names: dict[str, str]) -> Compute:
    match operand:
        case Path():
            return _required(reader(resolve(operand, names)))
        case Value(name):
            return lambda item, values: values[name]
        case Arithmetic(operator, left, right):
            return _arithmetic(operator, _operand(left, names), _operand(right, names))
        case Call("if_not_exists", (Path() as path, default)):
            return _if_not_exists(reader(resolve(path, names)), _operand(default, names))
        case Call("list_append", (first, second)):
            return _list_append(_operand(first, names), _operand(second, names))
        case _:
            raise AssertionError(f"no operand: {operand}")  # update_checks refuses the others


def _required(read: Compute) -> Compute:
    def run(item: Item, values: Values) -> AttributeValue | None:
        value = read(item, values)
        if value is None:
            raise ValidationException(MISSING_ATTRIBUTE)
        return value

    return run


def _arithmetic(operator: str, left: Compute, right: Compute) -> Compute:
    calculate = numbers.add if operator == "+" else numbers.subtract

    def run(item: Item, values: Values) -> AttributeValue | None:
        left_value, right_value = left(item, values), right(item, values)
        if left_value is None or right_value is None or "N" not in left_value or "N" not in right_value:
            raise ValidationException(WRONG_TYPE)
        return {"N": calculate(left_value["N"], right_value["N"])}

    return run


def _if_not_exists(read: Compute, default: Compute) -> Compute:
    def run(item: Item, values: Values) -> AttributeValue | None:
        value = read(item, values)
        # Read both: a missing default fails the update even if it is not needed.
        default_value = default(item, values)
        return default_value if value is None else value

    return run


def _list_append(first: Compute, second: Compute) -> Compute:
    def run(item: Item, values: Values) -> AttributeValue | None:
        pace.point()
        first_value, second_value = first(item, values), second(item, values)
        if first_value is None or second_value is None or "L" not in first_value or "L" not in second_value:
            raise ValidationException(WRONG_TYPE)
        memo = memo_of(values)
        if memo is not None:
            memo.appended += len(first_value["L"]) + len(second_value["L"])
            if memo.appended > ITEM_BYTES_MAX:
                return _TOO_LARGE
        return {"L": first_value["L"] + second_value["L"]}

    return run


def remove(old: AttributeValue | None, item: Item, values: Values) -> None:
    """REMOVE: a change that leaves no value."""


def add(old: AttributeValue | None, value: AttributeValue) -> AttributeValue:
    """ADD: the sum of two numbers, or the union of two sets of one type."""
    if old is None:
        return value
    if "N" in old and "N" in value:
        return {"N": numbers.add(old["N"], value["N"])}
    for name in ("SS", "NS", "BS"):
        if name in old and name in value:
            return {name: in_order(name, {*old[name], *value[name]})}
    raise ValidationException(WRONG_TYPE)


def delete(old: AttributeValue | None, value: AttributeValue) -> AttributeValue | None:
    """DELETE: the difference of two sets of one type; None if nothing is left."""
    if old is None:
        return None
    for name in ("SS", "NS", "BS"):
        if name in old and name in value:
            removed = set(value[name])
            remaining = [member for member in old[name] if member not in removed]
            return {name: remaining} if remaining else None
    raise ValidationException(WRONG_TYPE)


def _apply_map(members: Item, changes: Trie, item: Item, values: Values) -> Item:
    """A copy of `members` with the changes made; `item` is the whole item before the update."""
    result = dict(members)
    for name, node in changes.items():
        pace.point()
        assert isinstance(name, str)
        old = members.get(name)
        new = node.content(old, item, values) if isinstance(node, Leaf) else _descend(old, node, item, values)
        if new is not None:
            result[name] = new
        elif old is not None:
            del result[name]
    return result


def _descend(old: AttributeValue | None, changes: Trie, item: Item, values: Values) -> AttributeValue:
    first = next(iter(changes))
    if old is not None:
        if isinstance(first, str):
            if "M" in old:
                return {"M": _apply_map(old["M"], changes, item, values)}
        elif "L" in old:
            return {"L": _apply_list(old["L"], changes, item, values)}
    raise ValidationException(INVALID_PATH)


def _apply_list(
    elements: list[AttributeValue], changes: Trie, item: Item, values: Values
) -> list[AttributeValue]:
    result: list[AttributeValue | None] = list(elements)
    for index, node in sorted(changes.items()):
        pace.point()
        assert isinstance(index, int)
        old = elements[index] if index < len(elements) else None
        new = node.content(old, item, values) if isinstance(node, Leaf) else _descend(old, node, item, values)
        if index < len(elements):
            result[index] = new
        elif new is not None:
            result.append(new)
    return [element for element in result if element is not None]
