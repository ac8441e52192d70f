"""PartiQL's lexicon, for the lexer of the expression languages, and a cursor that reports PartiQL's errors.

Knows no grammar.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from hashrange.expressions.lexer import Cursor, ExpressionError, Token, each_token
from hashrange.partiql.reserved import RESERVED_WORDS

STATEMENT: Final = re.compile(
    r"""
    (?P<comment>   --[^\n]* | /\*.*?\*/ )
  | (?P<other>     /\* )
  | (?P<word>      [A-Za-z_$][A-Za-z0-9_$]* )
  | (?P<quoted>    "(?:[^"]|"")*" )
  | (?P<string>    '(?:[^']|'')*' )
  | (?P<number>    (?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? )
  | (?P<parameter> \? )
  | (?P<ion>       `[^`]*` )
  | (?P<symbol>    << | >> | <> | != | <= | >= | \|\| | [=<>+\-*/%(),.\[\]{}:;] )
    """,
    re.VERBOSE | re.DOTALL,
)

# Some details that DynamoDB appends are known: "Expected data manipulation", "Unexpected keyword", "Invalid
# path dot component", "Expected RIGHT_PAREN" [report]. These are messages of the public PartiQL parser; the
# other details here imitate its style.
_MALFORMED: Final = "Statement wasn't well formed, can't be processed: "
_SYMBOL_NAMES: Final = {
    "(": "LEFT_PAREN",
    ")": "RIGHT_PAREN",
    "]": "RIGHT_BRACKET",
    "{": "LEFT_CURLY",
    "}": "RIGHT_CURLY",
    ">>": "RIGHT_DOUBLE_ANGLE_BRACKET",
    ":": "COLON",
    ",": "COMMA",
    "=": "OPERATOR",
}


# Words and symbols that the public parser reads as operators, so that no term may begin with them.
_OPERATOR_WORDS: Final = frozenset({"AND", "OR", "IS", "IN", "LIKE", "BETWEEN"})
_OPERATORS: Final = frozenset({"=", "<>", "!=", "<", "<=", ">", ">=", "/", "%", "||"})
_SCALE_MAX: Final = 2**31 - 1


def malformed(detail: str) -> ExpressionError:
    """The error of a statement that does not follow the grammar."""
    return ExpressionError(_MALFORMED + detail)


def first_word(text: str) -> str:
    """The first token of a statement, in capitals."""
    return next(each_token(text, STATEMENT)).text.upper()


class StatementCursor(Cursor):
    """A place in the tokens of a statement."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        super().__init__(text, STATEMENT)
        if not all(map(_is_readable, self.tokens)):
            # Text that is not a token is reported before any rule of the grammar, and is not quoted ([report]
            # paritysuite, of `#`, an unclosed comment and numbers beyond a decimal's 32 bits).
            raise malformed("")

    def place(self, token: Token) -> str:
        """The place of `token`, as messages show it: `at line:column:length`."""
        line = self.text.count("\n", 0, token.start) + 1
        column = token.start - self.text.rfind("\n", 0, token.start)
        return f"at {line}:{column}:{token.stop - token.start}"

    def at_end(self) -> bool:
        """Whether the statement ends here."""
        return self.token.kind == "end" or self.at(";")

    def demand(self, symbol: str) -> None:
        """Take the current token, which must be this symbol."""
        if not self.accept(symbol):
            raise malformed(f"Expected {_SYMBOL_NAMES.get(symbol, symbol)}")

    def demand_keyword(self, keyword: str) -> None:
        """Take the current token, which must be this keyword."""
        if not self.accept_keyword(keyword):
            raise malformed(f"Expected {keyword} keyword")

    def at_name(self) -> bool:
        """Whether the current token is a name: quoted, or a word that is not reserved."""
        token = self.token
        return token.kind == "quoted" or (token.kind == "word" and token.text.upper() not in RESERVED_WORDS)

    def name(self) -> str:
        """Take the current token, which must be a name; returns the name without quotes."""
        if not self.at_name():
            raise malformed("Unexpected keyword" if self.token.kind == "word" else "Expected identifier")
        token = self.take()
        return token.text[1:-1].replace('""', '"') if token.kind == "quoted" else token.text

    def refuse_term(self) -> NoReturn:
        """Raise the error for a token that cannot begin a term."""
        token = self.token
        if token.kind == "ion":
            raise ExpressionError(f"Ion Literals are not supported {self.place(token)}")
        if self.keyword() in ("CASE", "CAST", "SELECT", "EXISTS", "DISTINCT"):
            word = self.keyword() if self.keyword() in ("SELECT", "CASE") else token.text.lower()
            where = self.peek() if word == "cast" else token
            raise ExpressionError(f"Unsupported token in expression: {word} {self.place(where)}")
        if self.at_operator():
            raise malformed("Unexpected operator")
        raise malformed("Unexpected keyword" if token.kind == "word" else "Unexpected term")

    def at_operator(self) -> bool:
        """Whether the current token is an operator between two terms."""
        return self.keyword() in _OPERATOR_WORDS or (
            self.token.kind == "symbol" and self.token.text in _OPERATORS
        )


def _is_readable(token: Token) -> bool:
    if token.kind == "other":
        return token.text == "@"
    if token.kind != "number":
        return True
    mantissa, _, exponent = token.text.lower().partition("e")
    scale = len(mantissa.partition(".")[2])
    digits = exponent.lstrip("+-").lstrip("0")
    if len(digits) > len(str(_SCALE_MAX)):
        return False
    scale -= -int(digits or "0") if exponent.startswith("-") else int(digits or "0")
    return -_SCALE_MAX <= scale <= _SCALE_MAX
