"""The code that the four languages share: names, values, the cache of compiled expressions, errors.

Rules: an expression is compiled once for a text and its names, and cached under both. Rules about the values
of a request become checks of the compiled expression, and run for each request. Faults are reported in this
order: syntax, `words`, then placeholders and operands together, step by step through the text. Here an
ExpressionError becomes a RequestViolation. Knows no grammar and no evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from hashrange.errors import RequestViolation
from hashrange.expressions.lexer import ExpressionError
from hashrange.expressions.paths import ResolvedPath
from hashrange.expressions.substitutions import Substitutions
from hashrange.expressions.tree import Call, Node, Path, Value, walk
from hashrange.limits import NESTING_LEVELS_MAX
from hashrange.values import AttributeValue

Program = TypeVar("Program")
Values: TypeAlias = Mapping[str, AttributeValue]
NamesKey: TypeAlias = tuple[tuple[str, str], ...]
ValueCheck: TypeAlias = Callable[[Values], None]
Check: TypeAlias = ValueCheck | str
"""A rule about a request's values; or the placeholder of a value, which must be defined."""

CACHED_EXPRESSIONS_MAX: Final = 1024


class Compiled(Generic[Program]):
    """A compiled expression, for all requests with the same text and names.

    Each request's values are checked by `steps`, in their order. `checks` are the steps that are functions.
    """

    __slots__ = ("attributes", "checks", "names", "nested", "program", "steps", "values")

    def __init__(self, program: Program, used: Placeholders, steps: tuple[Check, ...]) -> None:
        self.program = program
        self.attributes = used.attributes
        self.nested = used.nested
        self.names = used.names
        self.values = used.values
        self.checks = tuple([step for step in steps if not isinstance(step, str)])
        self.steps = steps


@dataclass(frozen=True, slots=True)
class Placeholders:
    """The placeholders that a tree uses, and the top-level attributes of its paths.

    `nested` are the top-level attributes of paths that have more than one part.
    """

    names: frozenset[str]
    values: frozenset[str]
    attributes: frozenset[str]
    nested: frozenset[str]


def placeholders(tree: Node, names: Mapping[str, str]) -> Placeholders:
    """Collect the placeholders of `tree`, defined or not."""
    paths = [node for node in walk(tree) if isinstance(node, Path)]
    written = [element for path in paths for element in path.elements if isinstance(element, str)]
    return Placeholders(
        frozenset(name for name in written if name[0] == "#"),
        frozenset(node.name for node in walk(tree) if isinstance(node, Value)),
        frozenset(str(resolve(path, names)[0]) for path in paths),
        frozenset(str(resolve(path, names)[0]) for path in paths if len(path.elements) > 1),
    )


def resolve(path: Path, names: Mapping[str, str]) -> ResolvedPath:
    """The path with its name placeholders replaced; undefined ones stay."""
    return tuple(
        names.get(element, element) if isinstance(element, str) and element[0] == "#" else element
        for element in path.elements
    )


def checked_path(path: Path, names: Mapping[str, str]) -> ResolvedPath:
    """The path resolved. Raises ExpressionError if it is too long or has an undefined name."""
    if len(path.elements) > NESTING_LEVELS_MAX:
        raise ExpressionError(
            f"The document path has too many nesting levels; nesting levels: {len(path.elements)}"
        )
    for element in path.elements:
        if isinstance(element, str) and element[0] == "#" and element not in names:
            raise ExpressionError(
                "An expression attribute name used in the document path is not defined; "
                f"attribute name: {element}"
            )
    return resolve(path, names)


def checked_paths(paths: Iterable[Path], names: Mapping[str, str]) -> Iterator[ResolvedPath]:
    """The resolved paths. Each is resolved lazily, so that the faults of an earlier path are raised first."""
    for path in paths:
        yield checked_path(path, names)


def check_functions(tree: Node, known: frozenset[str], foreign: frozenset[str], language: str) -> None:
    """Refuse functions that do not exist, and those that belong to the other language."""
    for node in walk(tree):
        if isinstance(node, Call) and node.function not in known:
            raise unknown_function(node.function, foreign, language)


def unknown_function(function: str, foreign: frozenset[str], language: str) -> ExpressionError:
    """The error for a function that `language` does not have; `foreign` are the functions of the other
    language."""
    if function in foreign:
        return ExpressionError(f"The function is not allowed in {language} expression; function: {function}")
    return ExpressionError(f"Invalid function name; function: {function}")


def judge(steps: Iterable[Check]) -> tuple[tuple[Check, ...], bool]:
    """The steps up to the first fault of text and names, and whether there is no such fault.

    A fault becomes the last step: a check that always fails. It is not raised at once, because an undefined
    value of an earlier step is reported first, and only a request knows its values.
    """
    judged: list[Check] = []
    try:
        for step in steps:
            judged.append(step)  # noqa: PERF402 (the steps before an error are kept)
    except ExpressionError as error:
        return (*judged, always(error)), False
    return tuple(judged), True


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
    """The compiled form of `text`, checked with the request's values. Its placeholders are marked as used.

    If `tells_size`, the error for a text that is too long shows its length. [report] paritysuite, captures
    of 2026, and Alternator's authors for the condition of a write; floci pull request 3447 for a Scan's
    filter.
    """
    values: dict[str, AttributeValue] = substitutions.values
    try:
        key = substitutions.cache_key
        if key is None:
            compiled = compile_once(text, tuple(substitutions.names.items()))
        else:
            compiled = compile_cached(text, key)
        if _has_all(values, compiled.values):
            for check in compiled.checks:
                check(values)
        else:
            _check_step_by_step(compiled.steps, values)
    except ExpressionError as error:
        prefix = f"Invalid {parameter}: " if error.prefixed else ""
        detail = error.detail if tells_size else ""
        raise RequestViolation(prefix + error.message + detail) from None
    substitutions.use(compiled.names, compiled.values, compiled.nested)
    return compiled


def _has_all(values: dict[str, AttributeValue], names: frozenset[str]) -> bool:
    for name in names:  # noqa: SIM110 (compiled, a loop costs less)
        if name not in values:
            return False
    return True


def _check_step_by_step(steps: Iterable[Check], values: Values) -> None:
    for step in steps:
        if not isinstance(step, str):
            step(values)
        elif step not in values:
            raise ExpressionError(
                f"An expression attribute value used in expression is not defined; attribute value: {step}"
            )
