"""Checkpoints: how far a trigger has processed each shard, stored in a table through the public API.

    trigger (partition key)   the trigger's name
    shard   (sort key)        stream label "/" shard id, or the label alone for the stream
    sequence                  the last record that was processed
    position                  the sequence padded with zeros, so that it sorts as a text
    iterator                  without a sequence: the shard iterator of the place where the trigger starts
    since                     the time of that place, for use when the iterator has expired
    done                      the shard was read to its end; for a stream: all its shards were
    updated                   when, in seconds since the epoch

A checkpoint never moves back, so a worker that was believed dead cannot undo the work of its successor.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from hashrange.cli.remote.clients import Clients, error_code

_log = logging.getLogger("hashrange_triggers")

DEFAULT_TABLE: Final = "hashrange-trigger-checkpoints"
"""The table in which a trigger stores how far it is, unless it is given another."""
_SEQUENCE_DIGITS: Final = 40


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a shard has been processed; `sequence` is None before its first record."""

    sequence: str | None = None
    iterator: str | None = None
    since: float | None = None
    done: bool = False


class Checkpoints:
    """The checkpoints of one trigger."""

    def __init__(self, clients: Clients, table: str, trigger: str) -> None:
        self._client = clients.dynamodb
        self._table = table
        self._trigger = trigger

    def create_table(self) -> bool:
        """Create the table if it does not exist; returns whether it was created."""
        return create_table(self._client, self._table, {"trigger": "HASH", "shard": "RANGE"})

    def load(self) -> dict[str, Checkpoint]:
        """All checkpoints, by `label/shard id`, and `label` for a stream."""
        checkpoints: dict[str, Checkpoint] = {}
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            ConsistentRead=True,
            KeyConditionExpression="#trigger = :trigger",
            ExpressionAttributeNames={"#trigger": "trigger"},
            ExpressionAttributeValues={":trigger": {"S": self._trigger}},
        )
        for page in pages:
            for item in page["Items"]:
                since = item.get("since", {}).get("N")
                sequence = item.get("sequence", {}).get("S")
                checkpoints[item["shard"]["S"]] = Checkpoint(
                    sequence,
                    item.get("iterator", {}).get("S") if sequence is None else None,
                    float(since) if since is not None else None,
                    item.get("done", {}).get("BOOL", False),
                )
        return checkpoints

    def begin(
        self,
        place: str,
        now: float,
        *,
        since: float | None = None,
        iterator: str | None = None,
        done: bool = False,
    ) -> None:
        """Create the checkpoint of a stream or a shard, unless it exists."""
        values: dict[str, Any] = {"done": {"BOOL": done}, "updated": {"N": f"{now:.3f}"}}
        if since is not None:
            values["since"] = {"N": f"{since:.3f}"}
        if iterator is not None:
            values["iterator"] = {"S": iterator}
        try:
            self._client.put_item(
                TableName=self._table,
                Item={"trigger": {"S": self._trigger}, "shard": {"S": place}, **values},
                ConditionExpression="attribute_not_exists(#shard)",
                ExpressionAttributeNames={"#shard": "shard"},
            )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise

    def advance(self, place: str, sequence: str, now: float) -> None:
        """Note that all records of a shard up to `sequence` were processed. The update may run twice, because
        a client repeats a request whose answer it did not get."""
        values = {
            ":sequence": {"S": sequence},
            ":position": {"S": sequence.zfill(_SEQUENCE_DIGITS)},
            ":now": {"N": f"{now:.3f}"},
        }
        try:
            self._update(
                place,
                "SET #sequence = :sequence, #position = :position, #updated = :now",
                values,
                "attribute_not_exists(#position) OR #position <= :position",
            )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            fields = {"shard": place, "sequence": sequence}
            _log.warning("another worker of this trigger is ahead", extra={"fields": fields})

    def finish(self, place: str, now: float) -> None:
        """Note that a shard was read to its end, or a stream to the end of its last shard."""
        values = {":done": {"BOOL": True}, ":now": {"N": f"{now:.3f}"}}
        self._update(place, "SET #done = :done, #updated = :now", values)

    def forget(self, place: str) -> None:
        """Remove the checkpoint of a shard or a stream that no longer exists."""
        key = {"trigger": {"S": self._trigger}, "shard": {"S": place}}
        self._client.delete_item(TableName=self._table, Key=key)

    def _update(self, place: str, update: str, values: dict[str, Any], condition: str | None = None) -> None:
        optional: dict[str, Any] = {"ConditionExpression": condition} if condition else {}
        self._client.update_item(
            TableName=self._table,
            Key={"trigger": {"S": self._trigger}, "shard": {"S": place}},
            UpdateExpression=update,
            ExpressionAttributeNames={f"#{name}": name for name in re.findall(r"#(\w+)", update)},
            ExpressionAttributeValues=values,
            **optional,
        )


def create_table(client: Any, name: str, key: dict[str, str]) -> bool:
    """Create an on-demand table whose key attributes are texts (`{attribute: "HASH" or "RANGE"}`), unless it
    exists. Returns whether it was created."""
    waiter = client.get_waiter("table_exists")
    try:
        if client.describe_table(TableName=name)["Table"]["TableStatus"] == "CREATING":
            # The process that began to create the table may have been killed, so wait in this case too.
            waiter.wait(TableName=name, WaiterConfig={"Delay": 1})
        return False
    except ClientError as error:
        if error_code(error) != "ResourceNotFoundException":
            raise
    try:
        client.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": attribute, "AttributeType": "S"} for attribute in key],
            KeySchema=[{"AttributeName": attribute, "KeyType": kind} for attribute, kind in key.items()],
            BillingMode="PAY_PER_REQUEST",
        )
    except ClientError as error:
        if error_code(error) != "ResourceInUseException":
            raise
    waiter.wait(TableName=name, WaiterConfig={"Delay": 1})
    return True
