"""A second, naive implementation of the expression languages, for the reference model.

Expressions are generated as trees, written out as text for the database and evaluated here for the model.
Nothing is shared with `hashrange.expressions`; only numbers are added by `hashrange.values`, whose own tests
check them against `Decimal`.

    path       ("a",), ("a", "k") or ("a", 0)
    condition  ("exists", path) ("missing", path) ("type", path, name) ("begins", path, value)
               ("contains", path, value) ("compare", path, operator, value) ("between", path, low, high)
               ("in", path, values) ("size", path, operator, count) ("not", c) ("and", c, c) ("or", c, c)
    action     ("set", path, operand) ("remove", path) ("add", path, value) ("delete", path, value)
    operand    ("value", v) ("path", p) ("default", p, v) ("plus" | "minus", p, v) ("append", p, list)
"""

from __future__ import annotations

import copy
from base64 import b64decode
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hashrange.values import AttributeValue, Item, numbers

Path = tuple[Any, ...]
Condition = tuple[Any, ...]
Action = tuple[Any, ...]


class Refused(Exception):
    """The request is answered with one of these error codes; a transaction with one of each reason's.

    `empty_key` is whether an empty index key is the cause, which no transaction gives as a reason; None
    where there are two causes, and no document says which one is found first.
    """

    def __init__(
        self, *codes: str, reasons: list[tuple[str, ...]] | None = None, empty_key: bool | None = False
    ) -> None:
        super().__init__(*codes)
        self.codes = codes
        self.reasons = reasons
        self.empty_key = empty_key


def token(value: AttributeValue) -> tuple[str, Any] | None:
    """`(type, comparable)` of a string, number or binary."""
    [(name, content)] = value.items()
    if name == "S":
        return name, content.encode()
    if name == "N":
        return name, Decimal(content)
    if name == "B":
        return name, b64decode(content)
    return None


def plain(value: AttributeValue) -> Any:
    """A form in which two values are equal with `==` if and only if DynamoDB takes them for equal."""
    [(name, content)] = value.items()
    if name in ("S", "N", "B"):
        return token(value)
    if name in ("SS", "NS", "BS"):
        return name, frozenset(token({name[0]: member}) for member in content)
    if name == "L":
        return name, tuple(plain(member) for member in content)
    if name == "M":
        return name, frozenset((key, plain(member)) for key, member in content.items())
    return name, content


def plain_item(item: Item) -> Any:
    """As `plain`, for an item."""
    return plain({"M": item})


class Placeholders:
    """Names and values of the expressions of one request."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: Item = {}

    def path(self, path: Path) -> str:
        text = ""
        for element in path:
            if isinstance(element, int):
                text += f"[{element}]"
                continue
            placeholder = f"#n{len(self.names)}"
            self.names[placeholder] = element
            text += ("." if text else "") + placeholder
        return text

    def value(self, value: AttributeValue) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = copy.deepcopy(value)
        return placeholder

    def parameters(self) -> dict[str, Any]:
        given: dict[str, Any] = {}
        if self.names:
            given["ExpressionAttributeNames"] = self.names
        if self.values:
            given["ExpressionAttributeValues"] = self.values
        return given


def write_condition(tree: Condition, to: Placeholders) -> str:
    """The text of a condition."""
    match tree:
        case ("exists", path):
            return f"attribute_exists({to.path(path)})"
        case ("missing", path):
            return f"attribute_not_exists ( {to.path(path)} )"
        case ("type", path, name):
            return f"attribute_type({to.path(path)}, {to.value({'S': name})})"
        case ("begins", path, value):
            return f"begins_with({to.path(path)}, {to.value(value)})"
        case ("contains", path, value):
            return f"contains({to.path(path)}, {to.value(value)})"
        case ("compare", path, operator, value):
            return f"{to.path(path)} {operator} {to.value(value)}"
        case ("between", path, low, high):
            return f"{to.path(path)} BETWEEN {to.value(low)} AND {to.value(high)}"
        case ("in", path, values):
            return f"{to.path(path)} IN ({', '.join(map(to.value, values))})"
        case ("size", path, operator, count):
            return f"size({to.path(path)}) {operator} {to.value({'N': str(count)})}"
        case ("not", inner):
            return f"NOT ({write_condition(inner, to)})"
        case ("and", left, right):
            return f"({write_condition(left, to)}) AND ({write_condition(right, to)})"
        case ("or", left, right):
            return f"({write_condition(left, to)}) OR ({write_condition(right, to)})"
    raise AssertionError(tree)


def read(item: Item, path: Path) -> AttributeValue | None:
    """The value at a path."""
    value: Any = {"M": item}
    for element in path:
        try:
            value = value["L" if isinstance(element, int) else "M"][element]
        except (KeyError, IndexError):
            return None
    return value  # type: ignore[no-any-return]


_OPERATORS = {
    "=": lambda left, right: left == right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def holds(tree: Condition, item: Item) -> bool:
    """Whether a condition is true of an item (empty: absent)."""
    match tree:
        case ("not", inner):
            return not holds(inner, item)
        case ("and", left, right):
            return holds(left, item) and holds(right, item)
        case ("or", left, right):
            return holds(left, item) or holds(right, item)
    value = read(item, tree[1])
    match tree:
        case ("exists", _):
            return value is not None
        case ("missing", _):
            return value is None
        case ("compare", _, "<>", operand):
            return value is None or plain(value) != plain(operand)
    if value is None:
        return False
    match tree:
        case ("type", _, name):
            return name in value
        case ("compare", _, "=", operand):
            return bool(plain(value) == plain(operand))
        case ("compare", _, operator, operand):
            return _compare(value, operator, operand)
        case ("between", _, low, high):
            return _compare(value, ">=", low) and _compare(value, "<=", high)
        case ("in", _, values):
            return any(plain(value) == plain(operand) for operand in values)
        case ("begins", _, prefix):
            one, other = token(value), token(prefix)
            return one is not None and other is not None and one[0] == other[0] != "N" and (
                one[1][: len(other[1])] == other[1]
            )
        case ("contains", _, part):
            return _contains(value, part)
        case ("size", _, operator, count):
            size = _size(value)
            return size is not None and _compare({"N": str(size)}, operator, {"N": str(count)})
    raise AssertionError(tree)


def _compare(value: AttributeValue, operator: str, operand: AttributeValue) -> bool:
    one, other = token(value), token(operand)
    if one is None or other is None or one[0] != other[0]:
        return False
    return bool(_OPERATORS[operator](one[1], other[1]))


def _contains(value: AttributeValue, part: AttributeValue) -> bool:
    [(name, content)] = value.items()
    if name == "L":
        return any(plain(member) == plain(part) for member in content)
    if name in ("SS", "NS", "BS"):
        return any(plain({name[0]: member}) == plain(part) for member in content)
    one, other = token(value), token(part)
    return one is not None and other is not None and one[0] == other[0] != "N" and other[1] in one[1]


def _size(value: AttributeValue) -> int | None:
    [(name, content)] = value.items()
    if name == "B":
        return len(b64decode(content))
    if name == "S":
        return len(content.encode("utf-16-le")) // 2
    return None if name in ("N", "BOOL", "NULL") else len(content)


def write_update(actions: Sequence[Action], to: Placeholders) -> str:
    """The text of an update."""
    clauses: dict[str, list[str]] = {}
    for action in actions:
        clauses.setdefault(action[0].upper(), []).append(_write_action(action, to))
    return " ".join(f"{keyword} {', '.join(parts)}" for keyword, parts in clauses.items())


def _write_action(action: Action, to: Placeholders) -> str:
    match action:
        case ("set", path, operand):
            return f"{to.path(path)} = {_write_operand(operand, to)}"
        case ("remove", path):
            return to.path(path)
    return f"{to.path(action[1])} {to.value(action[2])}"


def _write_operand(operand: tuple[Any, ...], to: Placeholders) -> str:
    match operand:
        case ("value", value):
            return to.value(value)
        case ("path", path):
            return to.path(path)
        case ("default", path, value):
            return f"if_not_exists({to.path(path)}, {to.value(value)})"
        case ("plus", path, value):
            return f"{to.path(path)} + {to.value(value)}"
        case ("minus", path, value):
            return f"{to.path(path)}-{to.value(value)}"
        case ("append", path, value):
            return f"list_append({to.path(path)}, {to.value(value)})"
    raise AssertionError(operand)


def update(actions: Sequence[Action], before: Item) -> Item:
    """The item after the actions; every operand reads `before`. Raises `Refused`."""
    after = copy.deepcopy(before)
    removals: list[Path] = []
    appends: list[tuple[Path, AttributeValue]] = []
    for action in actions:
        path = action[1]
        old = read(before, path)
        if len(path) == 2 and ("L" if isinstance(path[1], int) else "M") not in before.get(path[0], {}):
            raise Refused("ValidationException")
        new = _computed(action, before, old)
        if new is None:
            removals.append(path)
        elif isinstance(path[-1], int) and path[-1] >= len(before[path[0]]["L"]):
            appends.append((path, new))
        else:
            _parent(after, path)[path[-1]] = new
    for path, new in sorted(appends, key=lambda one: one[0][-1]):
        _parent(after, path).append(new)
    # From the end, so that no removal moves the elements that are still to go.
    for path in sorted(removals, key=lambda one: (str(one[0]), _index(one)), reverse=True):
        if read(before, path) is not None:
            del _parent(after, path)[path[-1]]
    return after


def create(actions: Sequence[Action], key: Item) -> Item | None:
    """The item that the actions make where there is none; None if they make none.

    Attributes of which something is removed, and nothing set, are left alone. Raises `Refused`.
    """
    making = {action[1][0] for action in actions if action[0] not in ("remove", "delete")}
    if actions and not making:
        return None
    return update([action for action in actions if action[1][0] in making], key)


def _index(path: Path) -> int:
    return path[-1] if isinstance(path[-1], int) else 0


def _parent(item: Item, path: Path) -> Any:
    if len(path) == 1:
        return item
    return item[path[0]]["L" if isinstance(path[1], int) else "M"]


def _computed(action: Action, before: Item, old: AttributeValue | None) -> AttributeValue | None:
    match action:
        case ("remove", _):
            return None
        case ("add", _, value):
            return _add(old, value)
        case ("delete", _, value):
            return _delete(old, value)
        case ("set", _, ("value", value)):
            return copy.deepcopy(value)  # type: ignore[no-any-return]
        case ("set", _, ("default", path, value)):
            found = read(before, path)
            return copy.deepcopy(value if found is None else found)
        case ("set", _, (kind, path, *rest)):
            found = read(before, path)
            if found is None:
                raise Refused("ValidationException")
            if kind == "path":
                return copy.deepcopy(found)
            if kind == "append":
                if "L" not in found:
                    raise Refused("ValidationException")
                return {"L": copy.deepcopy(found["L"] + rest[0]["L"])}
            if "N" not in found:
                raise Refused("ValidationException")
            return {"N": _sum(found["N"], rest[0]["N"], minus=kind == "minus")}
    raise AssertionError(action)


def _sum(left: str, right: str, *, minus: bool) -> str:
    try:
        return numbers.subtract(left, right) if minus else numbers.add(left, right)
    except Exception:
        raise Refused("ValidationException") from None


def _add(old: AttributeValue | None, value: AttributeValue) -> AttributeValue:
    if old is None:
        return copy.deepcopy(value)
    [(name, content)] = value.items()
    if name not in old:
        raise Refused("ValidationException")
    if name == "N":
        return {"N": _sum(old["N"], content, minus=False)}
    return {name: sorted({*old[name], *content})}


def _delete(old: AttributeValue | None, value: AttributeValue) -> AttributeValue | None:
    if old is None:
        return None
    [(name, content)] = value.items()
    if name not in old:
        raise Refused("ValidationException")
    left = sorted({*old[name]} - {*content})
    return {name: left} if left else None


def touched(actions: Sequence[Action], item: Item) -> Item:
    """The sparse copy of the paths of an update in `item`, the item before or after the update.

    Of the item after it, the path of a removed list element shows the element that moved there.
    """
    sparse: Item = {}
    paths = sorted((action[1] for action in actions), key=lambda path: (str(path[0]), _index(path)))
    for path in paths:
        value = read(item, path)
        if value is None:
            continue
        if len(path) == 1:
            sparse[path[0]] = value
        elif isinstance(path[1], int):
            sparse.setdefault(path[0], {"L": []})["L"].append(value)
        else:
            sparse.setdefault(path[0], {"M": {}})["M"][path[1]] = value
    return sparse
