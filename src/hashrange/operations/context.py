"""The context of a call beside its request, and the names and ARNs of tables and streams."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from hashrange.errors import AccessDeniedException, ServiceError, ValidationException
from hashrange.settings import Settings, waves
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.items.capacity import Bill

TABLE_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:dynamodb:([a-z0-9-]*):([0-9]*):table/([a-zA-Z0-9_.-]{3,255})"
).fullmatch
"""Matches the ARN of a table: region, account and name."""

_SHARED = "*"

Request = dict[str, Any]
Answer = dict[str, Any]
Encode = Callable[[Answer], Any]


NONE_LEFT: frozenset[int] = frozenset()


OPERATOR: Final = "console"
"""The access key of the requests that come by the admin plane: the console's, and those of operators' tools.
Fault rules do not meet them."""


class Caller(NamedTuple):
    """The caller. Region and account appear in ARNs, and select the caller's tables if accounts or regions
    are separate (`scope_of`). `attempt` is the number of the SDK's attempt, and `agent` the beginning of its
    User-Agent, if costs are recorded. `identified` is who has signed the request
    (what the gate knows of him), if requests are judged, and `connection` numbers the connections of a
    server from 1, if requests are recorded."""

    region: str = "us-east-1"
    account_id: str = "000000000000"
    access_key: str = ""
    attempt: int = 1
    identified: Any = None
    agent: str = ""
    connection: int = 0


class Context:
    """The context of a call. `now` is in seconds since the epoch; `new_id` makes a new UUID; `scope` selects
    the caller's tables (`tables.definitions.catalog`); `billed`: the bill is needed. `left` are the members
    of a batch that a fault leaves unprocessed, by their positions in the request. `kept` is what operations
    keep in memory between the requests to a database, by names of their own."""

    __slots__ = ("billed", "caller", "kept", "left", "new_id", "now", "scope", "settings")

    def __init__(
        self,
        caller: Caller,
        now: float,
        settings: Settings,
        new_id: Callable[[], str],
        scope: str = "",
        billed: bool = False,
        left: frozenset[int] = NONE_LEFT,
        kept: dict[str, Any] | None = None,
    ) -> None:
        self.caller = caller
        self.now = now
        self.settings = settings
        self.new_id = new_id
        self.scope = scope
        self.billed = billed
        self.left = left
        self.kept = {} if kept is None else kept


class RequestSettings:
    """The settings that matter to every request, read once. It is a compiled class, because to read an
    attribute of a class that is not compiled takes as long as to read twenty of these.

    `has_scopes`: the tables of accounts or regions are separate. `newer`: the operations that the newer
    layer of the service reads (`waves`).
    """

    __slots__ = ("has_scopes", "newer", "settings")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.newer = waves.newer(settings.words)
        self.has_scopes = settings.separate_accounts or settings.separate_regions


NOTHING: Answer = {}
"""The answer of an operation that has no output, not even an empty object: an empty body."""


class Operation:
    """An entry of the registry: `prepare(request, context)` returns the body that the engine runs.

    The body of an operation that `consumes` capacity returns its bill with the answer, because it may run
    several times, and only the last run is charged. Other bodies return only the answer. A refused request
    that consumed something has its bill in the error.
    `reads_only`, for an operation that may write, returns whether a request only reads. `test` accepts most
    good requests; the database sets it before the first request.
    """

    __slots__ = ("consumes", "prepare", "reads_only", "test", "writes")

    def __init__(
        self,
        prepare: Callable[[Request, Context], Callable[[Any], Any]],
        writes: bool,
        consumes: bool = False,
        reads_only: Callable[[Request], bool] | None = None,
    ) -> None:
        self.prepare = prepare
        self.writes = writes
        self.consumes = consumes
        self.reads_only = reads_only
        self.test: Callable[[Any], object] | None = None

    def is_write(self, request: Request) -> bool:
        """Whether the body of a request writes. Called after `prepare`."""
        return self.writes and (self.reads_only is None or not self.reads_only(request))


ReadBody = Callable[[Reader], Answer]
WriteBody = Callable[[Transaction], Answer]

Billed = tuple[Answer, Bill]
"""An answer, and what the request consumed: `NO_BILL` if no bill is needed."""

BilledReadBody = Callable[[Reader], Billed]
BilledWriteBody = Callable[[Transaction], Billed]


def scope_of(account_id: str, region: str, settings: Settings) -> str:
    """The scope of the tables that a caller of this account and region uses."""
    if not settings.separate_accounts and not settings.separate_regions:
        return ""
    account = account_id if settings.separate_accounts else _SHARED
    return f"{account}/{region if settings.separate_regions else _SHARED}"


def separations_of(scope: str) -> tuple[bool, bool]:
    """Whether accounts, and whether regions, were separate for the callers of a scope."""
    account, _, region = scope.partition("/")
    return account not in ("", _SHARED), region not in ("", _SHARED)


def is_in_scope(scope: str, account_id: str, region: str) -> bool:
    """Whether an ARN with this account and region can name a table in `scope`."""
    account, _, own_region = scope.partition("/")
    return account in ("", _SHARED, account_id) and own_region in ("", _SHARED, region)


def check_scope(
    scope: str, account_id: str, region: str, elsewhere: ServiceError, denied: str = "Access is denied"
) -> None:
    """Check that an ARN with this account and region can name a resource in `scope`.

    Raises `AccessDeniedException` with the text `denied` for another account, because no policy allows it,
    and `elsewhere` for another region.
    """
    if scope and not is_in_scope(scope, account_id, region):
        if not is_in_scope(scope.partition("/")[0] + "/", account_id, region):
            raise AccessDeniedException(denied)
        raise elsewhere


def table_name(given: str, scope: str) -> str:
    """The name of a table, which a request gives by name or by ARN.

    Raises `ValidationException` for an ARN that is not a table's ([report] extenddb pull 200). If accounts or
    regions are separate, it also raises `ValidationException` for the ARN of another region, and
    `AccessDeniedException` for the ARN of another account.
    """
    if not given.startswith("arn:"):
        return given
    parsed = TABLE_ARN(given)
    invalid = ValidationException(f"Invalid TableArn: Invalid ResourceArn provided as input {given}")
    if parsed is None:
        raise invalid
    region, account_id, name = parsed.groups()
    # The text is that of `tags`.
    denied = f"User is not authorized to perform this operation on resource: {given}"
    check_scope(scope, account_id, region, invalid, denied)
    return name


def table_arn(caller: Caller, name: str) -> str:
    """The ARN of a table as the caller sees it."""
    return f"arn:aws:dynamodb:{caller.region}:{caller.account_id}:table/{name}"


def stream_arn(caller: Caller, table: str, label: str) -> str:
    """The ARN of a stream as the caller sees it."""
    return f"{table_arn(caller, table)}/stream/{label}"
