"""Statements: parse ∘ print is the identity, and no text gives anything but a statement or its error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doses import examples
from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.errors import InternalServerError, ServiceError, ValidationException
from hashrange.expressions.tree import (
    Add,
    And,
    Arithmetic,
    Between,
    Call,
    Comparison,
    Delete,
    In,
    Not,
    Or,
    Path,
    Remove,
    Set,
    Value,
    children,
)
from hashrange.partiql import prepare
from hashrange.partiql.parser import parse
from hashrange.partiql.reserved import RESERVED_WORDS
from hashrange.partiql.statements import DeleteFrom, Exists, Insert, Select, Statement, Update, show
from hashrange.storage.memory import MemoryEngine
from worlds import create

NAMES = st.one_of(
    st.sampled_from(["id", "a", "b", "Select", "#n", ":v", 'say "hi"', "it's", "a.b", "ü", " "]),
    st.text(min_size=1, max_size=4),
)
TABLES = st.sampled_from(["Pairs", "Music", "a-b.c_d"])
NUMBERS = st.sampled_from(["0", "1", "-1", "2.5", "-0.25", "1" * 38, "1" + "0" * 125, "0." + "0" * 129 + "1"])
SCALARS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(lambda text: {"S": text}, st.text(max_size=5)),
    st.builds(lambda text: {"N": text}, NUMBERS),
    st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
    st.just({"NULL": True}),
    st.lists(st.text(max_size=3), min_size=1, max_size=3, unique=True).map(lambda texts: {"SS": texts}),
    st.lists(NUMBERS, min_size=1, max_size=3, unique=True).map(lambda texts: {"NS": texts}),
)
LITERALS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda members: {"L": members}, st.lists(inner, max_size=3)),
        st.dictionaries(st.text(min_size=1, max_size=3), inner, max_size=3).map(
            lambda members: {"M": members}
        ),
    ),
    max_leaves=5,
)


class Values:
    """Numbers literals and parameters in the order in which a statement shows them."""

    def __init__(self) -> None:
        self.constants: list[dict[str, Any]] = []
        self.parameters = 0

    def number(self, node: Any) -> Any:
        """`node` with its values numbered; before, a value's name is its literal, or "?"."""
        if isinstance(node, Value):
            if node.name == "?":
                self.parameters += 1
                return Value(f"?{self.parameters - 1}")
            self.constants.append(cast(dict[str, Any], node.name))
            return Value(f":{len(self.constants) - 1}")
        if isinstance(node, Call):
            return Call(node.function, tuple(map(self.number, node.arguments)))
        if isinstance(node, In):
            return In(self.number(node.operand), tuple(map(self.number, node.choices)))
        if isinstance(node, Arithmetic | Comparison):
            return type(node)(node.operator, self.number(node.left), self.number(node.right))
        if isinstance(node, Set | Add | Delete):
            return type(node)(node.path, self.number(node.value))
        if isinstance(node, Path | Remove):
            return node
        return type(node)(*map(self.number, children(node)))

    def all(self) -> tuple[Any, int]:
        return tuple(self.constants), self.parameters


PATHS = st.builds(
    lambda name, rest: Path((name, *rest)),
    NAMES,
    st.lists(st.one_of(NAMES, st.integers(0, 2**31 - 1)), max_size=3),
)
VALUES: st.SearchStrategy[Any] = st.one_of(st.builds(Value, st.just("?")), st.builds(Value, LITERALS))
OPERANDS = st.one_of(PATHS, VALUES, st.builds(lambda path: Call("size", (path,)), PATHS))
SUMS = st.recursive(
    st.one_of(PATHS, VALUES),
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from("+-"), inner, inner),
        st.builds(lambda one, two: Call("list_append", (one, two)), inner, inner),
        st.builds(lambda path, two: Call("if_not_exists", (path, two)), PATHS, inner),
    ),
    max_leaves=4,
)
TESTS = st.one_of(
    st.builds(Comparison, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), OPERANDS, OPERANDS),
    st.builds(Between, OPERANDS, OPERANDS, OPERANDS),
    st.builds(In, PATHS, st.lists(OPERANDS, min_size=1, max_size=3).map(tuple)),
    st.builds(
        Call, st.sampled_from(["attribute_exists", "attribute_not_exists"]), PATHS.map(lambda path: (path,))
    ),
    st.builds(
        Call, st.sampled_from(["begins_with", "contains", "attribute_type"]), st.tuples(OPERANDS, OPERANDS)
    ),
)
CONDITIONS = st.recursive(
    TESTS,
    lambda inner: st.one_of(st.builds(And, inner, inner), st.builds(Or, inner, inner), st.builds(Not, inner)),
    max_leaves=6,
)
ACTIONS = st.one_of(
    st.builds(Set, PATHS, SUMS),
    st.builds(Remove, PATHS),
    st.builds(
        lambda kind, path, members: kind(path, Value(members)),
        st.sampled_from([Add, Delete]),
        PATHS,
        st.sampled_from([{"SS": ["a"]}, {"NS": ["1", "2"]}]),
    ),
)


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    """Any statement that the grammar has."""
    values = Values()
    table = draw(TABLES)
    kind = draw(st.sampled_from(["select", "insert", "update", "delete", "exists"]))
    if kind == "insert":
        item = draw(st.dictionaries(NAMES, VALUES, max_size=4))
        numbered = tuple((name, values.number(value)) for name, value in item.items())
        return Insert(table, numbered, *values.all())
    if kind == "update":
        actions = tuple(map(values.number, draw(st.lists(ACTIONS, min_size=1, max_size=3))))
    condition = draw(st.none() | CONDITIONS)
    where = None if condition is None else values.number(condition)
    if kind == "update":
        returning = draw(st.sampled_from([None, "ALL OLD", "ALL NEW", "MODIFIED OLD", "MODIFIED NEW"]))
        return Update(table, actions, where, returning, *values.all())
    if kind == "delete":
        return DeleteFrom(table, where, draw(st.sampled_from([None, "ALL OLD"])), *values.all())
    paths = draw(st.none() | st.lists(PATHS, min_size=1, max_size=3).map(tuple))
    order = tuple(draw(st.lists(st.tuples(NAMES, st.booleans()), max_size=2)))
    select = Select(table, draw(st.none() | TABLES), paths, where, order, *values.all())
    return Exists(select) if kind == "exists" else select


@given(statements())
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
def test_printing_and_parsing_a_statement_gives_it_back(statement: Statement) -> None:
    text = show(statement)
    assert parse(text) == statement
    assert show(parse(text)) == text


PIECES = [
    *("SELECT * FROM Pairs WHERE id = 1", "INSERT INTO Pairs VALUE {'id': 1}", "UPDATE Pairs SET a = 1"),
    *("DELETE FROM Pairs", "SELECT", "FROM", "WHERE", "ORDER BY", "id", "a.b[0]", '"', "'", "''", "`1`", "?"),
    *("(", ")", "[", "]", "{", "}", "<<", ">>", "<", ">", "=", "!=", ",", ".", ":", ";", "*", "+", "-", "||"),
    *("AND", "OR", "NOT", "IN", "IS", "MISSING", "NULL", "BETWEEN", "LIKE", "EXISTS(", "size(", "--", "/*"),
    *("1", "1e999999999", "-", "SET", "REMOVE", "RETURNING", "ALL OLD *", "set_add(s, <<1>>)", "\x00"),
    "\udcff",
]


@pytest.fixture(scope="module")
def database() -> Database:
    made = Database(MemoryEngine(), clock=ManualClock())
    for name in ("Pairs", "Music"):
        create(made, name, "id:N")
        for number in range(3):
            made.execute(
                "PutItem",
                {"TableName": name, "Item": {"id": {"N": str(number)}, "a": {"M": {}}, "b": {"L": []}}},
            )
    return made


def run(database: Database, text: str, parameters: list[Any]) -> None:
    """Run a statement in each of the three operations; any error but an internal one will do."""
    member: dict[str, Any] = {"Statement": text} | ({"Parameters": parameters} if parameters else {})
    for operation, request in (
        ("ExecuteStatement", member),
        ("BatchExecuteStatement", {"Statements": [member]}),
        ("ExecuteTransaction", {"TransactStatements": [member]}),
    ):
        try:
            database.execute(operation, request)
        except ServiceError as error:
            assert not isinstance(error, InternalServerError)


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join)))
@settings(max_examples=examples(400))
def test_no_text_raises_anything_but_a_validation_exception(text: str) -> None:
    try:
        prepare(text)
    except ValidationException as error:
        assert error.message


@given(statements(), st.data())
@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_any_statement_runs_or_is_refused(
    database: Database, statement: Statement, data: st.DataObject
) -> None:
    run(database, show(statement), [data.draw(LITERALS) for _ in range(statement.parameters)])


@given(st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join))
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_runs_or_is_refused(database: Database, text: str) -> None:
    if text.isprintable() and text:
        run(database, text, [{"N": "1"}])


@pytest.mark.parametrize(
    ("head", "piece", "tail"),
    [
        ("SELECT * FROM Pairs WHERE ", "(", "id = 1"),
        ("SELECT * FROM Pairs WHERE ", "NOT ", "id = 1"),
        ("SELECT * FROM Pairs WHERE id = ", "[", "1"),
        ("SELECT * FROM Pairs WHERE id = ", "{'a':", "1"),
        ("SELECT * FROM Pairs WHERE id = 1", " AND id = 1", ""),
        ("SELECT * FROM Pairs WHERE id = 1", " OR id = 1", ""),
        ("SELECT * FROM Pairs WHERE a", ".a", " = 1"),
        ("SELECT * FROM Pairs WHERE a = ", "size(", "a"),
        ("UPDATE Pairs SET a = 1", " + 1", " WHERE id = 1"),
        ("UPDATE Pairs SET a = ", "(", "1 WHERE id = 1"),
        ("", "EXISTS(", ""),
    ],
)
def test_depth_and_length_do_not_exhaust_the_stack(head: str, piece: str, tail: str) -> None:
    repeated = (8_000 - len(head) - len(tail)) // len(piece)
    with pytest.raises(ValidationException):
        prepare(head + piece * repeated + tail)


def test_names_in_quotes_keep_their_case_and_their_signs() -> None:
    statement = parse('SELECT "Order", "a""b" FROM "Pairs" WHERE "#x".":y"[1] = ?')
    assert isinstance(statement, Select)
    assert statement.paths == (Path(("Order",)), Path(('a"b',)))
    assert statement.where == Comparison("=", Path(("#x", ":y", 1)), Value("?0"))


def test_reserved_words_are_no_names_without_quotes() -> None:
    for word in RESERVED_WORDS - {"VALUE", "PIVOT", "DISTINCT", "END-EXEC"}:
        with pytest.raises(ValidationException):
            prepare(f"SELECT {word} FROM Pairs")
        prepare(f'SELECT "{word}" FROM Pairs')


def test_a_statement_is_compiled_once() -> None:
    assert prepare("SELECT * FROM Pairs") is prepare("SELECT * FROM Pairs")


# -- Work -------------------------------------------------------------------------------------------------


def calls_of(work: Callable[[], object]) -> list[str]:
    """The functions that `work` calls, in Python and in C, once for each call."""
    called: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            called.append(frame.f_code.co_qualname)
        elif event == "c_call":
            called.append(argument.__name__)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return called


LONG_TEXTS: dict[str, tuple[str, str, str, str, str]] = {
    # the head, then n times the piece (# is its number) with the text between, the tail, and n times the last
    "list": ("INSERT INTO abc VALUE {'p': [", "1", ",", "]}", ""),
    "set": ("INSERT INTO abc VALUE {'p': <<", "#", ",", ">>}", ""),
    "texts": ("INSERT INTO abc VALUE {'p': <<", "'#'", ",", ">>}", ""),
    "map": ("INSERT INTO abc VALUE {'p': {", "'#': 1", ",", "}}", ""),
    "item": ("INSERT INTO abc VALUE {", "'#': 1", ",", "}", ""),
    "nested lists": ("INSERT INTO abc VALUE {'p': [", "[[[[1]]]]", ",", "]}", ""),
    "nested maps": ("INSERT INTO abc VALUE {'p': [", "{'a': {'b': {'c': 1}}}", ",", "]}", ""),
    "deep list": ("INSERT INTO abc VALUE {'p': ", "[", "", "1", "]"),
    "in": ("SELECT * FROM abc WHERE a IN [", "?", ",", "]", ""),
    "and": ("SELECT * FROM abc WHERE ", "a# = 1", " AND ", "", ""),
    "or": ("SELECT * FROM abc WHERE ", "a# = 1", " OR ", "", ""),
    "not": ("SELECT * FROM abc WHERE ", "NOT ", "", "a = 1", ""),
    "parentheses": ("SELECT * FROM abc WHERE ", "(", "", "a = 1", ")"),
    "calls": ("SELECT * FROM abc WHERE 1 = ", "size(", "", "a", ")"),
    "projection": ("SELECT ", "a.b.c#", ",", " FROM abc", ""),
    "path": ("SELECT ", "a", ".", " FROM abc", ""),
    "assignments": ("UPDATE abc ", "SET a# = 1", " ", " WHERE p = 1", ""),
    "elements": ("UPDATE abc ", "SET a.b[#] = 1", " ", " WHERE p = 1", ""),
    "removals": ("UPDATE abc ", "REMOVE a#", " ", " WHERE p = 1", ""),
    "sum": ("UPDATE abc SET a = ", "1", " + ", " WHERE p = 1", ""),
    "order": ("SELECT * FROM abc ORDER BY ", "a", ",", "", ""),
    "no end": ("SELECT * FROM abc WHERE a = ", "/*", " ", "", ""),
}


@pytest.mark.parametrize("shape", LONG_TEXTS)
def test_the_work_for_a_text_grows_no_faster_than_its_length(shape: str) -> None:
    def calls(count: int) -> int:
        head, piece, between, tail, last = LONG_TEXTS[shape]
        pieces = between.join(piece.replace("#", str(number)) for number in range(1000, 1000 + count))
        # (of the texts that are compared, none is so short that its statement is kept)
        text = head + pieces + tail + last * count

        def work() -> None:
            with suppress(ValidationException):
                prepare(text)

        return len(calls_of(work))

    calls(10)  # what is done once only
    few, many = calls(1_100), calls(2_200)
    assert many <= 2.2 * few  # the members of a set are sorted


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("ExecuteStatement", None),
        ("BatchExecuteStatement", "Statements"),
        ("ExecuteTransaction", "TransactStatements"),
    ],
)
def test_a_long_statement_is_parsed_once(database: Database, operation: str, members: str | None) -> None:
    statement = {"Statement": f"INSERT INTO Music VALUE {{'id': 1, 'l': {[1] * 1500}}}"}
    request = statement if members is None else {members: [statement]}

    def work() -> None:
        with suppress(ServiceError):
            database.execute(operation, dict(request))

    called = calls_of(work)
    assert called.count("_Parser.statement") == 1
