"""What a template or a plan declares is made, refused, or idle for a reason that is written down.

The documented properties are those of CloudFormation's own schemas, which cfn-lint ships, and of the pages of
the Terraform provider (release 6). A property that AWS adds fails a test here until `resources` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final
from zlib import crc32

import pytest

from hashrange.testing import DeclarationError
from hashrange.testing.declarations import Declaration
from hashrange_templates.arguments import TABLE as TERRAFORM_TABLE
from hashrange_templates.forms import Idle
from hashrange_templates.reading import of_document
from hashrange_templates.resources import GLOBAL_TABLE, RESOURCES, SIMPLE_TABLE, TABLE

REGION, OTHER = "eu-west-1", "us-east-1"
ACCOUNT = "111122223333"

Path_ = tuple[str, ...]


def leaves(form: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """The paths of a form that end at a scalar, at anything, or at an idle property."""
    if isinstance(form, list):
        yield from leaves(form[0], path)
    elif isinstance(form, dict) and str not in form:
        for name, part in form.items():
            yield from leaves(part, (*path, name))
    else:
        yield path, form


def documented(name: str) -> set[Path_]:
    """The paths of the properties that CloudFormation's schema of a resource has, without what it returns."""
    schemas = pytest.importorskip("cfnlint.schema.manager")
    schema = schemas.PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", name).schema
    parts = schema["definitions"]
    returned = {pointer.rpartition("/")[2] for pointer in schema["readOnlyProperties"]}

    def walk(node: dict[str, Any], path: Path_) -> Iterator[Path_]:
        if "$ref" in node:
            node = parts[node["$ref"].rpartition("/")[2]]
        if path and path[-1] == "KeySchema":  # one of several forms
            yield from ((*path, "AttributeName"), (*path, "KeyType"))
        elif "properties" in node:
            for name_, part in node["properties"].items():
                if path or name_ not in returned:
                    yield from walk(part, (*path, name_))
        elif "items" in node:
            yield from walk(node["items"], path)
        else:
            yield path

    return set(walk(schema, ()))


@pytest.mark.parametrize(
    ("name", "form"), [("AWS::DynamoDB::Table", TABLE), ("AWS::DynamoDB::GlobalTable", GLOBAL_TABLE)]
)
def test_every_documented_property_of_a_template_is_known(name: str, form: Any) -> None:
    known = {path for path, _ in leaves(form)}
    idle = {path for path, part in leaves(form) if isinstance(part, Idle)}
    missing = {
        path
        for path in documented(name)
        if path not in known and not any(path[: len(beginning)] == beginning for beginning in idle)
    }
    assert not missing


def test_every_table_of_cloudformation_is_known() -> None:
    schemas = pytest.importorskip("cfnlint.schema.manager")
    types = schemas.PROVIDER_SCHEMA_MANAGER.get_resource_types("us-east-1")
    assert {type_ for type_ in types if type_.startswith("AWS::DynamoDB::")} <= RESOURCES.keys()


REFUSED: Final = {
    "Fn::Cidr",
    "Fn::GetAZs",
    "Fn::Transform",
    # (of rules, which say nothing about tables)
    "Fn::Contains",
}
"""The functions that cannot be resolved without CloudFormation."""


def test_every_function_of_cloudformation_is_resolved_or_refused() -> None:
    known = pytest.importorskip("cfnlint.helpers").FUNCTIONS_ALL
    functions = {name for name in known if not name.startswith("Fn::ForEach::")}
    for name in functions | {"Fn::ForEach::X", "Fn::Newer"}:
        said = declared(as_template("AWS::DynamoDB::Table", {"TableName": {name: "x"}}))
        is_refused = "without CloudFormation" in str(said)
        assert is_refused == (name in REFUSED or name not in functions), name


TERRAFORM: Final = """
arn attribute.name attribute.type billing_mode deletion_protection_enabled hash_key range_key id name region
global_secondary_index.hash_key global_secondary_index.key_schema.attribute_name
global_secondary_index.key_schema.key_type global_secondary_index.name
global_secondary_index.non_key_attributes global_secondary_index.on_demand_throughput.max_read_request_units
global_secondary_index.on_demand_throughput.max_write_request_units global_secondary_index.projection_type
global_secondary_index.range_key global_secondary_index.read_capacity global_secondary_index.write_capacity
global_secondary_index.warm_throughput.read_units_per_second
global_secondary_index.warm_throughput.write_units_per_second
global_table_witness.region_name import_table local_secondary_index.name
local_secondary_index.non_key_attributes local_secondary_index.projection_type local_secondary_index.range_key
on_demand_throughput.max_read_request_units on_demand_throughput.max_write_request_units
point_in_time_recovery.enabled point_in_time_recovery.recovery_period_in_days read_capacity write_capacity
replica.arn replica.consistency_mode replica.deletion_protection_enabled replica.kms_key_arn
replica.point_in_time_recovery replica.propagate_tags replica.region_name replica.stream_arn
replica.stream_label restore_backup_arn restore_date_time restore_source_name restore_source_table_arn
restore_to_latest_time server_side_encryption.enabled server_side_encryption.kms_key_arn stream_arn
stream_enabled stream_label stream_view_type table_class tags tags_all timeouts ttl.attribute_name ttl.enabled
warm_throughput.read_units_per_second warm_throughput.write_units_per_second
"""
"""The arguments and attributes of `aws_dynamodb_table`: the provider's page "aws_dynamodb_table"."""


def test_every_documented_argument_of_terraform_is_known() -> None:
    assert set(TERRAFORM.split()) <= {".".join(path) for path, _ in leaves(TERRAFORM_TABLE)}


@pytest.mark.parametrize("form", [*(form for form, _ in RESOURCES.values()), TERRAFORM_TABLE])
def test_every_idle_property_says_why(form: Any) -> None:
    assert all(part.why for _, part in leaves(form) if isinstance(part, Idle))


def sample(form: Any, path: Path_ = ()) -> Any:
    """A value for every property of a form."""
    if isinstance(form, Idle):
        return "idle"
    if isinstance(form, list):
        return [sample(form[0], path)]
    if isinstance(form, dict):
        return {str(name): sample(part, (*path, str(name))) for name, part in form.items()}
    if path[-1] == "IndexName":
        return "index"
    own = 50_000 + crc32(repr(path).encode()) % 10_000
    return {str: "-".join(path), int: own, bool: True, object: {"of": list(path)}}[form]


def others(value: Any, path: Path_) -> Iterator[Any]:
    """Copies of a value without the property at a path, and with another content of it; none if it is not
    there."""
    for change in (None, {bool: False, str: "other", int: 1, dict: {"other": 1}}):
        copied = deepcopy(value)
        holder = copied
        for name in path[:-1]:
            holder = holder.get(name, {})
            holder = holder[0] if isinstance(holder, list) else holder
        before = holder.pop(path[-1], None)
        if change is not None and before is not None:
            holder[path[-1]] = change[type(before)]
        if before is not None:
            yield copied


def matters(wrap: Callable[[Any], Any], values: list[Any], path: Path_) -> bool:
    """Whether a document with one of these values declares anything else if the property at a path does."""
    return any(
        declared(wrap(other)) != declared(wrap(given)) for given in values for other in others(given, path)
    )


def as_template(type_: str, properties: Any) -> dict[str, Any]:
    return {"Resources": {"T": {"Type": type_, "Properties": properties}}}


def as_plan(values: Any, *beside: dict[str, Any]) -> dict[str, Any]:
    resource = {"type": "aws_dynamodb_table", "address": "aws_dynamodb_table.t", "values": values}
    root = {"resources": [resource, *beside]}
    return {"format_version": "1.2", "planned_values": {"root_module": root}}


def declared(document: Any) -> Declaration | str:
    """What a document declares, or why it is refused."""
    try:
        (declaration,) = of_document(document, {}, REGION, ACCOUNT)
    except DeclarationError as error:
        return str(error)
    return declaration


def less(value: Any, names: tuple[str, ...]) -> Any:
    """A value without the members of these names, wherever they are."""
    if isinstance(value, list):
        return [less(member, names) for member in value]
    if isinstance(value, dict):
        return {name: less(member, names) for name, member in value.items() if name not in names}
    return value


def global_tables() -> list[dict[str, Any]]:
    """Global tables that together use every property: one member of a throughput hides another one."""
    whole = sample(GLOBAL_TABLE)
    own: Any = whole["Replicas"][0]
    elsewhere: Any = {"Region": REGION}
    nothing: list[Any] = [{}]
    return [
        less(whole, names) | {"BillingMode": mode, "MultiRegionConsistency": "STRONG", "Replicas": replicas}
        for mode in ("PROVISIONED", "PAY_PER_REQUEST")
        for names in ((), ("SeedCapacity",), ("ReadCapacityUnits",), ("ReadCapacityUnits", "SeedCapacity"))
        for replicas in ([less(own, names)], [less(own, names), elsewhere], nothing)
    ]


CASES: Final = {
    "AWS::DynamoDB::Table": (TABLE, [sample(TABLE) | {"BillingMode": "PROVISIONED"}]),
    "AWS::DynamoDB::GlobalTable": (GLOBAL_TABLE, global_tables()),
    "AWS::Serverless::SimpleTable": (
        SIMPLE_TABLE,
        [sample(SIMPLE_TABLE) | {"PrimaryKey": {"Name": "id", "Type": "Number"}}],
    ),
}


@pytest.mark.parametrize(
    ("type_", "path"),
    [
        pytest.param(type_, path, id=f"{type_}-{'.'.join(path)}")
        for type_, (form, _) in CASES.items()
        for path, part in leaves(form)
        if not isinstance(part, Idle)
    ],
)
def test_no_property_of_a_template_is_dropped(type_: str, path: Path_) -> None:
    assert matters(lambda given: as_template(type_, given), CASES[type_][1], path)


def terraform_tables() -> list[Any]:
    whole = sample(TERRAFORM_TABLE) | {"tags": {"a": "b"}, "tags_all": {"a": "b", "c": "d"}}
    by_key = less(whole, ("key_schema", "tags_all"))
    return [
        tried | {"billing_mode": mode, "replica": [whole["replica"][0] | {"consistency_mode": "STRONG"}]}
        for tried in (whole, by_key)
        for mode in ("PROVISIONED", "PAY_PER_REQUEST")
    ]


@pytest.mark.parametrize(
    "path",
    [path for path, part in leaves(TERRAFORM_TABLE) if not isinstance(part, Idle)],
    ids=".".join,
)
def test_no_argument_of_terraform_is_dropped(path: Path_) -> None:
    assert matters(as_plan, terraform_tables(), path)


@pytest.mark.parametrize(
    "document",
    [as_template("AWS::DynamoDB::Table", {"KeySchmea": []}), as_plan({"name": "t", "hash_kye": "pk"})],
)
def test_an_unknown_property_is_refused_by_its_name(document: Any) -> None:
    assert "did you mean" in str(declared(document))


def test_what_a_newer_provider_leaves_empty_is_left_alone() -> None:
    given = {
        "name": "t",
        "hash_key": "pk",
        "attribute": [{"name": "pk", "type": "S"}],
        "new": None,
        "newer": [],
        "newest": "",
    }
    assert isinstance(declared(as_plan(given)), Declaration)
    assert "'new'" in str(declared(as_plan(given | {"new": "x"})))
