"""Prepares statements: parses and compiles each text once, caches it, and binds it to a request's parameters.

Rules: faults of the text are raised here; rules about parameters become checks, which run for each request.
Here an ExpressionError becomes a ValidationException; no other exception leaves this module. Knows no table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from hashrange.errors import SerializationException, ValidationException
from hashrange.expressions import paths
from hashrange.expressions.lexer import ExpressionError
from hashrange.expressions.memo import with_memo
from hashrange.expressions.operands import (
    CONDITION_FUNCTIONS,
    UPDATE_FUNCTIONS,
    condition_checks,
    update_checks,
)
from hashrange.expressions.paths import ResolvedPath, Trie
from hashrange.expressions.preparing import CACHED_EXPRESSIONS_MAX, ValueCheck, check_functions
from hashrange.expressions.tree import Add, Call, ConditionTree, Delete, Node, Path, UpdateTree, Value, walk
from hashrange.expressions.updates import compile_update, computed_attributes
from hashrange.partiql.conditions import SET_FUNCTIONS
from hashrange.partiql.parser import SETS, not_a_set, parse
from hashrange.partiql.statements import DeleteFrom, Exists, Insert, Select, Statement, Update
from hashrange.partiql.tokens import first_word
from hashrange.tables.definitions.table import KeySchema
from hashrange.values import AttributeValue, admit_value, kind

Values: TypeAlias = Mapping[str, AttributeValue]

_CACHED_CHARS_MAX: Final = 2_048
_WRITES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "FROM", "EXISTS"})
"""The first words of statements that write, or stand in transactions that do."""
_PARAMETER_COUNT: Final = "Number of parameters in request and statement don't match."


class Projection(NamedTuple):
    """The projection of a SELECT: the names of its columns with their paths, the paths together as in a
    projection expression, and the top-level names that are read."""

    columns: tuple[tuple[str, ResolvedPath], ...]
    paths: Trie
    attributes: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A compiled statement, for all requests with the same text.

    `access.plan` fills `plans`: how the statement reads a table or index with a given key. `names` maps
    names in the trees to attribute names. A statement has no placeholders, but an attribute may be called
    like one; `names` maps such a name to itself. `nested` are the top-level attributes of paths with more
    than one part; `changes` are those of an UPDATE's actions, and `computed` the attributes whose new value
    depends on the item.
    """

    statement: Statement
    constants: Values
    names: dict[str, str]
    checks: tuple[ValueCheck, ...]
    nested: frozenset[str] = frozenset()
    projection: Projection | None = None
    changes: Trie | None = None
    computed: frozenset[str] = frozenset()
    plans: dict[KeySchema, Any] = field(default_factory=dict)

    @property
    def where(self) -> ConditionTree | None:
        """The condition, or None."""
        statement = self.statement.select if isinstance(self.statement, Exists) else self.statement
        return None if isinstance(statement, Insert) else statement.where

    @property
    def reads(self) -> bool:
        """Whether the statement only reads."""
        return isinstance(self.statement, Select)


class Bound(NamedTuple):
    """A statement with the values of one request: its literals (`:0`) and its parameters (`?0`)."""

    prepared: Prepared
    values: Values


def prepare(text: str) -> Prepared:
    """The compiled statement. Raises `ValidationException`."""
    # A long statement is full of literals: it is rarely repeated, and its tree would fill much of the cache.
    return _prepare_cached(text) if len(text) <= _CACHED_CHARS_MAX else _prepare(text)


def _prepare(text: str) -> Prepared:
    try:
        return _compile(parse(text))
    except ExpressionError as error:
        raise ValidationException(error.message) from None


_prepare_cached = lru_cache(CACHED_EXPRESSIONS_MAX)(_prepare)


def reads_only(text: str) -> bool:
    """Whether a statement only reads. Only its first word is examined, because parsing a long text takes long
    and has been done before. The same word decides for a text that is not a valid statement."""
    return first_word(text) not in _WRITES


def admit(parameters: Sequence[AttributeValue] | None) -> None:
    """Check and normalise the parameters of a statement in place."""
    for value in parameters or ():
        admit_value(value)


def bind(prepared: Prepared, parameters: Sequence[AttributeValue] | None) -> Bound:
    """The statement with the parameters of a request, which are checked and normalised in place.

    Raises `ValidationException` and `SerializationException`.
    """
    values = dict(prepared.constants)
    admit(parameters)
    for number, value in enumerate(parameters or ()):
        values[f"?{number}"] = value
    if len(values) - len(prepared.constants) < prepared.statement.parameters:
        raise ValidationException(_PARAMETER_COUNT)
    try:
        for check in prepared.checks:
            check(values)
    except ExpressionError as error:
        raise ValidationException(error.message) from None
    return Bound(prepared, values if isinstance(prepared.statement, Insert) else with_memo(values))


def _compile(statement: Statement) -> Prepared:
    for value in statement.constants:
        try:
            admit_value(value)
        except (SerializationException, ValidationException) as error:
            raise ExpressionError(str(error.message)) from None
    constants = {f":{number}": value for number, value in enumerate(statement.constants)}
    match statement:
        case Insert():
            return Prepared(statement, constants, {}, ())
        case Exists(select):
            if select.refusal is not None:
                raise ExpressionError(select.refusal)
            return _prepared(statement, constants, select.where)
        case Select(paths=selected, where=where):
            projection = None if selected is None else _projection(selected)
            return _prepared(statement, constants, where, projection=projection)
        case DeleteFrom(where=where):
            return _prepared(statement, constants, where)
        case Update(actions=actions, where=where):
            return _prepared(statement, constants, where, UpdateTree(actions))


def _prepared(
    statement: Statement,
    constants: Values,
    where: ConditionTree | None,
    update: UpdateTree | None = None,
    projection: Projection | None = None,
) -> Prepared:
    names: dict[str, str] = {}
    checks: list[ValueCheck] = []
    changes: Trie | None = None
    computed: frozenset[str] = frozenset()
    if update is not None:
        names |= _names(update)
        _refuse_set_functions(update)
        check_functions(update, UPDATE_FUNCTIONS, CONDITION_FUNCTIONS, "an update")
        checks += _set_checks(update)
        checks += update_checks(update)
        changes = compile_update(update, names)
        computed = computed_attributes(update, names)
    if where is not None:
        names |= _names(where)
        _refuse_set_functions(where)
        check_functions(where, CONDITION_FUNCTIONS, UPDATE_FUNCTIONS, "a condition")
        checks += condition_checks(where, names)
    paths = () if projection is None else (path for _, path in projection.columns)
    nested = {str(path[0]) for path in paths if len(path) > 1} | _nested(update) | _nested(where)
    return Prepared(
        statement, constants, names, tuple(checks), frozenset(nested), projection, changes, computed
    )


def _refuse_set_functions(tree: Node) -> None:
    """Refuse set_add and set_delete anywhere but as the whole right-hand side of SET."""
    for node in walk(tree):
        if isinstance(node, Call) and node.function in SET_FUNCTIONS:
            raise ExpressionError(f"Unrecognized function: {node.function}")


def _nested(tree: Node | None) -> set[str]:
    """The top-level attributes of paths in a tree that have more than one part."""
    if tree is None:
        return set()
    return {str(node.elements[0]) for node in walk(tree) if isinstance(node, Path) and len(node.elements) > 1}


def _names(tree: Node) -> dict[str, str]:
    """The attribute names that look like placeholders, each mapped to itself."""
    return {
        element: element
        for node in walk(tree)
        if isinstance(node, Path)
        for element in node.elements
        if isinstance(element, str) and element[:1] in ("#", "")
    }


def _set_checks(update: UpdateTree) -> list[ValueCheck]:
    return [
        _set_check("SET_ADD" if isinstance(action, Add) else "SET_DELETE", action.value)
        for action in update.actions
        if isinstance(action, Add | Delete)
    ]


def _set_check(function: str, value: Value) -> ValueCheck:
    def check(values: Values) -> None:
        if kind(values[value.name]) not in SETS:
            raise ExpressionError(not_a_set(function))

    return check


def _projection(selected: tuple[Path, ...]) -> Projection:
    """The projection of the paths of a SELECT. A column has the last name of its path and the indexes after
    it as its name: `b[0]` for `a.b[0]`."""
    columns: dict[str, ResolvedPath] = {}
    for path in selected:
        name = ""
        for element in path.elements:
            name = element if isinstance(element, str) else f"{name}[{element}]"
        if name in columns:
            raise ExpressionError(f"Duplicate identifiers in select clause: {name}")
        columns[name] = path.elements
    # As in a projection expression, no path may equal another or lead through it.
    together = paths.grow((path, None) for path in columns.values())
    return Projection(tuple(columns.items()), together, frozenset(str(path[0]) for path in columns.values()))
