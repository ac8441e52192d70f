"""The triggers of a table, and how far they are behind its stream.

Triggers run in programs of their own (`hashrange trigger run`), so the server knows only what they save: a
table of checkpoints, which holds how far each trigger has processed each shard. The lag is what the stream
has after a checkpoint. Triggers with another table of checkpoints (`--checkpoint-table`) are not found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from hashrange.clock import show_moment
from hashrange.server.admin.application import subject_of
from hashrange_console.live.records import shards_of
from hashrange_console.reach import Refused, View

CHECKPOINTS: Final = "hashrange-trigger-checkpoints"
"""As `hashrange_triggers.checkpoints` has it, which another ring brings."""
WAITING_MAX: Final = 200
"""The most changes of a shard that are counted."""
IDLE_SECONDS: Final = 30.0
"""After this time without progress, while changes wait, a trigger seems not to run."""
_PAGES_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger of a table: how many changes wait for it, since when, and when it last saved its progress.
    `is_lost`: changes were trimmed before it read them."""

    name: str
    waiting: int
    oldest: float | None
    updated: float
    now: float
    is_lost: bool

    @property
    def state(self) -> str:
        if self.is_lost:
            return "has lost changes"
        if not self.waiting:
            return "up to date"
        return "does not run" if self.now - self.updated > IDLE_SECONDS else "behind"

    @property
    def lag_seconds(self) -> int:
        return max(0, round(self.now - self.oldest)) if self.oldest is not None else 0

    @property
    def saved(self) -> str:
        return show_moment(self.updated)


async def of_table(view: View, table: str) -> list[Trigger]:
    """The triggers of a table, by name."""
    checkpoints = await _checkpoints(view)
    if not checkpoints:
        return []
    triggers = []
    streams = (await view.read("ListStreams", {"TableName": table})).get("Streams", [])
    arns = {stream["StreamLabel"]: stream["StreamArn"] for stream in streams}
    by_trigger: dict[str, dict[str, dict[str, Any]]] = {}
    for checkpoint in checkpoints:
        by_trigger.setdefault(checkpoint["trigger"]["S"], {})[checkpoint["shard"]["S"]] = checkpoint
    for name, places in sorted(by_trigger.items()):
        own = {place: of for place, of in places.items() if place.partition("/")[0] in arns}
        if own:
            triggers.append(await _trigger(view, name, own, arns))
    return triggers


async def _checkpoints(view: View) -> list[dict[str, Any]]:
    """The items of the table of checkpoints, none if there is no such table. That is found out without a
    request, so that no fault rule counts one."""
    name = view.full_name(CHECKPOINTS)
    tables = subject_of(view.request).database.overview(name[:-1], 2)
    if all(about["name"] != name for about in tables):
        return []
    items: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    for _ in range(_PAGES_MAX):
        answer = await view.read("Scan", {"TableName": CHECKPOINTS, "ConsistentRead": True, **start})
        items += [item for item in answer["Items"] if {"trigger", "shard", "updated"} <= set(item)]
        if "LastEvaluatedKey" not in answer:
            break
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
    return items


async def _trigger(
    view: View, name: str, places: dict[str, dict[str, Any]], arns: dict[str, str]
) -> Trigger:
    waiting, oldest, is_lost = 0, None, False
    for label in sorted({place.partition("/")[0] for place in places}):
        if places.get(label, {}).get("done", {}).get("BOOL"):
            continue
        for shard in await shards_of(view, arns[label]):
            checkpoint = places.get(f"{label}/{shard['ShardId']}", {})
            if checkpoint.get("done", {}).get("BOOL"):
                continue
            try:
                records = await _after(view, arns[label], shard["ShardId"], checkpoint)
            except Refused as error:
                if error.code != "TrimmedDataAccessException":
                    raise
                is_lost = True
                continue
            waiting += len(records)
            moments = [record["dynamodb"]["ApproximateCreationDateTime"] for record in records[:1]]
            oldest = min([*moments, *([oldest] if oldest is not None else [])], default=None)
    updated = max(float(checkpoint["updated"]["N"]) for checkpoint in places.values())
    now = subject_of(view.request).database.clock.now()
    return Trigger(name, waiting, oldest, updated, now, is_lost)


async def _after(view: View, arn: str, shard: str, checkpoint: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of a shard after a checkpoint."""
    sent: dict[str, Any] = {"StreamArn": arn, "ShardId": shard}
    if "sequence" in checkpoint:
        sent |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": checkpoint["sequence"]["S"]}
    elif "since" in checkpoint:
        if (records := await _by_iterator(view, checkpoint)) is not None:
            return records
        # It begins with the newest changes, a minute after this moment.
        sent |= {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": float(checkpoint["since"]["N"])}
    else:
        sent |= {"ShardIteratorType": "TRIM_HORIZON"}
    iterator = (await view.read("GetShardIterator", sent))["ShardIterator"]
    return await _records(view, iterator)


async def _by_iterator(view: View, checkpoint: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The records after the iterator of a checkpoint; None if it has none that is still valid."""
    iterator = checkpoint.get("iterator", {}).get("S")
    if iterator is None:
        return None
    try:
        return await _records(view, iterator)
    except Refused as error:
        if error.code != "ExpiredIteratorException":
            raise
        return None


async def _records(view: View, iterator: str) -> list[dict[str, Any]]:
    answer = await view.read("GetRecords", {"ShardIterator": iterator, "Limit": WAITING_MAX})
    records: list[dict[str, Any]] = answer["Records"]
    return records
