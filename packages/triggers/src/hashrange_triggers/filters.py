"""Filter patterns: select the records that a trigger's function gets, in the language of Lambda's event
filtering.

A pattern is a JSON object with the shape of the record. Its leaves are lists of rules; at least one rule of
a list must hold. All fields of a pattern must match; of several patterns at least one must match.

    {"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": {"state": {"S": [{"prefix": "paid"}]}}}}

    rule     = literal | null | {operator: argument}
    operator = "exists" | "prefix" | "suffix" | "equals-ignore-case" | "wildcard" | "numeric" | "anything-but"
    "$or"    = a list of patterns in place of a field, at least one of which has to match

There is one difference to Lambda: DynamoDB sends a number as a text, and `numeric` here compares the number
in this text; Lambda documents this for JSON numbers only. A pattern is compiled once. Refuses to know where
records come from.

Source: Lambda Developer Guide, "Filter rule syntax"; EventBridge User Guide, "Comparison operators".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import orjson

Predicate = Callable[[Any], bool]


class InvalidPattern(ValueError):
    """A wrong filter pattern; the text says what is wrong with it."""


# Stands for the value of a missing field; no JSON value equals it.
_ABSENT: Final = object()


def parse(texts: Iterable[str]) -> Predicate:
    """The predicate of patterns given as JSON texts: see `compile`. Raises `InvalidPattern`."""
    patterns = []
    for text in texts:
        try:
            patterns.append(orjson.loads(text))
        except orjson.JSONDecodeError as error:
            raise InvalidPattern(f"{text!r} is not JSON: {error}") from error
    return compile(patterns)


def compile(patterns: Iterable[Mapping[str, Any]]) -> Predicate:  # noqa: A001 (the verb of the language)
    """A function that returns whether a record matches one of `patterns`; without patterns every record
    matches.

    Raises `InvalidPattern`.
    """
    compiled = [_pattern(pattern, "the pattern") for pattern in patterns]
    if not compiled:
        return lambda record: True
    return lambda record: any(matches(record) for matches in compiled)


def _pattern(pattern: Any, where: str) -> Predicate:
    if not isinstance(pattern, Mapping) or not pattern:
        raise InvalidPattern(f"{where} has to be an object with at least one field, not {_show(pattern)}")
    fields: list[tuple[str, Predicate]] = []
    alternatives: list[Predicate] = []
    for name, content in pattern.items():
        if name == "$or":
            if not isinstance(content, list) or len(content) < 2:
                raise InvalidPattern(f"$or in {where} needs a list of at least two patterns")
            alternatives = [_pattern(member, "a pattern of $or") for member in content]
        elif isinstance(content, list):
            fields.append((name, _rules(content, name)))
        elif isinstance(content, Mapping):
            fields.append((name, _pattern(content, name)))
        else:
            raise InvalidPattern(f"{name} has to be an object or a list of rules, not {_show(content)}")

    def matches(value: Any) -> bool:
        if isinstance(value, list):
            return any(map(matches, value))
        members = value if isinstance(value, Mapping) else {}
        if not all(test(members.get(name, _ABSENT)) for name, test in fields):
            return False
        return not alternatives or any(test(members) for test in alternatives)

    return matches


def _rules(rules: list[Any], name: str) -> Predicate:
    if not rules:
        raise InvalidPattern(f"{name} has an empty list of rules, which nothing matches")
    tests = [_rule(rule, name) for rule in rules]

    def matches(value: Any) -> bool:
        if isinstance(value, list):
            # A list or set matches if one of its members matches.
            return any(test(member) for member in value or [_ABSENT] for test in tests)
        return any(test(value) for test in tests)

    return matches


def _rule(rule: Any, name: str) -> Predicate:
    if isinstance(rule, Mapping):
        if len(rule) != 1:
            raise InvalidPattern(f"{name} has a rule of {len(rule)} operators, not one: {_show(rule)}")
        ((operator, argument),) = rule.items()
        if operator not in _OPERATORS:
            known = ", ".join(sorted(_OPERATORS))
            raise InvalidPattern(f"{name} has the unknown operator {operator!r}; known are {known}")
        return _OPERATORS[operator](argument, name)
    if isinstance(rule, list):
        raise InvalidPattern(f"{name} has a list in its list of rules: {_show(rule)}")
    return _equals(rule)


def _equals(literal: Any) -> Predicate:
    # In Python True == 1, but not in JSON.
    return lambda value: type(value) is type(literal) and bool(value == literal)


def _exists(argument: Any, name: str) -> Predicate:
    if not isinstance(argument, bool):
        raise InvalidPattern(f"exists of {name} has to be true or false, not {_show(argument)}")
    return lambda value: (value is not _ABSENT) is argument


def _text_operator(test: Callable[[str, str], bool]) -> Callable[[Any, str], Predicate]:
    def make(argument: Any, name: str) -> Predicate:
        if isinstance(argument, Mapping) and list(argument) == ["equals-ignore-case"]:
            folded = _text(argument["equals-ignore-case"], name).casefold()
            return lambda value: isinstance(value, str) and test(value.casefold(), folded)
        text = _text(argument, name)
        return lambda value: isinstance(value, str) and test(value, text)

    return make


def _equals_ignore_case(argument: Any, name: str) -> Predicate:
    folded = _text(argument, name).casefold()
    return lambda value: isinstance(value, str) and value.casefold() == folded


def _wildcard(argument: Any, name: str) -> Predicate:
    first, *others = _text(argument, name).split("*")
    if not others:
        return _equals(first)
    *middle, last = others

    def matches(value: Any) -> bool:
        if not isinstance(value, str) or not value.startswith(first) or not value.endswith(last):
            return False
        place, end = len(first), len(value) - len(last)
        for part in middle:  # the first place is as good as any; a regular expression would try them all
            found = value.find(part, place, end)
            if found < 0:
                return False
            place = found + len(part)
        return place <= end

    return matches


_COMPARISONS: Final[dict[str, Callable[[Decimal, Decimal], bool]]] = {
    "=": lambda value, bound: value == bound,
    "<": lambda value, bound: value < bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    ">=": lambda value, bound: value >= bound,
}


def _numeric(argument: Any, name: str) -> Predicate:
    if not isinstance(argument, list) or len(argument) not in (2, 4):
        raise InvalidPattern(
            f'numeric of {name} has to be a list as [">", 10] or [">", 10, "<=", 20], not {_show(argument)}'
        )
    comparisons = []
    for comparison, bound in zip(argument[::2], argument[1::2], strict=True):
        number = _number(bound) if not isinstance(bound, str) else None
        if comparison not in _COMPARISONS or number is None:
            raise InvalidPattern(f"numeric of {name} cannot compare by {_show([comparison, bound])}")
        comparisons.append((_COMPARISONS[comparison], number))

    def matches(value: Any) -> bool:
        number = _number(value)
        return number is not None and all(test(number, bound) for test, bound in comparisons)

    return matches


def _number(value: Any) -> Decimal | None:
    """The value of a JSON number, or of the text of a DynamoDB number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _anything_but(argument: Any, name: str) -> Predicate:
    if isinstance(argument, Mapping):
        if len(argument) != 1 or next(iter(argument)) not in _NEGATABLE:
            raise InvalidPattern(
                f"anything-but of {name} takes one of {', '.join(_NEGATABLE)}, not {_show(argument)}"
            )
        ((operator, excluded),) = argument.items()
        every = excluded if isinstance(excluded, list) else [excluded]
        refused = [_OPERATORS[operator](member, name) for member in every]
    else:
        every = argument if isinstance(argument, list) else [argument]
        if not every or any(isinstance(member, list | Mapping) for member in every):
            raise InvalidPattern(f"anything-but of {name} needs texts or numbers, not {_show(argument)}")
        refused = [_equals(member) for member in every]
    return lambda value: value is not _ABSENT and not any(test(value) for test in refused)


def _text(argument: Any, name: str) -> str:
    if not isinstance(argument, str):
        raise InvalidPattern(f"a rule of {name} needs a text, not {_show(argument)}")
    return argument


def _show(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()


_NEGATABLE: Final = ("prefix", "suffix", "equals-ignore-case", "wildcard")
_OPERATORS: Final[dict[str, Callable[[Any, str], Predicate]]] = {
    "exists": _exists,
    "prefix": _text_operator(str.startswith),
    "suffix": _text_operator(str.endswith),
    "equals-ignore-case": _equals_ignore_case,
    "wildcard": _wildcard,
    "numeric": _numeric,
    "anything-but": _anything_but,
}
