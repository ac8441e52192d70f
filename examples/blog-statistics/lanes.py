"""Five ways to count the views of a blog, three of them as they are often copied; and the trouble they meet.

Each lane gets the same events, each through a client of its own that fails as networks and processes do. What
fails is delivered again, as a queue does. So a lane that is right counts every event once.
"""

from __future__ import annotations

import functools
import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from hashrange_patterns import Counters, Event, Table, TableEvents, Worker

TABLE = Table("blog-statistics")
URL = "myblog.com/article1"
DELIVERIES_MAX = 50


class Crash(Exception):
    """The process died after the request was performed, and before it learned of it."""


@dataclass
class Trouble:
    """Which trouble there is now, as shares of the requests, and of the events that are sent twice."""

    duplicates: float = 0.0
    crashes: float = 0.0
    conflicts: float = 0.0


class Troubled:
    """A client that fails: with a conflict instead of the request, or with a crash after it."""

    def __init__(self, client: Any, trouble: Trouble, chance: random.Random) -> None:
        self._client = client
        self._trouble = trouble
        self._chance = chance

    def __getattr__(self, operation: str) -> Callable[..., Mapping[str, Any]]:
        def send(**parameters: Any) -> Mapping[str, Any]:
            if self._chance.random() < self._trouble.conflicts:
                raise conflict(operation, parameters)
            answer: Mapping[str, Any] = getattr(self._client, operation)(**parameters)
            if self._chance.random() < self._trouble.crashes:
                raise Crash
            return answer

        return send


def conflict(operation: str, parameters: Mapping[str, Any]) -> ClientError:
    """What DynamoDB answers when another request was at work on the same item."""
    if operation != "transact_write_items":
        return ClientError({"Error": {"Code": "TransactionConflictException"}}, operation)
    reasons: list[Any] = [{"Code": "None"} for _ in parameters["TransactItems"]]
    reasons[-1] = {"Code": "TransactionConflict"}
    response: Any = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
    return ClientError(response, operation)


def statistics(lane: str) -> dict[str, Any]:
    """The arguments of the UpdateItem that adds one, as it is often copied."""
    return {
        "TableName": TABLE.name,
        "Key": {"PK": {"S": f"URL#{lane}#{URL}"}, "SK": {"S": "STATISTICS"}},
        "UpdateExpression": "SET #views = if_not_exists(#views, :init) + :inc",
        "ExpressionAttributeNames": {"#views": "views"},
        "ExpressionAttributeValues": {":init": {"N": "0"}, ":inc": {"N": "1"}},
    }


def put_of(lane: str, event_id: str) -> dict[str, Any]:
    """The arguments of the PutItem that remembers an event."""
    return {
        "TableName": TABLE.name,
        "Item": {"PK": {"S": f"URL#{lane}#{URL}"}, "SK": {"S": f"T#{event_id}"}},
        "ConditionExpression": "attribute_not_exists(PK)",
    }


def add_one(client: Any, event_id: str) -> None:
    """Naive: what is delivered twice is counted twice."""
    client.update_item(**statistics("add"))


def put_then_add(client: Any, event_id: str) -> None:
    """Naive: who dies between the two never adds, because the next delivery is taken for a duplicate."""
    try:
        client.put_item(**put_of("put", event_id))
    except ClientError as error:
        if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
            return
        raise
    client.update_item(**statistics("put"))


def copied_transaction(client: Any, event_id: str) -> None:
    """Transactional, as it is copied: a conflict is taken for a duplicate, and the event is lost."""
    members = [{"Put": put_of("transaction", event_id)}, {"Update": statistics("transaction")}]
    try:
        client.transact_write_items(TransactItems=members)
    except ClientError as error:
        if error.response["Error"]["Code"] != "TransactionCanceledException":
            raise


def once(client: Any, event_id: str) -> None:
    """Transactional: only the event's own condition means that it was counted."""
    Counters(client, TABLE, item=("URL#once#{name}", "STATISTICS"), attribute="views").once(
        URL, event_id=f"once#{event_id}"
    )


class Blog:
    """The lanes, their trouble, and how many events were sent."""

    def __init__(self, client: Any, seed: int | None = None) -> None:
        self.trouble = Trouble()
        self.sent = 0
        self._client = client
        self._chance = random.Random(seed)
        self._serial = threading.Lock()
        self._queue = TableEvents(client, TABLE, "views", attempts_max=DELIVERIES_MAX, poll_seconds=0.05)
        self._queued = Counters(
            self._troubled(), TABLE, item=("URL#queue#{name}", "STATISTICS"), attribute="views"
        )
        self._lanes: list[Callable[[str], None]] = [
            functools.partial(count, self._troubled())
            for count in (add_one, put_then_add, copied_transaction, once)
        ]
        self._lanes.append(lambda event_id: self._queue.put([event_id]))

    def send(self, number: int) -> None:
        """Send events to all lanes, by several senders at once."""
        with self._serial:
            ids = [f"{self.sent + serial}-{random.getrandbits(48):x}" for serial in range(number)]
            self.sent += number
        twice = [event_id for event_id in ids if self._chance.random() < self.trouble.duplicates]
        with ThreadPoolExecutor(4) as senders:
            list(senders.map(self._deliver, [*ids, *twice]))

    def worker(self) -> Worker:
        """Counts what is in the queue, in batches."""
        return Worker(
            self._queue,
            lambda ids: self._queued.count([Event(f"queue#{event_id}", {URL: 1}) for event_id in ids]),
            batch_max=30,
            wait_seconds=0.3,
        )

    def counts(self) -> dict[str, int]:
        """What each lane counted."""
        found = {}
        for lane in ("add", "put", "transaction", "once", "queue"):
            key = {"PK": {"S": f"URL#{lane}#{URL}"}, "SK": {"S": "STATISTICS"}}
            item = self._client.get_item(TableName=TABLE.name, Key=key, ConsistentRead=True).get("Item")
            found[lane] = int(item["views"]["N"]) if item else 0
        return found

    def _troubled(self) -> Any:
        return Troubled(self._client, self.trouble, self._chance)

    def _deliver(self, event_id: str) -> None:
        """Deliver an event to each lane, again until the lane says that it took it."""
        for lane in self._lanes:
            for _ in range(DELIVERIES_MAX):
                try:
                    lane(event_id)
                    break
                except (Crash, ClientError):
                    continue
