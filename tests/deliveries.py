"""A database with a table, and Kinesis data streams in memory beside it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

import worlds
from hashrange import kinesis
from hashrange.database import Settings
from hashrange.kinesis import KinesisError, Refused, StreamName
from hashrange.storage.api import Engine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.definitions import catalog
from hashrange.tables.inspection import check
from worlds import create

NOW = 1_790_000_000.123456
ENDPOINT = "http://kinesis.test"
ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
DAY = 24 * 3600


class Streams:
    """Data streams in memory, in the place of `Kinesis`. `down`: no request is answered; `refuses` decides
    which records have an error, `bad` are texts whose records no stream takes."""

    def __init__(self) -> None:
        self.statuses: dict[str, str] = {"changes": "ACTIVE"}
        self.records: list[tuple[str, dict[str, Any]]] = []
        self.requests: list[int] = []
        self.down = False
        self.bad = b"\x00"
        self.chance = random.Random(0)
        self.refusals = 0.0
        self.lost_answers = 0.0

    def status(self, stream: StreamName) -> str | None:
        self._answer()
        return self.statuses.get(stream.name)

    def put(self, stream: StreamName, records: Sequence[tuple[str, bytes]]) -> list[str]:
        self._answer()
        assert stream == ("us-east-1", "changes")
        assert len(records) <= kinesis.RECORDS_MAX
        if any(self.bad in data for _, data in records):
            raise Refused("the data is too large")
        self.requests.append(len(records))
        errors = ["Internal: no" if self.chance.random() < self.refusals else "" for _ in records]
        for (key, data), error in zip(records, errors, strict=True):
            if not error:
                self.records.append((key, orjson.loads(data)))
        if self.chance.random() < self.lost_answers:
            raise KinesisError("the connection was closed")
        return errors

    def close(self) -> None:
        pass

    def _answer(self) -> None:
        if self.down:
            raise KinesisError("nobody answers")

    def values(self, key: str) -> list[str]:
        """The values of an item in the order in which they arrived."""
        images = [(record["dynamodb"]["Keys"], record["dynamodb"]) for _, record in self.records]
        return [
            body["NewImage"]["v"]["N"] if "NewImage" in body else "gone"
            for keys, body in images
            if keys == {"pk": {"S": key}}
        ]


class World(worlds.World):
    """A database with a table, and data streams beside it."""

    def __init__(
        self, directory: Path | None = None, engine: Engine | None = None, **given: Any
    ) -> None:
        self.directory = directory
        self.streams = Streams()
        self.seconds = 0.0
        kept = engine or MemoryEngine()
        super().__init__(directory or (lambda: kept), now=NOW, **{"kinesis_endpoint": ENDPOINT, **given})
        self.create()

    def open(self) -> None:
        super().open()
        self.database.background.steady = lambda: self.seconds
        self.database.jobs.deliveries.runner.streams = self.streams  # type: ignore[assignment]

    def reopen(self, **given: Any) -> None:
        """Open the database again, as a restart does."""
        if given:
            self.settings = Settings(**given)
        if self.directory is not None:
            self.database.close()
        self.open()

    def create(self, name: str = "music") -> None:
        create(self.database, name, "pk")

    def enable(self, arn: str = ARN, **given: Any) -> None:
        self("EnableKinesisStreamingDestination", TableName="music", StreamArn=arn, **given)
        self.settle()

    def disable(self) -> None:
        self("DisableKinesisStreamingDestination", TableName="music", StreamArn=ARN)

    def put(self, key: str, value: int) -> None:
        self("PutItem", TableName="music", Item={"pk": {"S": key}, "v": {"N": str(value)}})

    def fill(self, number: int) -> None:
        """Put items, in batches, so that a server that shares its store keeps its share of the work."""
        for low in range(0, number, 25):
            items = [{"pk": {"S": f"k{n}"}, "v": {"N": str(n)}} for n in range(low, min(low + 25, number))]
            self("BatchWriteItem", RequestItems={"music": [{"PutRequest": {"Item": item}} for item in items]})

    def delete(self, key: str) -> None:
        self("DeleteItem", TableName="music", Key={"pk": {"S": key}})

    def settle(self, seconds: float = 0.0) -> None:
        """Do all work that is due after `seconds` of the steady clock."""
        self.seconds += seconds
        self.database.settle()

    def shown(self) -> list[tuple[str, str | None]]:
        answer = self("DescribeKinesisStreamingDestination", TableName="music")
        return [
            (destination["DestinationStatus"], destination.get("DestinationStatusDescription"))
            for destination in answer["KinesisDataStreamDestinations"]
        ]

    def waiting(self) -> int:
        """How many changes are in the outbox."""

        def count(reader: Any) -> int:
            table = catalog.find_full(reader, "music")
            if table is None or table.outbox is None:
                return 0
            return sum(1 for _ in reader.scan_space(table.outbox.space))

        return self.database.engine.read(count)

    def is_sound(self) -> bool:
        return list(check.check(self.database.engine)) == []
