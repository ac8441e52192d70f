"""Random work over the public API: a restore to any moment is the store as it was at that moment.

The model of a moment is the store itself: all records of all spaces, read when the moment was current.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hashrange_replication.verify import verify
from shipping import World, key_of, place_in, restored
from working import ACTS, Worker, assert_it_works


@given(st.lists(ACTS, min_size=4, max_size=18), st.booleans(), st.data())
@settings(max_examples=10, deadline=None)
def test_a_restore_to_any_moment_is_the_store_at_that_moment(
    tmp_path_factory: Any, acts: list[Any], sealed: bool, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("model")
    place, key = place_in(folder), key_of(1) if sealed else None
    # Batches of more than 20 KB do not go through RocksDB's log.
    world = World(folder / "data", place, key, logged_bytes_max=20_000)
    worker = Worker(world)
    world.step()
    begin = world.clock.now()
    for act in acts:
        worker.act(*act)
        worker.keep()
    world.close()
    assert verify(place, key).problems == []
    moments = [moment for moment in worker.past if moment >= begin]
    chosen = data.draw(st.lists(st.sampled_from(moments), min_size=1, max_size=3, unique=True))
    for number, moment in enumerate({*chosen, moments[-1]}):
        later = data.draw(st.sampled_from([0.0, 0.3, 0.998]))  # the next act is a second later
        _done, found = restored(place, folder / f"restored {number}", key, until=moment + later)
        wanted = worker.past[moment]
        assert found == wanted, [key for key in {*found, *wanted} if found.get(key) != wanted.get(key)]
    assert_it_works(world, folder / "restored 0")
