"""The clocks, and how moments and durations are written."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hashrange.clock import (
    MOMENT_MAX,
    ManualClock,
    StoreClock,
    SystemClock,
    VirtualClock,
    parse_duration,
    parse_moment,
    show_moment,
)

DAY = 86_400.0


def test_the_system_clock_goes_on() -> None:
    clock = SystemClock()
    assert 1_700_000_000 < clock.now() <= clock.now()


@given(
    st.lists(
        st.tuples(st.floats(0, 1e6), st.floats(0, 5), st.floats(0, 5), st.floats(-1e6, 1e6)),
        min_size=1,
        max_size=10,
    )
)
@example([(0.0, 0.0, 0.0, 387735.0), (660818.3096260146, 4.182744301560513, 5.0, 387740.0)])
def test_a_stores_clock_is_as_right_as_its_measure(turns: list[tuple[float, float, float, float]]) -> None:
    """A turn: so long after the one before the store is asked, the question takes so long, the answer so
    long, and the store's clock is so far ahead."""
    steady = ManualClock(0.0)
    asked, answered, ahead = 0.0, 0.0, 0.0

    def ask() -> float:
        steady.advance(asked)
        there = steady.now() + ahead
        steady.advance(answered)
        return there

    clock = StoreClock(ask, steady.now)
    for pause, asked, answered, ahead in turns:
        steady.advance(pause)
        clock.measure()
        error = clock.now() - (steady.now() + ahead)
        assert abs(error) <= asked + answered + 1e-6
        shown = clock.now()
        clock.measure()  # nothing has changed: it does not go back and forth
        assert clock.now() - shown == pytest.approx(asked + answered, abs=1e-6)
        steady.advance(5.0)
        clock.measure(pause_seconds=6.0)  # it was done a moment ago
        assert clock.now() - shown == pytest.approx(asked + answered + 5.0)


def test_a_stores_clock_runs_on_while_the_store_is_away() -> None:
    steady, there = ManualClock(100.0), [5_000.0]
    clock = StoreClock(lambda: there.pop(), steady.now)
    steady.advance(7)
    with pytest.raises(IndexError):
        clock.measure()
    assert clock.now() == 5_007.0


def test_a_virtual_clock_runs_as_the_real_one() -> None:
    real = ManualClock(1_000.0)
    clock = VirtualClock(real=real)
    assert (clock.now(), clock.frozen, clock.offset) == (1_000.0, False, 0.0)
    real.advance(5)
    assert clock.now() == 1_005.0
    clock.advance(DAY)
    real.advance(5)
    assert clock.now() == 1_010.0 + DAY
    assert clock.offset == DAY
    clock.set(50.0)
    real.advance(1)
    assert clock.now() == 51.0


def test_a_frozen_clock_stands_until_it_is_resumed() -> None:
    real = ManualClock(1_000.0)
    clock = VirtualClock(real=real)
    clock.freeze()
    real.advance(100)
    assert (clock.now(), clock.frozen, clock.offset) == (1_000.0, True, -100.0)
    clock.advance(10)
    clock.freeze()
    assert clock.now() == 1_010.0
    clock.resume()
    assert clock.now() == 1_010.0
    real.advance(1)
    assert (clock.now(), clock.frozen) == (1_011.0, False)


def test_a_virtual_clock_starts_at_the_time_given() -> None:
    real = ManualClock(1_000.0)
    running, frozen = VirtualClock(7.0, real=real), VirtualClock(7.0, frozen=True, real=real)
    real.advance(1)
    assert (running.now(), frozen.now()) == (8.0, 7.0)


def test_a_change_happens_at_one_moment() -> None:
    clock = VirtualClock(real=ManualClock(1_000.0))
    clock.change(10.0, advance=5.0, frozen=True)
    assert (clock.now(), clock.frozen) == (15.0, True)


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf, MOMENT_MAX])
def test_an_impossible_advance_changes_nothing(seconds: float) -> None:
    clock = VirtualClock(1_000.0, frozen=True)
    with pytest.raises(ValueError, match="a clock"):
        clock.advance(seconds)
    assert clock.now() == 1_000.0


@pytest.mark.parametrize("moment", [-1.0, math.nan, math.inf, MOMENT_MAX + 1])
def test_an_impossible_time_changes_nothing(moment: float) -> None:
    clock = VirtualClock(1_000.0, frozen=True)
    with pytest.raises(ValueError, match="from the year 1970 to the year 9999"):
        clock.set(moment)
    assert clock.now() == 1_000.0


_CHANGES = st.one_of(
    st.tuples(st.just("freeze")),
    st.tuples(st.just("resume")),
    st.tuples(st.sampled_from(["set", "advance", "pass"]), st.integers(0, 10_000_000)),
)


@given(st.lists(_CHANGES))
def test_any_history_of_changes(changes: list[tuple[str] | tuple[str, int]]) -> None:
    """Against a clock that counts: whole seconds are exact in a float."""
    real = ManualClock(0.0)
    clock = VirtualClock(real=real)
    now, frozen = 0, False
    for change in changes:
        match change:
            case ("freeze",):
                clock.freeze()
                frozen = True
            case ("resume",):
                clock.resume()
                frozen = False
            case ("set", moment):
                clock.set(moment)
                now = moment
            case ("advance", seconds):
                clock.advance(seconds)
                now += seconds
            case ("pass", seconds):
                real.advance(seconds)
                now += 0 if frozen else seconds
        assert (clock.now(), clock.frozen) == (now, frozen)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        ("1.5", 1.5),
        ("45s", 45),
        ("0.5s", 0.5),
        ("15m", 900),
        ("24h", DAY),
        ("7d", 7 * DAY),
        ("1w", 7 * DAY),
        (" 1d12h ", 1.5 * DAY),
        ("1w2d3h4m5s", 9 * DAY + 3 * 3600 + 245),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "d", "-5", "1y", "12h1d", "1d 2h", "1e3", "nan", "٣", "1.5d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0", 0),
        ("1767225600.25", 1_767_225_600.25),
        ("2026-01-01", 1_767_225_600),
        ("20260101", 1_767_225_600),
        ("2026-01-01T00:00", 1_767_225_600),
        ("2026-01-01 00:00:00Z", 1_767_225_600),
        ("2026-01-01T01:00:00+01:00", 1_767_225_600),
        ("2026-01-01T00:00:00.250Z", 1_767_225_600.25),
    ],
)
def test_moments(text: str, moment: float) -> None:
    assert parse_moment(text) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "-5", "2026-13-01", "2026-02-30", "nan", "1e9", "٣"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_moment(text)


@given(st.integers(0, int(MOMENT_MAX)), st.integers(0, 999))
def test_a_moment_is_shown_and_read(seconds: int, millis: int) -> None:
    shown = show_moment(seconds + millis / 1_000)
    assert shown == datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{millis:03}Z"
    assert round(parse_moment(shown) * 1_000) == seconds * 1_000 + millis


@pytest.mark.parametrize(
    ("text", "moment"), [("now", 1000.0), ("10m", 400.0), ("1m40s", 900.0), ("90", 90.0), ("1970-01-01", 0.0)]
)
def test_a_moment_may_be_relative_to_now(text: str, moment: float) -> None:
    assert parse_moment(text, 1000.0) == moment
    if text in ("now", "10m", "1m40s"):
        with pytest.raises(ValueError, match="is not a time"):
            parse_moment(text)
