"""Attribute values from Python values and back, as the types of a class's fields say.

    str                          S       set[str], set[UUID], set[Color]    SS
    int, Decimal, float          N       set[int], set[Decimal]             NS
    bytes                        B       set[bytes]                         BS
    bool                         BOOL    list, tuple                        L
    datetime, date, time, UUID   S       dict[str, T], dataclass            M
    enum, Literal                S or N  pydantic model                     M
    Expires                      N       T | None                           as T, or NULL

Every value is read back exactly as it was written: a moment in time is written in UTC with all its digits, so
that texts sort as moments do; a number that DynamoDB would round is refused, and so is a value whose type
differs from the field's. DynamoDB has no empty sets, so an empty set is written as an empty list.

Refuses to know keys and entities.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import types
import typing
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow, Subnormal
from typing import Annotated, Any, Final, TypeAlias
from uuid import UUID

from hashrange_patterns.tables import Item, utc

_NUMBERS: Final = Context(
    prec=38, Emin=-130, Emax=125, traps=[Inexact, InvalidOperation, Overflow, Subnormal]
)
_SET_TAGS: Final = {"S": "SS", "N": "NS", "B": "BS"}


class _Seconds:
    """Marks a moment that is written in seconds since 1970."""


Expires: TypeAlias = Annotated[datetime, _Seconds]
"""A moment in whole seconds, as DynamoDB's time to live takes it."""


class Unreadable(ValueError):
    """An item does not fit its class; the text names the attribute."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How values of a type are written and read. `encode` raises TypeError or ValueError for a value that has
    no exact form; `decode` raises KeyError, ValueError or TypeError for a value that `encode` did not
    write."""

    encode: Callable[[Any], Item]
    decode: Callable[[Mapping[str, Any]], Any]
    tag: str = ""
    optional: bool = False
    empty: Callable[[], Any] | None = None
    """Makes the empty set, for types of sets."""


def iso(moment: datetime) -> str:
    """A moment as text of constant length, in UTC; these texts sort as moments do."""
    return utc(moment).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def from_iso(text: str) -> datetime:
    """The moment that `iso` wrote, or any other in ISO 8601; in UTC if it names no time zone."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def number_text(value: float | Decimal) -> str:
    """A number as DynamoDB stores it. Raises ValueError if it would have to be rounded."""
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    try:
        if not exact.is_finite():
            raise InvalidOperation
        return str(_NUMBERS.create_decimal(exact))
    except (Inexact, InvalidOperation, Overflow, Subnormal):
        raise ValueError(
            f"{value!r} is not a number that DynamoDB keeps: up to 38 digits, from 1E-130 to 9.99E+125"
        ) from None


def _typed(kind: type, tag: str, write: Callable[[Any], Any], read: Callable[[Any], Any]) -> Codec:
    """The codec of a class's values: `write` makes what is under `tag`, and `read` the value from it."""

    def encode(value: Any) -> Item:
        # (for isinstance a bool is an int and a datetime is a date, but not for readers of the item)
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise TypeError(f"{value!r} is a {type(value).__name__}, not a {kind.__name__}")
        if kind is date and isinstance(value, datetime):
            raise TypeError(f"{value!r} is a datetime, not a date")
        return {tag: write(value)}

    return Codec(encode, lambda attribute: read(attribute[tag]), tag)


def _number_of_integer(text: str) -> int:
    value = Decimal(text)
    if value != value.to_integral_value():
        raise ValueError(f"{text} is not a whole number")
    return int(value)


_SCALARS: Final[dict[Any, Codec]] = {
    str: _typed(str, "S", str, str),
    bytes: _typed(bytes, "B", bytes, bytes),
    bool: _typed(bool, "BOOL", bool, bool),
    int: _typed(int, "N", lambda value: number_text(int(value)), _number_of_integer),
    Decimal: _typed(Decimal, "N", number_text, Decimal),
    float: _typed(float, "N", number_text, float),
    datetime: _typed(datetime, "S", iso, from_iso),
    date: _typed(date, "S", date.isoformat, date.fromisoformat),
    time: _typed(time, "S", time.isoformat, time.fromisoformat),
    UUID: _typed(UUID, "S", str, UUID),
}
_EXPIRES: Final = _typed(
    datetime,
    "N",
    lambda moment: str(int(utc(moment).timestamp())),
    lambda text: datetime.fromtimestamp(int(text), UTC),
)


def codec_of(annotation: Any) -> Codec:
    """The codec of a type. Raises TypeError for a type that has none."""
    if annotation in (Any, object):
        return Codec(_encode_any, _decode_any)
    while isinstance(annotation, typing.NewType) or hasattr(annotation, "__value__"):
        # (type aliases have `__value__` from Python 3.12 on)
        annotation = getattr(annotation, "__supertype__", None) or annotation.__value__
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _EXPIRES if _Seconds in arguments[1:] else codec_of(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return _optional(annotation, arguments)
    if origin is typing.Literal:
        return _choice(arguments, {value: value for value in arguments})
    if origin in (set, frozenset):
        return _set(origin, codec_of(arguments[0]))
    if origin is list:
        return _sequence(list, codec_of(arguments[0]))
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return _sequence(tuple, codec_of(arguments[0]))
    if origin is tuple:
        return _tuple([codec_of(argument) for argument in arguments])
    if origin is dict and arguments[0] is str:
        return _map(codec_of(arguments[1]))
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type):
        if issubclass(annotation, enum.Enum):
            return _enum(annotation)
        if dataclasses.is_dataclass(annotation):
            return _record(annotation)
        pydantic = sys.modules.get("pydantic")
        if pydantic and issubclass(annotation, pydantic.BaseModel):
            return _model(annotation)
    raise TypeError(
        f"{annotation!r} has no form in DynamoDB: take a type of the list in "
        "hashrange_patterns.entities.attributes, or object for anything that DynamoDB has a form of"
    )


def _optional(annotation: Any, arguments: tuple[Any, ...]) -> Codec:
    members = [argument for argument in arguments if argument is not type(None)]
    if len(members) != 1 or len(arguments) != 2:
        raise TypeError(
            f"{annotation!r} has several forms, which readers of an item could not distinguish: use one"
        )
    inner = codec_of(members[0])
    return Codec(
        lambda value: {"NULL": True} if value is None else inner.encode(value),
        lambda attribute: None if "NULL" in attribute else inner.decode(attribute),
        inner.tag,
        optional=True,
    )


def _choice(values: tuple[Any, ...], members: Mapping[Any, Any]) -> Codec:
    """The codec of a choice among `members`, written as `values`: all texts, or all whole numbers."""
    kind = type(values[0])
    if kind not in (str, int) or any(type(value) is not kind for value in values):
        raise TypeError(f"{values!r} are not all texts, nor all whole numbers")
    inner, by_member = _SCALARS[kind], {member: value for value, member in members.items()}

    def encode(member: Any) -> Item:
        if member not in by_member:
            raise TypeError(f"{member!r} is none of {', '.join(map(repr, by_member))}")
        return inner.encode(by_member[member])

    def decode(attribute: Mapping[str, Any]) -> Any:
        value = inner.decode(attribute)
        if value not in members:
            raise ValueError(f"{value!r} is not one of {', '.join(map(repr, members))}")
        return members[value]

    return Codec(encode, decode, inner.tag)


def _enum(kind: type[enum.Enum]) -> Codec:
    members = {enum_value(member): member for member in kind}
    return _choice(tuple(members), members)


def enum_value(member: enum.Enum) -> str | int:
    """What is written for a member: its value, or its name if the values are of other types."""
    for kind in (str, int):
        if all(type(sibling.value) is kind for sibling in type(member)):
            value: str | int = member.value
            return value
    return member.name


def _set(kind: Callable[[Any], Any], member: Codec) -> Codec:
    if member.tag not in _SET_TAGS or member.optional:
        raise TypeError("a set holds texts, numbers or bytes, or what is written as such")
    tag = _SET_TAGS[member.tag]

    def encode(values: Any) -> Item:
        if not isinstance(values, set | frozenset):
            raise TypeError(f"{values!r} is not a set")
        written = [member.encode(value)[member.tag] for value in values]
        return {tag: sorted(written)} if written else {"L": []}

    def decode(attribute: Mapping[str, Any]) -> Any:
        if attribute == {"L": []}:
            return kind(())
        return kind(member.decode({member.tag: value}) for value in attribute[tag])

    return Codec(encode, decode, tag, empty=lambda: kind(()))


def _sequence(kind: type, member: Codec) -> Codec:
    return _typed(
        kind,
        "L",
        lambda values: [member.encode(value) for value in values],
        lambda written: kind(member.decode(value) for value in written),
    )


def _tuple(members: list[Codec]) -> Codec:
    def encode(values: Any) -> Item:
        if not isinstance(values, tuple) or len(values) != len(members):
            raise TypeError(f"{values!r} is not a tuple of {len(members)}")
        return {"L": [member.encode(value) for member, value in zip(members, values, strict=True)]}

    def decode(attribute: Mapping[str, Any]) -> Any:
        return tuple(member.decode(value) for member, value in zip(members, attribute["L"], strict=True))

    return Codec(encode, decode, "L")


def _map(member: Codec) -> Codec:
    def encode(values: Any) -> Item:
        if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
            raise TypeError(f"{values!r} is not a dict whose keys are texts")
        if "" in values:
            raise ValueError(f"{values!r} has an empty key, which is no valid name in DynamoDB")
        return {"M": {key: member.encode(value) for key, value in values.items()}}

    def decode(attribute: Mapping[str, Any]) -> Any:
        return {key: member.decode(value) for key, value in attribute["M"].items()}

    return Codec(encode, decode, "M")


def _record(kind: type) -> Codec:
    # (looked up late: a field may be of the class itself)
    return _typed(
        kind,
        "M",
        lambda value: record_of(kind).encode(value),
        lambda written: kind(**record_of(kind).decode(written)),
    )


def _model(kind: Any) -> Codec:
    """The codec of a pydantic model: pydantic checks what is read, and knows the types of its fields."""
    return _typed(
        kind,
        "M",
        lambda value: _encode_any(value.model_dump())["M"],
        lambda written: kind.model_validate(plain(written), strict=False, by_name=True),
    )


_ANY_MAP: Final = _map(Codec(lambda value: _encode_any(value), lambda attribute: _decode_any(attribute)))


def plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as Python values, from the types in it: whole numbers as int, other numbers as Decimal."""
    return {name: _decode_any(attribute) for name, attribute in item.items()}


def attributes(values: Mapping[str, Any]) -> Item:
    """An item from Python values, according to their types."""
    return {name: _encode_any(value) for name, value in values.items()}


def same(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two attribute values are equal, whatever the order of their sets and the digits of their
    numbers."""
    [(tag, value)], [(other_tag, other_value)] = first.items(), second.items()
    if tag != other_tag:
        return False
    if tag == "N":
        return Decimal(value) == Decimal(other_value)
    if tag == "NS":
        return set(map(Decimal, value)) == set(map(Decimal, other_value))
    if tag in ("SS", "BS"):
        return set(value) == set(other_value)
    if tag == "L":
        return len(value) == len(other_value) and all(map(same, value, other_value))
    if tag == "M":
        return value.keys() == other_value.keys() and all(same(value[key], other_value[key]) for key in value)
    return bool(value == other_value)


def _encode_any(value: Any) -> Item:
    if value is None:
        return {"NULL": True}
    if isinstance(value, enum.Enum):
        return _encode_any(enum_value(value))
    for kind in (bool, datetime, *_SCALARS):
        if isinstance(value, kind):
            return _SCALARS[kind].encode(value)
    if isinstance(value, dict):
        return _ANY_MAP.encode({str(key): member for key, member in value.items()})
    if isinstance(value, list | tuple):
        return {"L": [_encode_any(member) for member in value]}
    if isinstance(value, set | frozenset):
        members = [_encode_any(member) for member in value]
        tags = {tag for member in members for tag in member}
        if len(tags) == 1 and tags <= _SET_TAGS.keys():
            [tag] = tags
            return {_SET_TAGS[tag]: sorted(member[tag] for member in members)}
        return {"L": members}
    raise TypeError(f"{value!r} is a {type(value).__name__}, which has no form in DynamoDB")


def _decode_any(attribute: Mapping[str, Any]) -> Any:
    [(tag, value)] = attribute.items()
    if tag == "N":
        return _plain_number(value)
    if tag == "L":
        return [_decode_any(member) for member in value]
    if tag == "M":
        return plain(value)
    if tag == "NS":
        return {_plain_number(member) for member in value}
    if tag in ("SS", "BS"):
        return set(value)
    return None if tag == "NULL" else value


def _plain_number(text: str) -> int | Decimal:
    value = Decimal(text)
    return int(value) if value == value.to_integral_value() else value


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a dataclass: its codec, and its value if the attribute is missing."""

    name: str
    codec: Codec
    absent: Callable[[], Any] | None

    def omitted(self, value: Any) -> bool:
        """Whether the attribute is left out for `value`: for None, and for the empty set."""
        nothing = value is None or (isinstance(value, set | frozenset) and not value)
        return nothing and self.absent is not None and self.absent() == value


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of a dataclass, written as attributes with the same names."""

    kind: type
    fields: Mapping[str, _Field]

    def encode(self, value: Any) -> Item:
        """The attributes of an instance. Raises TypeError or ValueError, naming the field."""
        item: Item = {}
        for name, field in self.fields.items():
            member = getattr(value, name)
            if field.omitted(member):
                continue
            try:
                item[name] = field.codec.encode(member)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{self.kind.__name__}.{name}: {error}") from None
        return item

    def decode(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the class. Raises `Unreadable`."""
        values = {}
        for name, field in self.fields.items():
            if name in item:
                try:
                    values[name] = field.codec.decode(item[name])
                except (KeyError, TypeError, ValueError) as error:
                    raise Unreadable(f"{self.kind.__name__}.{name} holds {item[name]!r}: {error}") from error
            elif field.absent is not None:
                values[name] = field.absent()
            else:
                raise Unreadable(f"{self.kind.__name__}.{name} is missing, and has no default")
        return values


_RECORDS: Final[weakref.WeakKeyDictionary[type, Record]] = weakref.WeakKeyDictionary()


def record_of(kind: type) -> Record:
    """The record of a dataclass. Raises TypeError for a field whose type has no form in DynamoDB."""
    record = _RECORDS.get(kind)
    if record is None:
        record = _RECORDS[kind] = _record_made(kind)
    return record


def _record_made(kind: type) -> Record:
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = {}
    for other_member in dataclasses.fields(kind):
        if not other_member.init:
            continue
        try:
            codec = codec_of(hints[other_member.name])
        except TypeError as error:
            raise TypeError(f"{kind.__name__}.{other_member.name}: {error}") from None
        fields[other_member.name] = _Field(other_member.name, codec, _absent(other_member, codec))
    return Record(kind, fields)


def _absent(field: dataclasses.Field[Any], codec: Codec) -> Callable[[], Any] | None:
    if field.default is not dataclasses.MISSING:
        default = field.default
        return lambda: default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return (lambda: None) if codec.optional else codec.empty
