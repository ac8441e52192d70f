"""Rules as text.

    PutItem table=orders nth=3 throttle
    Query,Scan index=by-date probability=0.1 seed=7 throttle limit=KeyRangeThroughputExceeded
    BatchWriteItem table=orders key.pk=user#1 unprocessed
    * latency seconds=0.2

Operations come first (`*`, or none, for all that the effect fits), then what the rule matches and when it
fires, in any order, then the effect's name and its options. A value with spaces is quoted, as in a shell. A
`#` at the beginning of a line begins a comment.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any, Final

from hashrange.clock import parse_duration
from hashrange.faults.effects import EFFECTS, Effect
from hashrange.faults.rules import Rule
from hashrange.operations import REGISTRY

EXAMPLE: Final = "PutItem table=orders nth=3 throttle"
_KEY: Final = "key."
_MATCHES: Final = ("table", "index", f"{_KEY}NAME", "nth", "after", "times", "probability", "seed")


class WrongRule(ValueError):
    """A text is not a rule; the message says what is wrong with it."""


def parse(text: str) -> Rule:
    """The rule of a text. Raises WrongRule."""
    try:
        return _parse(shlex.split(text))
    except ValueError as error:
        raise WrongRule(f"{error} (in the fault {text.strip()!r}; one is written as {EXAMPLE!r})") from None


def parse_lines(lines: Iterable[str]) -> list[Rule]:
    """The rules of a file: one per line, without empty lines and comments. Raises WrongRule."""
    return [parse(line) for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _parse(words: list[str]) -> Rule:
    operations: list[str] = []
    effect: str | None = None
    matches: dict[str, str] = {}
    options: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            members = options if effect is not None and not _is_match(name) else matches
            if name in members:
                raise ValueError(f"{name} is given twice")
            members[name] = value
        elif word in EFFECTS:
            if effect is not None:
                raise ValueError(f"{effect} and {word} are two effects; write two faults")
            effect = word
        else:
            operations += _operations(word)
    if effect is None:
        raise ValueError(f"the effect is missing; it is one of {', '.join(EFFECTS)}")
    return Rule(_effect(effect, options), tuple(operations), **_matched(matches))


def _is_match(name: str) -> bool:
    return name in _MATCHES or name.startswith(_KEY)


def _operations(word: str) -> list[str]:
    if word == "*":
        return []
    named = [name for name in word.split(",") if name]
    for name in named:
        if name not in REGISTRY:
            near = difflib.get_close_matches(name, [*REGISTRY, *EFFECTS], 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"effects are {', '.join(EFFECTS)}"
            raise ValueError(f"{name!r} is neither an operation nor an effect; {hint}")
    return named


def _matched(matches: dict[str, str]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in matches.items():
        if not _is_match(name) or name == _KEY:
            near = difflib.get_close_matches(name, _MATCHES, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(_MATCHES)}"
            raise ValueError(f"{name} is unknown; {hint} The options of an effect follow its name")
        if name in ("table", "index"):
            members[name] = value
        elif name == "nth":
            members["calls"] = tuple([_whole(name, number) for number in value.split(",")])
        elif name == "probability":
            members[name] = _number(name, value)
        elif not name.startswith(_KEY):
            members[name] = _whole(name, value)
    key = tuple(
        [(name.removeprefix(_KEY), value) for name, value in matches.items() if name.startswith(_KEY)]
    )
    return members | ({"key": key} if key else {})


def _effect(word: str, texts: dict[str, str]) -> Effect:
    kind: Any = EFFECTS[word]
    fields_by_name = {field.name: field for field in fields(kind)}
    options: dict[str, Any] = {}
    for name, value in texts.items():
        if name not in fields_by_name:
            has = f"its options are {', '.join(fields_by_name)}" if fields_by_name else "it has none"
            raise ValueError(f"{word} has no option {name}; {has}")
        wanted_type = fields_by_name[name].type
        options[name] = (
            _number(name, value)
            if wanted_type == "float"
            else _truth(name, value)
            if wanted_type == "bool"
            else value
        )
    for name, field in fields_by_name.items():
        if field.default is MISSING and name not in options:
            raise ValueError(f"{word} needs {name}, as in {word} {name}=0.2")
    effect: Effect = kind(**options)
    return effect


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        pass
    if name != "seconds":
        raise ValueError(f"{name}={value} is not a number, as 0.2 is")
    try:
        return parse_duration(value)
    except ValueError:
        raise ValueError(f"{name}={value} is not a duration, as 0.2s and 10m are") from None


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{name}={value} is not a whole number, as 3 is") from None


def _truth(name: str, value: str) -> bool:
    if value not in ("yes", "no"):
        raise ValueError(f"{name}={value} is neither yes nor no")
    return value == "yes"


def show(rule: Rule) -> str:
    """The text of a rule; `parse` reads it."""
    words = [",".join(rule.operations) or "*"]
    words += [f"{name}={value}" for name, value in (("table", rule.table), ("index", rule.index)) if value]
    words += [f"{_KEY}{name}={value}" for name, value in rule.key]
    if rule.calls:
        words.append(f"nth={','.join(map(str, rule.calls))}")
    if rule.after:
        words.append(f"after={rule.after}")
    if rule.times is not None:
        words.append(f"times={rule.times}")
    if rule.probability < 1:
        words += [f"probability={_shown(rule.probability)}", f"seed={rule.seed}"]
    words.append(rule.effect.word)
    for field in fields(rule.effect):  # type: ignore[arg-type]
        value = getattr(rule.effect, field.name)
        if value != field.default:
            words.append(f"{field.name}={_shown(value)}")
    return shlex.join(words).replace("'*'", "*", 1) if words[0] == "*" else shlex.join(words)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
