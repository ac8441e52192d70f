"""The tables of a CloudFormation or SAM template, in YAML or JSON.

It takes AWS::DynamoDB::Table, AWS::DynamoDB::GlobalTable (without its replicas) and
AWS::Serverless::SimpleTable, and leaves all other resources alone. `intrinsics` has the template's
functions. YAML needs PyYAML.

Source: CloudFormation Template Reference, "AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"; SAM Developer
Guide, "AWS::Serverless::SimpleTable".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hashrange.testing.tables.declaration import Declaration, Request, of_request
from hashrange.testing.tables.intrinsics import Template

_SAM_TYPES: Final = {"String": "S", "Number": "N", "Binary": "B"}


def is_template(document: Any) -> bool:
    """Whether `document` is a template."""
    return isinstance(document, Mapping) and isinstance(document.get("Resources"), Mapping)


def parse_yaml(text: str) -> Any:
    """A template's YAML, with the short forms of its functions, such as ``!Ref``, in their long forms.

    Raises ImportError where PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise ImportError("templates in YAML need PyYAML; install it with: pip install pyyaml") from error

    class Loader(yaml.SafeLoader):
        """The safe loader, with the tags of templates."""

    def function(loader: Any, suffix: str, node: Any) -> dict[str, Any]:
        if isinstance(node, yaml.ScalarNode):
            value: Any = loader.construct_scalar(node)
        elif isinstance(node, yaml.SequenceNode):
            value = loader.construct_sequence(node, deep=True)
        else:
            value = loader.construct_mapping(node, deep=True)
        return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}

    Loader.add_multi_constructor("!", function)
    # A version such as 2012-10-17 is a text.
    text_of: Any = yaml.SafeLoader.construct_yaml_str
    Loader.add_constructor("tag:yaml.org,2002:timestamp", text_of)
    return yaml.load(text, Loader)


def of_template(
    document: Mapping[str, Any], parameters: Mapping[str, str], region: str, account_id: str
) -> list[Declaration]:
    """The tables of a template whose conditions hold. Raises DeclarationError if a table cannot be read."""
    template = Template(document, parameters, region, account_id)
    declarations = []
    for name, resource in template.resources.items():
        read = _READERS.get(resource.get("Type", ""))
        if read is None or ("Condition" in resource and not template.holds(resource["Condition"])):
            continue
        properties = template.resolve(resource.get("Properties") or {})
        declarations.append(read({"TableName": template.name_of(name), **properties}))
    return declarations


def _table(properties: Request) -> Declaration:
    return Declaration(of_request(properties), _ttl(properties))


def _global_table(properties: Request) -> Declaration:
    # Its throughput is that of its replicas, and scales: there is none to be had from here.
    on_demand = {**properties, "BillingMode": "PAY_PER_REQUEST"}
    return Declaration(of_request(on_demand), _ttl(properties))


def _simple_table(properties: Request) -> Declaration:
    key = properties.get("PrimaryKey") or {"Name": "id", "Type": "String"}
    create = {
        "TableName": properties["TableName"],
        "KeySchema": [{"AttributeName": key["Name"], "KeyType": "HASH"}],
        "AttributeDefinitions": [
            {"AttributeName": key["Name"], "AttributeType": _SAM_TYPES.get(key["Type"], "S")}
        ],
        "ProvisionedThroughput": properties.get("ProvisionedThroughput"),
    }
    return Declaration(of_request(create))


def _ttl(properties: Request) -> str | None:
    given = properties.get("TimeToLiveSpecification") or {}
    is_on = str(given.get("Enabled", "")).lower() == "true"
    return given.get("AttributeName") if is_on else None


_READERS: Final = {
    "AWS::DynamoDB::Table": _table,
    "AWS::DynamoDB::GlobalTable": _global_table,
    "AWS::Serverless::SimpleTable": _simple_table,
}
