"""Handlers for AWS Lambda that report the records that failed, so that only those are delivered again.

    handler = sqs_handler(lambda bodies: counters.count(events_of(bodies)))
    handler = stream_handler(lambda records: counters.count(views_of(records)))

The event source needs the function response type ReportBatchItemFailures. Both handle a batch in one call,
and its records one by one if that fails.

Refuses to put failed records aside: the event source does so, with a queue or a destination for failures.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

_log = logging.getLogger(__name__)

LambdaHandler: TypeAlias = Callable[..., dict[str, Any]]
"""Takes Lambda's event and context."""


def sqs_handler(handle: Callable[[list[str]], object]) -> LambdaHandler:
    """A Lambda function for a queue of SQS: `handle` takes the bodies of messages.

    The messages that failed are delivered again, each by itself.
    """

    def handler(event: Mapping[str, Any], context: object = None) -> dict[str, Any]:
        def perform(records: Sequence[Mapping[str, Any]]) -> bool:
            return _tried(handle, [record["body"] for record in records])

        records = event["Records"]
        failed = []
        if not perform(records):
            failed = [record for record in records if len(records) == 1 or not perform([record])]
        return _failures([record["messageId"] for record in failed])

    return handler


def stream_handler(handle: Callable[[list[Mapping[str, Any]]], object]) -> LambdaHandler:
    """A Lambda function for a stream of DynamoDB or Kinesis: `handle` takes records, as Lambda gives them.

    The records from the first on that failed are delivered again, because the order of a stream counts.
    """

    def handler(event: Mapping[str, Any], context: object = None) -> dict[str, Any]:
        records = event["Records"]
        if _tried(handle, list(records)):
            return _failures([])
        for record in records:
            if len(records) == 1 or not _tried(handle, [record]):
                source = record.get("dynamodb") or record["kinesis"]
                return _failures([source.get("SequenceNumber") or source["sequenceNumber"]])
        return _failures([])

    return handler


def _tried(handle: Callable[[list[Any]], object], what: list[Any]) -> bool:
    """Whether `handle` did not raise."""
    try:
        handle(what)
    except Exception:
        _log.exception("%d records failed", len(what))
        return False
    return True


def _failures(identifiers: Sequence[str]) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in identifiers]}
