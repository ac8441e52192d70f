"""Consumers of streams that others wrote, unmodified: npm's dynamodb-stream and dynamodb-streams-readable.

`make test` installs their packages in the folder consumers, where there are Node.js 20 or newer and npm.
One speaks through the AWS SDK for JavaScript 3, the other through version 2.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import hashrange_triggers as triggers
from hashrange_triggers.source import shards_of, table_streams
from serving import serving
from worlds import table_of

CONSUMERS = Path(__file__).resolve().parent / "consumers"
MODULES = CONSUMERS / "node_modules"
TABLE = "followed"

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (MODULES / ".installed").exists(),
    reason="the consumers are not installed: `make test` does it with Node.js 20 or newer",
)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serving("--memory") as server:
        yield server.endpoint


@pytest.fixture
def clients(endpoint: str) -> Iterator[triggers.Clients]:
    clients = triggers.connect(endpoint)
    clients.dynamodb.create_table(**table_of(TABLE, "id", stream="NEW_AND_OLD_IMAGES"))
    yield clients
    clients.dynamodb.delete_table(TableName=TABLE)
    clients.dynamodb.close()
    clients.streams.close()


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE": "1",
    }
    command = ["node", str(CONSUMERS / script), *arguments]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
    )


def put(clients: triggers.Clients, key: str, **attributes: Any) -> None:
    clients.dynamodb.put_item(TableName=TABLE, Item={"id": {"S": key}, **attributes})


def stream_arn(clients: triggers.Clients) -> str:
    _, arn = table_streams(clients, TABLE)
    assert arn is not None
    return arn


def test_dynamodb_stream_keeps_a_replica(clients: triggers.Clients, endpoint: str) -> None:
    with start("replica.js", endpoint, stream_arn(clients)) as consumer:
        assert consumer.stdin is not None
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == "ready\n"

        def replica() -> Any:
            assert consumer.stdin is not None
            assert consumer.stdout is not None
            consumer.stdin.write("\n")
            return orjson.loads(consumer.stdout.readline())

        put(clients, "1", n={"N": "1"})
        put(clients, "2", list={"L": [{"S": "x"}, {"BOOL": True}]})
        assert replica() == {"1": {"id": "1", "n": 1}, "2": {"id": "2", "list": ["x", True]}}
        put(clients, "1", n={"N": "2"})
        clients.dynamodb.delete_item(TableName=TABLE, Key={"id": {"S": "2"}})
        assert replica() == {"1": {"id": "1", "n": 2}}
        assert replica() == {"1": {"id": "1", "n": 2}}
        consumer.stdin.close()
        assert consumer.wait(30) == 0


def test_dynamodb_streams_readable_reads_a_shard(clients: triggers.Clients, endpoint: str) -> None:
    for number in range(5):
        put(clients, str(number))
    put(clients, "0", changed={"BOOL": True})
    clients.dynamodb.delete_item(TableName=TABLE, Key={"id": {"S": "4"}})
    arn = stream_arn(clients)
    (shard,) = shards_of(clients, arn)[0]
    with start("readable.js", endpoint, arn, shard.id, "7") as consumer:
        output, _ = consumer.communicate(timeout=60)
    assert consumer.returncode == 0
    lines = output.splitlines()
    seen = [line for line in lines if not line.startswith("checkpoint")]
    assert seen == [*(f"INSERT {number}" for number in range(5)), "MODIFY 0", "REMOVE 4"]
    assert any(line.startswith("checkpoint") for line in lines)
