"""The rules of a vector index's definition, for CreateTable, UpdateTable, restores and imports.

Source: API reference, VectorIndex; Developer Guide, "Creating and searching vector indexes" and
"Troubleshooting vector indexes"; for messages also the reference on vector search of agent-toolkit-for-aws.
Those without a source there are [assumed].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hashrange.errors import INVALID, ValidationException
from hashrange.limits import VECTOR_DIMENSIONS_MAX, VECTOR_FILTERS_MAX, VECTOR_INDEXES_MAX
from hashrange.operations.context import Request
from hashrange.operations.tables import definition
from hashrange.tables.definitions.table import Index, KeyAttribute, KeySchema, KeyType, Vector

_ONLY_ON_DEMAND = f"{INVALID}Vector indexes are only supported for PAY_PER_REQUEST tables"


def check_billing(billing_mode: str) -> None:
    """Refuse vector indexes on a table with provisioned capacity."""
    if billing_mode != "PAY_PER_REQUEST":
        raise ValidationException(_ONLY_ON_DEMAND)


def check_list(given: Sequence[Request] | None, billing_mode: str) -> None:
    """Check the rules about a list of definitions that need no definition of an attribute."""
    if given is None:
        return
    if not given:
        raise ValidationException(f"{INVALID}List of VectorIndexes is empty")
    check_billing(billing_mode)


def index(given: Request, types: Mapping[str, KeyType]) -> Index:
    """The index of a VectorIndex or a CreateVectorIndexAction; `types` are the AttributeDefinitions."""
    name, attribute = given["IndexName"], given["VectorAttribute"]["AttributeName"]
    dimensions = int(given["Dimensions"])
    if dimensions > VECTOR_DIMENSIONS_MAX:
        raise ValidationException(
            f"{INVALID}Number of dimensions must be between 1 and {VECTOR_DIMENSIONS_MAX} inclusive."
        )
    elements = given.get("SearchSchema") or []
    order = tuple(element["AttributeName"] for element in elements)
    if any(element not in types for element in order):
        raise ValidationException(
            f"{INVALID}One element in SearchSchema is not defined in attribute definitions"
        )
    if len(set(order)) < len(order):
        raise ValidationException(f"{INVALID}SearchSchema contains a duplicate AttributeName")
    if attribute in types:
        raise ValidationException(
            f"{INVALID}Conflicting attribute definition for '{attribute}'. An attribute cannot be defined in "
            "AttributeDefinitions when used as a VectorAttribute."
        )
    parts: dict[str, list[KeyAttribute]] = {"HASH": [], "INLINE_FILTER": []}
    for element in elements:
        named = element["AttributeName"]
        parts[element["SearchSchemaElementType"]].append(KeyAttribute(named, types[named]))
    _check_counts(parts)
    kind, included = definition.projection(given)
    vector = Vector(
        attribute, dimensions, given["DistanceFunction"], tuple(parts["INLINE_FILTER"]), order
    )
    return Index(name, True, 0, KeySchema(tuple(parts["HASH"])), kind, included, vector=vector)


def _check_counts(parts: Mapping[str, list[KeyAttribute]]) -> None:
    for kind, limit in (("HASH", 1), ("INLINE_FILTER", VECTOR_FILTERS_MAX)):
        if len(parts[kind]) > limit:
            raise ValidationException(
                f"{INVALID}Value '{len(parts[kind])}' at 'SearchSchema' failed to satisfy constraint: Member "
                f"must have {kind} count less than or equal to {limit}"
            )


def check_together(indexes: Sequence[Index]) -> None:
    """Check the rules about all vector indexes of a table together."""
    vectors = [own.vector for own in indexes if own.vector is not None]
    if len(vectors) > VECTOR_INDEXES_MAX:
        raise ValidationException(
            f"{INVALID}VectorIndex count exceeds the per-table limit of {VECTOR_INDEXES_MAX}"
        )
    dimensions: dict[str, int] = {}
    for vector in vectors:
        if dimensions.setdefault(vector.attribute, vector.dimensions) != vector.dimensions:
            raise ValidationException(
                f"{INVALID}Conflicting attribute definition for '{vector.attribute}'. All VectorIndexes on "
                "the same vector attribute must use the same dimensions."
            )


def described(own: Index, vector: Vector) -> dict[str, Any]:
    """The members of a description that repeat the definition: a VectorIndexInfo."""
    shown: dict[str, Any] = {
        "IndexName": own.name,
        "VectorAttribute": {"AttributeName": vector.attribute},
        "Projection": definition.described_projection(own),
        "Dimensions": vector.dimensions,
        "DistanceFunction": vector.distance,
    }
    if vector.order:
        filters = {attribute.name for attribute in vector.filters}
        shown["SearchSchema"] = [
            {
                "AttributeName": name,
                "SearchSchemaElementType": "INLINE_FILTER" if name in filters else "HASH",
            }
            for name in vector.order
        ]
    return shown
