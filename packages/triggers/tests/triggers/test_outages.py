"""A service that now and then does not answer: nothing is lost, and the items stay in order."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

import hashrange_triggers as triggers
from hashrange.database import Settings
from hashrange.storage.api import Reader
from hashrange.storage.failures import CommitError, CommitUnknown, Moment
from hashrange.tables import streams
from hashrange.tables.streams import Stream, StreamRecord
from hashrange_triggers.checkpoints import create_table
from triggers.world import TABLE, World

FAILURES = (
    EndpointConnectionError(endpoint_url="http://nowhere"),
    ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "Any"),
    ClientError({"Error": {"Code": "InternalServerError", "Message": "oh"}}, "Any"),
)


class Flaky:
    """A client of which a share of the calls fail, before or after they took effect."""

    def __init__(self, client: Any, chance: random.Random) -> None:
        self._client, self._chance = client, chance
        self.share = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not callable(found) or name in ("get_paginator", "get_waiter"):
            return found

        def call(**request: Any) -> Any:
            if self._chance.random() < self.share / 2:
                raise self._chance.choice(FAILURES)
            answer = found(**request)
            if self._chance.random() < self.share / 2:
                raise self._chance.choice(FAILURES)
            return answer

        return call


def seen_of(world: World) -> dict[str, list[int]]:
    """The numbers that the function saw, by their items, in order and each once."""
    seen: dict[str, list[int]] = {}
    for record in world.seen:
        change = record["dynamodb"]
        numbers = seen.setdefault(change["Keys"]["id"]["S"], [])
        if int(change["NewImage"]["n"]["N"]) not in numbers:
            numbers.append(int(change["NewImage"]["n"]["N"]))
    return seen


def records_of(reader: Reader, stream: Stream, shard_id: str) -> list[tuple[int, StreamRecord]]:
    """The records of a shard, as they are stored."""
    return list(streams.read(reader, stream, shard_id, 0, 1_000))


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients repeat requests at once."""
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None, time=time.time))


class TestOutages:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(stream_shards=2, stream_shard_seconds=600.0)

    @pytest.mark.parametrize("seed", range(5))
    def test_every_change_is_delivered_in_order(self, world: World, seed: int) -> None:
        chance = random.Random(seed)
        flaky = [Flaky(client, chance) for client in (world.clients.dynamodb, world.clients.streams)]
        world_clients = world.clients
        world.clients = triggers.Clients(*flaky)
        batching = triggers.Batching(batch_size=3, parallelization_factor=1 + seed % 2, poll_interval=1.0)
        worker = world.worker(batching=batching)
        for client in flaky:
            client.share = 0.2
        for number in range(60):
            item = {"id": {"S": chance.choice("abcde")}, "n": {"N": str(number)}}
            world_clients.dynamodb.put_item(TableName=TABLE, Item=item)
            world.clock.advance(20)
            if number % 10 == 0:
                world.sweep()
                world.work(worker)
        for client in flaky:
            client.share = 0.0
        world.pass_time(worker, 120)

        seen = seen_of(world)
        assert all(numbers == sorted(numbers) for numbers in seen.values())
        assert sorted(number for numbers in seen.values() for number in numbers) == list(range(60))
        # All is noted: another worker of the same trigger finds nothing left.
        world.seen.clear()
        world.work(world.worker())
        assert world.seen == []

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.usefixtures("no_pauses")
    def test_commits_of_which_nobody_knows_the_outcome_lose_no_change(
        self, world: World, seed: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A share of all commits fails, or may have: those of the items, of the checkpoints, of the sweep.
        Each change that stands is delivered, in order, and none that does not stand."""
        chance = random.Random(seed)
        engine = world.database.engine
        ends: list[tuple[Moment, type[Exception]]] = [
            ("before", CommitUnknown),
            ("after", CommitUnknown),
            ("before", OSError),
            ("after", OSError),
        ]
        ended = 0
        current: tuple[Moment, type[Exception]] | None = None

        def fault(moment: Moment) -> None:
            nonlocal current, ended
            if moment == "before":
                current = chance.choice(ends) if chance.random() < 0.3 else None
            if current is not None and moment == current[0]:
                ended += 1
                raise current[1]("the test's fault")

        batching = triggers.Batching(batch_size=3, parallelization_factor=1 + seed % 2, poll_interval=1.0)
        worker = world.worker(batching=batching)
        engine.commit_fault = fault
        for number in range(60):
            item = {"id": {"S": chance.choice("abcde")}, "n": {"N": str(number)}}
            with suppress(ClientError):  # the client repeats it, and gives up after a while
                world.clients.dynamodb.put_item(TableName=TABLE, Item=item)
            world.clock.advance(20)
            if number % 10 == 0:
                with suppress(CommitError):
                    world.sweep()
                world.work(worker)
        engine.commit_fault = None
        world.pass_time(worker, 120)

        assert ended > 10
        every = engine.read(lambda reader: list(streams.all_streams(reader)))
        stands: dict[str, list[int]] = {}
        [stream] = [stream for stream in every if stream.table == TABLE]
        for shard in stream.shards:
            found = engine.read(partial(records_of, stream=stream, shard_id=shard.id))
            for _, change in found:
                new = orjson.loads(change.new or b"{}")
                stands.setdefault(new["id"]["S"], []).append(int(new["n"]["N"]))
        assert seen_of(world) == stands
        # A checkpoint that stands although its commit was not confirmed is the worker's own.
        assert "another worker" not in caplog.text
        world.seen.clear()
        world.work(world.worker())
        assert world.seen == []


def test_an_error_that_will_not_pass_ends_the_worker(world: World) -> None:
    worker = world.worker()
    world.work(worker)
    world.clients.dynamodb.delete_table(TableName=TABLE)
    world.clock.advance(10)
    with pytest.raises(triggers.TriggerError, match="There is no table orders"):
        worker.cycle()


def failing(event: triggers.Event) -> None:
    raise RuntimeError("no")


@pytest.mark.parametrize("factor", [1, 3])
@pytest.mark.parametrize("where", ["table", "file"])
def test_a_destination_that_fails_keeps_the_batch_and_the_worker(
    world: World, tmp_path: Path, where: str, factor: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Until somebody mends it, even if the failure does not look as if it would pass."""
    file = tmp_path / "folder" / "given-up.jsonl"
    worker = world.worker(
        triggers.functions.adapt(failing),
        policy=triggers.Policy(retries=0),
        on_failure="table:given-up" if where == "table" else str(file),
        batching=triggers.Batching(poll_interval=1.0, parallelization_factor=factor),
    )
    world.put("1", "2", "3")
    if where == "table":
        world.clients.dynamodb.delete_table(TableName="given-up")
    world.pass_time(worker, 120.0)
    assert worker.totals.discarded == 0
    assert "discarded records cannot be stored" in caplog.messages
    # Nothing was given up, so another worker would get it.
    world.work(world.worker())
    assert sorted(world.keys) == ["1", "2", "3"]
    if where == "table":
        create_table(world.clients.dynamodb, "given-up", {"id": "HASH"})
    else:
        file.parent.mkdir()
    world.pass_time(worker, 120.0)
    assert worker.totals.discarded == 3


def test_failures_of_any_size_are_kept_in_a_table(world: World) -> None:
    """100 records of 5 KB are more than an item may have, and so is one record with two large images."""
    worker = world.worker(
        triggers.functions.adapt(failing), policy=triggers.Policy(retries=0), on_failure="table:given-up"
    )
    sizes = {"small": 10, **{f"{number}": 5_000 for number in range(100)}, "large": 130_000}
    for key, size in sizes.items():
        for text in ("€", '"'):  # of three bytes, and of two in JSON
            world.put(key, text={"S": text * size})
    world.work(worker)
    world.pass_time(worker, 5.0)
    assert worker.totals.discarded == 2 * len(sizes)
    rows = {row["id"]["S"]: row for row in scanned(world, "given-up")}
    found = []
    for name, row in rows.items():
        if "condition" in row:
            more = range(2, int(row.get("parts", {"N": "1"})["N"]) + 1)
            texts = [row["failure"]["S"], *(rows[f"{name}/{number}"]["failure"]["S"] for number in more)]
            found.append(orjson.loads("".join(texts)))
    assert sum(failure["DDBStreamBatchInfo"]["batchSize"] for failure in found) == 2 * len(sizes)
    kept = [record["dynamodb"] for failure in found for record in failure["Records"]]
    wanted = sorted((key, text * size) for key, size in sizes.items() for text in ("€", '"'))
    assert sorted((one["Keys"]["id"]["S"], one["NewImage"]["text"]["S"]) for one in kept) == wanted


def scanned(world: World, table: str) -> list[dict[str, Any]]:
    pages = world.clients.dynamodb.get_paginator("scan").paginate(TableName=table)
    return [row for page in pages for row in page["Items"]]


def test_a_function_that_ends_its_program_has_failed(world: World) -> None:
    def ends(event: triggers.Event) -> None:
        raise SystemExit(1)

    worker = world.worker(triggers.functions.adapt(ends), policy=triggers.Policy(retries=1))
    world.put("1")
    world.pass_time(worker, 5.0)
    assert (worker.totals.calls, worker.totals.errors, worker.totals.discarded) == (2, 2, 1)
