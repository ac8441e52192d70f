"""Access policies: what one allows, and the smallest one for what was counted."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from hashrange_access.judging.known import KNOWN_ACTIONS, KNOWN_KEYS
from hashrange_access.plain_yaml import YamlError, parsed
from hashrange_access.policies.documents import parse
from hashrange_access.policies.errors import PolicyError
from hashrange_access.policies.evaluation import Attached, evaluate
from hashrange_access.policies.linting import lint
from hashrange_access.policies.requests import Principal, Request, principal_keys
from hashrange_access.policies.suggesting import Uses
from hashrange_lab.money.counts import OTHERS, Counted, Usage
from hashrange_mcp import answers, plane
from hashrange_mcp.connection import Connection

_USER: Final = "arn:aws:iam::000000000000:user/local"
# The actions of what has several, or others than its name says.
_ACTIONS: Final = {
    "TransactGetItems": ("GetItem",),
    "TransactWriteItems": ("PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"),
}
_STATEMENTS: Final = ("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction")
_READS: Final = ("PartiQLSelect",)
_BROAD: Final = "Of {} all actions are allowed: leave those out that are not needed."
_WRITES: Final = ("PartiQLInsert", "PartiQLUpdate", "PartiQLDelete")


class Policies:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def simulate_policy(
        self,
        policy: Annotated[str, Field(description="An IAM policy document, in JSON or YAML.")],
        action: Annotated[str, Field(description="The action, such as GetItem or dynamodb:PartiQLSelect.")],
        resource: Annotated[str, Field(description="The ARN of the table, index or stream.")],
        context: Annotated[
            dict[str, list[str]] | None,
            Field(description='Condition keys: {"dynamodb:LeadingKeys": ["alice"]}.'),
        ] = None,
        resource_policy: Annotated[str, Field(description="The policy of the resource, if it has one.")] = "",
        principal: Annotated[str, Field(description="The ARN of the user who asks.")] = _USER,
    ) -> str:
        """Decide whether policies allow one request, as IAM would, and say what became of each statement and
        what is suspicious in the documents. Asks no server."""
        user = principal.split(":", 5)
        parts = resource.split(":", 5)
        for given, pieces in ((principal, user), (resource, parts)):
            if len(pieces) < 6:
                raise ToolError(f"{given!r} is not an ARN; describe_table shows the ARN of a table.")
        name = user[5].rpartition("/")[2]
        who = Principal(principal, user[4], name=name, user_id=name)
        given_keys = {key.lower(): tuple(values) for key, values in (context or {}).items()}
        keys = {"aws:resourceaccount": (parts[4],), **principal_keys(who), **given_keys}
        identity, own = _document(policy), _document(resource_policy) if resource_policy else None
        try:
            attached = Attached(
                (parse(identity, name="policy"),),
                (parse(own, name="resource policy", on_resource=True),) if own is not None else (),
            )
        except PolicyError as error:
            raise ToolError(f"{error}. Correct the document and call this again.") from error
        named = action if ":" in action else f"dynamodb:{action}"
        decision = evaluate(Request(who, named, resource, parts[4], keys), attached)
        findings = lint(identity, KNOWN_ACTIONS, KNOWN_KEYS, name="policy")
        if own is not None:
            findings += lint(own, KNOWN_ACTIONS, KNOWN_KEYS, name="resource policy", on_resource=True)
        return answers.bounded(
            {"allowed": decision.allowed, "findings": [str(finding) for finding in findings]},
            "explained",
            [*decision.explained()],
            self._connection.bytes_max,
        )

    def _described(self, table: str) -> dict[str, Any] | None:
        """A table's description, by its full name; None if it is gone."""
        dynamodb = self._connection.clients.dynamodb
        try:
            return self._connection.table(table.rpartition("/")[2])
        except dynamodb.exceptions.ResourceNotFoundException:
            return None

    def suggest_policy(
        self,
        caller: Annotated[
            str, Field(description="Only what this program did, as `costs` by caller names it; empty: all.")
        ] = "",
    ) -> str:
        """Suggest the smallest IAM policy that allows what the server has counted: the actions of each table
        and index. Run the whole program first, because what it has not done yet is not allowed."""
        shown = plane.counted(self._connection.admin())
        counted = msgspec.convert(shown, Counted) if shown is not None else None
        rows = [row for row in counted.rows if caller in ("", row.caller)] if counted is not None else []
        # (a write counts for the table, and so the rows of the indexes that it changed have no request)
        rows = [row for row in rows if row.requests and OTHERS not in (row.table, row.operation)]
        if not rows:
            raise ToolError(
                "Nothing is counted. Ask the user to run `hashrange costs start` and then the program; "
                "`costs` by "
                "caller shows the names of programs."
            )
        uses, notes = Uses(), set()
        tables = {name: self._described(name) for name in {row.table for row in rows}}
        for row in rows:
            described = tables[row.table]
            if described is None:
                notes.add(f"The table {row.table} is gone, and is left out.")
                continue
            arn = described["TableArn"]
            actions, note = _actions(row)
            if "LocalSecondaryIndexes" in described and row.operation in ("Query", "Scan"):
                note = f"If the program reads local indexes, allow {arn}/index/* for {row.operation} too."
            notes |= {note} if note else set()
            for action in actions:
                uses.add(f"dynamodb:{action}", f"{arn}/index/{row.index}" if row.index else arn, None)
        if not len(uses):
            raise ToolError(f"{' '.join(sorted(notes))} Run the program again, and call this tool again.")
        document: dict[str, Any] = {"policy": uses.policy(), "notes": sorted(notes)}
        document["next"] = "Check it with simulate_policy, and attach it with the user's consent."
        return answers.text_of(document)


def _actions(row: Usage) -> tuple[tuple[str, ...], str]:
    """The actions of what was counted, and what to say of them."""
    if row.operation in _STATEMENTS:
        actions = (_READS if row.read_units else ()) + (_WRITES if row.write_units else ())
        return actions, _BROAD.format("PartiQL's writes") if row.write_units else ""
    note = _BROAD.format("transactions") if row.operation == "TransactWriteItems" else ""
    return _ACTIONS.get(row.operation, (row.operation,)), note


def _document(text: str) -> Any:
    try:
        return parsed(text)
    except YamlError as error:
        raise ToolError(f"The policy cannot be read: {error}. Write it in JSON.") from error
