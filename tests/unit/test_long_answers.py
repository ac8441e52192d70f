"""Long answers in pieces: the text, its length and its checksum are those of the answer encoded at once."""

from __future__ import annotations

import json
import zlib
from typing import Any

import boto3
import orjson
import pytest
from botocore.config import Config
from hypothesis import given
from hypothesis import strategies as st

from hashrange import long_answers
from hashrange.long_answers import Pieces
from serving import serving

members = st.one_of(st.text(max_size=5), st.integers(0, 9).map(lambda n: {"a": {"S": "x" * 20_000 * n}}))
contents = st.one_of(
    st.lists(members, max_size=40), st.dictionaries(st.text(max_size=3), st.lists(members, max_size=20))
)


def whole(body: bytes | Pieces) -> bytes:
    if isinstance(body, bytes):
        return body
    text = b"".join(body.chunks)
    assert len(text) == body.size == len(body)
    assert zlib.crc32(text) == body.crc
    assert len(body.chunks) > 1
    return text


@given(contents, st.dictionaries(st.sampled_from(["Unprocessed", "ConsumedCapacity"]), st.integers(0, 9)))
def test_responses(content: Any, beside: dict[str, int]) -> None:
    answer = {"Responses": content, **beside}
    expected = json.loads(orjson.dumps(answer))
    body = long_answers.dumps(answer, "Responses")
    assert json.loads(whole(body)) == expected
    if isinstance(body, Pieces):
        assert json.loads(body.beside) == beside


@pytest.mark.parametrize("count", [0, 1, 2, 3, 500, 100_000])
def test_items(count: int) -> None:
    answer = {"Items": [{"n": {"N": str(n)}} for n in range(count)], "Count": count}
    expected = orjson.dumps(answer)
    assert whole(long_answers.dumps(answer, "Items")) == expected


def test_no_chunk_is_the_whole() -> None:
    answer = {"Responses": [orjson.Fragment(b'"%b"' % (b"x" * 100_000)) for _ in range(100)]}
    body = long_answers.dumps(answer, "Responses")
    assert isinstance(body, Pieces)
    assert max(map(len, body.chunks)) <= 8 * 100_003


def test_over_http() -> None:
    big = {"L": [{"N": "1"}] * 100_000}
    with serving("--memory") as server:
        client = boto3.client(
            "dynamodb",
            endpoint_url=server.endpoint,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=Config(retries={"total_max_attempts": 1}),
        )
        client.create_table(
            TableName="long",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        keys = [{"pk": {"S": str(n)}} for n in range(10)]
        for key in keys:
            client.put_item(TableName="long", Item={**key, "big": big})
        # botocore checks the length and the checksum; the second answer on a connection begins where
        # the first one ends.
        for close in (False, True, False):
            handler = _closing if close else _keeping
            client.meta.events.register_first("before-sign.dynamodb", handler, unique_id="connection")
            answer = client.batch_get_item(RequestItems={"long": {"Keys": keys}})
            client.meta.events.unregister("before-sign.dynamodb", unique_id="connection")
            assert sorted(item["pk"]["S"] for item in answer["Responses"]["long"]) == sorted("0123456789")
            assert all(item["big"] == big for item in answer["Responses"]["long"])
        gets: list[Any] = [{"Get": {"TableName": "long", "Key": key}} for key in keys[:4]]
        taken = client.transact_get_items(TransactItems=gets)["Responses"]
        assert [one["Item"]["big"] == big for one in taken] == [True] * 4


def _closing(request: Any, **_: Any) -> None:
    request.headers["Connection"] = "close"


def _keeping(request: Any, **_: Any) -> None:
    request.headers["Connection"] = "keep-alive"
