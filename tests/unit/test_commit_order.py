"""Requests commit in another order than that of their times: what orders records never goes back."""

from __future__ import annotations

import copy
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.database import Caller, Database, Settings
from hashrange.operations import REGISTRY
from hashrange.operations.context import Context
from hashrange.storage import drafts
from hashrange.storage.api import Engine
from hashrange.storage.failures import CommitError
from hashrange.storage.memory import MemoryEngine
from hashrange.tables import streams
from hashrange_engine_tests import faults
from hashrange_engine_tests.reruns import Reruns
from worlds import table_of

NOW = 1_700_000_000.0
SETTINGS = Settings(stream_shards=2)
TABLE = table_of("table", "p:N", stream="NEW_IMAGE")

# How a commit ends: (moment, unknown), or None: well.
FAULTS: list[Any] = [None, None, None, ("before", False), ("after", False), ("before", True), ("after", True)]

requests = st.tuples(
    st.integers(0, 5),  # the key
    st.floats(0, 100),  # the time of the request
    st.sampled_from(["PutItem", "BatchWriteItem", "TransactWriteItems"]),
    st.sampled_from(FAULTS),
    st.booleans(),  # whether it runs as a draft
)


def request_of(operation: str, number: int, value: int) -> dict[str, Any]:
    put = {"Item": {"p": {"N": str(number)}, "v": {"N": str(value)}}}
    if operation == "BatchWriteItem":
        return {"RequestItems": {"table": [{"PutRequest": put}]}}
    named = {"TableName": "table"} | put
    return named if operation == "PutItem" else {"TransactItems": [{"Put": named}]}


def records(engine: Engine) -> dict[str, list[tuple[int, float, int]]]:
    """The numbers, times and values of the records of each shard, as they are read."""

    def body(reader: Any) -> dict[str, list[tuple[int, float, int]]]:
        [stream] = streams.all_streams(reader)
        found: dict[str, list[tuple[int, float, int]]] = {}
        for shard in stream.shards:
            changes = list(streams.read(reader, stream, shard.id, 0, 1_000))
            values = [int(str(change.new).split('"v":{"N":"')[1].split('"')[0]) for _, change in changes]
            found[shard.id] = [(at, change.time, n) for (at, change), n in zip(changes, values, strict=True)]
        return found

    return engine.read(body)


@pytest.mark.parametrize("reruns", [False, True])
@given(st.lists(requests, max_size=25))
def test_records_are_in_commit_order_and_their_times_never_go_back(
    reruns: bool, steps: list[tuple[int, float, str, Any, bool]]
) -> None:
    engine: Engine = Reruns(MemoryEngine(), alone=True) if reruns else MemoryEngine()
    Database(engine, settings=SETTINGS).execute("CreateTable", copy.deepcopy(TABLE))
    committed: list[int] = []
    times: list[float] = []
    for value, (number, seconds, operation, fault, as_draft) in enumerate(steps):
        times.append(NOW + seconds)
        context = Context(Caller(), NOW + seconds, SETTINGS, str)
        body = REGISTRY[operation].prepare(request_of(operation, number, value), context)
        write = partial(drafts.write_aside, engine) if as_draft else engine.write
        ends = nullcontext() if fault is None else faults.failing(engine, fault[0], unknown=fault[1])
        with ends, suppress(CommitError):
            write(body)
        if fault in (None, ("after", True)):
            committed.append(value)
    shards = records(engine)
    in_order = sorted((sequence, value) for shard in shards.values() for sequence, _, value in shard)
    assert [value for _, value in in_order] == committed
    for shard in shards.values():
        assert [time for _, time, _ in shard] == sorted(time for _, time, _ in shard)
        assert all(time >= times[value] for _, time, value in shard)
