"""The waves of the service's words: the table, and databases and servers that have the words of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from click.testing import CliRunner

import hashrange
from endpoints import REGION, connection
from hashrange.cli import main
from hashrange.cli.serving.serve import words_of
from hashrange.operations import REGISTRY
from hashrange.settings import Settings, waves
from hashrange.shapes.layers import NEWER
from serving import serving

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

NO_ITEMS = "Member must have length greater than or equal to 1"
OLDER = f"1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: {NO_ITEMS}"
NEWER_TEXT = f"1 validation error detected: Value at 'TransactItems' failed to satisfy constraint: {NO_ITEMS}"

NULL = "One or more parameter values were invalid: Null attribute value types must have the value of true"
COUNTED_NULL = f"1 validation error detected: {NULL}"


def test_each_operation_of_a_wave_has_a_layer_and_is_in_one_wave() -> None:
    rows = [operation for wave in waves.WAVES.values() for operation in wave.newer]
    assert sorted(rows) == sorted(NEWER)
    assert REGISTRY.keys() >= NEWER.keys()


def test_the_page_of_compatibility_shows_the_waves() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "compatibility.md").read_text(encoding="utf-8")
    for name, wave in waves.WAVES.items():
        regions = ", ".join(sorted(wave.regions)) if name != "items" else "the 31 others"
        operations = ", ".join(sorted(wave.newer)) or "none"
        assert f"| `{name}` | {wave.date} | {operations} | {regions} |" in page


def test_each_region_is_in_one_of_the_first_two_waves() -> None:
    first, second, *others = (wave.regions for wave in waves.WAVES.values())
    assert not first & second
    assert len(first | second) == 33
    assert all(regions <= second for regions in others)


def test_a_region_has_the_operations_of_all_its_waves() -> None:
    items = waves.WAVES["items"].newer
    assert waves.newer("us-east-1") == items
    assert waves.newer("eu-south-2") == waves.newer(waves.OLDEST) == frozenset()
    batch, transactions, reads = "BatchWriteItem", "TransactWriteItems", "TransactGetItems"
    assert waves.newer("eu-north-1") == items | {batch, transactions, reads}
    assert waves.newer("eu-west-2") == items | {batch, transactions}
    # (not all regions that have transactions have batches)
    assert waves.newer("transactions") == items | {transactions}
    assert waves.newer("transaction-reads") == items | {transactions, reads}


def test_words_that_are_not_known_are_refused_with_the_waves() -> None:
    with pytest.raises(ValueError, match=r"^'2027' is neither a wave .* nor a region") as caught:
        Settings(words="2027")
    assert all(name in str(caught.value) for name in waves.WAVES)
    outcome = CliRunner().invoke(main, ["serve", "--memory", "--port", "0", "--words", "2027"])
    assert outcome.exit_code == 2
    assert "older (before 2026-06-09: eu-south-2, me-central-1)" in " ".join(outcome.output.split())


UNCHECKED = Config(parameter_validation=False)


def said(client: DynamoDBClient) -> list[str]:
    """What the service says of an empty transaction, and of a Null that is false."""

    def of(operation: Any, **request: Any) -> str:
        with pytest.raises(ClientError) as caught:
            operation(**request)
        return str(caught.value.response["Error"]["Message"])

    null = {"pk": {"NULL": False}}
    of_item = of(client.put_item, TableName="abc", Item=null)
    return [of(client.transact_write_items, TransactItems=[]), of_item]


def said_by_a_server(*options: str) -> list[str]:
    with serving("--memory", *options) as server:
        given = connection(server.endpoint)
        client = boto3.client("dynamodb", **{**given, "config": given["config"].merge(UNCHECKED)})
        answers = said(client)
        client.close()
    return answers


def said_in_process(words: str) -> list[str]:
    with hashrange.local(settings=Settings(words=words)):
        return said(boto3.client("dynamodb", region_name=REGION, config=UNCHECKED))


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (waves.OLDEST, [OLDER, NULL]),
        ("items", [OLDER, COUNTED_NULL]),
        ("us-east-1", [OLDER, COUNTED_NULL]),
        ("batch-writes", [OLDER, COUNTED_NULL]),
        ("transactions", [NEWER_TEXT, COUNTED_NULL]),
        ("transaction-reads", [NEWER_TEXT, COUNTED_NULL]),
    ],
)
def test_answers_have_the_words_of_the_setting(words: str, texts: list[str]) -> None:
    assert said_in_process(words) == texts


def test_a_server_has_the_words_of_its_option() -> None:
    assert said_by_a_server("--words", "transactions") == [NEWER_TEXT, COUNTED_NULL]


def test_the_older_option_names_the_oldest_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said_by_a_server("--older-words") == [OLDER, NULL]
    monkeypatch.setenv("HASHRANGE_OLDER_WORDS", "1")
    assert said_by_a_server() == [OLDER, NULL]


def test_the_older_option_says_in_the_log_that_it_goes(caplog: pytest.LogCaptureFixture) -> None:
    assert words_of(waves.DEFAULT, older=True) == waves.OLDEST
    assert [record.getMessage() for record in caplog.records] == ["--older-words is deprecated"]


def test_the_older_option_does_not_go_with_other_words() -> None:
    options = ["serve", "--memory", "--port", "0", "--older-words", "--words", "eu-west-2"]
    outcome = CliRunner().invoke(main, options)
    assert outcome.exit_code == 2
    assert "give --words only" in outcome.output
