"""`hashrange serve --postgres`: two servers over one database, and what they say when it cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Thread
from typing import TYPE_CHECKING, Any

import boto3
import orjson
import pytest
from click.testing import CliRunner

import postgres
from endpoints import connection
from hashrange.cli import main
from serving import Server, serving
from worlds import table_of

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

ADDS = 100


def options(url: str, schema: str) -> list[str]:
    return ["--postgres", url, "--postgres-schema", schema]


@pytest.fixture
def schema() -> str:
    return postgres.new_schema()


@pytest.fixture(params=["directly", "through PgBouncer"])
def servers(request: pytest.FixtureRequest, postgres_url: str, schema: str) -> Iterator[list[Server]]:
    """Two servers that share a store."""
    url = postgres_url if request.param == "directly" else request.getfixturevalue("pooler").url
    with ExitStack() as stack:
        yield [stack.enter_context(serving(*options(url, schema))) for _ in range(2)]


@pytest.fixture
def clients(servers: list[Server]) -> Iterator[list[DynamoDBClient]]:
    made: list[DynamoDBClient] = [
        boto3.client("dynamodb", **connection(server.endpoint)) for server in servers
    ]
    yield made
    for client in made:
        client.close()


def create(client: DynamoDBClient, name: str, **given: Any) -> None:
    client.create_table(**table_of(name, "pk", **given))


def test_two_servers_are_one_database(clients: list[DynamoDBClient]) -> None:
    """What one server did, the other one knows at once: tables, items, counters, streams."""
    one, other = clients
    create(one, "counters", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
    assert other.list_tables()["TableNames"] == ["counters"]
    counted: list[int] = []

    def add(client: DynamoDBClient) -> None:
        for _ in range(ADDS):
            answer = client.update_item(
                TableName="counters",
                Key={"pk": {"S": "hot"}},
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
                ReturnValues="UPDATED_NEW",
            )
            counted.append(int(answer["Attributes"]["n"]["N"]))

    threads = [Thread(target=add, args=(client,)) for client in clients * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counted) == list(range(1, 4 * ADDS + 1))
    for client in clients:
        item = client.get_item(TableName="counters", Key={"pk": {"S": "hot"}}, ConsistentRead=True)["Item"]
        assert item["n"]["N"] == str(4 * ADDS)
        assert client.describe_table(TableName="counters")["Table"]["ItemCount"] == 1
    other.delete_table(TableName="counters")
    with pytest.raises(one.exceptions.ResourceNotFoundException):
        one.get_item(TableName="counters", Key={"pk": {"S": "hot"}})


def test_servers_whose_clocks_are_wrong_agree_on_the_time(postgres_url: str, schema: str) -> None:
    """One machine's clock is ten minutes behind, the other's as much ahead. They go by PostgreSQL's clock."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(*options(postgres_url, schema), ahead_seconds=seconds))
            for seconds in (-600, 600)
        ]
        urls = [f"{server.admin}/v1/clock" for server in servers]
        clocks = [orjson.loads(urllib.request.urlopen(url).read()) for url in urls]
        now = time.time()
        assert all(abs(clock["epoch_seconds"] - now) < 60 for clock in clocks)
        assert all(clock["source"] == "postgresql" for clock in clocks)
        shown = CliRunner().invoke(main, ["clock", "show", "--admin-url", servers[0].admin])
        assert shown.stdout.endswith("Z  PostgreSQL's clock\n")
        refused = CliRunner().invoke(main, ["clock", "freeze", "--admin-url", servers[0].admin])
        assert refused.exit_code == 1
        assert "runs on PostgreSQL's clock" in refused.stderr
        one, other = (boto3.client("dynamodb", **connection(server.endpoint)) for server in servers)
        streams = boto3.client("dynamodbstreams", **connection(servers[0].endpoint))
        for client in (one, other, streams):
            stack.callback(client.close)
        create(one, "events", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
        # Each of them writes: a shard whose newest record lay ahead of a server's clock would be closed.
        for number in range(6):
            item = {"pk": {"S": str(number)}}
            (one, other)[number % 2].put_item(TableName="events", Item=item)
        arn = one.describe_table(TableName="events")["Table"]["LatestStreamArn"]
        [shard] = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        records = streams.get_records(ShardIterator=iterator)["Records"]
        assert [record["dynamodb"]["Keys"]["pk"]["S"] for record in records] == list("012345")
        # A token counts at every server.
        add: Any = {
            "Update": {
                "TableName": "events",
                "Key": {"pk": {"S": "sum"}},
                "UpdateExpression": "ADD n :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            }
        }
        for client in (one, other, one):
            client.transact_write_items(TransactItems=[add], ClientRequestToken="once")
        assert other.get_item(TableName="events", Key={"pk": {"S": "sum"}})["Item"]["n"] == {"N": "1"}


def test_a_server_says_where_its_data_is(postgres_url: str, schema: str) -> None:
    command = [sys.executable, "-m", "hashrange", "serve", "--port", "0", *options(postgres_url, schema)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    admin = ""
    try:
        for line in process.stdout:
            if line.strip().startswith("data"):
                assert f"(schema {schema})" in line
            if line.strip().startswith("admin"):
                admin = line.split()[1]
                break
        health = orjson.loads(urllib.request.urlopen(f"{admin}/health").read())
        assert health["status"] == "ok"
        assert health["engine"] == "postgresql"
        assert health["servers"] == 1
        assert f"(schema {schema})" in health["connected_to"]
        metrics = urllib.request.urlopen(f"{admin}/metrics").read().decode()
        assert 'hashrange_store_info{engine="postgresql",connected_to="postgresql://postgres@' in metrics
        assert "hashrange_store_reconnections_total 0" in metrics
    finally:
        process.terminate()
        process.communicate(timeout=30)


def refused(*arguments: str, **environment: str) -> str:
    """What `hashrange serve` says that does not start."""
    command = [sys.executable, "-m", "hashrange", "serve", "--port", "0", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_wrong_databases_are_refused(postgres_url: str, schema: str) -> None:
    assert "does not answer" in refused(HASHRANGE_POSTGRES="postgresql://user:secret@127.0.0.1:1/none")
    assert "secret" not in refused(HASHRANGE_POSTGRES="postgresql://user:secret@127.0.0.1:1/none")
    assert "cannot be the name" in refused(*options(postgres_url, "No Schema"))
    assert "give one of them" in refused(*options(postgres_url, schema), "--memory")
