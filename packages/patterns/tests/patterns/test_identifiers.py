"""Identifiers that sort by time, with bursts and with clocks that jump; cursors that nobody can make up."""

from __future__ import annotations

import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange_patterns.cursors import Cursors, InvalidCursor
from hashrange_patterns.identifiers import FIRST, LAST, Identifiers, compose, just_below, parts

SECRET = b"0123456789abcdef"


@given(st.lists(st.floats(0, 4e9), min_size=1, max_size=200), st.integers())
def test_each_is_above_the_one_before_whatever_the_clock_does(times: list[float], seed: int) -> None:
    clock = iter(times)
    identifiers = Identifiers(lambda: next(clock), random.Random(seed).getrandbits)
    given = [identifiers.next() for _ in times]
    assert given == sorted(set(given))
    assert all(FIRST < identifier < LAST for identifier in given)
    assert parts(given[0])[0] == int(times[0] * 1_000)


def test_they_are_of_the_standard() -> None:
    identifier = UUID(Identifiers(lambda: 1_700_000_000.123).next())
    assert (identifier.version, identifier.variant) == (7, "specified in RFC 4122")
    assert identifier.int >> 80 == 1_700_000_000_123


def test_a_burst_within_a_millisecond_stays_in_order_and_in_its_millisecond() -> None:
    identifiers = Identifiers(lambda: 1_700_000_000.0)
    given = [identifiers.next() for _ in range(20_000)]
    assert given == sorted(set(given))
    assert {parts(identifier)[0] for identifier in given} == {1_700_000_000_000}


def test_processes_with_one_clock_never_meet() -> None:
    processes = [Identifiers(lambda: 1_700_000_000.0) for _ in range(20)]
    given = [process.next() for process in processes for _ in range(500)]
    assert len(set(given)) == len(given)


@given(st.integers(0, 2**47), st.integers(0, 2**42 - 1), st.integers(0, 2**32 - 1))
def test_after_is_above_what_was_seen(millis: int, counter: int, bits: int) -> None:
    identifiers = Identifiers(lambda: 1_700_000_000.0)
    seen = compose(millis, counter, bits)
    assert parts(seen) == (millis, counter)
    assert identifiers.next(after=seen) > seen
    # A clock that is far ahead does not spread.
    assert parts(identifiers.next())[0] == 1_700_000_000_000


@given(*[st.tuples(st.integers(0, 2**47), st.integers(0, 2**42 - 1), st.integers(0, 2**32 - 1))] * 2)
def test_they_sort_as_their_parts(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    assert (compose(*one) < compose(*other)) == (one < other)


@pytest.mark.parametrize("at", [(0, 0, 1), (0, 1, 0), (1, 0, 0), (5, 6, 7), (2**40, 2**42 - 1, 2**32 - 1)])
def test_just_below_is_the_next_lower_one(at: tuple[int, int, int]) -> None:
    below = just_below(compose(*at))
    flat = [
        (millis << 42 | counter) << 32 | bits
        for millis, counter, bits in (at, (*parts(below), int(below[-8:], 16)))
    ]
    assert flat[0] - flat[1] == 1
    assert just_below(FIRST) == FIRST


@pytest.mark.parametrize("text", ["", "x", FIRST.upper().replace("7", "4"), LAST.upper(), LAST + "0"])
def test_what_is_no_identifier_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a UUIDv7"):
        parts(text)


@given(st.text(), st.text(), st.binary(min_size=16))
def test_a_cursor_gives_back_its_position(scope: str, position: str, secret: bytes) -> None:
    if scope.isprintable() and position.isprintable():
        assert Cursors(secret).open(scope, Cursors(secret).seal(scope, position)) == position


@given(st.integers(0, 200), st.sampled_from("ABCxyz019-_"))
def test_an_altered_cursor_is_refused(place: int, character: str) -> None:
    cursors = Cursors(SECRET)
    sealed = cursors.seal("home", "a position")
    altered = sealed[: place % len(sealed)] + character + sealed[place % len(sealed) + 1 :]
    # (a last character may differ in bits that stand for nothing)
    try:
        assert cursors.open("home", altered) == "a position"
        assert altered[:-1] == sealed[:-1]
    except InvalidCursor:
        assert altered != sealed


@pytest.mark.parametrize("text", ["", "é", "AAAA", "%%%", "A" * 500])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        Cursors(SECRET).open("home", text)


def test_a_cursor_is_good_for_its_list_and_its_secret_only() -> None:
    sealed = Cursors(SECRET).seal("home#alice", "p")
    for cursors, scope in [(Cursors(SECRET), "home#bob"), (Cursors(SECRET[::-1]), "home#alice")]:
        with pytest.raises(InvalidCursor, match="altered"):
            cursors.open(scope, sealed)
    with pytest.raises(ValueError, match="16"):
        Cursors(b"short")
