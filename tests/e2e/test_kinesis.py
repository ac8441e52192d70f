"""Changes that a server sends to data streams of a real server that speaks Kinesis' protocol, while the first
server is killed, and while the second does not answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import boto3
import orjson
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from serving import free_port, serving
from worlds import expiry_of, table_of

KILLS = 3
SECONDS_MAX = 30.0
ITEMS = 5


@pytest.fixture
def kinesis() -> Iterator[Any]:
    """A boto3 client of a server with a data stream of three shards, `changes`."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client: Any = boto3.client("kinesis", **_connection(f"http://{host}:{port}"))
    client.create_stream(StreamName="changes", ShardCount=3)
    yield client
    client.delete_stream(StreamName="changes")
    client.close()
    server.stop()


def _connection(endpoint: str) -> dict[str, Any]:
    return {
        "endpoint_url": endpoint,
        "region_name": "us-east-1",
        "aws_access_key_id": "any",
        "aws_secret_access_key": "any",
        "config": Config(retries={"total_max_attempts": 1}),
    }


def arn_of(kinesis: Any) -> str:
    arn: str = kinesis.describe_stream_summary(StreamName="changes")["StreamDescriptionSummary"]["StreamARN"]
    return arn


def records_of(kinesis: Any) -> list[dict[str, Any]]:
    """The changes in the stream, those of each shard in its order."""
    found = []
    for shard in kinesis.list_shards(StreamName="changes")["Shards"]:
        iterator = kinesis.get_shard_iterator(
            StreamName="changes", ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        page = [None]
        while page:
            answer = kinesis.get_records(ShardIterator=iterator, Limit=1_000)
            page, iterator = answer["Records"], answer["NextShardIterator"]
            found += [orjson.loads(record["Data"]) for record in page]
    return found


def eventually(check: Callable[[], bool], what: str) -> None:
    """Wait until `check` is true."""
    give_up = time.monotonic() + SECONDS_MAX
    waiting = threading.Event()
    while not check():
        assert time.monotonic() < give_up, what
        waiting.wait(0.05)


def create(dynamodb: Any) -> None:
    dynamodb.create_table(**table_of("music", "pk"))


def status(dynamodb: Any) -> list[tuple[str, str]]:
    shown = dynamodb.describe_kinesis_streaming_destination(TableName="music")
    return [
        (destination["DestinationStatus"], destination.get("DestinationStatusDescription", ""))
        for destination in shown["KinesisDataStreamDestinations"]
    ]


class Load:
    """A thread that writes growing numbers to items; `written` are those that were acknowledged."""

    def __init__(self, dynamodb: Any) -> None:
        self.written: dict[str, list[int]] = {}
        self._dynamodb = dynamodb
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        number = 0
        while not self._stopped.wait(0.002):
            number += 1
            key = f"k{number % ITEMS}"
            try:
                self._dynamodb.put_item(TableName="music", Item={"pk": {"S": key}, "v": {"N": str(number)}})
            except (BotoCoreError, ClientError):
                continue  # the server was killed; nobody knows whether it was written
            self.written.setdefault(key, []).append(number)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def go_on(self, writes: int) -> None:
        goal = self.count() + writes
        eventually(lambda: self.count() >= goal, "no writes")

    def count(self) -> int:
        return sum(map(len, list(self.written.values())))


def test_each_acknowledged_write_arrives_in_order_although_the_server_is_killed(
    kinesis: Any, tmp_path: Path
) -> None:
    port = str(free_port())
    data = ("--data-dir", str(tmp_path / "data"), "--port", port, "--sweep-seconds", "0.05")
    options = (*data, "--kinesis-endpoint", kinesis.meta.endpoint_url)
    dynamodb: Any = boto3.client("dynamodb", **_connection(f"http://127.0.0.1:{port}"))
    with serving(*options) as server:
        create(dynamodb)
        dynamodb.enable_kinesis_streaming_destination(TableName="music", StreamArn=arn_of(kinesis))
        eventually(lambda: status(dynamodb) == [("ACTIVE", "")], "not ACTIVE")
        load = Load(dynamodb)
        with load:
            load.go_on(50)
            server.kill()
            for _ in range(KILLS - 1):
                with serving(*options) as server:
                    load.go_on(50)
                    server.kill()
            with serving(*options):
                load.go_on(50)
        kinesis_has: dict[str, list[int]] = {}

        def is_complete() -> bool:
            kinesis_has.clear()
            for record in records_of(kinesis):
                body = record["dynamodb"]
                numbers = kinesis_has.setdefault(body["Keys"]["pk"]["S"], [])
                numbers.append(int(body["NewImage"]["v"]["N"]))
            return all(set(written) <= set(kinesis_has.get(key, [])) for key, written in load.written.items())

        with serving(*options):
            eventually(is_complete, "acknowledged writes are missing")
    dynamodb.close()
    for key, numbers in kinesis_has.items():
        firsts = list(dict.fromkeys(numbers))
        assert firsts == sorted(firsts), key


def test_a_stream_that_does_not_exist_fails_and_may_be_enabled_later(kinesis: Any) -> None:
    with serving("--memory", "--kinesis-endpoint", kinesis.meta.endpoint_url) as server:
        dynamodb: Any = boto3.client("dynamodb", **_connection(server.endpoint))
        create(dynamodb)
        arn = arn_of(kinesis).replace("/changes", "/others")
        dynamodb.enable_kinesis_streaming_destination(TableName="music", StreamArn=arn)
        failed = ("ENABLE_FAILED", "User does not have a permission to use kinesis stream")
        eventually(lambda: status(dynamodb) == [failed], "not ENABLE_FAILED")
        dynamodb.enable_kinesis_streaming_destination(TableName="music", StreamArn=arn_of(kinesis))
        eventually(lambda: status(dynamodb) == [("ACTIVE", ""), failed], "not ACTIVE")
        dynamodb.put_item(TableName="music", Item={"pk": {"S": "a"}})
        eventually(lambda: len(records_of(kinesis)) == 1, "nothing arrives")
        dynamodb.disable_kinesis_streaming_destination(TableName="music", StreamArn=arn_of(kinesis))
        eventually(lambda: status(dynamodb) == [("DISABLED", ""), failed], "not DISABLED")
        dynamodb.close()


def test_a_silent_endpoint_delays_neither_requests_nor_expiry_nor_the_end_of_the_server(
    kinesis: Any, tmp_path: Path
) -> None:
    """`serving` fails if the server does not end soon after SIGTERM."""
    data = ("--data-dir", str(tmp_path / "data"))
    with serving(*data, "--kinesis-endpoint", kinesis.meta.endpoint_url) as server:
        dynamodb: Any = boto3.client("dynamodb", **_connection(server.endpoint))
        create(dynamodb)
        dynamodb.update_time_to_live(**expiry_of("music"))
        dynamodb.enable_kinesis_streaming_destination(TableName="music", StreamArn=arn_of(kinesis))
        eventually(lambda: status(dynamodb) == [("ACTIVE", "")], "not ACTIVE")
        dynamodb.close()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with serving(*data, "--sweep-seconds", "0.05", "--kinesis-endpoint", endpoint) as server:
            dynamodb = boto3.client("dynamodb", **_connection(server.endpoint))
            dynamodb.put_item(TableName="music", Item={"pk": {"S": "a"}, "ttl": {"N": "1700000000"}})
            silent.settimeout(SECONDS_MAX)
            connection, _ = silent.accept()
            for number in range(20):
                dynamodb.put_item(TableName="music", Item={"pk": {"S": f"b{number}"}})
            now = str(int(time.time()) - 5)
            dynamodb.put_item(TableName="music", Item={"pk": {"S": "old"}, "ttl": {"N": now}})
            eventually(
                lambda: "Item" not in dynamodb.get_item(TableName="music", Key={"pk": {"S": "old"}}),
                "it does not expire",
            )
            dynamodb.close()
        connection.close()
    with serving(*data, "--kinesis-endpoint", kinesis.meta.endpoint_url) as server:
        eventually(lambda: len(records_of(kinesis)) >= 23, "changes are missing")


def test_health_and_metrics_tell_of_deliveries(kinesis: Any) -> None:
    with serving("--memory", "--kinesis-endpoint", kinesis.meta.endpoint_url) as server:
        dynamodb: Any = boto3.client("dynamodb", **_connection(server.endpoint))
        create(dynamodb)
        dynamodb.enable_kinesis_streaming_destination(TableName="music", StreamArn=arn_of(kinesis))
        dynamodb.put_item(TableName="music", Item={"pk": {"S": "a"}})
        eventually(lambda: len(records_of(kinesis)) == 1, "nothing arrives")

        def counted() -> bool:
            with urlopen(f"{server.admin}/metrics") as answer:
                text = answer.read().decode()
            return "\nhashrange_kinesis_records_total 1\n" in text

        eventually(counted, "not counted")
        kinesis.delete_stream(StreamName="changes")
        dynamodb.put_item(TableName="music", Item={"pk": {"S": "b"}})

        def failing() -> bool:
            with urlopen(f"{server.admin}/health") as answer:
                health = orjson.loads(answer.read())
            units = [failure["unit"] for failure in health.get("failing", [])]
            return units == ["Kinesis data stream of music"]

        eventually(failing, "health does not tell")
        dynamodb.close()
        kinesis.create_stream(StreamName="changes", ShardCount=1)
