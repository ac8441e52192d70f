"""Answers to ClientRequestToken: once within ten minutes."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hashrange.clock import BEHIND_SECONDS_MAX
from hashrange.errors import IdempotentParameterMismatchException, TransactionInProgressException
from hashrange.limits import CLIENT_REQUEST_TOKEN_SECONDS
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.spaces import TOKEN_SPACE
from hashrange.tables.writes import queues, tokens

NOW = 1_700_000_000.5


def claim(
    engine: MemoryEngine, token: str, request: bytes, now: float, account: str = "1", in_flight: float = 0.0
) -> bool:
    return engine.write(lambda txn: tokens.claim(txn, account, token, request, now, in_flight))


def test_a_token_counts_once() -> None:
    engine = MemoryEngine()
    assert claim(engine, "a", b"request", NOW)
    assert not claim(engine, "a", b"request", NOW)
    assert not claim(engine, "a", b"request", NOW + CLIENT_REQUEST_TOKEN_SECONDS - 1)
    assert claim(engine, "b", b"request", NOW)


def test_accounts_do_not_share_tokens() -> None:
    engine = MemoryEngine()
    assert claim(engine, "a", b"request", NOW, "1")
    assert claim(engine, "a", b"other", NOW, "2")


def test_a_token_with_another_request_is_refused() -> None:
    engine = MemoryEngine()
    claim(engine, "a", b"request", NOW)
    with pytest.raises(IdempotentParameterMismatchException):
        claim(engine, "a", b"other", NOW)


def test_a_token_whose_transaction_is_still_running_is_refused() -> None:
    engine = MemoryEngine()
    now = float(int(NOW))
    assert claim(engine, "a", b"request", now, in_flight=5)
    with pytest.raises(TransactionInProgressException):
        claim(engine, "a", b"request", now + 4, in_flight=5)
    assert not claim(engine, "a", b"request", now + 5, in_flight=5)


def test_the_sizes_of_what_was_written_are_kept_with_the_token() -> None:
    engine = MemoryEngine()
    claim(engine, "a", b"request", NOW)
    engine.write(lambda txn: tokens.keep_sizes(txn, "1", "a", [3, 409_600, 0]))
    assert engine.read(lambda reader: tokens.sizes(reader, "1", "a")) == [3, 409_600, 0]
    assert engine.read(lambda reader: tokens.sizes(reader, "1", "b")) == []
    assert not claim(engine, "a", b"request", NOW)


def test_a_token_is_forgotten_after_ten_minutes() -> None:
    engine = MemoryEngine()
    later = NOW + CLIENT_REQUEST_TOKEN_SECONDS
    claim(engine, "a", b"request", NOW)
    assert claim(engine, "a", b"other", later)
    assert not claim(engine, "a", b"other", later)


def test_the_sweep_forgets_what_has_expired_and_nothing_else() -> None:
    engine = MemoryEngine()
    for number in range(5):
        claim(engine, f"old {number}", b"request", NOW)
    claim(engine, "renewed", b"request", NOW)
    later = NOW + CLIENT_REQUEST_TOKEN_SECONDS + BEHIND_SECONDS_MAX + 5
    assert not engine.read(lambda reader: tokens.any_expired(reader, NOW))
    claim(engine, "renewed", b"other", later)
    assert engine.read(lambda reader: tokens.any_expired(reader, later))
    forgotten = [engine.write(lambda txn: tokens.forget_expired(txn, later, 4)) for _ in range(3)]
    assert forgotten == [4, 2, 0]
    assert not engine.read(lambda reader: tokens.any_expired(reader, later))
    assert not claim(engine, "renewed", b"other", later)
    left = engine.read(lambda reader: len(list(reader.scan(TOKEN_SPACE, b"token"))))
    assert left == 1


steps = st.tuples(
    st.sampled_from(["claim", "sweep"]),
    st.integers(0, 1),
    st.sampled_from([0, 1, CLIENT_REQUEST_TOKEN_SECONDS + 1]),
    st.sampled_from([0, 10, int(BEHIND_SECONDS_MAX)]),
)


@given(st.lists(steps, max_size=30))
@example([("claim", 0, 0, 0), ("sweep", 0, CLIENT_REQUEST_TOKEN_SECONDS + 1, 0), ("claim", 0, 0, 10)])
def test_a_token_counts_once_in_whatever_order_requests_and_sweeps_commit(
    steps: list[tuple[str, int, int, int]],
) -> None:
    """The clock goes on, but a request or a sweep commits up to a minute after it has read the clock."""
    engine = MemoryEngine()
    clock = int(NOW)
    expires: dict[str, int] = {}
    for kind, number, passed, behind in steps:
        clock += passed
        now, token = clock - behind, str(number)
        if kind == "claim":
            first = expires.get(token, 0) <= now
            assert claim(engine, token, b"request", now) == first
            if first:
                expires[token] = now + CLIENT_REQUEST_TOKEN_SECONDS
        else:
            for change in (tokens.forget_expired, tokens.shorten):
                engine.write(partial(change, now=now, limit=100))
    stored = engine.read(lambda reader: len(list(reader.scan(TOKEN_SPACE, b"token"))))
    queued = engine.read(lambda reader: len({name for _, name in queues.walk(reader, TOKEN_SPACE)}))
    assert stored == queued
