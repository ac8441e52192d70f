"""The in-process client gives what the same client gives over HTTP."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ParamValidationError

from hashrange import client as in_process
from hashrange.client import connecting
from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.server import running
from hashrange.storage.failures import StoreClosed
from hashrange.storage.memory import MemoryEngine
from worlds import expiry_of, schema_of, table_of

KEY_SCHEMA = schema_of("pk, sk:N")


@pytest.fixture
def database() -> Iterator[Database]:
    database = Database(MemoryEngine(), clock=ManualClock())
    yield database
    database.close()


def over_http(endpoint_url: str) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint_url,
        region_name="eu-west-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )


def outcome(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
    """The result or the error of a call, without what differs between any two calls."""
    try:
        result = getattr(client, operation)(**parameters)
    except ClientError as error:
        result = {"error": type(error).__name__, **error.response}
    except ParamValidationError as error:
        return str(error)
    metadata = result.pop("ResponseMetadata")
    assert len(metadata["RequestId"]) == 52
    result["status"] = metadata["HTTPStatusCode"]
    result["headers"] = sorted(set(metadata["HTTPHeaders"]) - {"date", "server", "connection"})
    for description in ("Table", "TableDescription"):
        result.get(description, {}).pop("TableId", None)
    return result


SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("list_tables", {}),
    ("create_table", {"TableName": "things", **KEY_SCHEMA}),
    ("create_table", {"TableName": "things", **KEY_SCHEMA}),
    ("describe_table", {"TableName": "things"}),
    ("describe_table", {"TableName": "nothing"}),
    *(
        (
            "put_item",
            {"TableName": "things", "Item": {"pk": {"S": "a"}, "sk": {"N": str(n)}, "b": {"B": b"\x00"}}},
        )
        for n in range(5)
    ),
    (
        "put_item",
        {
            "TableName": "things",
            "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}},
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    ),
    ("put_item", {"TableName": "things", "Item": {"pk": {"S": "a"}}}),
    ("put_item", {"TableName": "things", "Item": "nothing"}),
    ("get_item", {"TableName": "things", "Key": {"pk": {"S": "a"}, "sk": {"N": "3.0"}}}),
    (
        "query",
        {
            "TableName": "things",
            "KeyConditionExpression": "pk = :a",
            "ExpressionAttributeValues": {":a": {"S": "a"}},
            "Limit": 2,
            "ReturnConsumedCapacity": "TOTAL",
        },
    ),
    ("scan", {"TableName": "things"}),
    ("delete_table", {"TableName": "things"}),
    ("scan", {"TableName": "things"}),
]


def test_a_script_has_the_same_outcomes_in_process_and_over_http(database: Database) -> None:
    local = in_process.connect(database, region="eu-west-1")
    served = Database(MemoryEngine(), clock=ManualClock())
    with running(served) as endpoint_url:
        remote = over_http(endpoint_url)
        for operation, parameters in SCRIPT:
            assert outcome(local, operation, parameters) == outcome(remote, operation, parameters)
        remote.close()


def test_region_and_account_are_the_callers(database: Database) -> None:
    client = in_process.connect(database, region="ap-south-1", account_id="123456789012")
    table = client.create_table(TableName="things", **KEY_SCHEMA)["TableDescription"]
    assert table["TableArn"] == "arn:aws:dynamodb:ap-south-1:123456789012:table/things"
    assert client.meta.region_name == "ap-south-1"


def test_a_resource(database: Database) -> None:
    table = in_process.resource(database).create_table(TableName="things", **KEY_SCHEMA)
    table.wait_until_exists()
    with table.batch_writer() as batch:
        for n in range(60):
            batch.put_item(Item={"pk": "a", "sk": n})
    pages = (
        in_process.connect(database)
        .get_paginator("scan")
        .paginate(TableName="things", PaginationConfig={"PageSize": 7})
    )
    assert sum(page["Count"] for page in pages) == 60


def test_a_configuration_of_ones_own(database: Database) -> None:
    client = in_process.connect(
        database, config=Config(user_agent_extra="mine", retries={"total_max_attempts": 1})
    )
    assert client.list_tables()["TableNames"] == []
    assert "mine" in client.meta.config.user_agent


def test_no_credentials_and_no_network_are_needed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("socket.socket.connect", None)
    assert in_process.connect(database).list_tables()["TableNames"] == []


def test_threads_share_a_client(database: Database) -> None:
    client = in_process.connect(database)
    client.create_table(TableName="things", **KEY_SCHEMA)

    def add() -> None:
        for _ in range(25):
            client.update_item(
                TableName="things",
                Key={"pk": {"S": "a"}, "sk": {"N": "1"}},
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    item = client.get_item(TableName="things", Key={"pk": {"S": "a"}, "sk": {"N": "1"}})["Item"]
    assert item["n"] == {"N": "100"}


def test_without_boto3_the_error_names_the_remedy(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting._session.cache_clear()  # as in a program that has not asked before
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "boto3", None)
        with pytest.raises(ImportError, match="pip install boto3"):
            in_process.connect(database)
    assert in_process.connect(database).list_tables()["TableNames"] == []


def test_the_same_client_is_given_again_and_another_for_others(database: Database) -> None:
    client = in_process.connect(database)
    assert in_process.connect(database) is client
    assert in_process.resource(database) is in_process.resource(database)
    others = [
        in_process.connect(database, region="eu-west-1"),
        in_process.connect(database, account_id="123456789012"),
        in_process.connect(database, service="dynamodbstreams"),
        in_process.connect(database, config=Config()),
        in_process.connect(database, config=Config()),
        in_process.resource(database).meta.client,
    ]
    assert len({id(one) for one in [client, *others]}) == 7
    client.close()
    assert client.list_tables()["TableNames"] == []


def test_clients_of_two_databases_do_not_meet(database: Database) -> None:
    with Database.in_memory() as other:
        in_process.connect(database).create_table(TableName="things", **KEY_SCHEMA)
        assert in_process.connect(other).list_tables()["TableNames"] == []
        assert list(in_process.resource(other).tables.all()) == []


def test_exception_classes_match_between_all_clients(database: Database) -> None:
    client = in_process.connect(database)
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        in_process.resource(database).Table("nothing").load()
    with Database.in_memory() as other, pytest.raises(client.exceptions.ResourceNotFoundException):
        in_process.connect(other, config=Config()).describe_table(TableName="nothing")


def test_threads_that_ask_at_once_get_one_client(database: Database) -> None:
    together = threading.Barrier(4)
    given: list[Any] = []

    def ask() -> None:
        together.wait()
        given.append(in_process.connect(database))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == 4
    assert len({id(client) for client in given}) == 1


@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
@pytest.mark.parametrize("on_disk", [False, True])
def test_after_close_a_request_raises_one_error_that_names_the_remedy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: Any, on_disk: bool
) -> None:
    with Database.open(tmp_path / "data") if on_disk else Database.in_memory() as database:
        client = in_process.connect(database, config=Config(retries={"mode": mode}))
        table = in_process.resource(database).create_table(TableName="things", **KEY_SCHEMA)
        streams = in_process.connect(database, service="dynamodbstreams")
    attempts: list[str] = []
    client.meta.events.register(
        "request-created", lambda **details: attempts.append(details["operation_name"])
    )
    item = {"pk": {"S": "a"}, "sk": {"N": "1"}}
    with pytest.raises(StoreClosed, match=r"hashrange\.Database\.open"):
        client.put_item(TableName="things", Item=item)
    with pytest.raises(StoreClosed):
        client.get_item(TableName="things", Key=item)
    assert attempts == ["PutItem", "GetItem"]
    with pytest.raises(StoreClosed):
        table.put_item(Item={"pk": "a", "sk": 1})
    with pytest.raises(StoreClosed):
        streams.list_streams()
    assert caplog.text == ""


def test_a_client_for_streams(database: Database) -> None:
    streams = in_process.connect(database, service="dynamodbstreams")
    assert streams.list_streams()["Streams"] == []
    with pytest.raises(streams.exceptions.ResourceNotFoundException):
        streams.describe_stream(
            StreamArn="arn:aws:dynamodb:us-east-1:000000000000:table/no/stream/2026-01-01T00:00:00.000"
        )


def test_background_work_is_done_before_a_request_once_it_is_due() -> None:
    clock = ManualClock()
    database = Database(MemoryEngine(), clock=clock)
    client = in_process.connect(database)
    client.create_table(**table_of("things", "pk"))
    clock.advance(7200)
    client.update_time_to_live(**expiry_of("things"))
    expires = str(int(clock.now()) + 60)
    client.put_item(TableName="things", Item={"pk": {"S": "a"}, "ttl": {"N": expires}})
    assert client.scan(TableName="things")["Count"] == 1
    clock.advance(61)
    assert client.scan(TableName="things")["Count"] == 0
    # A clock that goes back does not put the next sweep off.
    clock.advance(-3600)
    client.put_item(TableName="things", Item={"pk": {"S": "a"}, "ttl": {"N": str(int(clock.now()) + 1)}})
    clock.advance(2)
    assert client.scan(TableName="things")["Count"] == 0
    database.close()


def test_sessions_share_what_botocore_reads() -> None:
    first, second = in_process.new_session(), in_process.new_session("eu-west-1")
    assert second.region_name == "eu-west-1"
    assert first is not second
    loaders = {id(session._session.get_component("data_loader")) for session in (first, second)}
    assert len(loaders) == 1
