"""Rules that hide the values of attributes while items are copied: `hashrange pull --mask RULES`.

    [orders]                             a table, or a pattern of tables: ["shop-*"]
    email = "fake email"                 an invented value of this kind; the same value gives the same one
    card = "mask 4"                      only the last four characters or digits stay
    customer = "hash"                    a keyed hash, equal in all tables
    pk = "hash #"                        the hash of what follows the last #
    "contacts[*].phone" = "redact"       nothing stays; [*] is each member of a list, * each of a map

A value keeps its type, so keys and indexes stay valid. A rule for a list, a map or a set holds for all that
is in it. Each item is checked before it is written (`Masks.apply`), and a rule that met no value is told.
"""

from __future__ import annotations

import hmac
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

Item = dict[str, Any]
"""An item, or its part, as boto3 has it: values with their types, binary decoded."""

_STEP: Final = re.compile(r'\[\*\]|\*|"[^"]+"|[^.\[\]"*]+')
_PATH: Final = re.compile(rf"(?:{_STEP.pattern})(?:\.(?:{_STEP.pattern})|\[\*\])*")
_HASH_DIGITS: Final = 32
_REDACTED: Final[dict[str, Any]] = {"S": "redacted", "N": "0", "B": b"redacted", "BOOL": False}
_FAKES_MAX: Final = 10


class WrongRules(ValueError):
    """The rules cannot be used; the text says why, and what to write."""


class Unmasked(Exception):
    """A value that a rule names would stay as it is; the text names the path, not the value."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: for the tables of a pattern, at a path, does something with one scalar of a type."""

    tables: str
    path: str
    text: str
    steps: tuple[str, ...]
    change: Callable[[str, Any], Any]

    def values(self, item: Item) -> Iterator[Item]:
        """The values at the path, each an object with its type."""
        yield from _at({"M": item}, self.steps)


class Masks:
    """The rules of a file. It counts the values that each has met."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self._met: Counter[Rule] = Counter()

    def of(self, table: str, keys: Sequence[str]) -> list[Rule]:
        """The rules for a table with this primary key. Raises WrongRules for one that would make keys of
        several items the same."""
        found = [rule for rule in self.rules if fnmatchcase(table, rule.tables)]
        for rule in found:
            if rule.steps[0] in (*keys, "*") and not rule.text.startswith("hash"):
                raise WrongRules(
                    f"{rule.path} = {rule.text!r}: {' and '.join(keys)} are the key of {table}, and only "
                    f'`hash` keeps items apart; write {rule.path} = "hash".'
                )
        return found

    def apply(self, rules: Sequence[Rule], items: list[Item]) -> list[Item]:
        """Items as they are to be written. Raises Unmasked."""
        return [self._masked(rules, item) for item in items]

    def _masked(self, rules: Sequence[Rule], item: Item) -> Item:
        made: Item = _copied({"M": item})["M"]
        for rule in rules:
            for value in rule.values(made):
                value.update(_changed(value, rule.change))
                self._met[rule] += 1
        for rule in rules:
            for before, after in zip(rule.values(item), rule.values(made), strict=True):
                if kept := _kept(before, after):
                    raise Unmasked(f"{rule.path} = {rule.text!r} leaves a value of type {kept} as it is")
        return made

    def unmet(self) -> list[Rule]:
        """The rules that met no value."""
        return [rule for rule in self.rules if not self._met[rule]]


def masks_of(file: Path, key: bytes) -> Masks:
    """The rules of a file in TOML; `key` is that of the hashes. Raises WrongRules, and OSError."""
    try:
        written = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongRules(f"{file} is not TOML: {error}") from error
    rules = []
    for tables, members in written.items():
        if not isinstance(members, dict):
            raise WrongRules(f'{tables} = {members!r} is below no table: begin with [TABLE], or with ["*"].')
        rules += [_rule(tables, path, text, key) for path, text in members.items()]
    if not rules:
        raise WrongRules(f'{file} has no rules, as email = "redact" below [orders] is one.')
    return Masks(rules)


def _rule(tables: str, path: str, text: Any, key: bytes) -> Rule:
    if not isinstance(text, str):
        # (TOML reads a.b = "…" without quotes as a table in a table)
        raise WrongRules(
            f'{path} = {text!r}: write a path in quotes, and a rule as a text: "a.b" = "redact".'
        )
    if _PATH.fullmatch(path) is None:
        raise WrongRules(f"{path!r} is no path, as contacts[*].phone or addresses.*.street is.")
    steps = tuple(step if step == "[*]" else step.strip('"') for step in _STEP.findall(path))
    return Rule(tables, path, text, steps, _change(path, text, key))


def _change(path: str, text: str, key: bytes) -> Callable[[str, Any], Any]:
    """What a rule does. Raises WrongRules."""
    verb, _, more = text.partition(" ")
    match verb:
        case "redact" if not more:
            return lambda kind, value: _REDACTED[kind]
        case "mask" if more.isascii() and more.isdigit():
            return lambda kind, value: _ending(kind, value, int(more))
        case "hash":
            return lambda kind, value: _hashed(key, kind, value, more)
        case "fake" if more:
            return _faker(more, key)
    raise WrongRules(f'{path} = {text!r} is no rule: write "redact", "mask 4", "hash", or "fake email".')


def _hashed(key: bytes, kind: str, value: Any, separator: str = "") -> Any:
    if kind == "S" and separator:
        begin, found, rest = value.rpartition(separator)
        return begin + found + _hashed(key, "S", rest)
    digest = _digest(key, kind, value)
    match kind:
        case "S":
            return digest.hex()[:_HASH_DIGITS]
        case "N":
            return str(int.from_bytes(digest[:15]))
        case "B":
            return digest
    return _REDACTED[kind]


def _digest(key: bytes, kind: str, value: Any, more: str = "") -> bytes:
    content = value if isinstance(value, bytes) else str(value).encode()
    return hmac.digest(key, f"{kind}{more}:".encode() + content, "sha256")


def _ending(kind: str, value: Any, count: int) -> Any:
    """A value of which only the last characters, digits or bytes stay; none, if these are all."""
    match kind:
        case "S" | "B":
            star, kept = b"*" if kind == "B" else "*", value[:0]
            if 0 < count < len(value):
                kept = value[-count:]
            made = star * (len(value) - len(kept)) + kept
            return made if made != value else star * len(value)
        case "N":
            digits = "".join(filter(str.isdigit, f"{Decimal(value):f}")).lstrip("0")
            return digits[-count:].lstrip("0") or "0" if 0 < count < len(digits) else "0"
    return _REDACTED[kind]


def _faker(kind_of_fake: str, key: bytes) -> Callable[[str, Any], Any]:
    try:
        from faker import Faker
    except ImportError as error:
        raise WrongRules("Rules with `fake` need Faker; install it with: pip install faker") from error
    faker = Faker()
    invent = None if kind_of_fake.startswith("_") else getattr(faker, kind_of_fake, None)
    try:
        invented = invent() if callable(invent) else None
    except Exception:  # (it has arguments, or is no kind of values)
        invented = None
    if not isinstance(invented, str | int | Decimal):
        raise WrongRules(f"Faker has no kind {kind_of_fake!r}, as name, email or phone_number are.")

    def change(kind: str, value: Any) -> Any:
        if kind not in ("S", "N", "B"):
            return _REDACTED[kind]
        for attempt in range(_FAKES_MAX):
            faker.seed_instance(int.from_bytes(_digest(key, kind, value, f"fake{attempt}")))
            text = str(getattr(faker, kind_of_fake)())
            found = {"S": text, "N": _number(text), "B": text.encode()}[kind]
            if found is not None and found != value:
                return found
        return _hashed(key, kind, value)

    return change


def _number(text: str) -> str | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return f"{number:f}" if number.is_finite() else None


def _at(value: Item, steps: Sequence[str]) -> Iterator[Item]:
    """The values at the end of a path that begins at a value."""
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if step == "[*]":
        for member in value.get("L", ()):
            yield from _at(member, rest)
    else:
        members = value.get("M", {})
        for member in [*members.values()] if step == "*" else [members[step]] if step in members else []:
            yield from _at(member, rest)


def _changed(value: Item, change: Callable[[str, Any], Any]) -> Item:
    """A value of which each scalar is changed; sets keep no doubles."""
    ((kind, content),) = value.items()
    match kind:
        case "M":
            return {kind: {name: _changed(member, change) for name, member in content.items()}}
        case "L":
            return {kind: [_changed(member, change) for member in content]}
        case "SS" | "NS" | "BS":
            return {kind: [*dict.fromkeys(change(kind[0], member) for member in content)]}
        case "NULL":
            return value
    return {kind: change(kind, content)}


def _kept(before: Item, after: Item) -> str:
    """The type of a scalar that stays, though it says something; "" if none does."""
    ((kind, old),) = before.items()
    new = after[kind]
    match kind:
        case "M":
            return next(filter(None, [_kept(one, new[name]) for name, one in old.items()]), "")
        case "L":
            return next(filter(None, map(_kept, old, new)), "")
        case "SS" | "NS" | "BS":
            # (members keep their order, unless some have become the same)
            pairs = [({kind[0]: one}, {kind[0]: two}) for one, two in zip(old, new, strict=False)]
            return (
                next(filter(None, [_kept(one, two) for one, two in pairs]), "")
                if len(old) == len(new)
                else ""
            )
        case "NULL":
            return ""
    says = old != _REDACTED[kind] and (kind != "S" or old.strip("*")) and (kind != "B" or old.strip(b"*"))
    return kind if new == old and says else ""


def _copied(value: Item) -> Item:
    ((kind, content),) = value.items()
    match kind:
        case "M":
            return {kind: {name: _copied(member) for name, member in content.items()}}
        case "L":
            return {kind: [_copied(member) for member in content]}
    return {kind: content}
