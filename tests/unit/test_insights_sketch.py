"""The sketch of the busiest keys."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hashrange.insights.sketch import Sketch


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans())), st.integers(1, 12))
def test_a_sketch_never_counts_too_little_and_knows_by_how_much_too_much(
    keys: list[tuple[int, bool]], room: int
) -> None:
    sketch: Sketch[int] = Sketch(room)
    for key, is_write in keys:
        sketch.add(key, is_write=is_write)
    exact = Counter(key for key, _ in keys)
    counts = {count.key: count for count in sketch.most_frequent(room)}
    assert len(counts) == len(sketch) <= room
    for key, count in counts.items():
        assert count.least <= exact[key] <= count.most
    for key, number in exact.items():
        assert key in counts or number <= len(keys) / room
    if len(exact) <= room:
        assert all(count.over == 0 for count in counts.values())
        assert {key: (count.reads, count.writes) for key, count in counts.items()} == {
            key: (keys.count((key, False)), keys.count((key, True))) for key in exact
        }
