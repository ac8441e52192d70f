"""Tables in the JSON of `aws dynamodb`, and in the models of NoSQL Workbench.

    {"TableName": …, "KeySchema": …, …}            --cli-input-json of create-table, its skeleton filled in
    {"Table": {…}}, {"TableDescription": {…}}      the output of describe-table and create-table
    {"ModelName": …, "DataModel": [{…}, …]}        a NoSQL Workbench model, with its sample data
    a list of these

Source: the exports of NoSQL Workbench, version 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hashrange.testing.tables.declaration import Declaration, DeclarationError, Request, of_request


def is_command(document: Any) -> bool:
    """Whether `document` is a request of CreateTable, or an answer that describes a table."""
    return isinstance(document, Mapping) and bool({"KeySchema", "Table", "TableDescription"} & set(document))


def is_model(document: Any) -> bool:
    """Whether `document` is a model of NoSQL Workbench."""
    return isinstance(document, Mapping) and isinstance(document.get("DataModel"), list)


def of_command(document: Mapping[str, Any]) -> list[Declaration]:
    """The table of a request of CreateTable, or of an answer that describes a table."""
    described = document.get("Table") or document.get("TableDescription") or document
    if not isinstance(described, Mapping):
        raise DeclarationError("The description of the table is no object.")
    return [Declaration(of_request(described))]


def of_model(document: Mapping[str, Any]) -> list[Declaration]:
    """The tables of a model of NoSQL Workbench, with their sample data as items."""
    return [_of_model_table(table) for table in document["DataModel"]]


def _of_model_table(table: Mapping[str, Any]) -> Declaration:
    types: dict[str, str] = {}
    name = table.get("TableName")
    if not name or "KeyAttributes" not in table:
        raise DeclarationError("A table of the model has no TableName, or no KeyAttributes.")
    create: Request = {"TableName": name, "KeySchema": _schema(table["KeyAttributes"], types)}
    for member in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if table.get(member):
            create[member] = [
                {
                    "IndexName": index["IndexName"],
                    "KeySchema": _schema(index["KeyAttributes"], types),
                    "Projection": index.get("Projection") or {"ProjectionType": "ALL"},
                }
                for index in table[member]
            ]
    create["AttributeDefinitions"] = [
        {"AttributeName": attribute, "AttributeType": type_} for attribute, type_ in types.items()
    ]
    settings = table.get("ProvisionedCapacitySettings") or {}
    create["BillingMode"] = table.get("BillingMode") or "PAY_PER_REQUEST"
    create["ProvisionedThroughput"] = settings.get("ProvisionedThroughput")
    return Declaration(of_request(create), items=tuple(table.get("TableData") or ()))


def _schema(attributes: Mapping[str, Any], types: dict[str, str]) -> list[dict[str, str]]:
    schema = []
    for member, kind in (("PartitionKey", "HASH"), ("SortKey", "RANGE")):
        if member in attributes:
            attribute = attributes[member]
            types[attribute["AttributeName"]] = attribute["AttributeType"]
            schema.append({"AttributeName": attribute["AttributeName"], "KeyType": kind})
    return schema
