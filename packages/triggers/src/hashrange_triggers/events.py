"""The event that a trigger's function gets, in the shape of AWS Lambda's events for streams.

    {"Records": [{
        "eventID": …, "eventName": "INSERT" | "MODIFY" | "REMOVE", "eventVersion": "1.1",
        "eventSource": "aws:dynamodb", "awsRegion": …, "eventSourceARN": the stream's ARN,
        "dynamodb": {"ApproximateCreationDateTime": seconds, "Keys": {…}, "NewImage": {…}, "OldImage": {…},
                     "SequenceNumber": …, "SizeBytes": …, "StreamViewType": …},
        "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}     deletes by expiry
    }, …]}

A value is typed JSON, as on the wire: `{"S": "x"}`, `{"N": "42"}`, and binary in base64.

Source: Lambda Developer Guide, "Using AWS Lambda with Amazon DynamoDB".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hashrange.interchange.item_texts import from_boto3

Record = dict[str, Any]
Event = dict[str, list[Record]]
"""The event that the function of a trigger gets: {"Records": […]}, as on AWS Lambda."""


@dataclass(frozen=True, slots=True)
class Context:
    """The second argument of a function: those members of Lambda's context that make sense here.

    `attempt` is 1 when the batch is delivered for the first time.
    """

    function_name: str
    aws_request_id: str
    shard_id: str
    attempt: int


def record_of(received: dict[str, Any], stream_arn: str) -> Record:
    """The event's record, from the record that boto3 returned."""
    change = dict(received["dynamodb"])
    created = change.get("ApproximateCreationDateTime")
    if created is not None:
        change["ApproximateCreationDateTime"] = created.timestamp()
    for image in ("Keys", "NewImage", "OldImage"):
        if image in change:
            change[image] = {name: from_boto3(value) for name, value in change[image].items()}
    record = {**received, "dynamodb": change, "eventSourceARN": stream_arn}
    identity = received.get("userIdentity")
    if identity is not None:
        record["userIdentity"] = {"type": identity.get("Type"), "principalId": identity.get("PrincipalId")}
    return record


def sequence_of(record: Record) -> str:
    """A record's sequence number."""
    sequence: str = record["dynamodb"]["SequenceNumber"]
    return sequence


def created_at(record: Record) -> float:
    """The time of a record's change, in seconds since the epoch."""
    return float(record["dynamodb"].get("ApproximateCreationDateTime", 0.0))


def keys_of(record: Record) -> dict[str, Any]:
    """The primary key of the item that a record is about."""
    keys: dict[str, Any] = record["dynamodb"]["Keys"]
    return keys
