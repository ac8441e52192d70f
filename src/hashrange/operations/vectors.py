"""SearchVectors: the items whose vectors are nearest to a vector.

Source: API reference, SearchVectors; Developer Guide, "Creating and searching vector indexes" and
"SearchConditionExpression reference for vector indexes"; for messages also the reference on vector search of
agent-toolkit-for-aws, and extenddb pull request 243 for the order of errors. Words without a source there are
[assumed].
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hashrange import expressions, pace
from hashrange.encoding import partition_of
from hashrange.errors import ValidationException
from hashrange.expressions import Projection, SearchCondition
from hashrange.expressions.search_conditions import (
    EVERYTHING,
    INVALID_COMPARATOR,
    INVALID_OPERATOR,
    Choice,
    Leaf,
    leaves,
)
from hashrange.limits import VECTOR_ANSWER_BYTES_MAX, VECTOR_RESULTS_MAX
from hashrange.operations import parameters
from hashrange.operations.context import Answer, Billed, BilledReadBody, Context, Request, table_name
from hashrange.settings import ALL_VECTORS
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Index, Table, Vector
from hashrange.tables.items import capacity, keys, records, vectors
from hashrange.values import AttributeValue, Item, admit_value, item_size, kind, numbers

if TYPE_CHECKING:
    from hashrange.vectors.cache import MatrixCache

_EXPRESSIONS = ("ProjectionExpression", "SearchConditionExpression")
_VALUED = ("SearchConditionExpression",)
_KEPT = "vectors"

_NO_HASH = "SearchConditionExpression must be provided when SearchSchema has a HASH key"
_NO_FLOATS = (
    "Search vector contains invalid values. All values in the search vector must be a 32-bit floating-point "
    "number attribute"
)
_NEEDS_NUMPY = (
    "SearchVectors needs numpy, which is not installed where this database runs. "
    "Install it with: pip install numpy"
)
_NEEDS_USEARCH = (
    "SearchVectors needs usearch because vector_exact_max is set, and usearch is not installed where this "
    "database runs. Install it with: pip install usearch"
)
# At most 37 digits and within the range of numbers, so that nothing else of them needs to be checked.
_PLAIN_NUMBER = r"-?[0-9]{1,19}+(?:\.[0-9]{1,18}+)?(?:[eE][-+]?[0-9]{1,2})?"
_PLAIN_NUMBERS: Final = re.compile(rf"(?:{_PLAIN_NUMBER}(?:,(?!\Z)|\Z))++")
_STEPS = 10_000_000
"""More steps than any turn has: a search never runs on the event loop."""


class _Searching(NamedTuple):
    """The checked parameters of a search."""

    index_name: str
    floats: bytes
    dimensions: int
    top: int
    condition: SearchCondition
    project: Projection | None


def prepare(request: Request, context: Context) -> BilledReadBody:
    """The body of a SearchVectors."""
    mode = capacity.wanted(request, billed=context.billed)
    name, searching = table_name(request["TableName"], context.scope), _searching(request)

    def body(reader: Reader) -> Billed:
        table = catalog.open_active(reader, name, context.scope)
        index, vector = _open(table, searching.index_name)
        _check(index, vector, searching)
        scope = _split(index, searching.condition)
        pace.before(_STEPS)
        entries, scores = _found(reader, index, vector, scope, searching.top, searching.floats, context)
        shown = [_shown(entry, vector, searching.project) for entry in entries]
        sizes = [_size(item, vector) for item in shown]
        if sum(sizes) > VECTOR_ANSWER_BYTES_MAX:
            raise ValidationException("The response exceeds the maximum size of 16 MB")
        results = [{"Item": item, "Score": score} for item, score in zip(shown, scores, strict=True)]
        answer: Answer = {"SearchResults": results}
        if mode is None:
            return answer, capacity.NO_BILL
        returned = sum(vector.attribute in item for item in shown)
        used = capacity.search_bytes(vector.dimensions, len(shown), sum(sizes), returned)
        consumed = capacity.Consumed(request["TableName"], writes=False)
        consumed.add_vectors(index.name, used)
        if mode:
            # The second is not in the API model. [report] extenddb pull request 306
            answer["ConsumedCapacity"] = {"VectorSearchRequestBytes": used, "VectorSearchUnits": used}
        return answer, (consumed,)

    return body


def _searching(request: Request) -> _Searching:
    """Check the rules that need no table."""
    parameters.check_styles(request, _EXPRESSIONS, (), valued=_VALUED)
    count = request["TopK"]
    if count > VECTOR_RESULTS_MAX:
        raise ValidationException(
            f"Provided TopK value '{count}' is out of valid range. The value must be between 1 and "
            f"{VECTOR_RESULTS_MAX} inclusive"
        )
    subs = parameters.substitutions(request)
    text = request.get("SearchConditionExpression")
    condition = EVERYTHING if text is None else expressions.search_condition(text, subs)
    project = None
    if request.get("ProjectionExpression") is not None:
        project = expressions.projection(request["ProjectionExpression"], subs)
    subs.check_all_used()
    elements = request["SearchVector"]
    floats = vectors.query(_numbers(elements))
    if floats is None:
        raise ValidationException(_NO_FLOATS)
    return _Searching(request["IndexName"], floats, len(elements), count, condition, project)


def _number(element: Any) -> Any:
    """What a request gives as the number of an element, which may be of any type; None if it is not a
    number."""
    return element.get("N") if type(element) is dict and len(element) == 1 else None


def _numbers(elements: list[AttributeValue]) -> list[str]:
    """The numbers of a search's vector. A look at all of them together, which most vectors pass, takes a
    tenth of checking one after the other."""
    given = [text for element in elements if type(text := _number(element)) is str]
    joined = ",".join(given)
    if len(given) == len(elements) == joined.count(",") + 1 and _PLAIN_NUMBERS.fullmatch(joined):
        return given
    given.clear()
    for element in elements:
        pace.step()
        if type(_number(element)) is not str:
            admit_value(element)
        try:
            given.append(numbers.normalise(element["N"]))
        except (KeyError, ValidationException):
            raise ValidationException(_NO_FLOATS) from None
    return given


def _open(table: Table, name: str) -> tuple[Index, Vector]:
    """The vector index of this name, if it can be searched."""
    index = table.index(name)
    if index is not None and index.vector is None:
        raise ValidationException("SearchVectors operation not supported on this index type")
    if index is None or index.vector is None or index.vector.allocated_at or index.vector.served_at:
        # Of an index that does not serve searches yet, the service says that it is not there. [docs]
        raise ValidationException(f"The table does not have the specified index: {name}")
    if index.status == "CREATING" or index.backfilling:
        raise ValidationException(f"Cannot search backfilling vector index: {name}")
    return index, index.vector


def _check(index: Index, vector: Vector, searching: _Searching) -> None:
    """Check the vector and the condition of a search against an index."""
    if searching.dimensions != vector.dimensions:
        raise ValidationException(
            f"Input search vector dimension {searching.dimensions} does not match vector index dimension "
            f"{vector.dimensions}"
        )
    types, condition = dict(index.attributes()), searching.condition
    for leaf in [leaf for part in condition.parts for leaf in leaves(part)]:
        type_ = types.get(leaf.attribute)
        if type_ is None:
            raise ValidationException(
                "SearchConditionExpression must not contain any attributes that is not in SearchSchema. "
                f"Invalid attribute: {leaf.attribute}"
            )
        for operand in [condition.values[name] for name in leaf.operands]:
            if type_ not in operand:
                raise ValidationException(
                    f"Type of '{leaf.attribute}' attribute in SearchConditionExpression ({kind(operand)}) "
                    f"does not match type in search schema ({type_})"
                )


class _Scope(NamedTuple):
    """The partition that a search goes through, and the condition that its entries must meet."""

    partition: bytes
    condition: SearchCondition


def _split(index: Index, condition: SearchCondition) -> _Scope:
    """The partition that a condition chooses, and the rest of the condition.

    One conjunct must compare the HASH of the index by `=`, and no other may name it. [docs] for a HASH that
    is missing or has another comparator, [report] dynoxide's captures of August 2026 for an empty value,
    [assumed] for the rest.
    """
    hashes = {attribute.name: attribute for attribute in index.key.partition}
    if not hashes:
        return _Scope(partition_of([]), condition)
    rest: list[Choice] = []
    values: list[AttributeValue] = []
    for part in condition.parts:
        if all(leaf.attribute not in hashes for leaf in leaves(part)):
            rest.append(part)
        elif not isinstance(part, Leaf) or not part.comparator:
            raise ValidationException(f"Invalid SearchConditionExpression: {INVALID_OPERATOR}")
        elif part.comparator != "=":
            raise ValidationException(f"Invalid SearchConditionExpression: {INVALID_COMPARATOR}")
        else:
            value = condition.values[part.operands[0]]
            values.append(keys.checked(value, hashes[part.attribute], is_sort=False))
    if not values:
        raise ValidationException(_NO_HASH)
    return _Scope(partition_of(values), SearchCondition(tuple(rest), condition.values))


def _found(
    reader: Reader, index: Index, vector: Vector, scope: _Scope, top: int, floats: bytes, context: Context
) -> tuple[list[Item], list[float]]:
    """The nearest entries and their scores, the nearest first."""
    try:
        from hashrange.vectors import cache, graph, matrix
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise ValidationException(_NEEDS_NUMPY) from None
    own: MatrixCache | None = context.kept.get(_KEPT)
    if own is None:
        settings = context.settings
        if settings.vector_exact_max < ALL_VECTORS and not graph.is_installed():
            raise ValidationException(_NEEDS_USEARCH)
        made = cache.MatrixCache(settings.vector_memory_bytes, settings.vector_exact_max)
        own = context.kept.setdefault(_KEPT, made)
    search = cache.Search(scope.partition, matrix.floats(floats), top, scope.condition)
    matches = own.find(reader, index, vector, search)
    stored = reader.get_many([(index.space, scope.partition, match.sort) for match in matches])
    pairs = [(record, match.score) for record, match in zip(stored, matches, strict=True) if record]
    entries = []
    for record, _ in pairs:
        pace.point()
        entries.append(records.item_of(record))
    return entries, [score for _, score in pairs]


def _shown(entry: Item, vector: Vector, project: Projection | None) -> Item:
    """What an answer shows of an entry: without the vector, unless a projection names it."""
    if project is None or vector.attribute not in project.attributes:
        entry.pop(vector.attribute)
    else:
        from hashrange.vectors import matrix  # a search has already imported it

        texts = matrix.texts_of(entry[vector.attribute])
        entry[vector.attribute] = {"L": [{"N": text} for text in texts]}
    return entry if project is None else project.apply(entry)


def _size(item: Item, vector: Vector) -> int:
    """The bytes of an answer's attributes except the vector."""
    if vector.attribute not in item:
        return item_size(item)
    return item_size({name: value for name, value in item.items() if name != vector.attribute})
