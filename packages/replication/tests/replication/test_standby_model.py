"""Random work on a primary, followed by a standby in random steps: what the standby serves is what the
primary held at the moment of the last segment."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hashrange.database import Database
from hashrange.tables.inspection.check import check
from hashrange_replication.verify import verify
from shipping import World, contents, key_of, place_in
from standing import Standing, plain, standing
from working import ACTS, Worker, assert_it_works

STEPS = st.sampled_from(["", "", "step", "step", "upkeep", "restart", "kill"])


def answers(database: Database) -> list[Any]:
    """What clients read of a database: tables, items, an index, streams."""
    found: list[Any] = []
    for table in database.execute("ListTables", {})["TableNames"]:
        found.append(database.execute("DescribeTable", {"TableName": table}))
        found.append(database.execute("Scan", {"TableName": table}))
        found.append(database.execute("Scan", {"TableName": table, "IndexName": "by-g"}))
    return plain([*found, database.execute("ListStreams", {})])  # type: ignore[no-any-return]


def act_as_standby(second: Standing, what: str) -> None:
    match what:
        case "upkeep":
            second.engine.upkeep()
        case "restart":
            second.close()
            second.open()
        case "kill":
            second.crash()
            second.open()


@given(st.lists(st.tuples(ACTS, STEPS), min_size=4, max_size=16), st.booleans())
@settings(max_examples=10, deadline=None)
def test_a_standby_is_the_primary_at_the_last_segment(
    tmp_path_factory: Any, acts: list[tuple[Any, str]], sealed: bool
) -> None:
    folder = tmp_path_factory.mktemp("standby")
    place, key = place_in(folder), key_of(1) if sealed else None
    world = World(folder / "data", place, key, logged_bytes_max=20_000)
    worker = Worker(world)
    world.step()
    second = standing(world, logged_bytes_max=20_000)
    for act, what in acts:
        worker.act(*act)
        worker.keep()
        if not what:
            continue
        act_as_standby(second, what)
        second.standby.step()
        if second.again:  # the primary had crashed, and has made a new base
            second.again.clear()
            second.close()
            second.open()
            second.standby.step()
        assert second.standby.problem == ""
        wanted = contents(world.engine)
        found = contents(second.engine)
        assert found == wanted, [key for key in {*found, *wanted} if found.get(key) != wanted.get(key)]
        assert answers(second.database) == answers(world.database)
        assert list(check(second.engine)) == []
    wanted = contents(world.engine)
    world.close()
    second.standby.step()
    if second.again:
        second.close()
        second.open()
        second.step()
    second.standby.promote()
    assert contents(second.engine) == wanted
    second.database.settle()
    second.close()
    assert verify(place, key).problems == []
    assert_it_works(world, second.directory)
