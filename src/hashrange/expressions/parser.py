"""Parses texts to trees: the four grammars, by recursive descent; conditions by operator precedence.

Rules: the case of keywords does not matter, the case of function names does. A redundant pair of parentheses
and too many operators are refused only after the whole text is parsed, because DynamoDB reports a syntax
error first. Nesting is bounded, so that no text can exhaust the stack. The meaning of placeholders and
functions is left to `words` and `operands`.
"""

from __future__ import annotations

from hashrange.expressions.lexer import Cursor, ExpressionError
from hashrange.expressions.tree import (
    Action,
    Add,
    And,
    Arithmetic,
    Between,
    Call,
    Comparison,
    ConditionTree,
    Delete,
    In,
    Not,
    Operand,
    Or,
    Path,
    ProjectionTree,
    Remove,
    Set,
    UpdateTree,
    Value,
)
from hashrange.limits import EXPRESSION_BYTES_MAX, EXPRESSION_OPERATORS_MAX

_COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_KEYWORDS = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "SET", "REMOVE", "ADD", "DELETE"})
_PRECEDENCE = {"OR": 1, "AND": 2}


def parse_condition(text: str) -> ConditionTree:
    """The tree of a condition, filter or key condition."""
    parser = _Parser(text, resumes=True)
    tree = parser.as_condition(parser.condition())
    parser.finish()
    return tree


def parse_projection(text: str) -> ProjectionTree:
    """projection ::= path { ',' path }"""
    parser = _Parser(text)
    paths = [parser.path()]
    while parser.cursor.accept(","):
        paths.append(parser.path())
    parser.finish()
    return ProjectionTree(tuple(paths))


def parse_update(text: str) -> tuple[UpdateTree, str]:
    """update ::= clause { clause }

    Also returns the keyword of the first clause that is repeated, or "": it is refused after wrong words.
    """
    parser = _Parser(text)
    actions: list[Action] = []
    seen: set[str] = set()
    repeated = ""
    while True:
        keyword = parser.cursor.keyword()
        if keyword in seen:
            repeated = repeated or keyword
        actions.extend(parser.clause(keyword))
        seen.add(keyword)
        if parser.cursor.token.kind == "end":
            break
    parser.finish()
    return UpdateTree(tuple(actions)), repeated


class _Chain:
    """The terms that AND and OR join within one pair of parentheses: a stack of conditions that wait for
    their right side, each with its keyword. `result` is the joined condition at the end."""

    __slots__ = ("result", "waiting")

    def __init__(self) -> None:
        self.waiting: list[tuple[ConditionTree, str]] = []
        self.result: ConditionTree | Operand

    def reduced(self, right: ConditionTree, level: int) -> ConditionTree:
        """`right`, joined with all waiting conditions whose keyword binds at least as tightly as `level`."""
        while self.waiting and _PRECEDENCE[self.waiting[-1][1]] >= level:
            left, keyword = self.waiting.pop()
            right = Or(left, right) if keyword == "OR" else And(left, right)
        return right


class _Parser:
    __slots__ = ("_depth", "_group", "_operators", "_redundant", "_resumes", "cursor")

    def __init__(self, text: str, *, resumes: bool = False) -> None:
        """`resumes`: whether a path may go on after parentheses, as in `(a).b`."""
        if not text:
            raise ExpressionError("The expression can not be empty;")
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > EXPRESSION_BYTES_MAX:
            raise ExpressionError(
                "Expression size has exceeded the maximum allowed size;",
                detail=f" expression size: {size}",
            )
        self.cursor = Cursor(text)
        self._depth = 0
        self._operators = 0
        self._redundant = False
        self._resumes = resumes
        self._group: object = None  # the node in the parentheses that were closed last

    def finish(self) -> None:
        if self.cursor.token.kind != "end":
            raise self.cursor.refusal()
        self._check_totals()

    def _check_totals(self) -> None:
        if self._redundant:
            raise ExpressionError("The expression has redundant parentheses;")
        if self._operators > EXPRESSION_OPERATORS_MAX:
            # DynamoDB stops counting at the first operator too many.
            raise ExpressionError(
                f"The expression contains too many operators; operator count: {EXPRESSION_OPERATORS_MAX + 1}"
            )

    # condition ::= term | condition AND condition | condition OR condition
    # term      ::= { NOT } ( comparison | function | '(' condition ')' )
    def condition(self) -> ConditionTree | Operand:
        """Parse a condition. The result may be an operand instead, if parentheses hold one, as in `(a) = :v`.

        It uses no recursion: unfinished conditions and open parentheses are on a stack.
        """
        outer: list[tuple[_Chain, int]] = []
        chain = _Chain()
        while True:
            negations = 0
            while self.cursor.accept_keyword("NOT"):
                negations += 1
            self._operators += negations
            if self.cursor.at("("):
                self._open()
                outer.append((chain, negations))
                chain = _Chain()
                continue
            node = self._term(self.operand(), negations)
            while not self._joins(chain, node):
                node = chain.result
                if not outer:
                    return node
                self._close(node)
                chain, negations = outer.pop()
                node = self._term(self._extended(node) if isinstance(node, Path) else node, negations)

    def _term(self, node: ConditionTree | Operand, negations: int) -> ConditionTree | Operand:
        """The term that begins with `node`: with its comparison, and the negations before it."""
        if isinstance(node, Path | Value | Call):
            node = self._comparison(node)
        for _ in range(negations):
            node = Not(self.as_condition(node))
        return node

    def _joins(self, chain: _Chain, node: ConditionTree | Operand) -> bool:
        """Add a term to a chain. Returns whether AND or OR follows, and so another term."""
        keyword = self.cursor.keyword()
        level = _PRECEDENCE.get(keyword, 0)
        if level or chain.waiting:
            node = chain.reduced(self.as_condition(node), level)
        if not level:
            chain.result = node
            return False
        chain.waiting.append((self.as_condition(node), keyword))
        self.cursor.take()
        self._operators += 1
        return True

    def as_condition(self, node: ConditionTree | Operand) -> ConditionTree:
        """`node`, which must not be a bare operand: the syntax error is at the token after it."""
        if isinstance(node, Path | Value | Arithmetic):
            raise self.cursor.refusal()
        return node

    # comparison ::= operand comparator operand
    #              | operand BETWEEN operand AND operand
    #              | operand IN '(' operand { ',' operand } ')'
    def _comparison(self, left: Operand) -> ConditionTree | Operand:
        cursor = self.cursor
        if cursor.token.kind == "symbol" and cursor.token.text in _COMPARATORS:
            operator = cursor.take().text
            self._operators += 1
            return Comparison(operator, left, self.operand())
        if cursor.accept_keyword("BETWEEN"):
            self._operators += 1
            low = self.operand()
            if not cursor.accept_keyword("AND"):
                raise cursor.refusal()
            return Between(left, low, self.operand())
        if cursor.accept_keyword("IN"):
            self._operators += 1
            cursor.expect("(")
            choices = [self.operand()]
            while cursor.accept(","):
                choices.append(self.operand())
            cursor.expect(")")
            return In(left, tuple(choices))
        return left

    # operand ::= path | value | function | '(' operand ')'
    #           | '(' path ')' { '.' name | '[' number ']' }   in a condition, not in an update
    # [report] dynalite's recordings: in the condition `(((b.c)).d)` the redundant parentheses are wrong,
    # in the update `SET a = (b.c).d + e` the syntax.
    # function ::= word '(' operand { ',' operand } ')'
    def operand(self) -> Operand:
        cursor = self.cursor
        token = cursor.token
        if token.kind == "value":
            return Value(cursor.take().text)
        if cursor.at("("):
            opened = 0
            while cursor.at("("):
                self._open()
                opened += 1
            node = self.operand()
            for _ in range(opened):
                self._close(node)
                if self._resumes and isinstance(node, Path):
                    node = self._extended(node)
            return node
        if token.kind == "word" and cursor.peek().text == "(" and token.text.upper() not in _KEYWORDS:
            cursor.take()
            self._open()
            self._operators += 1
            arguments = [self.operand()]
            while cursor.accept(","):
                arguments.append(self.operand())
            self._close(None)
            return Call(token.text, tuple(arguments))
        return self.path()

    # path ::= name { '.' name | '[' number ']' }
    def path(self) -> Path:
        return self._extended(Path((self._name(),)))

    def _extended(self, path: Path) -> Path:
        """The path with the elements that follow it."""
        cursor = self.cursor
        if not (cursor.at(".") or cursor.at("[")):
            return path
        elements = list(path.elements)
        while True:
            if cursor.accept("."):
                elements.append(self._name())
            elif cursor.accept("["):
                if cursor.token.kind != "number":
                    raise cursor.refusal()
                digits = cursor.take().text
                cursor.expect("]")
                elements.append(int(digits))
            else:
                break
        return Path(tuple(elements))

    def _name(self) -> str:
        token = self.cursor.token
        if token.kind == "name" or (token.kind == "word" and token.text.upper() not in _KEYWORDS):
            return self.cursor.take().text
        raise self.cursor.refusal()

    def _open(self) -> None:
        self.cursor.take()
        self._depth += 1
        if self._depth > EXPRESSION_OPERATORS_MAX:
            # With this many open parentheses, the text must break the limit of operators or have redundant
            # parentheses.
            self._redundant = self._operators <= EXPRESSION_OPERATORS_MAX
            self._check_totals()

    def _close(self, node: object) -> None:
        """End a group that holds `node`; None for a function's arguments."""
        self.cursor.expect(")")
        self._depth -= 1
        if node is not None:
            if node is self._group:
                self._redundant = True
            self._group = node

    # clause ::= SET path '=' sum { ',' path '=' sum }
    #          | REMOVE path { ',' path }
    #          | ADD path value { ',' path value }
    #          | DELETE path value { ',' path value }
    def clause(self, keyword: str) -> list[Action]:
        cursor = self.cursor
        if keyword not in ("SET", "REMOVE", "ADD", "DELETE"):
            raise cursor.refusal()
        cursor.take()
        actions = [self._action(keyword)]
        while cursor.accept(","):
            actions.append(self._action(keyword))
        return actions

    def _action(self, keyword: str) -> Action:
        path = self.path()
        if keyword == "SET":
            self.cursor.expect("=")
            return Set(path, self._sum())
        if keyword == "REMOVE":
            return Remove(path)
        if self.cursor.token.kind != "value":
            raise self.cursor.refusal()
        value = Value(self.cursor.take().text)
        return Add(path, value) if keyword == "ADD" else Delete(path, value)

    # sum ::= '(' sum ')' | operand [ ( '+' | '-' ) operand ]
    def _sum(self) -> Operand:
        if self.cursor.at("("):
            self._open()
            left = self._sum()
            self._close(left)
            if isinstance(left, Arithmetic):
                return left
        else:
            left = self.operand()
        if not (self.cursor.at("+") or self.cursor.at("-")):
            return left
        operator = self.cursor.take().text
        self._operators += 1
        return Arithmetic(operator, left, self.operand())
