"""`hashrange pull`: the tables of an account, which is another server here, are made with all they have."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import click
import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.pulling import copying, pull
from hashrange.cli.remote import batches
from hashrange.cli.remote import clients as remote
from hashrange.cli.remote.connecting import connect
from hashrange.database import Database
from hashrange.faults import parse
from hashrange.rings import rings
from hashrange.server import running
from hashrange.settings import Settings
from worlds import expiry_of, index_on, table_of

ORDERS: dict[str, Any] = {
    "TableName": "shop-orders",
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
        {"AttributeName": "customer", "AttributeType": "S"},
        {"AttributeName": "region", "AttributeType": "S"},
    ],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6},
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-customer",
            "KeySchema": [
                {"AttributeName": "customer", "KeyType": "HASH"},
                {"AttributeName": "region", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["total"]},
            "ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 8},
        }
    ],
    "LocalSecondaryIndexes": [index_on("by-region", "pk, region | KEYS_ONLY")],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    "TableClass": "STANDARD_INFREQUENT_ACCESS",
    "DeletionProtectionEnabled": True,
    "Tags": [{"Key": f"tag-{number}", "Value": str(number)} for number in range(30)],
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture
def account() -> Iterator[Database]:
    with Database.in_memory() as database:
        yield database


@pytest.fixture
def here() -> Iterator[Database]:
    with Database.in_memory() as database:
        yield database


@pytest.fixture
def source(account: Database) -> Iterator[Any]:
    """A client of the account; its tables and 120 items are there."""
    with running(account) as url:
        client: Any = boto3.client("dynamodb", endpoint_url=url)
        client.create_table(**ORDERS)
        client.update_time_to_live(**expiry_of("shop-orders", "until"))
        for name in ("shop-users", "logs"):
            client.create_table(**table_of(name, "id"))
        items = [
            {"pk": {"S": f"o{number % 7}"}, "sk": {"N": str(number)}, "b": {"B": b"\x00\xff"}}
            for number in range(120)
        ]
        for start in range(0, len(items), 24):
            puts = [{"PutRequest": {"Item": item}} for item in items[start : start + 24]]
            client.batch_write_item(RequestItems={"shop-orders": puts})
        yield client


@pytest.fixture
def target(here: Database) -> Iterator[Any]:
    with running(here) as url:
        yield boto3.client("dynamodb", endpoint_url=url)


def run(source: Any, target: Any, *arguments: str) -> Result:
    urls = ["--from", source.meta.endpoint_url, "--endpoint-url", target.meta.endpoint_url]
    return CliRunner().invoke(main, ["pull", *arguments, *urls])


def described(client: Any, table: str) -> dict[str, Any]:
    """What a pull brings over, as the service describes it."""
    shown = client.describe_table(TableName=table)["Table"]
    kept = ("AttributeDefinitions", "KeySchema", "StreamSpecification", "TableClassSummary")
    of_index = ("IndexName", "KeySchema", "Projection")
    result = {name: shown.get(name) for name in kept}
    for name in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        result[name] = [{one: index[one] for one in of_index} for index in shown.get(name, [])]
    units = ("ReadCapacityUnits", "WriteCapacityUnits")
    result["units"] = [
        [one["ProvisionedThroughput"][unit] for unit in units]
        for one in (shown, *shown.get("GlobalSecondaryIndexes", []))
    ]
    pages: list[Any] = []
    start: dict[str, str] = {}
    while not pages or start:
        answer = client.list_tags_of_resource(ResourceArn=shown["TableArn"], **start)
        pages += answer["Tags"]
        start = {"NextToken": answer["NextToken"]} if "NextToken" in answer else {}
        if not answer["Tags"]:
            break
    result["tags"] = sorted(pages, key=str)
    living = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    result["ttl"] = living.get("AttributeName")
    return result


def test_a_table_comes_with_all_it_has_and_without_items(source: Any, target: Any) -> None:
    result = run(source, target, "shop-orders")
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "shop-orders: key pk, sk; global index by-customer; local index by-region; stream NEW_IMAGE; "
        "time to live until; 30 tags\n"
    )
    wanted = described(source, "shop-orders")
    assert wanted["ttl"] == "until"
    assert len(wanted["tags"]) == 30
    assert described(target, "shop-orders") == wanted
    assert target.scan(TableName="shop-orders")["Count"] == 0
    # Tables here are thrown away, so they are not protected.
    target.delete_table(TableName="shop-orders")


def test_a_table_as_aws_describes_it(target: Any) -> None:
    """What AWS adds to a description, and no client may send, does not hinder."""
    limits = {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 100}
    added: dict[str, Any] = {
        "ProvisionedThroughput": {
            "NumberOfDecreasesToday": 0,
            "ReadCapacityUnits": 0,
            "WriteCapacityUnits": 0,
        },
        "OnDemandThroughput": limits,
        "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000, "Status": "ACTIVE"},
        "ItemCount": 3,
    }
    index = {
        "IndexName": "by-group",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
        "IndexStatus": "ACTIVE",
        "IndexSizeBytes": 1,
        "IndexArn": "arn:aws:dynamodb:us-east-1:123456789012:table/orders/index/by-group",
        **added,
    }
    table = table_of("orders", "id")
    del table["BillingMode"]
    table |= {
        "TableStatus": "ACTIVE",
        "TableArn": "arn:aws:dynamodb:us-east-1:123456789012:table/orders",
        "TableId": "1",
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
        "GlobalSecondaryIndexes": [index],
        "SSEDescription": {"Status": "ENABLED", "SSEType": "KMS"},
        "Replicas": [{"RegionName": "eu-west-1"}],
        "GlobalTableVersion": "2019.11.21",
        "GlobalTableSettingsReplicationMode": "ENABLED_WITH_OVERRIDES",
        "DeletionProtectionEnabled": True,
        **added,
    }
    tags = [{"Key": "aws:cloudformation:stack-name", "Value": "x"}, {"Key": "team", "Value": "shop"}]

    class Account:
        exceptions = target.exceptions
        describe_table = staticmethod(lambda **_: {"Table": table})
        describe_time_to_live = staticmethod(
            lambda **_: {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
        )
        list_tags_of_resource = staticmethod(lambda **_: {"Tags": tags})

    plan = copying.plan(Account, "orders", str)
    assert plan.about() == "key id; global index by-group; 1 tag"
    assert plan.notes == ["left out: deletion protection, encryption by a key of KMS, replicas in eu-west-1"]
    assert copying.make(target, plan)
    made = target.describe_table(TableName="orders")["Table"]
    for one_made in (made, made["GlobalSecondaryIndexes"][0]):
        assert one_made["OnDemandThroughput"]["MaxWriteRequestUnits"] == 100
        assert one_made["OnDemandThroughput"].get("MaxReadRequestUnits", -1) == -1
    assert target.list_tags_of_resource(ResourceArn=made["TableArn"])["Tags"] == tags[1:]
    assert not made["DeletionProtectionEnabled"]


def test_items_come_as_they_are_and_no_more_than_asked_for(source: Any, target: Any) -> None:
    result = run(source, target, "shop-orders", "--limit", "40")
    assert result.stdout.endswith("; 40 items copied\n")
    copied = target.scan(TableName="shop-orders")["Items"]
    assert copied == source.scan(TableName="shop-orders", Limit=40)["Items"]
    again = run(source, target, "shop-orders", "--limit", "1000")
    assert again.stdout == (
        "shop-orders: is there already; its definition stays as it is; 120 items copied\n"
    )
    assert target.scan(TableName="shop-orders")["Count"] == 120


def test_named_values_are_masked(source: Any, target: Any, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[shop-orders]\npk = "hash"\nb = "redact"\nnothing = "redact"', encoding="utf-8")
    result = run(source, target, "shop-orders", "--limit", "40", "--mask", str(rules))
    assert result.stdout.endswith("; 40 items copied; masked: pk, b, nothing\n")
    assert "no value is at nothing" in result.stderr
    before = source.scan(TableName="shop-orders", Limit=40)["Items"]
    after = target.scan(TableName="shop-orders")["Items"]
    assert {item["sk"]["N"] for item in before} == {item["sk"]["N"] for item in after}
    assert {item["b"]["B"] for item in after} == {b"redacted"}
    assert not {item["pk"]["S"] for item in before} & {item["pk"]["S"] for item in after}
    rules.write_text('[shop-orders]\nsk = "redact"', encoding="utf-8")
    wrong = run(source, target, "shop-orders", "--limit", "40", "--mask", str(rules))
    assert wrong.exit_code == 1
    assert "only `hash` keeps items apart" in wrong.stderr
    rules.write_text("[shop-orders", encoding="utf-8")
    assert "is not TOML" in run(source, target, "shop-orders", "--mask", str(rules)).stderr


def test_items_of_many_pages(source: Any, target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hashrange.cli.pulling.copying.PAGE_ITEMS_MAX", 30)
    run(source, target, "shop-orders", "--limit", "100")
    assert target.scan(TableName="shop-orders")["Count"] == 100


def test_writes_that_stay_unprocessed_are_repeated(source: Any, target: Any, here: Database) -> None:
    here.faults.add(parse("BatchWriteItem nth=1 unprocessed"))
    assert run(source, target, "shop-orders", "--limit", "50").exit_code == 0
    assert target.scan(TableName="shop-orders")["Count"] == 50


def test_pauses_before_unprocessed_items_grow_until_some_are_processed() -> None:
    left, pauses = iter([2, 2, *[1] * 30]), list[float]()

    def batch_write_item(RequestItems: Any) -> Any:  # noqa: N803
        return {"UnprocessedItems": {"orders": RequestItems["orders"][: next(left)]}}

    client = SimpleNamespace(batch_write_item=batch_write_item, meta=SimpleNamespace(endpoint_url="http://x"))
    with pytest.raises(click.ClickException, match="http://x left 1 items of table orders unprocessed 20"):
        batches.put(client, "orders", [{}, {}], pause=pauses.append, drawn=lambda: 0.5)
    assert pauses[:7] == [0.05, 0.1, 0.025, 0.05, 0.1, 0.2, 0.4]
    assert set(pauses[10:]) == {2.5}
    assert len(pauses) == 3 + batches.ATTEMPTS_MAX - 1


@pytest.mark.parametrize("command", ["pull", "import"])
def test_unprocessed_items_are_not_sent_again_at_once(
    source: Any, target: Any, here: Database, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(batches, "put", functools.partial(batches.put, pause=pauses.append))
    run(source, target, "shop-orders")
    here.faults.add(parse("BatchWriteItem nth=1 unprocessed"))
    if command == "pull":
        result = run(source, target, "shop-orders", "--limit", "8")
    else:
        file = tmp_path / "items.json"
        line = '{{"Item": {{"pk": {{"S": "a"}}, "sk": {{"N": "{}"}}}}}}\n'
        file.write_text("".join(line.format(number) for number in range(8)))
        url = target.meta.endpoint_url
        result = CliRunner().invoke(main, ["import", "shop-orders", str(file), "--endpoint-url", url])
    assert result.exit_code == 0, result.output
    assert len(pauses) == 1
    assert target.scan(TableName="shop-orders")["Count"] == 8


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["shop-*"], ["shop-orders", "shop-users"]),
        (["logs", "shop-u*"], ["logs", "shop-users"]),
        (["l?gs", "logs"], ["logs"]),
        (["--all"], ["logs", "shop-orders", "shop-users"]),
    ],
)
def test_tables_by_pattern(source: Any, target: Any, arguments: list[str], wanted: list[str]) -> None:
    dry = run(source, target, *arguments, "--dry-run")
    assert sorted(line.split(":")[0] for line in dry.stdout.splitlines()) == wanted
    assert "would be created" in dry.stdout
    assert target.list_tables()["TableNames"] == []
    assert run(source, target, *arguments).exit_code == 0
    assert target.list_tables()["TableNames"] == wanted


def test_a_table_by_its_arn_comes_from_the_region_of_the_arn() -> None:
    separate = Settings(separate_regions=True)
    with (
        Database.in_memory(settings=separate) as account,
        Database.in_memory(settings=separate) as here,
        running(account) as source_url,
        running(here) as target_url,
    ):
        there = boto3.client("dynamodb", endpoint_url=source_url, region_name="eu-west-3")
        arn = there.create_table(**table_of("orders", "id"))["TableDescription"]["TableArn"]
        target = boto3.client("dynamodb", endpoint_url=target_url, region_name="eu-west-3")
        result = run(there, target, arn)
        assert result.exit_code == 0, result.output
        assert target.list_tables()["TableNames"] == ["orders"]
        elsewhere = boto3.client("dynamodb", endpoint_url=target_url, region_name="us-east-1")
        assert elsewhere.list_tables()["TableNames"] == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "Name the tables, or give --all."),
        (["orders", "--all"], "Name the tables, or give --all."),
        (["arn:aws:s3:::bucket"], "is not the ARN of a table"),
        (["nothing-*"], "None of the 3 tables matches 'nothing-*'."),
        (["nothing"], "nothing: ResourceNotFoundException"),
    ],
)
def test_what_is_not_there_is_named(source: Any, target: Any, arguments: list[str], text: str) -> None:
    result = run(source, target, *arguments)
    assert result.exit_code
    assert text in result.stderr


def test_other_tables_come_although_one_fails(source: Any, target: Any) -> None:
    other = table_of("shop-orders", "id")
    target.create_table(**other)
    result = run(source, target, "shop-*")
    assert result.exit_code == 1
    assert "there is a table of this name with the key id (S), not pk (S), sk (N)" in result.stderr
    assert target.list_tables()["TableNames"] == ["shop-orders", "shop-users"]


def refusing(monkeypatch: pytest.MonkeyPatch, code: str, *operations: str) -> None:
    """Have all clients refuse these operations, as AWS refuses callers without rights."""
    real = remote.connect

    def connect(*arguments: Any, **named: Any) -> Any:
        clients = real(*arguments, **named)

        def refuse(*_: Any, **__: Any) -> None:
            raise ClientError({"Error": {"Code": code, "Message": "not you"}}, "an operation")

        for name in operations:
            setattr(clients.dynamodb, name, refuse)
        return clients

    monkeypatch.setattr(remote, "connect", connect)


def test_tags_that_may_not_be_read_are_left_out(
    source: Any, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(monkeypatch, "AccessDeniedException", "list_tags_of_resource", "describe_time_to_live")
    result = run(source, target, "shop-orders")
    assert result.exit_code == 0, result.output
    assert "its tags were not read: AccessDeniedException: not you" in result.stderr
    assert "its time to live was not read" in result.stderr
    assert target.list_tables()["TableNames"] == ["shop-orders"]


@pytest.mark.parametrize("url", ["aws", "https://dynamodb.us-east-1.amazonaws.com", "http://same:1/"])
def test_nothing_is_made_in_aws_nor_copied_to_itself(url: str) -> None:
    given = ["pull", "--all", "--from", "http://same:1", "--endpoint-url", url]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 2
    assert "creates no tables in AWS" in result.stderr or "both name" in result.stderr


def test_aws_is_asked_whatever_endpoint_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
    client = connect("aws", "eu-west-1").dynamodb
    assert client.meta.endpoint_url == "https://dynamodb.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(("key", "sent"), [("AKIAREAL", "hashrange"), ("123456789012", "123456789012")])
def test_the_keys_of_the_account_are_not_sent_here(
    monkeypatch: pytest.MonkeyPatch, key: str, sent: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    made = pull._target("http://127.0.0.1:1", "us-east-1", None)
    assert made.dynamodb._request_signer._credentials.access_key == sent


def test_a_server_with_users_gets_the_keys_of_a_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "credentials"
    config.write_text("[here]\naws_access_key_id = AKIDALICE\naws_secret_access_key = x\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(config))
    made = pull._target("http://127.0.0.1:1", "us-east-1", "here")
    assert made.dynamodb._request_signer._credentials.access_key == "AKIDALICE"


def test_invented_credentials_are_explained(
    source: Any, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(monkeypatch, "UnrecognizedClientException", "get_paginator")
    result = run(source, target, "--all")
    assert result.exit_code == 1
    assert "give --profile" in result.stderr


def test_following_is_refused_where_it_would_do_something_else(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[orders]\nemail = "redact"\n')

    def refused(*options: str) -> str:
        result = CliRunner().invoke(main, ["pull", "orders", "--follow", *options])
        assert result.exit_code == 2
        return " ".join(result.output.split())

    assert "leave one of them out" in refused("--mask", str(rules))
    assert "leave --limit out" in refused("--limit", "5")
    arns = [f"arn:aws:dynamodb:{region}:123456789012:table/a" for region in ("eu-west-1", "us-east-1")]
    assert "the tables of one region" in refused(*arns)


def test_following_without_its_ring_says_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(rings().installed, "sync", raising=False)
    result = CliRunner().invoke(main, ["pull", "orders", "--follow"])
    assert result.exit_code == 1
    assert "--follow: The ring sync is not installed; install the package hashrange-sync" in result.output
