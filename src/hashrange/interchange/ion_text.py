"""The part of Amazon Ion's text form that DynamoDB's values need.

    null  null.string    the null value
    true  false
    1.  1.5  2d3         decimals, with `_` between digits
    "text"  '''text'''   texts, long texts in several parts
    {{aGVsbG8=}}         a blob
    [1, 2]  {a: 1}       lists and structs; the name of a field is a symbol or a text
    note::value          a value with annotations
    // and /* */         comments

Timestamps, symbols, clobs and S-expressions have no type in DynamoDB, and are refused. So are ints (`1`,
`0xFF`, `0b1`) and floats (`1e0`): the service takes decimals only.

Source: the Amazon Ion specification, "Text encoding"; Developer Guide, "Amazon S3 import formats for
DynamoDB", the table of types; [report] ion-python issue 363: an import refuses the key `1`, and takes `1.`.
The tests compare this module with Amazon's own library, which is not a dependency because it has no wheels
for Python 3.14 (decision 15).
"""

from __future__ import annotations

import re
from typing import Any, Final

from hashrange.limits import READABLE_LEVELS_MAX

_DIGITS_MAX: Final = 1_000
"""A number with more digits is refused unread. DynamoDB's have 38, and at most 132 without an exponent."""

# A match keeps the GIL, and a line may have megabytes. So no part of these patterns can match in two ways: a
# match looks at each character once.
_SPACE: Final = re.compile(r"[\s\x00]*+(?:(?://[^\n\r]*+|/\*(?:[^*]++|\*(?!/))*+\*/)[\s\x00]*+)*+")
_MORE: Final = rf"(?:_?[0-9]){{0,{_DIGITS_MAX}}}+"
_TOKEN: Final = re.compile(
    rf"""
      (?P<number>-?(?:0|[1-9]{_MORE})(?:\.(?:[0-9]{_MORE})?)?(?:[dDeE][+-]?[0-9]{{1,{_DIGITS_MAX}}}+)?
         (?=[\s,\[\]{{}}()"'/:]|\Z))
    | (?P<text>"[^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+")
    | (?P<long>'''[^\\']*+(?:(?:\\.|'(?!''))[^\\']*+)*+''')
    | (?P<quoted>'[^'\\\n\r]*+(?:\\.[^'\\\n\r]*+)*+')
    | (?P<time>[0-9]{{4}}(?:T|-[0-9]{{2}}[0-9TZ:+.-]*))
    | (?P<blob>\{{\{{[^{{}}]*\}}\}})
    | (?P<word>[A-Za-z_$][A-Za-z0-9_$]*(?:\.[a-z]+)?)
    | (?P<radix>-?0(?:[xX][0-9a-fA-F]|[bB][01]))
    | (?P<mark>::|[\[\]{{}},:])
    """,
    re.VERBOSE | re.DOTALL,
)
_LONG: Final = re.compile(rf"-?[0-9][0-9_.dDeE+-]{{{_DIGITS_MAX}}}")
_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\r\n|.))", re.DOTALL
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PLAIN: Final = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "f": "\f",
    "r": "\r",
    "v": "\v",
    '"': '"',
    "'": "'",
    "?": "?",
    "\\": "\\",
    "/": "/",
    "\n": "",
    "\r": "",
    "\r\n": "",
}
_VERSION: Final = "$ion_1_0"
_AFTER_VERSION: Final = frozenset(("", " ", "\t", "\n", "\r", "{", "[", '"', "'", "/"))


class IonError(ValueError):
    """A text that is not Ion; or, if `is_ion`, Ion of a type that DynamoDB does not have."""

    def __init__(self, message: str, *, is_ion: bool = False) -> None:
        super().__init__(message)
        self.is_ion = is_ion


class Number(str):
    """A number as it is written, but in DynamoDB's notation: with `E` for the exponent."""

    __slots__ = ()


class Blob(str):
    """The base64 of a blob."""

    __slots__ = ()


class AnnotatedValue:
    """A value with annotations."""

    __slots__ = ("notes", "value")

    def __init__(self, notes: tuple[str, ...], value: Any) -> None:
        self.notes = notes
        self.value = value


def read(text: str) -> Any:
    """The single value of `text`: None, bool, str, `Number`, `Blob`, list, dict or `AnnotatedValue`. A
    version marker may precede it. Raises `IonError`."""
    reader = _Reader(text)
    reader.skip_version()
    value = reader.value(0)
    if not reader.at_end():
        raise IonError("there is more than one value in the line")
    return value


class _Reader:
    """Goes over the tokens of a text."""

    __slots__ = ("place", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = _SPACE.match(text).end()  # type: ignore[union-attr]

    def at_end(self) -> bool:
        return self.place == len(self.text)

    def skip_version(self) -> None:
        end = self.place + len(_VERSION)
        if self.text.startswith(_VERSION, self.place) and self.text[end : end + 1] in _AFTER_VERSION:
            self.place = _SPACE.match(self.text, end).end()  # type: ignore[union-attr]

    def token(self) -> tuple[str, str]:
        """Take the next token; returns its kind and its text."""
        matched = _TOKEN.match(self.text, self.place)
        if matched is None or matched.lastgroup is None:
            if _LONG.match(self.text, self.place):
                raise IonError(f"a number has more than {_DIGITS_MAX:,} digits", is_ion=True)
            where = self.text[self.place : self.place + 20]
            raise IonError(f"there is no value at {where!r}" if where else "the value is cut off")
        self.place = _SPACE.match(self.text, matched.end()).end()  # type: ignore[union-attr]
        return matched.lastgroup, matched.group()

    def passes(self, mark: str) -> bool:
        """Take `mark` if it comes next; returns whether it did."""
        if not self.text.startswith(mark, self.place):
            return False
        self.place = _SPACE.match(self.text, self.place + len(mark)).end()  # type: ignore[union-attr]
        return True

    def value(self, level: int) -> Any:
        kind, token = self.token()
        if kind in ("word", "quoted") and self.passes("::"):
            notes = [_symbol(kind, token)]
            kind, token = self.token()
            while kind in ("word", "quoted") and self.passes("::"):
                notes.append(_symbol(kind, token))
                kind, token = self.token()
            return AnnotatedValue(tuple(notes), self._bare(kind, token, level))
        return self._bare(kind, token, level)

    def _bare(self, kind: str, token: str, level: int) -> Any:
        """The value that begins with a token, and has no annotations."""
        if kind == "number":
            return _number(token)
        if kind == "text":
            return _unescaped(token[1:-1])
        if kind == "mark":
            if level > READABLE_LEVELS_MAX:
                raise IonError("the value is nested too deeply", is_ion=True)
            if token == "{":
                return self._struct(level + 1)
            if token == "[":
                return self._list(level + 1)
            raise IonError(f"there is no value at {token!r}")
        if kind == "word":
            return _word(token)
        if kind == "long":
            return self._long(token)
        if kind == "blob":
            return _blob(token[2:-2])
        if kind == "radix":
            raise IonError(_NO_DECIMAL.format("an int"), is_ion=True)
        type_name = "timestamp" if kind == "time" else "symbol"
        raise IonError(f"a {type_name} is not a value of DynamoDB", is_ion=True)

    def _long(self, token: str) -> str:
        parts = [_unescaped(token[3:-3])]
        while self.text.startswith("'''", self.place):
            parts.append(_unescaped(self.token()[1][3:-3]))
        return "".join(parts)

    def _list(self, level: int) -> list[Any]:
        members: list[Any] = []
        while not self.passes("]"):
            members.append(self.value(level))
            if not self.passes(","):
                if not self.passes("]"):
                    raise IonError("a list is not closed")
                break
        return members

    def _struct(self, level: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not self.passes("}"):
            name = self._name()
            if self.text.startswith("::", self.place) or not self.passes(":"):
                raise IonError(f"the field {name!r} has no value")
            members[name] = self.value(level)
            if not self.passes(","):
                if not self.passes("}"):
                    raise IonError("a struct is not closed")
                break
        return members

    def _name(self) -> str:
        kind, token = self.token()
        if kind == "word" and "." not in token and token not in _WORDS:
            return token
        if kind in ("text", "quoted"):
            return _unescaped(token[1:-1])
        if kind == "long":
            return self._long(token)
        raise IonError(f"{token!r} is not a name of a field")


_WORDS: Final[dict[str, bool | None]] = {"null": None, "true": True, "false": False}


def _word(token: str) -> bool | None:
    if token in _WORDS:
        return _WORDS[token]
    if token.startswith("null."):
        return None
    raise IonError(f"{token} is not a value of DynamoDB", is_ion=True)


def _number(token: str) -> Number:
    """The number of a decimal: it has a point, or `d` before its exponent. Raises `IonError` for others."""
    number = token.replace("_", "").translate(_EXPONENT)
    if "e" in number:
        raise IonError(_NO_DECIMAL.format("a float"), is_ion=True)
    if "." not in number and "E" not in number:
        raise IonError(_NO_DECIMAL.format("an int"), is_ion=True)
    return Number(number.replace(".E", "E").removesuffix("."))


_EXPONENT: Final = {ord("d"): "E", ord("D"): "E", ord("E"): "e"}
_NO_DECIMAL: Final = "{} is not a number of DynamoDB, which takes decimals only, such as 1. and 2d3"


def _blob(content: str) -> Blob:
    if '"' in content or "'" in content:
        raise IonError("a clob is not a value of DynamoDB", is_ion=True)
    return Blob("".join(content.split()))


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_escape, text)
    if _SURROGATE.search(text) is None:
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")  # a pair is one character
    except UnicodeDecodeError:
        raise IonError("the text has half a character") from None


def _symbol(kind: str, token: str) -> str:
    return token if kind == "word" else _unescaped(token[1:-1])


def _escape(matched: re.Match[str]) -> str:
    short, middle, long, plain = matched.groups()
    code = short or middle or long
    if code is not None:
        number = int(code, 16)
        if number > 0x10FFFF:
            raise IonError(f"there is no character {matched.group()}")
        return chr(number)
    if plain not in _PLAIN:
        raise IonError(f"{matched.group()!r} is not an escape")
    return _PLAIN[plain]
