"""Writes to the cloud that are sent together: which were made, and what stops the pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hashrange_sync import SyncError, Unavailable
from hashrange_sync.errors import Denied, Missing
from sync.test_sync_behaviours import ALL_TYPES, equal, refuses
from sync.world import Places, World


def answers(codes: list[str], repeats: int = 0) -> Callable[..., Any]:
    """A batch of writes of which none is made, with these errors."""
    responses = [{"Error": {"Code": code, "Message": "by a test"}} for code in codes]
    return lambda go: {"Responses": responses, "ResponseMetadata": {"RetryAttempts": repeats}}


@pytest.mark.parametrize(
    ("codes", "repeats"),
    [
        (["ThrottlingError", "ConditionalCheckFailed"], 0),
        (["TransactionConflict", "DuplicateItem"], 0),
        (["ThrottlingError", "InternalServerError"], 0),
        (["ConditionalCheckFailed", "ConditionalCheckFailed"], 1),
        (["ThrottlingError", "ThrottlingError"], 1),
    ],
)
def test_writes_of_a_batch_that_fail_are_made_later(places: Places, codes: list[str], repeats: int) -> None:
    world = World(places)
    world.once()
    world.edge.put("k1", a="1")
    world.edge.put("k2", a="1")
    world.meets("write 2", answers(codes, repeats))
    world.once()
    assert ("cloud", "batch_execute_statement") in world.requests
    assert equal(world)
    assert world.cloud.items().keys() == {"k1", "k2"}
    assert world.log() == []


@pytest.mark.parametrize(
    ("meeting", "error", "told"),
    [
        (answers(["AccessDenied", "AccessDenied"]), Denied, "hashrange sync policy"),
        (answers(["ResourceNotFound", "ResourceNotFound"]), Missing, "Was a table deleted"),
        (answers(["ValidationError", "ValidationError"]), SyncError, "ValidationError: by a test"),
        (answers(["ThrottlingError", "ThrottlingError"]), Unavailable, "too busy"),
        (refuses("UnknownOperationException"), SyncError, r"Set `batches = false` in \[cloud\]"),
    ],
)
def test_a_batch_that_is_refused_stops_the_pair(
    places: Places, meeting: Any, error: type[SyncError], told: str
) -> None:
    world = World(places)
    world.once()
    world.edge.put("k1", a="1")
    world.edge.put("k2", a="1")
    for number in range(2, 6):
        world.meets(f"write {number}", meeting)
    with pytest.raises(error, match=told):
        world.once()
    world.once()
    assert equal(world)


def test_a_batch_takes_names_of_all_kinds(places: Places) -> None:
    world = World(places)
    names = ['"', "'", "a.b", "a[0]", "select", "ü ", "#n", ":v", "?", "\\"]
    for key in ("k1", "k2"):
        world.edge.put(key, **dict.fromkeys(names, "1"), **ALL_TYPES)
    world.once()
    assert equal(world)
    for key in ("k1", "k2"):
        world.edge.put(
            key,
            **dict.fromkeys(names[::2], "2"),
            **{name: {"L": [value]} for name, value in ALL_TYPES.items()},
        )
    world.once()
    assert world.requests.count(("cloud", "batch_execute_statement")) == 1
    assert equal(world)
    for key in ("k1", "k2"):
        world.edge.put(key, **ALL_TYPES)
    world.once()
    assert equal(world)
    assert (world.cloud.get("k1") or {}).keys() == {"pk", *ALL_TYPES}
    assert world.log() == []
