"""Makes one table like another: its definition, time to live and tags, and some of its items.

Of the definition it takes keys, indexes, billing, throughput, the stream and the class. It leaves out what
makes no difference here or would be in the way: encryption keys, replicas, warm throughput and deletion
protection, which `Plan.notes` names, and alarms and resource policies. Recovery is not switched on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from hashrange.cli.remote import batches
from hashrange.interchange.descriptions import (
    Request,
    create_request,
    elsewhere,
    hindering,
    portable,
)
from hashrange.limits import BATCH_WRITE_ITEMS_MAX

PAGE_ITEMS_MAX: Final = 1_000
_OF_AWS: Final = "aws:"
"""Tags whose keys begin so belong to AWS, and nobody else can set them."""


class Unlike(Exception):
    """The table is there already, with other keys; the text says which."""


class Endless(Exception):
    """A server's page ends where it began."""


@dataclass(slots=True)
class Plan:
    """A table as it is to be made. `notes` say what could not be read, and what is left out."""

    create: Request
    ttl: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The table's name."""
        name: str = self.create["TableName"]
        return name

    def about(self) -> str:
        """What the table has, in words."""
        create = self.create
        key = ", ".join(element["AttributeName"] for element in create["KeySchema"])
        parts = [f"key {key}"]
        for member, noun in (("GlobalSecondaryIndexes", "global"), ("LocalSecondaryIndexes", "local")):
            if indexes := create.get(member):
                named = ", ".join(index["IndexName"] for index in indexes)
                parts.append(f"{noun} {'index' if len(indexes) == 1 else 'indexes'} {named}")
        if create.get("StreamSpecification", {}).get("StreamEnabled"):
            parts.append(f"stream {create['StreamSpecification']['StreamViewType']}")
        if self.ttl is not None:
            parts.append(f"time to live {self.ttl}")
        if tags := create.get("Tags"):
            parts.append("1 tag" if len(tags) == 1 else f"{len(tags)} tags")
        return "; ".join(parts)


def plan(source: Any, table: str, explain: Callable[[Exception], str]) -> Plan:
    """How to make a table like `table`, a name or an ARN, of the server of the client `source`.

    Tags and time to live that may not be read are left out with a note, which `explain` words. Raises the
    errors of boto3.
    """
    described = source.describe_table(TableName=table)["Table"]
    whole = create_request(described)
    create = portable(whole)
    made = Plan(create)
    if left_out := [*hindering(whole), *elsewhere(described)]:
        made.notes.append(f"left out: {', '.join(left_out)}")
    refused = source.exceptions.ClientError
    try:
        living = source.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        if living.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"):
            made.ttl = living["AttributeName"]
    except refused as error:
        made.notes.append(f"its time to live was not read: {explain(error)}")
    try:
        if tags := list(_tags(source, described["TableArn"])):
            create["Tags"] = tags
    except refused as error:
        made.notes.append(f"its tags were not read: {explain(error)}")
    return made


def _tags(source: Any, arn: str) -> Iterator[Any]:
    start: dict[str, str] = {}
    while True:
        answer = source.list_tags_of_resource(ResourceArn=arn, **start)
        yield from (tag for tag in answer["Tags"] if not tag["Key"].startswith(_OF_AWS))
        if "NextToken" not in answer:
            return
        start = _moved(start, {"NextToken": answer["NextToken"]})


def make(target: Any, made: Plan) -> bool:
    """Make the table, and wait until it can be used. Returns whether it was made: a table that is there
    already stays as it is.

    Raises Unlike if that table has other keys, and the errors of boto3.
    """
    try:
        there = target.describe_table(TableName=made.name)["Table"]
    except target.exceptions.ResourceNotFoundException:
        there = None
    if there is not None:
        here, wanted = _keys(there), _keys(made.create)
        if here != wanted:
            raise Unlike(f"there is a table of this name with the key {here}, not {wanted}")
        return False
    target.create_table(**made.create)
    target.get_waiter("table_exists").wait(TableName=made.name, WaiterConfig={"Delay": 1, "MaxAttempts": 600})
    if made.ttl is not None:
        living = {"Enabled": True, "AttributeName": made.ttl}
        target.update_time_to_live(TableName=made.name, TimeToLiveSpecification=living)
    return True


def _keys(described: Request) -> str:
    types = {one["AttributeName"]: one["AttributeType"] for one in described["AttributeDefinitions"]}
    names = [element["AttributeName"] for element in described["KeySchema"]]
    return ", ".join(f"{name} ({types[name]})" for name in names)


def copy_items(
    source: Any,
    table: str,
    target: Any,
    name: str,
    items_max: int,
    progress: Callable[[int], None],
    masked: Callable[[list[Any]], list[Any]] | None = None,
) -> int:
    """Put up to `items_max` items of `table` into the table `name`, in the order of a Scan, which is that of
    hashes and so a random choice of partitions. Returns how many. Calls `progress` with the number of each
    batch. `masked` makes of items those that are put. Raises as `batches.put` and `masked`, and Endless.
    """
    copied = 0
    start: dict[str, Any] = {}
    while copied < items_max:
        page = source.scan(TableName=table, Limit=min(items_max - copied, PAGE_ITEMS_MAX), **start)
        items = page["Items"] if masked is None else masked(page["Items"])
        for first in range(0, len(items), BATCH_WRITE_ITEMS_MAX):
            batch = items[first : first + BATCH_WRITE_ITEMS_MAX]
            batches.put(target, name, batch)
            copied += len(batch)
            progress(len(batch))
        if "LastEvaluatedKey" not in page:
            break
        start = _moved(start, {"ExclusiveStartKey": page["LastEvaluatedKey"]})
    return copied


def _moved(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Where the next page starts. Raises Endless if that is where this one did."""
    if before == after:
        raise Endless(f"its pages do not end: the one after {after} ends there as well")
    return after
