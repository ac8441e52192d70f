"""Answers that a fault holds back: their clients wait, and nobody else does."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any, cast

import pytest
from botocore.awsrequest import AWSPreparedRequest, HeadersDict

from hashrange.client.transport import answer
from hashrange.database import Caller, Database
from hashrange.faults import latency
from hashrange.operations.execution import Asked


def test_a_held_back_answer_holds_nobody_up(database: Database) -> None:
    held: list[tuple[float, Any]] = []
    answers: list[tuple[Any, Exception | None]] = []

    def done(answer: Any, error: Exception | None) -> None:
        answers.append((answer, error))

    def deliver(callback: Any) -> None:
        callback()

    database.turn_seconds = math.inf
    database.deliver_on(deliver, None, lambda seconds, callback: held.append((seconds, callback)))
    with database.faults(latency("ListTables", seconds=60), latency("ListStreams", seconds=5)):
        for submit in (database.submit, database.run_aside):
            submit(Asked("ListTables", {}, Caller(), done, lambda answer: answer))
        assert answers == []
        database.submit(Asked("DescribeLimits", {}, Caller(), done, lambda answer: "limits"))
        assert answers == [("limits", None)]
        assert [seconds for seconds, _ in held] == [60, 60]
        for _, callback in held:
            callback()
        assert answers[1:] == [({"TableNames": []}, None)] * 2
        waits: list[float] = []
        database.execute("ListTables", {}, wait=waits.append)
        assert waits == [60]


def test_a_client_that_awaits_its_answer_is_held_up_without_its_loop() -> None:
    request = AWSPreparedRequest(
        "POST",
        "http://localhost/",
        cast(Any, HeadersDict({
            "User-Agent": "aiobotocore/2.0",
            "X-Amz-Target": "DynamoDB_20120810.ListTables",
            "Content-Type": "application/x-amz-json-1.0",
        })),
        b"{}",
        False,
    )  # fmt: skip
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def ask() -> bytes:
        content = answer(alone, request, Caller()).content
        assert slept == []
        await content
        return await content

    with (
        pytest.MonkeyPatch.context() as patched,
        Database.in_memory() as alone,
        alone.faults(latency(seconds=60), latency(seconds=2)),
    ):
        patched.setattr(asyncio, "sleep", sleep)
        assert asyncio.run(ask()) == b'{"TableNames":[]}'
    assert slept == [62]


def test_a_held_back_answer_comes(client: Any, database: Database) -> None:
    with database.faults(latency("PutItem", seconds=0.001)) as [held]:
        client.put_item(TableName="orders", Item={"pk": {"S": "a"}, "sk": {"N": "1"}})
    assert held.fired == 1
    assert client.scan(TableName="orders")["Count"] == 1
    # Without a server, too, if nobody said how answers are held back.
    came = threading.Event()
    with Database.in_memory() as alone, alone.faults(latency(seconds=0.001)):
        alone.submit(Asked("ListTables", {}, Caller(), lambda *outcome: came.set(), lambda answer: answer))
        assert came.wait(30)
        alone.execute("ListTables", {})
