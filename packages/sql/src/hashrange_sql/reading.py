"""Reads pages of items as the JSON in which they came: from an endpoint, or from the past of a Hashrange
server. The items are not decoded here, because DuckDB reads the JSON itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec
import orjson
from botocore.exceptions import ClientError, ParamValidationError

from hashrange.interchange.item_texts import from_boto3
from hashrange.pace.workers import hold_up

if TYPE_CHECKING:
    from hashrange.cli.remote.asking import Plane

Json = dict[str, Any]

SEGMENTS: Final = 4
_EVENTS: Final = ("before-parse.dynamodb.Query", "before-parse.dynamodb.Scan")
_RAW: Final = "Raw"


class Page(NamedTuple):
    """A page: its items as a JSON array, how many they are, where the next page starts (None: there is none),
    and the read units."""

    items: bytes
    size: int
    start: Json | None
    units: float


class Reader(Protocol):
    """Reads tables. The `past` has neither segments nor indexes. `region` is that of the prices, "" where
    reading costs nothing. `segments` is into how many parts a Scan is divided. All raise the errors of boto3,
    or click.ClickException."""

    past: bool
    region: str
    segments: int

    def describe(self, name: str) -> Json | None:
        """The description of a table; None: there is none."""
        ...

    def tables(self) -> list[str]:
        """The names of all tables."""
        ...

    def read(self, operation: str, request: Json) -> Page:
        """A page of a Query or Scan."""
        ...


class ApiReader:
    """Reads by a boto3 client, whose other users notice nothing. Thread-safe."""

    past = False
    segments = SEGMENTS

    def __init__(self, client: Any) -> None:
        self.client = client
        self.region: str = client.meta.region_name
        self._here = threading.local()

    def describe(self, name: str) -> Json | None:
        return _described(self.client, name)

    def tables(self) -> list[str]:
        return _tables(self.client)

    @contextmanager
    def opened(self) -> Iterator[ApiReader]:
        """The reader, which gets the client's answers before boto3 decodes them."""
        events = self.client.meta.events
        # (botocore registers one handler for each identifier)
        named = {event: f"hashrange-sql-{id(self)}-{event}" for event in _EVENTS}
        for event, name in named.items():
            events.register(event, self._keep, unique_id=name)
        try:
            yield self
        finally:
            for event, name in named.items():
                events.unregister(event, self._keep, unique_id=name)

    def read(self, operation: str, request: Json) -> Page:
        self._here.reads = True
        try:
            send = self.client.query if operation == "Query" else self.client.scan
            answer = send(**request, ReturnConsumedCapacity="TOTAL")
        finally:
            self._here.reads = False
        told = answer.get("ConsumedCapacity") or {}
        start = answer.get("LastEvaluatedKey")
        raw = answer.get(_RAW)
        if raw is None:  # (clients in process have no bytes of an answer)
            raw = orjson.dumps(
                [{name: from_boto3(one) for name, one in item.items()} for item in answer["Items"]]
            )
        return Page(raw, answer["Count"], start, float(told.get("CapacityUnits", 0)))

    def _keep(self, response_dict: Json, customized_response_dict: Json, **_: Any) -> None:
        """Take the items out of an answer, so that boto3 does not decode them."""
        if not getattr(self._here, "reads", False) or response_dict["status_code"] != 200:
            return
        customized_response_dict[_RAW], rest = parted(response_dict["body"])
        response_dict["body"] = msgspec.json.encode(rest)


def parted(answer: bytes) -> tuple[bytes, dict[str, msgspec.Raw]]:
    """The items of a Query's or Scan's answer, as a JSON array, and its other members."""
    members = msgspec.json.decode(answer, type=dict[str, msgspec.Raw])
    return bytes(members.pop("Items", b"[]")), members


class PastReader:
    """Reads the past of a Hashrange server, through its admin plane."""

    past = True
    region = ""
    segments = 1

    def __init__(self, client: Any, plane: Plane, moment: str) -> None:
        """`moment` as `parse_moment` takes it. Raises ValueError, click.ClickException."""
        # Imported here, because a statement of the page would load all of the command line.
        from hashrange.cli.remote import past

        self._client = client
        self._past, self._plane = past, plane
        self._moment = past.fixed(plane, moment)

    def describe(self, name: str) -> Json | None:
        return _described(self._client, name)

    def tables(self) -> list[str]:
        return _tables(self._client)

    def read(self, operation: str, request: Json) -> Page:
        answer = self._past.read(self._plane, operation, request, self._moment)
        items = answer.get("Items", [])
        return Page(orjson.dumps(items), len(items), answer.get("LastEvaluatedKey"), 0.0)


def _described(client: Any, name: str) -> Json | None:
    try:
        described: Json = client.describe_table(TableName=name)["Table"]
    except (ParamValidationError, client.exceptions.ResourceNotFoundException):
        return None
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationException":
            raise
        return None
    return described


def _tables(client: Any) -> list[str]:
    pages = client.get_paginator("list_tables").paginate()
    return [name for page in pages for name in page["TableNames"]]


class Rate:
    """So many read units a second, together for all threads; None for no limit. `now` is a time in seconds,
    `pause` waits for some."""

    def __init__(
        self,
        units: float | None,
        *,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = hold_up,
    ) -> None:
        self.units = units
        self._now, self._pause = now, pause
        self._free = now()
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait until more may be read."""
        if self.units is None:
            return
        with self._lock:
            if (left := self._free - self._now()) > 0:
                self._pause(left)

    def spent(self, units: float) -> None:
        """So many units were read."""
        if self.units is not None:
            with self._lock:
                self._free = max(self._free, self._now()) + units / self.units
