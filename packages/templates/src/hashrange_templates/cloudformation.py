"""The tables of a CloudFormation or SAM template, in YAML or JSON.

It takes AWS::DynamoDB::Table, AWS::DynamoDB::GlobalTable and AWS::Serverless::SimpleTable. Resources and
macros that may bring tables from elsewhere, such as nested stacks, and auto scaling of tables are noted
(`Declaration.notes`), and all others left alone. `resources` has the properties of these, `intrinsics` the
template's functions. YAML needs PyYAML.

Source: CloudFormation User Guide, "Resource attribute reference"; SAM Developer Guide, "Globals".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from hashrange.testing.declarations import Declaration, DeclarationError
from hashrange_templates.forms import NOTHING_SCALES, DocumentPlace, Idle, fit, shown, text_of
from hashrange_templates.intrinsics import Template
from hashrange_templates.resources import RESOURCES, SIMPLE_TABLE

_STACK: Final = Idle("it concerns the stack")
_ATTRIBUTES: Final = {
    "Type": str,
    "Properties": object,
    "Condition": str,
    "Connectors": Idle("it concerns other resources"),
    "CreationPolicy": _STACK,
    "DeletionPolicy": _STACK,
    "DependsOn": _STACK,
    "IgnoreGlobals": object,
    "Metadata": _STACK,
    "UpdatePolicy": _STACK,
    "UpdateReplacePolicy": _STACK,
}
_PROCESSED: Final = (
    "cannot be expanded without CloudFormation, and may declare tables. Give the expanded template: aws "
    "cloudformation get-template --template-stage Processed"
)
_ELSEWHERE: Final = {
    "AWS::CloudFormation::Stack": "give the template of this stack as well",
    "AWS::Serverless::Application": "give the template of this application as well",
    "Custom::DynamoDBReplica": "a function of the CDK makes it; use a GlobalTable (TableV2)",
}
_OF_SCALING: Final = "AWS::ApplicationAutoScaling::"
_OF_DYNAMODB: Final = "AWS::DynamoDB::"
_MODULE: Final = "::MODULE"
_INCLUDE: Final = "AWS::Include"
_WHOLE_NUMBER_MAX: Final = 10**40


def is_template(document: Any) -> bool:
    """Whether `document` is a template."""
    return isinstance(document, Mapping) and isinstance(document.get("Resources"), Mapping)


def parse_yaml(text: str) -> Any:
    """A template's YAML, with the short forms of its functions, such as ``!Ref``, in their long forms.

    Raises DeclarationError for a text that is not YAML, or that holds more than JSON can, and ImportError
    where PyYAML is not installed.
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
    text_node: Any = yaml.SafeLoader.construct_yaml_str
    Loader.add_constructor("tag:yaml.org,2002:timestamp", text_node)
    try:
        return _plain(yaml.load(text, Loader), DocumentPlace("", []))
    # PyYAML's constructors raise errors of many kinds for scalars whose tag says another type.
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise DeclarationError(f"this is neither JSON nor YAML: {error}") from error


def _plain(value: Any, place: DocumentPlace) -> Any:
    """A value of YAML as JSON would have it: the names of members are texts."""
    if isinstance(value, Mapping):
        members = ((text_of(name), member) for name, member in value.items())
        return {str(name): _plain(member, place.at(name)) for name, member in members}
    if isinstance(value, list):
        return [_plain(member, place.at(n)) for n, member in enumerate(value)]
    if isinstance(value, int) and abs(value) > _WHOLE_NUMBER_MAX:
        raise place.error("the number is too large")
    if value is None or isinstance(value, str | int | float):
        return value
    raise place.error(f"a {type(value).__name__} of YAML has no place in a template")


def of_template(
    document: Mapping[str, Any],
    parameters: Mapping[str, Any],
    region: str,
    account_id: str,
    place: DocumentPlace,
) -> list[Declaration]:
    """The tables of a template whose conditions hold. Raises DeclarationError if a table cannot be read, or
    if it has a property that is not known."""
    place = DocumentPlace(place.path, [])
    template = Template(document, parameters, region, account_id, place)
    _note_macros(document, place)
    defaults = _defaults(document, template)
    declarations = []
    for name, type_, resource, at in _declared(template):
        fitted = fit(_ATTRIBUTES, resource, at)
        if "Condition" in fitted and not template.holds(fitted["Condition"], at.at("Condition")):
            continue
        form, read = RESOURCES[type_]
        at = DocumentPlace(at.at("Properties").path, [])
        given = template.resolve(fitted.get("Properties") or {}, at)
        if not isinstance(given, Mapping):
            raise at.error(f"this is an object, not {shown(given)}")
        if form is SIMPLE_TABLE and "IgnoreGlobals" not in fitted:
            given = {**defaults, **given}
        given = {"TableName": template.name_of(name), **given}
        declarations.append(read(fit(form, given, at), at, region))
    if declarations:
        declarations[0] = replace(declarations[0], notes=[*place.notes, *declarations[0].notes])
    return declarations


def _declared(template: Template) -> Iterator[tuple[str, str, Mapping[str, Any], DocumentPlace]]:
    """The tables among the resources: their logical ids, types and declarations, and their places."""
    for name, resource in template.resources.items():
        at = template.place.at("Resources").at(name)
        if name.startswith("Fn::"):
            if _may_hold_tables(resource):
                raise at.error(f"{name} {_PROCESSED}")
            continue
        if not isinstance(resource, Mapping) or not isinstance(resource.get("Type"), str):
            raise at.error(f"this is not a resource with a Type: {shown(resource)}")
        if resource["Type"] in RESOURCES:
            yield name, resource["Type"], resource, at
        elif why := _elsewhere(resource["Type"], resource.get("Properties")):
            condition = resource.get("Condition")
            if condition is None or template.holds(condition, at.at("Condition")):
                at.note(f"this resource is not made: {why}")


def _elsewhere(type_: str, properties: Any) -> str:
    """Why a resource that is no table may have to do with tables; "" if it has not."""
    if type_.startswith(_OF_SCALING):
        return NOTHING_SCALES if _scales_tables(properties) else ""
    if type_.startswith(_OF_DYNAMODB):
        return f"nothing is known here of {type_}"
    return f"{type_} {_PROCESSED}" if type_.endswith(_MODULE) else _ELSEWHERE.get(type_, "")


def _scales_tables(properties: Any) -> bool:
    """Whether a target or a policy of auto scaling is one of DynamoDB: it names what it scales. A policy that
    names a target instead is known by the note on the target."""
    if not isinstance(properties, Mapping):
        return False
    names = ("ServiceNamespace", "ScalableDimension")
    return any(str(properties.get(name)).startswith("dynamodb") for name in names)


def _note_macros(document: Mapping[str, Any], place: DocumentPlace) -> None:
    """Note the macros of a whole template, but those of AWS that make no tables."""
    given = document.get("Transform") or []
    for macro in given if isinstance(given, list) else [given]:
        name = str(macro.get("Name") if isinstance(macro, Mapping) else macro)
        if name == _INCLUDE or not name.startswith("AWS::"):
            place.at("Transform").note(f"the macro {name} {_PROCESSED}")


def _may_hold_tables(part: Any) -> bool:
    """Whether a loop or a macro may declare tables: if it declares them, or if it does not show what."""
    if isinstance(part, list):
        return any(map(_may_hold_tables, part))
    if not isinstance(part, Mapping):
        return False
    type_ = part.get("Type")
    if isinstance(type_, str):
        return type_ in RESOURCES
    return "Name" in part or any(map(_may_hold_tables, part.values()))


def _defaults(document: Mapping[str, Any], template: Template) -> Mapping[str, Any]:
    """The properties that a SAM template gives to all its SimpleTables."""
    at = template.place.at("Globals")
    given = document.get("Globals") or {}
    simple = given.get("SimpleTable") if isinstance(given, Mapping) else given
    if not simple:
        return {}
    at = at.at("SimpleTable")
    resolved = template.resolve(simple, at)
    fit({"SSESpecification": object}, resolved, at)
    return resolved if isinstance(resolved, Mapping) else {}
