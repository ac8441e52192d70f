"""Text to tokens, and the cursor that a parser moves over them.

A lexicon is a compiled pattern whose named groups are the kinds of token; text that no group takes becomes
a token of kind "other", one character long, so that lexing never fails and the parser reports the place.
A group called "comment" makes no token.
The expression languages use `EXPRESSION`; PartiQL brings its own lexicon. Both pause at `pace.step` for each
token, because a text of 8 KB can take tens of milliseconds. Knows no grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from hashrange import pace

# Two reports of real messages fix the corners: `token: "_", near: "_version"` (a word does not begin with an
# underscore) and `token: "-", near: "#AMZN_MAPPED_2021-0"` for `-03` (a number has no leading zero).
EXPRESSION: Final = re.compile(
    r"""
    (?P<word>   [A-Za-z][A-Za-z0-9_]* )
  | (?P<name>   \#[A-Za-z0-9_]+ )
  | (?P<value>  :[A-Za-z0-9_]+ )
  | (?P<number> 0 | [1-9][0-9]* )
  | (?P<symbol> <> | <= | >= | [=<>+\-(),.\[\]] )
    """,
    re.VERBOSE,
)

END: Final = "<EOF>"
_SPACE: Final = re.compile(r"[ \t\r\n\f\v]*")


class Token(NamedTuple):
    """A piece of the text. `kind` is a group of the lexicon, "other" or "end"."""

    kind: str
    text: str
    start: int
    stop: int


class ExpressionError(Exception):
    """An expression breaks a rule; translated to a ValidationException where the parameter is known.

    If `prefixed`, the message begins with "Invalid <parameter>: ". For some parameters `detail` is appended
    to it (`preparing.prepare`).
    """

    def __init__(self, message: str, *, prefixed: bool = True, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.prefixed = prefixed
        self.detail = detail


def tokens(text: str, lexicon: re.Pattern[str] = EXPRESSION) -> list[Token]:
    """The tokens of `text`, ending with one of kind "end"."""
    return list(each_token(text, lexicon))


def each_token(text: str, lexicon: re.Pattern[str]) -> Iterator[Token]:
    """Like `tokens`, one at a time."""
    skip, match = _SPACE.match, lexicon.match
    position = 0
    while True:
        pace.step()
        space = skip(text, position)
        position = space.end() if space else position
        if position >= len(text):
            break
        matched = match(text, position)
        if matched is None or matched.lastgroup is None:
            yield Token("other", text[position], position, position + 1)
            position += 1
        else:
            if matched.lastgroup != "comment":
                yield Token(matched.lastgroup, matched.group(), position, matched.end())
            position = matched.end()
    yield Token("end", END, len(text), len(text))


class Cursor:
    """A place in the tokens of a text."""

    __slots__ = ("_index", "_tokens", "text", "token")

    def __init__(self, text: str, lexicon: re.Pattern[str] = EXPRESSION) -> None:
        self.text = text
        self._tokens = tokens(text, lexicon)
        self._index = 0
        self.token = self._tokens[0]

    @property
    def tokens(self) -> list[Token]:
        """All tokens of the text."""
        return self._tokens

    def take(self) -> Token:
        """The current token; the cursor moves on (the end stays)."""
        pace.step()
        token = self.token
        if token.kind != "end":
            self._index += 1
            self.token = self._tokens[self._index]
        return token

    def peek(self, ahead: int = 1) -> Token:
        """The token after the current one, or the one `ahead` tokens further on."""
        return self._tokens[min(self._index + ahead, len(self._tokens) - 1)]

    def at(self, symbol: str) -> bool:
        """Whether the current token is this symbol."""
        return self.token.kind == "symbol" and self.token.text == symbol

    def accept(self, symbol: str) -> bool:
        """Take the current token if it is this symbol."""
        if self.token.kind == "symbol" and self.token.text == symbol:
            self.take()
            return True
        return False

    def expect(self, symbol: str) -> None:
        """Take the current token, which must be this symbol."""
        if not self.accept(symbol):
            raise self.refusal()

    def keyword(self) -> str:
        """The current token upper-cased if it is a word, otherwise the empty string."""
        return self.token.text.upper() if self.token.kind == "word" else ""

    def accept_keyword(self, keyword: str) -> bool:
        """Take the current token if it is this keyword, whatever its case."""
        if self.token.kind == "word" and self.token.text.upper() == keyword:
            self.take()
            return True
        return False

    def refusal(self) -> ExpressionError:
        """The syntax error at the current token, with the text from its left to its right neighbour."""
        left = self._tokens[self._index - 1].start if self._index else 0
        right = self._tokens[min(self._index + 1, len(self._tokens) - 1)].stop
        return ExpressionError(f'Syntax error; token: "{self.token.text}", near: "{self.text[left:right]}"')
