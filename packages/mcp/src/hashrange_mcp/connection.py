"""The endpoint that the tools work on, and errors that say what to do next."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click
from mcp.server.mcpserver.exceptions import ToolError

from hashrange.cli.remote import clients as remote
from hashrange.cli.remote.asking import AWS, Plane, hello, is_aws, understood
from hashrange.cli.remote.clients import Clients
from hashrange.cli.remote.connecting import connect
from hashrange_mcp.values import WrongValue

F = TypeVar("F", bound=Callable[..., str])

_NEXT: Final = {
    "ResourceNotFoundException": "Call list_tables for the names of tables, describe_table for indexes.",
    "ConditionalCheckFailedException": "Read the item with get_items, and decide again.",
    "TransactionCanceledException": "Nothing was written. Correct the action that the reasons name.",
    "ProvisionedThroughputExceededException": "Wait some seconds, then ask for less with a smaller limit.",
    "ThrottlingException": "Wait some seconds, then send the request again.",
    "AccessDeniedException": "The credentials may not do this: ask the user, or try simulate_policy.",
    "UnrecognizedClientException": "The credentials are wrong: ask the user to correct them.",
    "ResourceInUseException": "Call describe_table to see the table that exists.",
    "ValidationException": "Correct the argument that the text names; describe_table shows keys and types.",
    "TrimmedDataAccessException": "These changes are older than 24 hours: leave `start` out.",
    "ExpiredIteratorException": "Send the request again.",
}
_UNREACHABLE: Final = "Ask the user to start the server (`hashrange serve`) or to name it by --endpoint-url."
_NO_PLANE: Final = (
    "This endpoint is no Hashrange server that can be asked for this: only the server's admin plane "
    "knows it. "
    "Use describe_table, query and scan instead."
)


@dataclass(frozen=True, slots=True)
class Connection:
    """An endpoint. `plane` is the admin plane of a Hashrange server, None for others. `writes`: tools may
    write. `bytes_max`: of an answer."""

    clients: Clients
    server: str
    plane: Plane | None
    writes: bool
    bytes_max: int

    def admin(self) -> Plane:
        """The admin plane. Raises ToolError without one."""
        if self.plane is None:
            raise ToolError(_NO_PLANE)
        return self.plane

    def table(self, name: str) -> dict[str, Any]:
        """A table's description."""
        described: dict[str, Any] = self.clients.dynamodb.describe_table(TableName=name)["Table"]
        return described


def connected(endpoint_url: str, region: str | None, *, writes: bool, bytes_max: int) -> Connection:
    """The connection to an endpoint, `aws` for Amazon DynamoDB. A server that does not answer yet counts as
    one of Hashrange. Raises click.ClickException for clients that cannot be made."""
    clients = connect(endpoint_url, region)
    if is_aws(endpoint_url):
        shown = "Amazon DynamoDB" if endpoint_url == AWS else endpoint_url
        return Connection(clients, shown, None, writes, bytes_max)
    try:
        is_hashrange = hello(endpoint_url) is not None
    except OSError:
        is_hashrange = True
    plane = Plane(endpoint_url) if is_hashrange else None
    return Connection(clients, endpoint_url, plane, writes, bytes_max)


def telling(tool: F, connection: Connection) -> Callable[..., str]:
    """A tool whose errors say what to do next, and whose answers are not longer than they may be."""

    @functools.wraps(tool)
    def call(*arguments: Any, **named: Any) -> str:
        try:
            with understood(connection.server):
                answer = _answer(tool, arguments, named)
        except remote.SERVICE_ERRORS as error:
            raise ToolError(_explained(error, connection.server)) from error
        except click.ClickException as error:
            raise ToolError(error.message) from error
        if len(answer.encode()) > connection.bytes_max:
            raise ToolError(
                f"The answer has more than {connection.bytes_max} bytes: ask for less, by a smaller "
                f"limit or a "
                "projection."
            )
        return answer

    return call


def _answer(tool: Callable[..., str], arguments: Any, named: Any) -> str:
    try:
        return tool(*arguments, **named)
    except WrongValue as error:
        raise ToolError(str(error)) from error


def _explained(error: Exception, server: str) -> str:
    code = remote.error_code(error)
    text = remote.explain(error)
    if not code:
        advice = _UNREACHABLE if remote.is_transient(error) else "Correct the argument that the text names."
        return f"{server}: {text.rstrip('.')}. {advice}"
    advice = _NEXT.get(code, "Tell the user, if another request does not help.")
    return f"{text.rstrip('.')}. {advice}"
