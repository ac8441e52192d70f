"""The smallest policy that allows what was recorded: `Uses`.

A use is an action on a resource, with the partition key values that the request names, if it names any. The
policy that is made of uses has as few statements as possible without allowing an action on a resource on
which it was not used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from hashrange_access.policies.documents import VERSION

LEADING_KEYS = "dynamodb:LeadingKeys"
# What has a meaning in a value of a policy stands for itself in these.
_ESCAPED = {ord(character): f"${{{character}}}" for character in "*?$"}


class Uses:
    """The uses so far. Thread-safe, because sets of tuples are only added to."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], set[str]] = {}
        self._without_keys: set[tuple[str, str]] = set()

    def add(self, action: str, resource: str, leading_keys: Iterable[str] | None) -> None:
        """Add a use. `leading_keys` are the values of partition keys that the request names; None: it names
        none, as a Scan does."""
        use = action, resource
        if leading_keys is None:
            self._without_keys.add(use)
            self._values.setdefault(use, set())
        else:
            self._values.setdefault(use, set()).update(leading_keys)

    def __len__(self) -> int:
        return len(self._values)

    def policy(self, *, with_leading_keys: bool = False) -> dict[str, Any]:
        """The policy document that allows these uses. `with_leading_keys`: only with these values of
        partition keys, where every use has named some. Raises ValueError if there is no use."""
        if not self._values:
            raise ValueError("nothing was recorded, and a policy needs a statement")
        by_keys: dict[frozenset[str] | None, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for (action, resource), values in self._values.items():
            has_keys = with_leading_keys and (action, resource) not in self._without_keys
            by_keys[frozenset(values) if has_keys else None][resource].add(action)
        statements = [
            _statement(actions, resources, keys)
            for keys, actions_by_resource in by_keys.items()
            for actions, resources in _grouped(actions_by_resource)
        ]
        return {"Version": VERSION, "Statement": sorted(statements, key=_place)}


def _place(statement: dict[str, Any]) -> tuple[list[str], list[str]]:
    return statement["Resource"], statement["Action"]


def _grouped(actions_by_resource: dict[str, set[str]]) -> list[tuple[frozenset[str], list[str]]]:
    """The resources with the same actions, with these actions."""
    resources: dict[frozenset[str], list[str]] = defaultdict(list)
    for resource, actions in actions_by_resource.items():
        resources[frozenset(actions)].append(resource)
    return list(resources.items())


def _statement(actions: Iterable[str], resources: list[str], keys: Iterable[str] | None) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "Effect": "Allow", "Action": sorted(actions), "Resource": sorted(resources),
    }  # fmt: skip
    if keys is not None:
        values = [value.translate(_ESCAPED) for value in sorted(keys)]
        statement["Condition"] = {"ForAllValues:StringEquals": {LEADING_KEYS: values}}
    return statement
