"""The bystander bench: what it counts as a wait, its table and verdict, its shapes and its connections."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench import bystander, equals
from bench.bystander import Row, Sent, Waits, is_met, render, summarize, verdict
from bench.connection import Closed, Connection, content_length, send_all
from bench.worst import SHAPES, WAYS, Stage, refusals

QUIET = Waits(1.0, 0.5)


def test_a_long_wait_counts_for_the_requests_that_could_not_be_sent_in_it() -> None:
    waits = summarize([0.001] * 900 + [1.0], interval_seconds=0.01)
    assert waits.worst_ms == pytest.approx(1_000)
    # A hundred of a thousand would have waited, so the 99th percentile is among these.
    assert 850 < waits.p99_ms < 1_000
    assert summarize([], 0.01) == Waits(0.0, 0.0)


def test_the_worst_row_is_first_and_the_verdict_counts_those_that_miss_the_goal() -> None:
    rows = [
        Row("calm", "single", Sent([0.5, 0.1]), QUIET, QUIET, QUIET),
        Row("bad-update", "single", Sent(), QUIET, Waits(400, 5), QUIET),
        Row("bad-get", "leaving", Sent(), Waits(500, 5), QUIET, QUIET),
    ]
    assert [is_met(row) for row in rows] == [True, False, False]
    lines = render(rows).splitlines()
    assert [line.split()[1] for line in lines[2:5]] == ["bad-get", "bad-update", "calm"]
    assert lines[-1] == verdict(rows)
    assert "MISSED in 2 of 3 rows" in lines[-1]
    assert verdict(rows[:1]).startswith("MET")


@pytest.mark.parametrize(
    "row",
    [
        Row("x", "single", Sent(), Waits(1, 1, failed=1), QUIET, QUIET),
        Row("x", "single", Sent(), QUIET, QUIET, QUIET, "could not be set up"),
    ],
)
def test_what_could_not_be_measured_does_not_meet_the_goal(row: Row) -> None:
    assert not is_met(row)


def test_every_shape_has_a_summary_and_known_ways() -> None:
    assert len(SHAPES) > 50
    for name, shape in SHAPES.items():
        assert shape.name == name
        assert shape.summary
        assert shape.ways
        assert set(shape.ways) <= set(WAYS)
    assert set(WAYS) == set(bystander._SENDERS)


@pytest.mark.parametrize("name", ["empty-members", "wrong-types", "deep-json", "unknown-members"])
def test_requests_made_of_bytes_have_the_length_that_they_say(name: str) -> None:
    (request,) = SHAPES[name].requests(Stage(1))
    head, _, body = request.partition(b"\r\n\r\n")
    assert content_length(head + b"\r\n") == len(body) >= refusals.MEGABYTE * 0.9
    if name != "deep-json":
        json.loads(body)


@contextmanager
def _answering(answers: bytes) -> Iterator[int]:
    """A server of one connection: it sends these bytes, whatever it is asked, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.recv(1)
                accepted.sendall(answers)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_answers_come_in_order_and_an_early_end_is_reported() -> None:
    answers = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 404 X\r\nX: y\r\n\r\nHTTP/1.1 200"
    with _answering(answers) as port, Connection(port, 10) as connection:
        connection.send(b"x")
        assert connection.answer() == (200, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", b"{}")
        assert connection.answer() == (404, b"HTTP/1.1 404 X\r\nX: y\r\n", b"")
        with pytest.raises(Closed):
            connection.answer()


@pytest.mark.parametrize(
    ("body", "good"), [(b'{"UnprocessedItems":{}}', True), (b'{"UnprocessedItems":{"t":[]}}', False)]
)
def test_tables_are_filled_only_if_nothing_is_left_unprocessed(body: bytes, good: bool) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with _answering(answer) as port:
        if good:
            assert send_all(port, [b"x"], connections=1) == 1
        else:
            with pytest.raises(ValueError, match="nothing unprocessed"):
                send_all(port, [b"x"], connections=1)


def test_the_share_of_the_slowest_of_equal_connections() -> None:
    fair = equals.summarize("get", [[0.001, 0.002, 0.003]] * 4)
    assert (fair.p50_ms, fair.p99_ms, fair.worst_ms, fair.slowest_share) == (2.0, 3.0, 3.0, 1.0)
    assert fair.is_met
    starved = equals.summarize("get", [[0.001] * 50, [0.001] * 49 + [0.005], [0.1]])
    assert starved.slowest_share == pytest.approx(3 / 101)
    assert not starved.is_met
    text = bystander.render_equals([fair, starved])
    assert "MISSED by get" in text
    assert "3%" in text
    assert "MET in all 1 rows" in bystander.render_equals([fair])


def test_large_requests_have_a_goal_of_their_own() -> None:
    waits = Waits(200, 5)
    assert not is_met(Row("x", "single", Sent(), waits, QUIET, QUIET))
    assert is_met(Row("x", "single", Sent(), waits, waits, QUIET, is_large=True))
    assert not is_met(Row("x", "single", Sent(), QUIET, Waits(301, 5), QUIET, is_large=True))
