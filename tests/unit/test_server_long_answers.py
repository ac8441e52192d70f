"""An answer of megabytes over HTTP: its length and its checksum are right, and the next one follows it."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config

from serving import serving
from worlds import table_of


def test_over_http() -> None:
    # Of many values there is one item only, because botocore takes a second for each.
    big: list[Any] = [{"L": [{"N": "1"}] * 100_000}] + [{"S": "x" * 390_000}] * 9
    with serving("--memory") as server:
        client = boto3.client(
            "dynamodb",
            endpoint_url=server.endpoint,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=Config(retries={"total_max_attempts": 1}),
        )
        client.create_table(**table_of("long", "pk"))
        keys = [{"pk": {"S": str(n)}} for n in range(10)]
        items = [{**key, "big": value} for key, value in zip(keys, big, strict=True)]
        for item in items:
            client.put_item(TableName="long", Item=item)
        # botocore checks the length and the checksum; the second answer on a connection begins where
        # the first one ends.
        for close in (False, True, False):
            handler = _closing if close else _keeping
            client.meta.events.register_first("before-sign.dynamodb", handler, unique_id="connection")
            answer = client.batch_get_item(RequestItems={"long": {"Keys": keys}})
            client.meta.events.unregister("before-sign.dynamodb", unique_id="connection")
            assert sorted(answer["Responses"]["long"], key=lambda item: item["pk"]["S"]) == items
        gets: list[Any] = [{"Get": {"TableName": "long", "Key": key}} for key in keys[:4]]
        taken = client.transact_get_items(TransactItems=gets)["Responses"]
        assert [answer["Item"] for answer in taken] == items[:4]


def _closing(request: Any, **_: Any) -> None:
    request.headers["Connection"] = "close"


def _keeping(request: Any, **_: Any) -> None:
    request.headers["Connection"] = "keep-alive"
