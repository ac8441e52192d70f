"""Vector searches in process: AWS has endpoints of their own for them, and the blocks answer these too."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

import hashrange
from hashrange.testing import mock_aws
from vector_tables import index_of, listed
from worlds import table_of

REGIONAL = "https://dynamodb.eu-west-1.amazonaws.com"
OF_ACCOUNT = "https://123456789012.ddb.eu-west-1.amazonaws.com"


def client_of(**given: Any) -> Any:
    return boto3.client("dynamodb", region_name="eu-west-1", **given)


def nearest(client: Any, *, by_arn: bool = False) -> Any:
    """Make the table, and search it by its name or its ARN."""
    if "words" not in client.list_tables()["TableNames"]:
        client.create_table(**table_of("words", "pk", VectorIndexes=[index_of()]))
        client.put_item(TableName="words", Item={"pk": {"S": "cat"}, "v": listed((1, 2))})
    table = client.describe_table(TableName="words")["Table"]
    found = client.search_vectors(
        TableName=table["TableArn" if by_arn else "TableName"],
        IndexName="near",
        SearchVector=listed((1, 2))["L"],
        TopK=1,
    )
    return found["SearchResults"]


CAT = [{"Item": {"pk": {"S": "cat"}}, "Score": 0.0}]


@pytest.mark.parametrize("account", [None, "123456789012"])
@pytest.mark.parametrize("by_arn", [False, True])
@pytest.mark.parametrize("endpoint", [None, "http://localhost:8000"])
def test_a_block_answers_searches(
    monkeypatch: pytest.MonkeyPatch, account: str | None, by_arn: bool, endpoint: str | None
) -> None:
    if account is not None:
        monkeypatch.setenv("AWS_ACCOUNT_ID", account)
    given = {} if endpoint is None else {"endpoint_url": endpoint}
    with hashrange.local():
        assert nearest(client_of(**given), by_arn=by_arn) == CAT
    with mock_aws():
        assert nearest(client_of(**given), by_arn=by_arn) == CAT
    if endpoint is not None:
        with hashrange.local(endpoint_url=endpoint):
            assert nearest(client_of(**given), by_arn=by_arn) == CAT


@pytest.mark.parametrize("by_arn", [False, True])
def test_a_block_of_an_endpoint_answers_the_searches_of_its_tables(by_arn: bool) -> None:
    with hashrange.local() as other, hashrange.local(endpoint_url=REGIONAL):
        assert nearest(client_of(), by_arn=by_arn) == CAT
        assert client_of().list_tables()["TableNames"] == ["words"]
        assert other.database.overview() == []


def test_a_block_of_an_accounts_endpoint_answers_its_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ACCOUNT_ID", "123456789012"), ("ACCESS_KEY_ID", "a"), ("SECRET_ACCESS_KEY", "b")):
        monkeypatch.setenv(f"AWS_{name}", value)
    with hashrange.local(endpoint_url=OF_ACCOUNT):
        assert nearest(client_of()) == CAT
