"""The values of a CloudFormation template: its intrinsic functions, parameters, mappings and conditions.

`Template.resolve` gives the value of a part of the template: Ref, Fn::Sub, Fn::Join, Fn::If, Fn::FindInMap,
Fn::Select, Fn::Split, Fn::GetAtt of a table, Fn::ImportValue, and the conditions. A value that only a stack
has, such as the attribute of another resource, becomes a text that names it.

Source: CloudFormation User Guide, "Intrinsic function reference", "Pseudo parameters reference".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from hashrange.testing.tables.declaration import DeclarationError

NO_VALUE: Final = object()
"""The value of AWS::NoValue: the member that has it is left out."""

_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")


class Template:
    """A template, with `parameters` in place of its parameters' defaults."""

    def __init__(
        self, document: Mapping[str, Any], parameters: Mapping[str, str], region: str, account_id: str
    ) -> None:
        self.resources: Mapping[str, Any] = document.get("Resources") or {}
        self._mappings = document.get("Mappings") or {}
        self._conditions = document.get("Conditions") or {}
        self._declared = document.get("Parameters") or {}
        unknown = set(parameters) - set(self._declared)
        if unknown:
            raise DeclarationError(f"The template has no parameter {', '.join(sorted(unknown))}.")
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
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Fn::Sub": self._sub,
            "Fn::Join": self._join,
            "Fn::If": self._if,
            "Fn::FindInMap": self._find_in_map,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::GetAtt": self._get_att,
            "Fn::ImportValue": lambda argument: self.resolve(argument),
            "Fn::Equals": lambda argument: self.resolve(argument[0]) == self.resolve(argument[1]),
            "Fn::And": lambda argument: all(self.resolve(part_) for part_ in argument),
            "Fn::Or": lambda argument: any(self.resolve(part_) for part_ in argument),
            "Fn::Not": lambda argument: not self.resolve(argument[0]),
            "Condition": self.holds,
        }

    def resolve(self, part: Any) -> Any:
        """The value of a part of the template. Raises DeclarationError if it cannot be determined."""
        if isinstance(part, list):
            return [value for value in map(self.resolve, part) if value is not NO_VALUE]
        if not isinstance(part, Mapping):
            return part
        if len(part) == 1:
            ((name, argument),) = part.items()
            function = self._functions.get(name)
            if function is not None and not (name == "Condition" and not isinstance(argument, str)):
                return function(argument)
            if name.startswith("Fn::"):
                raise DeclarationError(f"{name} cannot be resolved without CloudFormation: {argument!r}")
        resolved = {name: self.resolve(value) for name, value in part.items()}
        return {name: value for name, value in resolved.items() if value is not NO_VALUE}

    def holds(self, condition: str) -> bool:
        """Whether a condition of the template holds."""
        if condition not in self._conditions:
            raise DeclarationError(f"The template has no condition {condition}.")
        return bool(self.resolve(self._conditions[condition]))

    def name_of(self, resource: str) -> str:
        """The name of a table: its TableName, or the resource's logical id, from which a stack makes a
        name."""
        properties = self.resources[resource].get("Properties") or {}
        name = self.resolve(properties.get("TableName", NO_VALUE))
        return resource if name is NO_VALUE else str(name)

    def _ref(self, name: str) -> Any:
        if name in self._pseudo:
            return self._pseudo[name]
        if name in self._parameters:
            return self._parameters[name]
        if name in self._declared:
            declared = self._declared[name]
            if "Default" not in declared:
                raise DeclarationError(
                    f"The parameter {name} has no default: give it a value, as parameters={{{name!r}: …}}."
                )
            return declared["Default"]
        if name in self.resources:
            return self.name_of(name)
        raise DeclarationError(f"The template refers to {name}, which it does not have.")

    def _get_att(self, argument: str | list[str]) -> Any:
        resource, _, attribute = (
            argument.partition(".") if isinstance(argument, str) else (argument[0], "", argument[1])
        )
        if attribute == "Arn" and resource in self.resources:
            region, account_id = self._pseudo["AWS::Region"], self._pseudo["AWS::AccountId"]
            return f"arn:aws:dynamodb:{region}:{account_id}:table/{self.name_of(resource)}"
        return f"{resource}.{attribute}"

    def _sub(self, argument: str | list[Any]) -> str:
        text, own = (argument, {}) if isinstance(argument, str) else (argument[0], argument[1])

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            if name in own:
                return str(self.resolve(own[name]))
            is_known = "." not in name or name in self._pseudo
            return str(self._ref(name) if is_known else self._get_att(name))

        return _VARIABLE.sub(value, text)

    def _join(self, argument: list[Any]) -> str:
        return str(argument[0]).join(str(part_) for part_ in self.resolve(argument[1]))

    def _if(self, argument: list[Any]) -> Any:
        return self.resolve(argument[1] if self.holds(argument[0]) else argument[2])

    def _find_in_map(self, argument: list[Any]) -> Any:
        names = [self.resolve(part_) for part_ in argument[:3]]
        mapping: Any = self._mappings
        for name in names:
            if not isinstance(mapping, Mapping) or name not in mapping:
                raise DeclarationError(f"The template's mappings have no {' / '.join(map(str, names))}.")
            mapping = mapping[name]
        return mapping

    def _select(self, argument: list[Any]) -> Any:
        return self.resolve(argument[1])[int(self.resolve(argument[0]))]

    def _split(self, argument: list[Any]) -> list[str]:
        return str(self.resolve(argument[1])).split(str(argument[0]))
