"""The tables of Terraform: of a plan or a state in JSON, as ``terraform show -json`` prints it.

It takes those resources of the root module and of all its children that `arguments` has: tables, and what
stands beside them in resources of their own, such as items, indexes, tags and policies. Any other resource
of DynamoDB, or of its auto scaling, is noted (`Declaration.notes`), and so is one whose table is not in the
document. A plan lacks values that are known only after apply; a table without a name is refused.

`_properties` gives a table the properties of AWS::DynamoDB::Table, so `resources` says what becomes of them.

Source: Terraform, "JSON Output Format"; the AWS provider's "aws_dynamodb_table" and its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from hashrange.testing.declarations import Declaration, Item, Request
from hashrange_templates.arguments import RESOURCES
from hashrange_templates.forms import NOTHING_SCALES, DocumentPlace, fit, shown
from hashrange_templates.resources import replica_updates, table

_WARM_READ_UNITS: Final = 12_000
_WARM_WRITE_UNITS: Final = 4_000
_OF_DYNAMODB: Final = ("aws_dynamodb_", "awscc_dynamodb_")
_OF_SCALING: Final = ("aws_appautoscaling_", "awscc_applicationautoscaling_")


@dataclass(slots=True)
class _Declared:
    """A table of the document: its properties, as AWS::DynamoDB::Table has them, and what stands beside."""

    values: Request
    place: DocumentPlace
    properties: Request
    items: list[Item] = field(default_factory=list)


def is_plan(document: Any) -> bool:
    """Whether `document` is a plan or a state of Terraform."""
    return isinstance(document, Mapping) and "format_version" in document and bool(_root(document))


def of_plan(document: Mapping[str, Any], place: DocumentPlace) -> list[Declaration]:
    """The tables of a plan or a state, with the items that it declares for them. Raises DeclarationError for
    one that cannot be read, and for an argument that is not known."""
    place = DocumentPlace(place.path, [])
    resources = list(_resources(_root(document), place))
    tables = [_declared(values, at) for type_, values, at in resources if type_ == "aws_dynamodb_table"]
    for type_, values, at in resources:
        if type_ in _ADDERS:
            _add_beside(tables, type_, values, at)
        elif type_ not in RESOURCES:
            why = f": {NOTHING_SCALES}" if type_.startswith(_OF_SCALING) else ""
            at.note(f"this resource is not made{why}")
    declarations = []
    for declared in tables:
        given = {name: value for name, value in declared.properties.items() if value not in (None, [])}
        made = table(given, DocumentPlace(declared.place.path, []))
        updates = tuple(_replicas(declared.values))
        notes = [*declared.place.notes, *made.notes]
        declarations.append(replace(made, items=tuple(declared.items), replicas=updates, notes=notes))
    if declarations:
        declarations[0] = replace(declarations[0], notes=[*place.notes, *declarations[0].notes])
    return declarations


def _root(document: Mapping[str, Any]) -> Mapping[str, Any]:
    for member in ("planned_values", "values"):
        values = document.get(member)
        root = values.get("root_module") if isinstance(values, Mapping) else None
        if root and isinstance(root, Mapping):
            return root
    return {}


def _resources(module: Any, place: DocumentPlace) -> Iterator[tuple[str, Any, DocumentPlace]]:
    """The types and the values of DynamoDB's resources of a module and its children, and their places."""
    if not isinstance(module, Mapping):
        raise place.error(f"this is a module, not {shown(module)}")
    for resource in _list(module, "resources", place):
        if not isinstance(resource, Mapping):
            raise place.error(f"a resource is an object, not {shown(resource)}")
        type_, values = resource.get("type"), resource.get("values")
        if isinstance(type_, str) and _concerns_tables(type_, values) and resource.get("mode") != "data":
            at = DocumentPlace(str(resource.get("address") or resource.get("name") or type_), place.notes)
            yield type_, {} if values is None else values, at
    for child in _list(module, "child_modules", place):
        yield from _resources(child, place)


def _concerns_tables(type_: str, values: Any) -> bool:
    """Whether a resource is one of DynamoDB, or scales one. A resource that scales may not know yet what."""
    if not type_.startswith(_OF_SCALING):
        return type_.startswith(_OF_DYNAMODB)
    scaled = values.get("service_namespace") if isinstance(values, Mapping) else None
    return scaled in ("dynamodb", None)


def _list(module: Mapping[str, Any], member: str, place: DocumentPlace) -> list[Any]:
    listed = module.get(member) or []
    if not isinstance(listed, list):
        raise place.error(f"{member} is a list, not {shown(listed)}")
    return listed


def _fitted(type_: str, values: Any, place: DocumentPlace) -> Request:
    form = RESOURCES[type_]
    if isinstance(values, Mapping):
        # A block that cannot be repeated may be an object.
        values = {
            name: [value] if isinstance(value, Mapping) and isinstance(form.get(name), list) else value
            for name, value in values.items()
        }
    fitted: Request = fit(form, values, place, unknown="empty")
    return fitted


def _declared(values: Any, place: DocumentPlace) -> _Declared:
    place = DocumentPlace(place.path, [])
    values = _fitted("aws_dynamodb_table", values, place)
    if not values.get("name"):
        raise place.error("the plan does not know the name of this table: give it a name")
    return _Declared(values, place, _properties(values))


def _properties(values: Request) -> Request:
    """The properties of AWS::DynamoDB::Table for the arguments of a table."""
    key = _schema(values)
    tags: Request = values.get("tags_all") or values.get("tags") or {}
    encryption, recovery, living = (
        _block(values, name) for name in ("server_side_encryption", "point_in_time_recovery", "ttl")
    )
    properties: Request = {
        "TableName": values["name"],
        "KeySchema": key,
        "AttributeDefinitions": [
            {"AttributeName": one.get("name"), "AttributeType": one.get("type")}
            for one in values.get("attribute", ())
        ],
        "BillingMode": values.get("billing_mode") or "PROVISIONED",
        "TableClass": values.get("table_class") or None,
        "DeletionProtectionEnabled": values.get("deletion_protection_enabled"),
        "Tags": [{"Key": name, "Value": value} for name, value in tags.items()],
        "SSESpecification": {"SSEEnabled": True, "KMSMasterKeyId": encryption.get("kms_key_arn") or None}
        if encryption.get("enabled")
        else None,
        "PointInTimeRecoverySpecification": {
            "PointInTimeRecoveryEnabled": recovery.get("enabled", False),
            "RecoveryPeriodInDays": recovery.get("recovery_period_in_days") or None,
        },
        "TimeToLiveSpecification": {
            "AttributeName": living.get("attribute_name") or None,
            "Enabled": living.get("enabled", True),
        },
        "LocalSecondaryIndexes": [
            {
                "IndexName": index.get("name"),
                "KeySchema": _schema({"range_key": index.get("range_key")}, key[:1]),
                "Projection": _projection(index),
            }
            for index in values.get("local_secondary_index", ())
        ],
        "GlobalSecondaryIndexes": [
            _global_index(index) | _throughput(index, values.get("billing_mode"))
            for index in values.get("global_secondary_index", ())
        ],
    }
    if values.get("stream_enabled"):
        view = values.get("stream_view_type") or "NEW_AND_OLD_IMAGES"
        properties["StreamSpecification"] = {"StreamViewType": view}
    return properties | _throughput(values, values.get("billing_mode"))


def _global_index(index: Request) -> Request:
    return {
        "IndexName": index.get("index_name") or index.get("name"),
        "KeySchema": _schema(index),
        "Projection": _projection(_block(index, "projection") or index),
    }


def _throughput(values: Request, mode: str | None) -> Request:
    """The throughput of a table or an index. Units of a table on demand have no effect, as in Terraform."""
    own = _block(values, "provisioned_throughput")
    ceiling, warm = _block(values, "on_demand_throughput"), _block(values, "warm_throughput")
    units = {
        "ReadCapacityUnits": own.get("read_capacity_units") or values.get("read_capacity"),
        "WriteCapacityUnits": own.get("write_capacity_units") or values.get("write_capacity"),
    }
    members: dict[str, Request] = {
        "ProvisionedThroughput": units if mode != "PAY_PER_REQUEST" else {},
        "OnDemandThroughput": {
            "MaxReadRequestUnits": ceiling.get("max_read_request_units"),
            "MaxWriteRequestUnits": ceiling.get("max_write_request_units"),
        },
        "WarmThroughput": {
            "ReadUnitsPerSecond": _above(warm.get("read_units_per_second"), _WARM_READ_UNITS),
            "WriteUnitsPerSecond": _above(warm.get("write_units_per_second"), _WARM_WRITE_UNITS),
        },
    }
    filled = {
        member: {name: value for name, value in given.items() if value} for member, given in members.items()
    }
    return {member: given for member, given in filled.items() if given}


def _above(units: int | None, least: int) -> int | None:
    """Warm units, unless they are those that the service gives every table: a state has these, too."""
    return units if units is not None and units > least else None


def _schema(values: Request, first: Any = ()) -> list[Request]:
    if values.get("key_schema"):
        return [
            {"AttributeName": key.get("attribute_name"), "KeyType": key.get("key_type")}
            for key in values["key_schema"]
        ]
    schema = [*first]
    for argument, kind in (("hash_key", "HASH"), ("range_key", "RANGE")):
        if values.get(argument):
            schema.append({"AttributeName": values[argument], "KeyType": kind})
    return schema


def _projection(values: Request) -> Request:
    projection: Request = {"ProjectionType": values.get("projection_type") or "ALL"}
    if values.get("non_key_attributes"):
        projection["NonKeyAttributes"] = values["non_key_attributes"]
    return projection


def _block(values: Request, name: str) -> Request:
    """A block that cannot be repeated; {} if there is none."""
    blocks: list[Request] = values.get(name) or [{}]
    return blocks[0]


def _replicas(values: Request) -> Iterator[Request]:
    replicas = values.get("replica", [])
    strong = any(replica.get("consistency_mode") == "STRONG" for replica in replicas)
    return replica_updates(
        [
            {"RegionName": one.get("region_name"), "KMSMasterKeyId": one.get("kms_key_arn") or None}
            for one in replicas
        ],
        [one.get("region_name") for one in values.get("global_table_witness", ())] if strong else None,
    )


def _add_beside(tables: list[_Declared], type_: str, values: Any, place: DocumentPlace) -> None:
    """Add a resource of its own to the table to which it belongs."""
    values = _fitted(type_, values, place)
    name = values.get("table_name")
    if name is None and "resource_arn" in values:
        name = values["resource_arn"].partition(":table/")[2].partition("/")[0]
    declared = next((one for one in tables if one.values["name"] == name), None)
    if declared is None:
        of = f"its table, {name}, is not in this document" if name else "its table is known only after apply"
        place.note(f"this resource is not made: {of}")
    else:
        _ADDERS[type_](declared, values, place)


def _add_item(declared: _Declared, values: Request, place: DocumentPlace) -> None:
    try:
        item = orjson.loads(values.get("item", ""))
    except orjson.JSONDecodeError as error:
        raise place.at("item").error(f"this is not an item in JSON: {error}") from error
    if not isinstance(item, dict):
        raise place.at("item").error(f"an item is an object, not {shown(item)}")
    declared.items.append(item)


def _define(declared: _Declared, keys: list[Request]) -> None:
    """Define the attributes of an index that the table does not define."""
    definitions = declared.properties["AttributeDefinitions"]
    known = {one["AttributeName"] for one in definitions}
    for key in keys:
        if key.get("attribute_name") not in known and key.get("attribute_type"):
            known.add(key.get("attribute_name"))
            definitions.append(
                {"AttributeName": key.get("attribute_name"), "AttributeType": key["attribute_type"]}
            )


def _add_index(declared: _Declared, values: Request, place: DocumentPlace) -> None:
    _define(declared, values.get("key_schema", []))
    index = _global_index(values) | _throughput(values, declared.properties["BillingMode"])
    declared.properties["GlobalSecondaryIndexes"].append(index)


def _add_vector_index(declared: _Declared, values: Request, place: DocumentPlace) -> None:
    schema = values.get("search_schema", [])
    _define(declared, schema)
    index = {
        "IndexName": values.get("index_name"),
        "VectorAttribute": {"AttributeName": _block(values, "vector_attribute").get("attribute_name")},
        "Projection": _projection(_block(values, "projection")),
        "Dimensions": values.get("dimensions"),
        "DistanceFunction": values.get("distance_function"),
    }
    if schema:
        index["SearchSchema"] = [
            {"AttributeName": one.get("attribute_name"), "SearchSchemaElementType": one.get("type")}
            for one in schema
        ]
    declared.properties.setdefault("VectorIndexes", []).append(index)


def _add_tag(declared: _Declared, values: Request, place: DocumentPlace) -> None:
    kept = [tag for tag in declared.properties["Tags"] if tag["Key"] != values.get("key")]
    declared.properties["Tags"] = [*kept, {"Key": values.get("key"), "Value": values.get("value", "")}]


def _add_insights(declared: _Declared, values: Request, place: DocumentPlace) -> None:
    holder, index = declared.properties, values.get("index_name")
    if index:
        indexes = declared.properties["GlobalSecondaryIndexes"]
        found = next((one for one in indexes if one["IndexName"] == index), None)
        if found is None:
            raise place.at("index_name").error(f"the table has no global index {index}")
        holder = found
    insights = {"Enabled": True, "Mode": values.get("mode") or None}
    holder["ContributorInsightsSpecification"] = insights


def _add_destination(declared: _Declared, values: Request, place: DocumentPlace) -> None:
    if not values.get("stream_arn"):
        place.note("this resource is not made: its stream is known only after apply")
        return
    precision = values.get("approximate_creation_date_time_precision") or None
    declared.properties["KinesisStreamSpecification"] = {
        "StreamArn": values["stream_arn"],
        "ApproximateCreationDateTimePrecision": precision,
    }


def _add_policy(declared: _Declared, values: Request, place: DocumentPlace) -> None:
    if not values.get("policy"):
        place.note("this resource is not made: its policy is known only after apply")
        return
    holder = declared.properties
    if "/stream/" in values["resource_arn"]:
        holder = declared.properties.setdefault("StreamSpecification", {})
    holder["ResourcePolicy"] = {"PolicyDocument": values["policy"]}


_ADDERS: Final[dict[str, Callable[[_Declared, Request, DocumentPlace], None]]] = {
    "aws_dynamodb_contributor_insights": _add_insights,
    "aws_dynamodb_global_secondary_index": _add_index,
    "aws_dynamodb_kinesis_streaming_destination": _add_destination,
    "aws_dynamodb_resource_policy": _add_policy,
    "aws_dynamodb_table_item": _add_item,
    "aws_dynamodb_tag": _add_tag,
    "aws_dynamodb_vector_index": _add_vector_index,
}
