"""What the four languages share between text and program: names, values, the cache's contents, errors.

Rules: everything that the text and the names decide is compiled once and kept by (text, names); what
depends on the values of a request is a check of the compiled expression, run per request. The order of
complaints is: syntax, functions, reserved words, undefined names, undefined values, operands, paths.
Here an ExpressionError becomes a RequestViolation. Knows no grammar and no evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from hashrange.errors import RequestViolation
from hashrange.expressions.lexer import ExpressionError
from hashrange.expressions.paths import ResolvedPath
from hashrange.expressions.reserved import RESERVED_WORDS
from hashrange.expressions.substitutions import Substitutions
from hashrange.expressions.tree import Call, Node, Path, Value, walk
from hashrange.values import AttributeValue

Program = TypeVar("Program")
Values: TypeAlias = Mapping[str, AttributeValue]
NamesKey: TypeAlias = tuple[tuple[str, str], ...]
ValueCheck: TypeAlias = Callable[[Values], None]

CACHED_EXPRESSIONS_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class Compiled(Generic[Program]):
    """A compiled expression, good for every request with the same text and names."""

    program: Program
    attributes: frozenset[str]
    nested: frozenset[str]
    names: frozenset[str]
    values: frozenset[str]
    checks: tuple[ValueCheck, ...]


@dataclass(frozen=True, slots=True)
class Placeholders:
    """The placeholders that a tree uses, and the attributes that its paths begin with.

    `nested` are those of the attributes that a path goes into.
    """

    names: frozenset[str]
    values: frozenset[str]
    attributes: frozenset[str]
    nested: frozenset[str]


def placeholders(tree: Node, names: Mapping[str, str]) -> Placeholders:
    """Collect the placeholders of `tree`; raises ExpressionError for a name that may not stand there."""
    paths = [node for node in walk(tree) if isinstance(node, Path)]
    written = [element for path in paths for element in path.elements if isinstance(element, str)]
    for name in written:
        if name[0] != "#" and name.upper() in RESERVED_WORDS:
            raise ExpressionError(f"Attribute name is a reserved keyword; reserved keyword: {name}")
    used = [name for name in written if name[0] == "#"]
    for name in used:
        if name not in names:
            raise ExpressionError(
                "An expression attribute name used in the document path is not defined; "
                f"attribute name: {name}"
            )
    return Placeholders(
        frozenset(used),
        frozenset(node.name for node in walk(tree) if isinstance(node, Value)),
        frozenset(str(resolve(path, names)[0]) for path in paths),
        frozenset(str(resolve(path, names)[0]) for path in paths if len(path.elements) > 1),
    )


def resolve(path: Path, names: Mapping[str, str]) -> ResolvedPath:
    """The path with its name placeholders replaced."""
    return tuple(
        names[element] if isinstance(element, str) and element[0] == "#" else element
        for element in path.elements
    )


def check_functions(tree: Node, known: frozenset[str], foreign: frozenset[str], language: str) -> None:
    """Refuse functions that do not exist, and those that belong to the other language."""
    for node in walk(tree):
        if isinstance(node, Call) and node.function not in known:
            if node.function in foreign:
                raise ExpressionError(
                    f"The function is not allowed in {language} expression; function: {node.function}"
                )
            raise ExpressionError(f"Invalid function name; function: {node.function}")


def judge(
    build: Callable[[], tuple[Program, list[ValueCheck]]], nothing: Program
) -> tuple[Program, tuple[ValueCheck, ...]]:
    """The program and checks that `build` returns; `nothing` and a check that always fails if it raises.

    An undefined value is reported before a wrong operand, and only the request knows its values.
    """
    try:
        program, checks = build()
    except ExpressionError as error:
        return nothing, (always(error),)
    return program, tuple(checks)


def always(error: ExpressionError) -> ValueCheck:
    """A check that fails with `error`, whatever the values."""
    message, prefixed = error.message, error.prefixed

    def fail(values: Values) -> None:
        raise ExpressionError(message, prefixed=prefixed)

    return fail


def prepare(
    compile_cached: Callable[[str, NamesKey], Compiled[Program]],
    compile_once: Callable[[str, NamesKey], Compiled[Program]],
    text: str,
    substitutions: Substitutions,
    parameter: str,
    tells_size: bool = False,
) -> Compiled[Program]:
    """The compiled form of `text`, checked against the request's values and noted as their user.

    `tells_size` makes the complaint about too long a text say how long it is: a Scan's filter does
    ([report] floci pull request 3447).
    """
    values = substitutions.values
    try:
        key = substitutions.cache_key
        if key is None:
            compiled = compile_once(text, tuple(substitutions.names.items()))
        else:
            compiled = compile_cached(text, key)
        if not compiled.values <= values.keys():
            missing = min(compiled.values - values.keys(), key=text.index)
            raise ExpressionError(
                f"An expression attribute value used in expression is not defined; attribute value: {missing}"
            )
        for check in compiled.checks:
            check(values)
    except ExpressionError as error:
        prefix = f"Invalid {parameter}: " if error.prefixed else ""
        detail = error.filter_detail if tells_size else ""
        raise RequestViolation(prefix + error.message + detail) from None
    substitutions.use(compiled.names, compiled.values, compiled.nested)
    return compiled
