"""Writes of items, and tables from models. These tools are listed with --write only."""

from __future__ import annotations

from typing import Annotated, Any, Final

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from hashrange import rings
from hashrange.cli.remote import batches
from hashrange.cli.remote import clients as remote
from hashrange.testing.declarations import Declaration, DeclarationError
from hashrange_mcp import answers, estimates
from hashrange_mcp.connection import Connection
from hashrange_mcp.tools.tables import Table
from hashrange_mcp.values import given_item

Json = dict[str, Any]

_ACTIONS_MAX: Final = 100
_KINDS: Final = ("Put", "Update", "Delete", "ConditionCheck")
_BATCH: Final = 25


class Writing:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def write_items(
        self,
        table: Table,
        actions: Annotated[
            list[dict[str, dict[str, Any]]],
            Field(
                min_length=1,
                max_length=_ACTIONS_MAX,
                description='Actions of TransactWriteItems without TableName: {"Put": {"Item": {"pk": '
                '{"S": "a"}}, '
                '"ConditionExpression": "attribute_not_exists(pk)"}}, {"Update": {"Key": …, '
                '"UpdateExpression": …, '
                '"ExpressionAttributeValues": …}}, {"Delete": {"Key": …}}, {"ConditionCheck": …}.',
            ),
        ],
    ) -> str:
        """Write items in one transaction: all actions take effect, or none. A write in a transaction costs
        twice the units of a plain one. Give conditions, so that nothing is overwritten by mistake. Values are
        in DynamoDB's JSON; numbers are texts with all of their digits, up to 38."""
        sent = [_action(table, place, action) for place, action in enumerate(actions, 1)]
        answer = self._connection.clients.dynamodb.transact_write_items(
            TransactItems=sent, ReturnConsumedCapacity="TOTAL"
        )
        return answers.text_of({"written": len(sent), "consumed_units": estimates.consumed(answer)})

    def create_tables(
        self,
        model: Annotated[
            str,
            Field(
                description="The text of a CloudFormation or SAM template (JSON or YAML), of `terraform "
                "show -json`, "
                "of a NoSQL Workbench model, or of the JSON of CreateTable or DescribeTable; a list of these."
            ),
        ],
        parameters: Annotated[dict[str, str] | None, Field(description="Parameters of a template.")] = None,
        dry_run: Annotated[bool, Field(description="Only show the requests, and create nothing.")] = False,
    ) -> str:
        """Create the tables of a model, with their indexes, time to live, settings and sample items. Tables
        that exist are left alone and named. On Amazon DynamoDB tables cost money: show the dry run to the
        user first."""
        dynamodb = self._connection.clients.dynamodb
        try:
            declared: list[Declaration] = rings.needed("templates", "testing", "text")(
                model.encode(),
                "the model",
                parameters=parameters,
                region=dynamodb.meta.region_name,
                account_id="000000000000",
            )
        except rings.Missing as error:
            raise ToolError(str(error)) from error
        except DeclarationError as error:
            raise ToolError(f"{error} Correct the model and call this again.") from error
        if dry_run:
            requests = [
                {"create": one.create, "ttl": one.ttl, "items": len(one.items), "notes": [*one.notes]}
                for one in declared
            ]
            return answers.bounded({}, "requests", requests, self._connection.bytes_max)
        made = [self._make(one) for one in declared]
        return answers.bounded({}, "tables", made, self._connection.bytes_max)

    def _make(self, declared: Declaration) -> Json:
        """Make a table, and what belongs to it."""
        dynamodb, name = self._connection.clients.dynamodb, declared.name
        told: Json = {"name": name, "notes": [*declared.notes]}
        try:
            dynamodb.create_table(**declared.create)
        except dynamodb.exceptions.ResourceInUseException as error:
            return {**told, "created": False, "why": remote.explain(error)}
        if declared.ttl or declared.settings or declared.items:
            dynamodb.get_waiter("table_exists").wait(TableName=name)
        if declared.ttl:
            specification = {"AttributeName": declared.ttl, "Enabled": True}
            dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=specification)
        for operation, members in declared.settings:
            method = dynamodb.meta.method_to_api_mapping
            [called] = [python for python, api in method.items() if api == operation]
            getattr(dynamodb, called)(TableName=name, **members)
        for place in range(0, len(declared.items), _BATCH):
            batch = declared.items[place : place + _BATCH]
            batches.put(dynamodb, name, [given_item(dict(item)) for item in batch])
        if declared.replicas or declared.stream_policy:
            told["notes"].append("Replicas and the policy of the stream were not made: ask the user to.")
        return {**told, "created": True, "items": len(declared.items)}


def _action(table: str, place: int, action: dict[str, dict[str, Any]]) -> Json:
    """An action for boto3. Raises ToolError."""
    if len(action) != 1 or next(iter(action)) not in _KINDS:
        raise ToolError(
            f"Action {place} must have one member of {', '.join(_KINDS)}; send all actions again."
        )
    ((kind, members),) = action.items()
    sent: Json = {**members, "TableName": table}
    for member in ("Item", "Key", "ExpressionAttributeValues"):
        if member in sent:
            sent[member] = given_item(sent[member])
    return {kind: sent}
