"""The lab over HTTP and in process: the wire, boto3's retries, the admin plane, metrics, and its page."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import botocore.endpoint
import pytest
from botocore.exceptions import ClientError

import hashrange
from guides import blocks_of, run
from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock
from hashrange.database import Database
from hashrange.server import running
from hashrange.settings import Settings, parse_lag
from hashrange_lab.behaviour.partitions import Partitions
from unit.test_admin import ask
from watched import Clients
from worlds import table_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lab.md"
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"


def create(client: Any, read: int = 5, write: int = 3) -> None:
    client.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": read, "WriteCapacityUnits": write},
    )


def put(client: Any, number: int = 0) -> Any:
    return client.put_item(TableName="orders", Item={"pk": {"S": str(number)}})


def test_the_code_of_the_page_does_what_it_says() -> None:
    names: dict[str, Any] = {}
    assert sum([run(block, names) for block in blocks_of(PAGE)]) == 7
    names["database"].close()


def test_a_throttled_request_on_the_wire(database: Database, clients: Clients) -> None:
    client = clients()
    create(client)
    database.lab.throttling.set(True)
    for number in range(3):
        put(client, number)
    with pytest.raises(client.exceptions.ProvisionedThroughputExceededException) as raised:
        put(client)
    response = raised.value.response
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert response["ThrottlingReasons"] == [
        {"reason": "TableWriteProvisionedThroughputExceeded", "resource": ARN}
    ]
    puts = [{"PutRequest": {"Item": {"pk": {"S": str(number)}}}} for number in range(5)]
    with pytest.raises(client.exceptions.ProvisionedThroughputExceededException):
        client.batch_write_item(RequestItems={"orders": puts})
    database.clock.advance(1)  # type: ignore[attr-defined]
    answer = client.batch_write_item(RequestItems={"orders": puts})
    assert answer["UnprocessedItems"] == {"orders": puts[3:]}
    with pytest.raises(client.exceptions.TransactionCanceledException) as canceled:
        client.transact_write_items(
            TransactItems=[{"Put": {"TableName": "orders", "Item": {"pk": {"S": "a"}}}}]
        )
    [reason] = canceled.value.response["CancellationReasons"]
    assert reason["Code"] == "ProvisionedThroughputExceeded"


def test_eventual_reads_on_the_wire(database: Database, clients: Clients) -> None:
    client = clients()
    create(client)
    database.lab.eventual.set(2)
    put(client)
    key = {"pk": {"S": "0"}}
    assert "Item" not in client.get_item(TableName="orders", Key=key)
    assert "Item" in client.get_item(TableName="orders", Key=key, ConsistentRead=True)
    database.clock.advance(2)  # type: ignore[attr-defined]
    assert "Item" in client.get_item(TableName="orders", Key=key)


@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
def test_botos_retries_wait_until_there_is_throughput(
    database: Database, clients: Clients, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Each pause of the client lets the same time pass on the database's clock."""
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        database.clock.advance(1)  # type: ignore[attr-defined]

    monkeypatch.setattr(botocore.endpoint, "time", types.SimpleNamespace(sleep=sleep))
    create(clients(), write=2)
    database.lab.throttling.set(True)
    client = clients(attempts=5, mode=mode)
    retries = [put(client, number)["ResponseMetadata"]["RetryAttempts"] for number in range(5)]
    assert retries == [0, 0, 1, 0, 1]
    assert len(waited) == 2


def test_a_program_without_retries_fails(database: Database, clients: Clients) -> None:
    create(clients(), write=1)
    database.lab.throttling.set(True)
    client = clients(attempts=3)
    put(client)
    with pytest.raises(ClientError) as raised:  # no time passes while it waits
        put(client)
    assert raised.value.response["ResponseMetadata"]["RetryAttempts"] == 2


def test_a_block_throttles_what_happens_in_it() -> None:
    with hashrange.local(throttle=True, now="2026-01-01") as database:
        client = boto3.client(
            "dynamodb", region_name="us-east-1", aws_access_key_id="any", aws_secret_access_key="any"
        )
        create(client, write=1)
        put(client)
        database.clock.advance(1)
        put(client)
        with pytest.raises(client.exceptions.ProvisionedThroughputExceededException):
            put(client)


def lines(text: str) -> set[str]:
    return set(text.splitlines())


def test_the_admin_plane_turns_it_on_and_metrics_count(database: Database) -> None:
    listening = bind_admin(0)
    with running(database, admin=listening) as endpoint:
        url = listening.url
        client = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
        create(client, write=1)
        assert ask(url, "/v1/lab")[1]["throttle"] is False
        assert "ThrottleEvents" not in metrics(url)
        status, shown = ask(url, "/v1/lab/throttling", {"throttle": True, "table": "orders"})
        assert (status, shown["tables"]) == (200, {"orders": True})
        put(client)
        with pytest.raises(client.exceptions.ProvisionedThroughputExceededException):
            put(client)
        client.close()
        [resource] = ask(url, "/v1/lab")[1]["resources"]
        assert resource["consumed_write_units"] == 1.0
        counted = resource["throttled_writes"]["ProvisionedThroughputExceeded"]
        assert counted > 0
        labels = '{table="orders",index=""}'
        assert lines(metrics(url)) >= {
            f"hashrange_ConsumedWriteCapacityUnits{labels} 1.0",
            f"hashrange_WriteThrottleEvents{labels} {counted}",
            f"hashrange_WriteProvisionedThroughputThrottleEvents{labels} {counted}",
            f"hashrange_WriteKeyRangeThroughputThrottleEvents{labels} 0",
            f"hashrange_ReadThrottleEvents{labels} 0",
            f'hashrange_ThrottledRequests{{table="orders",operation="PutItem"}} {counted}',
            f"hashrange_partitions{labels} 1",
        }
        assert ask(url, "/v1/lab/throttling", {"throttle": None, "table": "orders"})[1]["tables"] == {}
        shown = ask(url, "/v1/lab/eventual", {"seconds": 2, "seed": "7"})[1]
        assert shown["eventual"] == {"seconds": 2.0, "seed": "7", "monotonic": False}
        assert ask(url, "/v1/lab/eventual", {"seconds": -1})[0] == 400
        assert database.lab.eventual.seconds == 2
        ask(url, "/v1/lab/eventual", {"seconds": 0})
        assert database.observers.active is None


def metrics(url: str) -> str:
    return str(ask(url, "/metrics")[1])


MANY: list[Callable[[], Settings]] = [
    lambda: Settings(throttle=True),
    lambda: Settings(eventual_reads="2"),
]


@pytest.mark.parametrize("settings", MANY)
def test_settings_turn_it_on_from_the_start(settings: Callable[[], Settings]) -> None:
    with Database.in_memory(settings=settings(), clock=VirtualClock(frozen=True)) as database:
        assert database.observers.active is not None
    with Database.in_memory() as database:
        assert database.observers.active is None


def test_the_admin_plane_shows_the_heat_of_partitions(database: Database) -> None:
    listening = bind_admin(0)
    with running(database, admin=listening) as endpoint:
        url = listening.url
        client = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
        client.create_table(**table_of("orders", "pk"))
        assert ask(url, "/v1/lab/partitions?table=orders")[0] == 404
        database.lab.throttling.set(True)
        for _ in range(3):
            put(client)
        client.get_item(TableName="orders", Key={"pk": {"S": "0"}}, ConsistentRead=True)
        client.close()
        status, shown = ask(url, "/v1/lab/partitions?table=orders")
    assert status == 200
    parts = shown["partitions"]
    assert len(parts) == 4
    starts = ["", "4000000000000000", "8000000000000000", "c000000000000000"]
    assert [part["from"] for part in parts] == starts
    used = [part for part in parts if part["consumed_write_units"]]
    assert [(part["consumed_read_units"], part["consumed_write_units"]) for part in used] == [(1.0, 3.0)]
    assert sum(part["throttled"] for part in parts) == 0


def test_a_hot_partition_counts_its_refusals() -> None:
    parts = Partitions(2, 0.0, whole_collections=False)
    parts[0].seen.append((b"\1", b""))
    parts.refused(0, 0.0, 100.0)
    assert [parts[number].throttled for number in range(2)] == [1, 0]


class Shop:
    """Sells what is in stock. `mended`: it reads the stock consistently."""

    def __init__(self, client: Any, *, mended: bool) -> None:
        self._client = client
        self._mended = mended

    def sell(self) -> int:
        """Sell one piece, and return how many are left: an older stock than the last sale's may be read."""
        key = {"pk": {"S": "lamp"}}
        stock = self._client.get_item(TableName="orders", Key=key, ConsistentRead=self._mended)["Item"]
        left = int(stock["left"]["N"]) - 1
        self._client.put_item(TableName="orders", Item={**key, "left": {"N": str(left)}})
        return left


@pytest.mark.parametrize("lag", ["2", "2 seed=7", "0"])
@pytest.mark.parametrize("mended", [False, True], ids=["bug", "mended"])
def test_a_program_that_reads_its_own_writes_fails_until_it_reads_consistently(
    database: Database, clients: Clients, mended: bool, lag: str
) -> None:
    client = clients()
    create(client, read=1_000, write=1_000)
    client.put_item(TableName="orders", Item={"pk": {"S": "lamp"}, "left": {"N": "10"}})
    database.clock.advance(10)  # type: ignore[attr-defined]
    seconds, seed, _ = parse_lag(lag)
    database.lab.eventual.set(seconds, seed=seed)
    shop = Shop(client, mended=mended)
    sold = [shop.sell() for _ in range(3)]
    is_right = sold == [9, 8, 7]
    assert is_right == (mended or lag == "0")
