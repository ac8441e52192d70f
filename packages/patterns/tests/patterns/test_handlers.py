"""Handlers for Lambda: what fails is reported, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hashrange_patterns import sqs_handler, stream_handler


def failures(answer: dict[str, Any]) -> list[str]:
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


class Handled:
    """Notes what it handles; refuses batches that hold poison."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, values: Sequence[str]) -> None:
        self.calls.append(list(values))
        if any(value.startswith("poison") for value in values):
            raise ValueError("poison")


@pytest.mark.parametrize(
    ("bodies", "failed", "calls"),
    [
        (["a", "b"], [], [["a", "b"]]),
        (["a", "poison1", "b", "poison2"], ["m1", "m3"], 5),
        (["poison"], ["m0"], [["poison"]]),
    ],
)
def test_each_failed_message_is_reported(bodies: list[str], failed: list[str], calls: Any) -> None:
    handled = Handled()
    event = {"Records": [{"messageId": f"m{place}", "body": body} for place, body in enumerate(bodies)]}
    assert failures(sqs_handler(handled)(event, None)) == failed
    assert len(handled.calls) == calls if isinstance(calls, int) else handled.calls == calls


@pytest.mark.parametrize("source", ["dynamodb", "kinesis"])
@pytest.mark.parametrize(
    ("names", "failed", "last"),
    [
        (["a", "b"], [], ["a", "b"]),
        (["a", "poison", "b"], ["1"], ["poison"]),
        (["poison"], ["0"], ["poison"]),
    ],
)
def test_a_stream_continues_from_the_first_failed_record(
    source: str, names: list[str], failed: list[str], last: list[str]
) -> None:
    number = "SequenceNumber" if source == "dynamodb" else "sequenceNumber"
    records = [{source: {number: str(place)}, "name": name} for place, name in enumerate(names)]
    handled = Handled()
    handler = stream_handler(lambda records: handled([record["name"] for record in records]))
    assert failures(handler({"Records": records}, None)) == failed
    assert handled.calls[-1] == last
