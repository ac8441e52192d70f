"""The counts of throttling, under the names of CloudWatch's metrics.

As on AWS the counts of a table do not include those of its global indexes; `index` is "" for the table.
Source: Developer Guide, "DynamoDB metrics and dimensions" and "CloudWatch throttling metrics".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from hashrange.operations.throttling import ACCOUNT, KEY_RANGE, MAX_ON_DEMAND, PROVISIONED
from hashrange.server.admin.port import Subject
from hashrange_lab.behaviour.resources import READS, WRITES
from hashrange_lab.behaviour.throttling import Throttling

Sample = tuple[str, dict[str, str], int | float]
Family = tuple[str, str, str, list[Sample]]
"""The name of a metric, its kind, its description and its samples."""

_WAYS: Final = (("Read", READS), ("Write", WRITES))
_CAUSES: Final = {
    PROVISIONED: "ProvisionedThroughputThrottleEvents",
    KEY_RANGE: "KeyRangeThroughputThrottleEvents",
    MAX_ON_DEMAND: "MaxOnDemandThroughputThrottleEvents",
    ACCOUNT: "AccountLimitThrottleEvents",
}


def families_of(subject: Subject) -> Iterator[Family]:
    """The metrics of a server's tables and indexes that were used, as many as have their own series."""
    throttling: Throttling = subject.database.lab.throttling
    if not throttling.is_on:
        return
    tables_max = subject.plane.settings.metrics_tables_max
    resources = throttling.resources()[:tables_max]
    labels = [{"table": resource.table, "index": resource.index} for resource in resources]
    for way, side in _WAYS:
        sides = [resource.sides[side] for resource in resources]
        units: list[Sample] = [
            ("", at, way_side.consumed) for at, way_side in zip(labels, sides, strict=True)
        ]
        yield f"hashrange_Consumed{way}CapacityUnits", "counter", "Consumed units.", units
        events: list[Sample] = [
            ("", at, sum(way_side.throttled.values())) for at, way_side in zip(labels, sides, strict=True)
        ]
        yield f"hashrange_{way}ThrottleEvents", "counter", "Throttled events.", events
        for limit, name in _CAUSES.items():
            counts: list[Sample] = [
                ("", at, way_side.throttled.get(limit, 0)) for at, way_side in zip(labels, sides, strict=True)
            ]
            yield f"hashrange_{way}{name}", "counter", f"Throttled events: {limit}.", counts
    requests: list[Sample] = [
        ("", {"table": table, "operation": operation}, number)
        for (table, operation), number in islice(throttling.requests.copy().items(), tables_max)
    ]
    yield "hashrange_ThrottledRequests", "counter", "Requests that were refused.", requests
    parts: list[Sample] = [
        ("", at, len(resource.parts)) for at, resource in zip(labels, resources, strict=True)
    ]
    yield "hashrange_partitions", "gauge", "Partitions, which are split by size and by heat.", parts
