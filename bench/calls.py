"""`python -m bench.calls`: what a call through boto3 costs in process, and how much of that is Hashrange's.

Each operation is called in three ways, in turns, in one process:

    boto3       a handler returns a prepared answer. Hashrange is not called; botocore does everything that
                it does for AWS, except the connection.
    ready       the client of a block of `hashrange.local`, also with a prepared answer
    in process  the same client, answered by the database in memory

"more" is the cost of a call in process beyond boto3 alone. It is negative if signing, which botocore omits
for a request that stays in the process, costs more than the database. "of it Hashrange" is the difference
between the second way and the third. Times are the CPU time of one call in the best round, because anything
else that runs only adds time.
"""

from __future__ import annotations

import argparse
import gc
import platform
import time
from collections.abc import Callable
from typing import Any, Final
from unittest import mock

import boto3

import hashrange
from bench.report import table
from hashrange.client import transport
from hashrange.testing.database import LocalDatabase

_CALLS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "GetItem": ("get_item", {"Key": {"p": {"S": "a"}}}),
    "PutItem": ("put_item", {"Item": {"p": {"S": "b"}, "n": {"N": "1"}, "s": {"S": "some text"}}}),
    "UpdateItem": (
        "update_item",
        {
            "Key": {"p": {"S": "c"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        },
    ),
    "Query of one item": (
        "query",
        {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}},
    ),
}
_TABLE: Final = "calls"
_ITEM: Final = {"n": {"N": "1"}, "s": {"S": "some text"}}


def _client() -> Any:
    return boto3.client("dynamodb", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")


def _seconds(call: Callable[..., Any], arguments: dict[str, Any], calls: int) -> float:
    gc.collect()
    began = time.process_time()
    for _ in range(calls):
        call(**arguments)
    return (time.process_time() - began) / calls


def measured(rounds: int, calls: int) -> dict[str, list[float]]:
    """For each operation the seconds of a call in each of the three ways."""
    found = {}
    kept: list[transport.Answer] = []
    asked = transport.answer

    def keep(*given: Any) -> transport.Answer:
        kept[:] = [asked(*given)]
        return kept[0]

    def ready(*_: Any, **__: Any) -> transport.Answer:
        return kept[0]

    outside, inside = _client(), _client()
    outside.meta.events.register("before-send.dynamodb", ready)
    database = LocalDatabase()
    with hashrange.local(database):
        database.create_table(_TABLE, "p")
        inside.put_item(TableName=_TABLE, Item={**_ITEM, "p": {"S": "a"}})
    for title, (name, given) in _CALLS.items():
        arguments = {"TableName": _TABLE, **given}
        with hashrange.local(database), mock.patch.object(transport, "answer", keep):
            getattr(inside, name)(**arguments)
        best = [1.0, 1.0, 1.0]
        for _ in range(rounds):
            taken = [_seconds(getattr(outside, name), arguments, calls)]
            with hashrange.local(database):
                with mock.patch.object(transport, "answer", ready):
                    taken.append(_seconds(getattr(inside, name), arguments, calls))
                taken.append(_seconds(getattr(inside, name), arguments, calls))
            best = [min(pair) for pair in zip(best, taken, strict=True)]
        found[title] = best
    database.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.calls", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="rounds (default: 20)")
    parser.add_argument("--calls", type=int, default=200, metavar="N", help="calls in a round (default: 200)")
    chosen = parser.parse_args()
    rows = []
    for title, taken in measured(chosen.rounds, chosen.calls).items():
        boto3_alone, answered, whole = (seconds * 1e6 for seconds in taken)
        ours = whole - answered
        rows.append(
            [title, f"{boto3_alone:.0f}", f"{whole:.0f}", f"{whole - boto3_alone:+.0f}", f"{ours:.0f}"]
        )
    print(f"Python {platform.python_version()}, {platform.machine()}, {hashrange.form()}\n")
    print("\n".join(table(["CPU time, us", "boto3", "in process", "more", "of it Hashrange"], rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
