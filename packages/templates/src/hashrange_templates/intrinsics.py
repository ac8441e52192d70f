"""The values of a CloudFormation template: its intrinsic functions, parameters, mappings and conditions.

`Template.resolve` gives the value of a part of the template: Ref, Fn::Sub, Fn::Join, Fn::If, Fn::FindInMap,
Fn::Select, Fn::Split, Fn::Length, Fn::ToJsonString, Fn::Base64, Fn::GetAtt, Fn::ImportValue,
Fn::GetStackOutput, and the conditions; any other function is refused. A value that only a stack has, such as
the attribute of another resource, becomes an `OfStack`, a text that names it.

Functions see scalars as texts, as CloudFormation does: ``!Equals [!Ref Flag, true]`` holds for the parameter
"true".

Source: CloudFormation User Guide, "Intrinsic function reference", "Pseudo parameters reference",
"Parameters".
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from hashrange_templates.forms import DocumentPlace, hint, shown, text_of, truth_of

NO_VALUE: Final = object()
"""The value of AWS::NoValue: the member that has it is left out."""

_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_INDEX: Final = re.compile("[0-9]{1,9}").fullmatch
_LISTS: Final = ("CommaDelimitedList", "List<")
"""How the types of parameters that are lists begin; their values are texts with commas."""
_ARNS: Final = {
    "AWS::DynamoDB::Table": "arn:aws:dynamodb:{region}:{account}:table/{name}",
    "AWS::DynamoDB::GlobalTable": "arn:aws:dynamodb:{region}:{account}:table/{name}",
    "AWS::Serverless::SimpleTable": "arn:aws:dynamodb:{region}:{account}:table/{name}",
    "AWS::KMS::Key": "arn:aws:kms:{region}:{account}:key/{name}",
    "AWS::Kinesis::Stream": "arn:aws:kinesis:{region}:{account}:stream/{name}",
    "AWS::IAM::Role": "arn:aws:iam::{account}:role/{name}",
    "AWS::IAM::User": "arn:aws:iam::{account}:user/{name}",
}


class OfStack(str):
    """A text that stands for a value which only a stack has."""

    __slots__ = ()


def is_of_stack(value: Any) -> bool:
    """Whether a value is, or contains, one that only a stack has."""
    if isinstance(value, Mapping):
        return any(map(is_of_stack, value.values()))
    return any(map(is_of_stack, value)) if isinstance(value, list) else isinstance(value, OfStack)


class Template:
    """A template, with `parameters` in place of its parameters' defaults."""

    def __init__(
        self,
        document: Mapping[str, Any],
        parameters: Mapping[str, Any],
        region: str,
        account_id: str,
        place: DocumentPlace,
    ) -> None:
        """Raises DeclarationError for a section that is not an object, and for unknown `parameters`."""
        self.place = place
        self.resources = self._section(document, "Resources")
        self._mappings = self._section(document, "Mappings")
        self._conditions = self._section(document, "Conditions")
        self._declared = self._section(document, "Parameters")
        unknown = set(parameters) - set(self._declared)
        if unknown:
            raise place.error(f"The template has no parameter {', '.join(sorted(unknown))}.")
        self._parameters = dict(parameters)
        self._pseudo: dict[str, Any] = {
            "AWS::Region": region,
            "AWS::AccountId": account_id,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": "local",
            "AWS::StackId": f"arn:aws:cloudformation:{region}:{account_id}:stack/local/0",
            "AWS::NotificationARNs": [],
            "AWS::NoValue": NO_VALUE,
        }
        self._functions: dict[str, Callable[[Any, DocumentPlace], Any]] = {
            "Ref": self._ref,
            "Fn::Sub": self._sub,
            "Fn::Join": self._join,
            "Fn::If": self._if,
            "Fn::FindInMap": self._find_in_map,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::Length": lambda argument, place: len(self._values(argument, place)),
            "Fn::ToJsonString": self._to_json,
            "Fn::Base64": self._base64,
            "Fn::GetAtt": self._get_att,
            "Fn::ImportValue": lambda argument, place: OfStack(self._text(argument, place)),
            "Fn::GetStackOutput": lambda argument, place: OfStack(shown(self.resolve(argument, place))),
            "Fn::Equals": self._equals,
            "Fn::And": lambda argument, place: all(self._truths(argument, place, 2, 10)),
            "Fn::Or": lambda argument, place: any(self._truths(argument, place, 2, 10)),
            "Fn::Not": lambda argument, place: not self._truths(argument, place, 1, 1)[0],
            "Condition": self.holds,
        }

    def _section(self, document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        section = document.get(name)
        if section is None:
            return {}
        if not isinstance(section, Mapping):
            raise self.place.at(name).error(f"this is an object, not {shown(section)}")
        return section

    def resolve(self, part: Any, place: DocumentPlace) -> Any:
        """The value of the part of the template at `place`. Raises DeclarationError if it cannot be
        determined."""
        if isinstance(part, list):
            values = (self.resolve(member, place.at(n)) for n, member in enumerate(part))
            return [value for value in values if value is not NO_VALUE]
        if not isinstance(part, Mapping):
            return part
        if len(part) == 1:
            ((name, argument),) = part.items()
            function = self._functions.get(name)
            if function is not None and not (name == "Condition" and not isinstance(argument, str)):
                return function(argument, place.at(name))
        resolved = {}
        for name, value in part.items():
            if name.startswith("Fn::"):
                raise place.error(
                    f"{name} cannot be resolved without CloudFormation: {shown(value)}; "
                    + hint(name, self._functions)
                )
            resolved[name] = self.resolve(value, place.at(name))
        return {name: value for name, value in resolved.items() if value is not NO_VALUE}

    def holds(self, condition: Any, place: DocumentPlace) -> bool:
        """Whether a condition of the template holds."""
        if not isinstance(condition, str) or condition not in self._conditions:
            raise place.error(f"The template has no condition {shown(condition)}.")
        value = self.resolve(self._conditions[condition], self.place.at("Conditions").at(condition))
        return self._truth(value, place)

    def name_of(self, resource: str) -> str:
        """The name of a table: its TableName, or the resource's logical id, from which a stack makes a
        name."""
        place = self.place.at("Resources").at(resource)
        declared = self.resources[resource]
        properties = declared.get("Properties") if isinstance(declared, Mapping) else None
        if not isinstance(properties, Mapping) or "TableName" not in properties:
            return resource
        place = place.at("Properties").at("TableName")
        name = self.resolve(properties["TableName"], place)
        return resource if name is NO_VALUE else self._as_text(name, place)

    def _arguments(self, argument: Any, place: DocumentPlace, least: int, most: int) -> list[Any]:
        if not isinstance(argument, list) or not least <= len(argument) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise place.error(f"this function takes a list of {count}, not {shown(argument)}")
        return argument

    def _as_text(self, value: Any, place: DocumentPlace) -> str:
        text = text_of(value)
        if text is None:
            given = "AWS::NoValue" if value is NO_VALUE else shown(value)
            raise place.error(f"a text is needed here, not {given}")
        return text

    def _text(self, part: Any, place: DocumentPlace) -> str:
        return self._as_text(self.resolve(part, place), place)

    def _values(self, part: Any, place: DocumentPlace) -> list[Any]:
        values = self.resolve(part, place)
        if not isinstance(values, list):
            raise place.error(f"a list is needed here, not {shown(values)}")
        return values

    def _truth(self, value: Any, place: DocumentPlace) -> bool:
        truth = truth_of(value)
        if truth is None:
            raise place.error(f"a condition is needed here, not {shown(value)}")
        return truth

    def _truths(self, argument: Any, place: DocumentPlace, least: int, most: int) -> list[bool]:
        parts = self._arguments(argument, place, least, most)
        return [self._truth(self.resolve(part, place), place) for part in parts]

    def _ref(self, name: Any, place: DocumentPlace) -> Any:
        if not isinstance(name, str):
            raise place.error(f"this names a parameter or a resource, not {shown(name)}")
        if name in self._pseudo:
            return self._pseudo[name]
        if name in self._declared:
            return self._parameter(name, place)
        if name in self.resources:
            return self.name_of(name)
        raise place.error(f"The template refers to {name}, which it does not have.")

    def _parameter(self, name: str, place: DocumentPlace) -> Any:
        declared = self._declared[name]
        if not isinstance(declared, Mapping):
            raise self.place.at("Parameters").at(name).error(f"this is an object, not {shown(declared)}")
        if name not in self._parameters and declared.get("Default") is None:
            raise place.error(
                f"The parameter {name} has no default: give it a value, as parameters={{{name!r}: …}}."
            )
        value = self._parameters.get(name, declared.get("Default"))
        if not str(declared.get("Type")).startswith(_LISTS) or isinstance(value, list):
            return value
        text = self._as_text(value, place)
        return [member.strip() for member in text.split(",")] if text else []

    def _get_att(self, argument: Any, place: DocumentPlace) -> str:
        if isinstance(argument, str):
            resource, _, attribute = argument.partition(".")
        else:
            resource, attribute = (self._text(part, place) for part in self._arguments(argument, place, 2, 2))
        declared = self.resources.get(resource)
        type_ = declared.get("Type") if isinstance(declared, Mapping) else None
        if attribute != "Arn" or not isinstance(type_, str) or type_ not in _ARNS:
            return OfStack(f"{resource}.{attribute}")
        region, account = self._pseudo["AWS::Region"], self._pseudo["AWS::AccountId"]
        return _ARNS[type_].format(region=region, account=account, name=self.name_of(resource))

    def _sub(self, argument: Any, place: DocumentPlace) -> str:
        text, own = (argument, {}) if isinstance(argument, str) else self._arguments(argument, place, 2, 2)
        if not isinstance(text, str) or not isinstance(own, Mapping):
            raise place.error(f"this function takes a text, or a text and an object, not {shown(argument)}")
        used = []

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            if name in own:
                found = self.resolve(own[name], place.at(name))
            elif "." in name and name not in self._pseudo:
                found = self._get_att(name, place)
            else:
                found = self._ref(name, place)
            used.append(self._as_text(found, place.at(name)))
            return used[-1]

        return _joined(_VARIABLE.sub(value, text), used)

    def _join(self, argument: Any, place: DocumentPlace) -> str:
        delimiter, parts = self._arguments(argument, place, 2, 2)
        values = [self._as_text(value, place) for value in self._values(parts, place)]
        return _joined(self._text(delimiter, place).join(values), values)

    def _to_json(self, argument: Any, place: DocumentPlace) -> str:
        value = self.resolve(argument, place)
        return _joined(orjson.dumps(value).decode(), [value])

    def _base64(self, argument: Any, place: DocumentPlace) -> str:
        text = self._text(argument, place)
        return _joined(b64encode(text.encode()).decode(), [text])

    def _if(self, argument: Any, place: DocumentPlace) -> Any:
        condition, then, otherwise = self._arguments(argument, place, 3, 3)
        return self.resolve(then, place) if self.holds(condition, place) else self.resolve(otherwise, place)

    def _equals(self, argument: Any, place: DocumentPlace) -> bool:
        left, right = (self.resolve(part, place) for part in self._arguments(argument, place, 2, 2))
        texts = text_of(left), text_of(right)
        return left == right if None in texts else texts[0] == texts[1]

    def _find_in_map(self, argument: Any, place: DocumentPlace) -> Any:
        parts = self._arguments(argument, place, 3, 4)
        names = [self._text(part, place) for part in parts[:3]]
        found: Any = self._mappings
        for name in names:
            if not isinstance(found, Mapping) or name not in found:
                if len(parts) > 3 and isinstance(parts[3], Mapping) and "DefaultValue" in parts[3]:
                    return self.resolve(parts[3]["DefaultValue"], place)
                raise place.error(f"The template's mappings have no {' / '.join(names)}.")
            found = found[name]
        return found

    def _select(self, argument: Any, place: DocumentPlace) -> Any:
        index, parts = self._arguments(argument, place, 2, 2)
        number, values = self._text(index, place), self._values(parts, place)
        if not _INDEX(number) or int(number) >= len(values):
            raise place.error(f"there is no value {number} in {shown(values)}, which are counted from 0")
        return values[int(number)]

    def _split(self, argument: Any, place: DocumentPlace) -> list[str]:
        delimiter, part = self._arguments(argument, place, 2, 2)
        separator, text = self._text(delimiter, place), self._text(part, place)
        if not separator:
            raise place.error("the delimiter is empty")
        return [_joined(member, [text]) for member in text.split(separator)]


def _joined(text: str, parts: list[Any]) -> str:
    return OfStack(text) if is_of_stack(parts) else text
