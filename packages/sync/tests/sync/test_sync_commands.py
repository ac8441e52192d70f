"""`hashrange sync` as its users type it, the settings file, and the rights that it asks for."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest
from click.testing import CliRunner, Result

import hashrange
from guides import blocks_of, run
from hashrange.cli import main
from hashrange_sync import Clients, Pair, Settings, SettingsError, Sync, SyncError, load
from hashrange_sync.commands.serving import serve, text_of
from hashrange_sync.settings import Place, Policy
from serving import free_port
from sync.world import STREAM

SETTINGS = """
[cloud]
region = "us-east-1"
[edge]
region = "eu-west-1"
endpoint = "http://127.0.0.1:8000"
[[pairs]]
table = "orders"
conflicts = "cloud"
"""
KEY: Any = {
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Settings, and the cloud's table with an item, in two regions of a block."""
    path = tmp_path / "sync.toml"
    path.write_text(SETTINGS)
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "123456789012")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    with hashrange.local():
        cloud = side("us-east-1")
        cloud.create_table(TableName="orders", StreamSpecification=STREAM, **KEY)
        cloud.put_item(TableName="orders", Item={"pk": {"S": "o-1"}, "b": {"B": b"\xff"}})
        yield path


def side(region: str) -> Any:
    return boto3.client("dynamodb", region_name=region)


def sync(*words: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["sync", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_a_pair_by_its_commands(file: Path) -> None:
    assert "The edge has no table orders; `--definitions`" in sync("once", file, code=1).output
    assert "not begun" in sync("status", file).output
    result = sync("once", file, "--definitions")
    assert "made the edge's table orders" in result.output
    assert "first copy: about 1 items" in result.output
    assert "1 written to the edge" in result.output
    edge = side("eu-west-1")
    key = {"pk": {"S": "o-1"}}
    assert edge.get_item(TableName="orders", Key=key)["Item"]["b"] == {"B": b"\xff"}
    assert "1 items compared, all equal" in sync("verify", file).output
    shown = orjson.loads(sync("status", file, "--format", "json").output)
    assert shown["pairs"][0]["state"] == "in step"
    side("us-east-1").put_item(TableName="orders", Item={**key, "a": {"S": "cloud"}})
    edge.put_item(TableName="orders", Item={**key, "a": {"S": "edge"}})
    assert 'differs: {"pk":{"S":"o-1"}}' in sync("verify", file, code=1).output
    sync("once", file)
    [line] = sync("conflicts", "list", file, "--format", "json").output.splitlines()
    conflict = orjson.loads(line)
    assert conflict["id"] in sync("conflicts", "list", file).output
    shown = orjson.loads(sync("conflicts", "show", file, conflict["id"]).output)
    assert (shown["cloud"]["a"], shown["edge"]["a"]) == ({"S": "cloud"}, {"S": "edge"})
    assert "There is no conflict nothing" in sync("conflicts", "show", file, "nothing", code=1).output
    sync("conflicts", "restore", file, conflict["id"], "--yes")
    sync("once", file)
    assert side("us-east-1").get_item(TableName="orders", Key=key)["Item"]["a"] == {"S": "edge"}
    assert "orders: 1 items forgotten" in sync("reset", file, "--yes").output
    assert "There is no pair 'nobody'" in sync("reset", file, "--pair", "nobody", "--yes", code=1).output
    sync("once", file)


def test_what_a_first_copy_takes(file: Path) -> None:
    for number in range(1_000):
        item = {"pk": {"S": f"e-{number}"}, "text": {"S": "x" * 1_500}}
        if not number:
            side("eu-west-1").create_table(TableName="orders", StreamSpecification=STREAM, **KEY)
        side("eu-west-1").put_item(TableName="orders", Item=item)
    file.write_text(SETTINGS + "rate = 10\n")
    output = sync("once", file, "--dry-run").output
    assert "about 1,001 items of 1," in output
    assert "2,000 write units of the cloud ($0.0014 on demand), 6 minutes" in output
    assert side("us-east-1").scan(TableName="orders")["Count"] == 1


def test_the_rights_are_enough_and_no_more(file: Path) -> None:
    for direction in ("both", "down", "up"):
        file.write_text(f'{SETTINGS}direction = "{direction}"\nname = "pair-{direction}"\n')
        policies = {
            name: orjson.loads(sync("policy", file, "--side", name).output) for name in ("cloud", "edge")
        }
        settings = load(file)
        current = hashrange.testing.current()
        if direction == "both":
            side("eu-west-1").create_table(TableName="orders", StreamSpecification=STREAM, **KEY)
        with hashrange.local(current, policy=list(policies.values()), user="sync"):
            clients = [
                Clients(side(region), boto3.client("dynamodbstreams", region_name=region))
                for region in ("us-east-1", "eu-west-1")
            ]
            with Sync(settings, cloud=clients[0], edge=clients[1], workers=0) as running:
                running.once()
                with hashrange.local(current):
                    for region in ("us-east-1", "eu-west-1"):
                        for number in range(2):  # (two writes make a batch)
                            mark = {"pk": {"S": f"{direction} {region} {number}"}}
                            side(region).put_item(TableName="orders", Item=mark)
                        side(region).delete_item(TableName="orders", Key={"pk": {"S": "o-1"}})
                running.once()
                running.pairs[0].verify()
            writes = {
                action
                for statement in policies["cloud"]["Statement"]
                for action in statement["Action"]
                if action in ("dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:GetRecords")
            }
            assert len(writes) == {"both": 3, "down": 1, "up": 2}[direction]
    without = {"Version": "2012-10-17", "Statement": policies["edge"]["Statement"]}
    with (
        hashrange.local(hashrange.testing.current(), policy=without, user="sync"),
        Sync(settings, cloud=clients[0], edge=clients[1], workers=0) as running,
        pytest.raises(SyncError, match=r"AccessDenied.*hashrange sync policy"),
    ):
        running.once()


def test_metrics_over_http(file: Path) -> None:
    port = free_port()
    with Sync(load(file)) as running:
        server = serve(running, port)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        server.shutdown()
        server.server_close()
    assert 'hashrange_sync_lag_seconds{pair="orders"} 0' in text
    assert text == text_of([pair.current() for pair in running.pairs]) or "hashrange_sync_stopped" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pairs = 1", r"Expected `array`, got `int` - at `\$\.pairs`"),
        ("", r"missing required field `pairs`"),
        ("pairs = []", "There are no pairs; add one"),
        ("[[pairs]]", "A pair has no table; give `table`"),
        (
            '[[pairs]]\ntable="orders"\nrates=1',
            r"unknown field `rates`.*\$\.pairs\[0\]|unknown field `rates`",
        ),
        (
            '[[pairs]]\ntable="orders"\nconflicts="oldest"',
            "'oldest' is not a policy; write cloud, edge, newest: ATTRIBUTE",
        ),
        ('[[pairs]]\ntable="orders"\n[[pairs]]\ntable="orders"', "Two pairs are named orders"),
        ('[[pairs]]\ntable="orders"\nattributes=["a"]\nwithhold=["b"]', "keep one of them"),
        ('[[pairs]]\ntable="a b"', "cannot be the name of a pair"),
        ("[[pairs", "is not TOML"),
    ],
)
def test_mistakes_in_settings(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "sync.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        load(path)


def test_settings_in_yaml(tmp_path: Path) -> None:
    path = tmp_path / "sync.yaml"
    path.write_text(
        "pairs:\n- table: orders\n  conflicts: {add: [sold, left]}\n  filter: {where: {sku: {prefix: A-}}}\n"
    )
    [pair] = load(path).pairs
    assert Policy.parse(pair.conflicts) == Policy("add", ("sold", "left"))
    path.write_text("pairs: [")
    with pytest.raises(SettingsError, match="is not YAML"):
        load(path)
    with pytest.raises(SettingsError, match="No such file"):
        load(tmp_path / "nothing.toml")


def test_a_merge_function_that_is_not_there() -> None:
    settings = Settings(cloud=Place(region="us-east-1"), edge=Place(region="us-east-1"), pairs=[
        Pair(table="orders", conflicts="merge: no_such_module:merge")
    ])  # fmt: skip
    with pytest.raises(SettingsError, match=r"no_such_module.*MODULE:FUNCTION"):
        Sync(settings)


def test_the_same_table_on_both_sides(file: Path) -> None:
    settings = Settings(
        cloud=Place(region="us-east-1"), edge=Place(region="us-east-1"), pairs=[Pair(table="orders")]
    )
    with Sync(settings) as running, pytest.raises(SyncError, match="Both sides are the same table orders"):
        running.once()


def test_the_guide() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "sync.md"
    assert sum(run(block, {}) for block in blocks_of(page)) == 1
