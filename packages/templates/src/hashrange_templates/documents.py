"""Tables in the JSON of `aws dynamodb`, and in the models of NoSQL Workbench.

    {"TableName": …, "KeySchema": …, …}            --cli-input-json of create-table, its skeleton filled in
    {"Table": {…}}, {"TableDescription": {…}}      the output of describe-table and create-table
    {"ModelName": …, "DataModel": [{…}, …]}        a NoSQL Workbench model, with its sample data
    a list of these

Source: the exports of NoSQL Workbench, version 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hashrange.shapes import OPERATIONS
from hashrange.testing.declarations import Declaration, Request
from hashrange_templates.forms import NOTHING_SCALES, DocumentPlace, Form, Idle, fit, form_of, of_request
from hashrange_templates.resources import replica_updates

_CREATE: Final[Form] = form_of(OPERATIONS["CreateTable"])
_ONE_TABLE: Final = Idle("all replicas are one table here", told=True)
_SCALING: Final = Idle(NOTHING_SCALES, told=True)
_DESCRIBED: Final[Form] = {
    "BillingModeSummary": {"BillingMode": str},
    "TableClassSummary": {"TableClass": str},
    "SSEDescription": {"Status": str, "KMSMasterKeyArn": str},
    "Replicas": [
        {
            "RegionName": str,
            "KMSMasterKeyId": str,
            "ReplicaTableClassSummary": {"TableClass": str},
            "ProvisionedThroughputOverride": _ONE_TABLE,
            "OnDemandThroughputOverride": _ONE_TABLE,
        }
    ],
    "GlobalTableWitnesses": [{"RegionName": str}],
    "MultiRegionConsistency": str,
}
_KEY: Final = {member: {"AttributeName": str, "AttributeType": str} for member in ("PartitionKey", "SortKey")}
_MODEL_INDEXES: Final = [
    {
        "IndexName": str,
        "KeyAttributes": _KEY,
        "Projection": _CREATE["GlobalSecondaryIndexes"][0]["Projection"],
    }
]
_MODEL: Final[Form] = {
    "TableName": str,
    "KeyAttributes": _KEY,
    "GlobalSecondaryIndexes": _MODEL_INDEXES,
    "LocalSecondaryIndexes": _MODEL_INDEXES,
    "TableData": [{str: object}],
    "BillingMode": str,
    "ProvisionedCapacitySettings": {
        "ProvisionedThroughput": _CREATE["ProvisionedThroughput"],
        "AutoScalingRead": _SCALING,
        "AutoScalingWrite": _SCALING,
    },
}


def is_command(document: Any) -> bool:
    """Whether `document` is a request of CreateTable, or an answer that describes a table."""
    return isinstance(document, Mapping) and bool({"KeySchema", "Table", "TableDescription"} & set(document))


def is_model(document: Any) -> bool:
    """Whether `document` is a model of NoSQL Workbench."""
    return isinstance(document, Mapping) and isinstance(document.get("DataModel"), list)


def of_command(document: Mapping[str, Any], region: str, place: DocumentPlace) -> list[Declaration]:
    """The table of a request of CreateTable, or of an answer that describes a table. A request must not have
    members that CreateTable does not have; an answer has many. Raises DeclarationError."""
    place = DocumentPlace(place.path, [])
    for member in ("Table", "TableDescription"):
        if document.get(member):
            place, described = place.at(member), document[member]
            break
    else:
        described = document
    is_request = described is document and "TableStatus" not in document
    form = _CREATE if is_request else _CREATE | _DESCRIBED
    fitted = fit(form, described, place, unknown="none" if is_request else "all")
    replicas = tuple(_replicas(fitted, region))
    return [Declaration(of_request(fitted, place), replicas=replicas, notes=place.notes)]


def _replicas(described: Mapping[str, Any], region: str) -> Iterator[Request]:
    """The requests that make the replicas of a described table, but that of the database's region."""
    strong = described.get("MultiRegionConsistency") == "STRONG"
    return replica_updates(
        [
            {
                "RegionName": one.get("RegionName"),
                "KMSMasterKeyId": one.get("KMSMasterKeyId"),
                "TableClassOverride": (one.get("ReplicaTableClassSummary") or {}).get("TableClass"),
            }
            for one in described.get("Replicas", ())
            if one.get("RegionName") != region
        ],
        [one.get("RegionName") for one in described.get("GlobalTableWitnesses", ())] if strong else None,
    )


def of_model(document: Mapping[str, Any], place: DocumentPlace) -> list[Declaration]:
    """The tables of a model of NoSQL Workbench, with their sample data as items. Raises DeclarationError."""
    place = place.at("DataModel")
    return [
        _of_model_table(table, DocumentPlace(place.at(n).path, []))
        for n, table in enumerate(document["DataModel"])
    ]


def _of_model_table(given: Any, place: DocumentPlace) -> Declaration:
    table = fit(_MODEL, given, place, unknown="all")
    types: dict[str, str] = {}
    if not table.get("TableName") or "KeyAttributes" not in table:
        raise place.error("A table of the model has no TableName, or no KeyAttributes.")
    create: Request = {"TableName": table["TableName"], "KeySchema": _schema(table["KeyAttributes"], types)}
    for member in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if table.get(member):
            create[member] = [
                {
                    "IndexName": index.get("IndexName"),
                    "KeySchema": _schema(index.get("KeyAttributes", {}), types),
                    "Projection": index.get("Projection") or {"ProjectionType": "ALL"},
                }
                for index in table[member]
            ]
    create["AttributeDefinitions"] = [
        {"AttributeName": attribute, "AttributeType": type_} for attribute, type_ in types.items()
    ]
    throughput = (table.get("ProvisionedCapacitySettings") or {}).get("ProvisionedThroughput")
    if table.get("BillingMode") == "PROVISIONED" and throughput:
        create |= {"BillingMode": "PROVISIONED", "ProvisionedThroughput": throughput}
    items = tuple(table.get("TableData") or ())
    return Declaration(of_request(create, place), items=items, notes=place.notes)


def _schema(attributes: Mapping[str, Any], types: dict[str, str]) -> list[dict[str, Any]]:
    schema = []
    for member, kind in (("PartitionKey", "HASH"), ("SortKey", "RANGE")):
        if member in attributes:
            attribute = attributes[member]
            types[attribute.get("AttributeName")] = attribute.get("AttributeType")
            schema.append({"AttributeName": attribute.get("AttributeName"), "KeyType": kind})
    return schema
