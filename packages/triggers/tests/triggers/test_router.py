"""A Lambda handler that somebody else wrote, as the function: PyPI's dynamodb-stream-router, unmodified."""

from __future__ import annotations

from typing import Any

import pytest

import hashrange_triggers as triggers
from triggers.world import World

router: Any = pytest.importorskip(
    "dynamodb_stream_router", reason="`make test` installs dynamodb-stream-router with the other clients"
)


def test_its_routes_get_the_records_that_match(world: World) -> None:
    inserted: list[str] = []
    changed: list[tuple[str, str]] = []

    @router.on_insert("$NEW.state == 'new'", 0)  # type: ignore[untyped-decorator]
    def note_insert(record: Any) -> None:
        inserted.append(record.new_image["id"])

    @router.on_modify("has_changed('state') & attribute_exists($NEW.state)", 1)  # type: ignore[untyped-decorator]
    def note_change(record: Any) -> None:
        changed.append((record.old_image["state"], record.new_image["state"]))

    def lambda_handler(event: triggers.Event, context: triggers.Context) -> None:
        router.route_records(event["Records"])

    worker = world.worker(lambda_handler)
    world.put("1", state={"S": "new"})
    world.put("2", state={"S": "old"})
    world.put("1", state={"S": "paid"}, n={"N": "1.5"}, data={"B": b"\x00"})
    world.put("1", state={"S": "paid"}, n={"N": "2"})
    world.work(worker)
    assert worker.totals.errors == 0
    assert inserted == ["1"]
    assert changed == [("new", "paid")]
