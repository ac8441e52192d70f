"""The tables of Terraform: of a plan or a state in JSON, as ``terraform show -json`` prints it.

It takes the resources `aws_dynamodb_table` and `aws_dynamodb_table_item` of the root module and of all its
children. A value that is known only after apply is not in a plan; a table without a name is refused.

Source: Terraform, "JSON Output Format"; the AWS provider's "aws_dynamodb_table".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from hashrange.testing.tables.declaration import Declaration, DeclarationError, Item, Request, of_request


def is_plan(document: Any) -> bool:
    """Whether `document` is a plan or a state of Terraform."""
    return isinstance(document, Mapping) and "format_version" in document and bool(_root(document))


def of_plan(document: Mapping[str, Any]) -> list[Declaration]:
    """The tables of a plan or a state, with the items that it declares for them."""
    resources = list(_resources(_root(document)))
    items: dict[str, list[Item]] = {}
    for resource in resources:
        if resource.get("type") == "aws_dynamodb_table_item":
            values = resource.get("values") or {}
            items.setdefault(values.get("table_name", ""), []).append(orjson.loads(values["item"]))
    declarations = []
    for resource in resources:
        if resource.get("type") == "aws_dynamodb_table":
            values = resource.get("values") or {}
            if not values.get("name"):
                address = resource.get("address")
                raise DeclarationError(f"The plan does not know the name of {address}: give it a name.")
            declarations.append(_table(values, tuple(items.get(values["name"], ()))))
    return declarations


def _root(document: Mapping[str, Any]) -> Mapping[str, Any]:
    for member in ("planned_values", "values"):
        root = (document.get(member) or {}).get("root_module")
        if root:
            root_module: Mapping[str, Any] = root
            return root_module
    return {}


def _resources(module: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for resource in module.get("resources") or ():
        if resource.get("mode", "managed") == "managed":
            yield resource
    for child in module.get("child_modules") or ():
        yield from _resources(child)


def _table(values: Mapping[str, Any], items: tuple[Item, ...]) -> Declaration:
    create: Request = {
        "TableName": values["name"],
        "KeySchema": _schema(values),
        "AttributeDefinitions": [
            {"AttributeName": attribute["name"], "AttributeType": attribute["type"]}
            for attribute in values.get("attribute") or ()
        ],
        "BillingMode": values.get("billing_mode") or "PROVISIONED",
        "ProvisionedThroughput": _throughput(values),
    }
    for member, block in (
        ("GlobalSecondaryIndexes", "global_secondary_index"),
        ("LocalSecondaryIndexes", "local_secondary_index"),
    ):
        if values.get(block):
            create[member] = [_index(index, values["hash_key"], member) for index in values[block]]
    if values.get("stream_enabled"):
        create["StreamSpecification"] = {
            "StreamEnabled": True,
            "StreamViewType": values.get("stream_view_type") or "NEW_AND_OLD_IMAGES",
        }
    settings = [ttl for ttl in values.get("ttl") or () if ttl.get("enabled", True)]
    ttl = settings[0]["attribute_name"] if settings else None
    return Declaration(of_request(create), ttl or None, items)


def _index(index: Mapping[str, Any], table_hash_key: str, member: str) -> Request:
    projection: Request = {"ProjectionType": index.get("projection_type") or "ALL"}
    if index.get("non_key_attributes"):
        projection["NonKeyAttributes"] = list(index["non_key_attributes"])
    is_local = member == "LocalSecondaryIndexes"
    request: Request = {
        "IndexName": index["name"],
        "KeySchema": _schema({**index, "hash_key": table_hash_key} if is_local else index),
        "Projection": projection,
    }
    if not is_local:
        request["ProvisionedThroughput"] = _throughput(index)
    return request


def _schema(values: Mapping[str, Any]) -> list[dict[str, str]]:
    if values.get("key_schema"):
        return [
            {"AttributeName": key["attribute_name"], "KeyType": key["key_type"]}
            for key in values["key_schema"]
        ]
    schema = [{"AttributeName": values["hash_key"], "KeyType": "HASH"}]
    if values.get("range_key"):
        schema.append({"AttributeName": values["range_key"], "KeyType": "RANGE"})
    return schema


def _throughput(values: Mapping[str, Any]) -> dict[str, int]:
    return {
        "ReadCapacityUnits": values.get("read_capacity") or 0,
        "WriteCapacityUnits": values.get("write_capacity") or 0,
    }
