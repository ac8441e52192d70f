"""Statuses and conflicts of pairs, read from the tables of a server; and an image brought back.

Refuses to know who asks, and loads nothing of boto3.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final

import msgspec
import orjson

from hashrange.errors import ServiceError
from hashrange.server.admin import data
from hashrange.server.admin.port import Subject
from hashrange_sync.deciding import SideName
from hashrange_sync.items import plain
from hashrange_sync.scopes import Scope
from hashrange_sync.settings import STATE_PREFIX, Pair
from hashrange_sync.stored.conflicts import ENTRIES, Conflict, conflict_of, image_of
from hashrange_sync.stored.status import KEY, PairStatus

TABLES_MAX: Final = 400
"""The most tables that are looked at: two for each pair."""
PAGES_MAX: Final = 20
"""The most pages of a table of conflicts that are read."""
_NONE: Final = ("ResourceNotFoundException", "ValidationException")


class Reading:
    """Reads the tables of a scope of a server. Items are in DynamoDB's JSON. Methods raise `ServiceError`."""

    def __init__(self, subject: Subject, scope: str) -> None:
        self._subject = subject
        self._scope = scope

    async def statuses(self) -> list[PairStatus]:
        """The pairs, by their names. That there are none is found out without a request, so that no fault
        rule counts one."""
        scope = data.full_scope(self._subject, self._scope)
        start = f"{scope}/{STATE_PREFIX}" if scope else STATE_PREFIX
        tables = self._subject.database.overview(start, TABLES_MAX)
        names = [about["name"].rpartition("/")[2] for about in tables if about["name"].startswith(start)]
        found = [await self._status(name) for name in names]
        return [status for status in found if status is not None]

    async def _status(self, table: str) -> PairStatus | None:
        """The status in a table; None if it has none."""
        try:
            answer = await self.ask("GetItem", TableName=table, Key=KEY, ConsistentRead=True)
            return msgspec.json.decode(answer["Item"]["text"]["S"], type=PairStatus)
        except (KeyError, msgspec.MsgspecError):
            return None
        except ServiceError as error:
            if error.code in _NONE:  # (a table of conflicts, or of somebody else)
                return None
            raise

    async def conflicts(self, pair: str, most: int) -> tuple[list[Conflict], int, bool]:
        """The newest conflicts of a pair, at most `most`, with their images; how many there are; and whether
        there are more than were read."""
        entries: list[dict[str, Any]] = []
        start: dict[str, Any] = {}
        for _ in range(PAGES_MAX):
            try:
                page = await self.ask("Scan", TableName=_log(pair), ConsistentRead=True, **ENTRIES, **start)
            except ServiceError as error:
                if error.code in _NONE:
                    break
                raise
            entries += page["Items"]
            start = {"ExclusiveStartKey": page.get("LastEvaluatedKey")}
            if start["ExclusiveStartKey"] is None:
                break
        newest = sorted(map(conflict_of, entries), key=lambda one: (-one.at, one.id))[:most]
        found = [await self.conflict(pair, one.id) for one in newest]
        has_more = bool(start.get("ExclusiveStartKey"))
        return [one for one in found if one is not None], len(entries), has_more

    async def conflict(self, pair: str, name: str) -> Conflict | None:
        """A conflict with its images, None if there is none with this id."""
        request: dict[str, Any] = {
            "TableName": _log(pair),
            "ConsistentRead": True,
            "KeyConditionExpression": "id = :id",
            "ExpressionAttributeValues": {":id": {"S": name}},
        }
        parts: dict[str, dict[str, Any]] = {}
        while True:
            page = await self.ask("Query", **request)
            parts |= {item["part"]["S"]: item for item in page["Items"]}
            if "LastEvaluatedKey" not in page:
                break
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        if "entry" not in parts:
            return None
        for part in parts.values():
            if "bytes" in part:
                part["bytes"] = {"B": b64decode(part["bytes"]["B"])}
        images = {side: plain(image_of(parts, side)) for side in ("cloud", "edge")}
        return conflict_of(parts["entry"], **images)

    async def restore(self, status: PairStatus, conflict: Conflict, side: SideName) -> None:
        """Write an image of a conflict to the edge's table, as a user would."""
        scope = scope_of(status, conflict)
        place = {"TableName": status.edge_table, "Key": conflict.key}
        item = scope.shared(conflict.image(side))
        if item is None:
            await self.ask("DeleteItem", **place)
            return
        held = (await self.ask("GetItem", ConsistentRead=True, **place)).get("Item")
        await self.ask("PutItem", TableName=status.edge_table, Item={**scope.own(held), **item})

    async def ask(self, operation: str, **request: Any) -> dict[str, Any]:
        """The answer to a request."""
        answer = await data.ask(self._subject, operation, orjson.dumps(request), self._scope)
        return orjson.loads(answer) if answer else {}


def scope_of(status: PairStatus, conflict: Conflict) -> Scope:
    """Which attributes of the items of a conflict both sides share."""
    return Scope(Pair(attributes=status.attributes, withhold=status.withhold), [*conflict.key])


def _log(pair: str) -> str:
    return Pair(table=pair).conflict_table
