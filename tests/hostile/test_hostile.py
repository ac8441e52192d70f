"""A few thousand mutations, and the parts of a run; `make hostile` plays more."""

from __future__ import annotations

import zlib
from pathlib import Path

import orjson
import pytest

from bench.servers import running
from hostile.answers import find_fault
from hostile.growth import Mixer, Report
from hostile.mutations import KINDS, Mutator, encode
from hostile.run import Run, Tally
from hostile.seeds import Seeds, missing_operations
from hostile.server import (
    EVERY_OPTION,
    Target,
    attacked,
    error_lines,
    place_of,
    problems_of,
    this_python,
    with_options,
)
from hostile.shrinking import shrink

MUTATIONS = 3_000
STEPS = 600
STEPS_MAX = 20_000


def test_broken_requests_are_refused_and_harm_nothing(tmp_path: Path) -> None:
    notes: list[str] = []
    with attacked(this_python(memory=False), tmp_path) as target:
        tally = Run(target, 1, notes.append).play(MUTATIONS)
    assert tally.is_good, "\n".join([*notes, *tally.log_errors])
    assert sum(tally.outcomes.values()) >= MUTATIONS * 0.9


SENT = b"POST / HTTP/1.1\r\nHost: x\r\n\r\n".ljust(100)


def _answer(status: int, document: object) -> tuple[int, bytes, bytes]:
    body = orjson.dumps(document)
    head = b"HTTP/1.1 %d X\r\nx-amz-crc32: %d\r\n" % (status, zlib.crc32(body))
    return status, head, body


_ERROR = {"__type": "a#ValidationException", "message": "m"}


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (_answer(200, {}), None),
        (_answer(400, _ERROR), None),
        (_answer(500, _ERROR), "status 500"),
        (_answer(302, {}), "status 302"),
        (_answer(200, []), "no JSON object"),
        (_answer(400, {"message": "m"}), "an error without its name"),
        (_answer(400, {**_ERROR, "message": 1}), "an error whose message is not a string"),
        (_answer(400, {**_ERROR, "message": "m" * 70_000}), "an error of 70047 bytes for a request of 100"),
        ((200, b"HTTP/1.1 200 X\r\nx-amz-crc32: 1\r\n", b"{}"), "a wrong checksum"),
        ((200, b"HTTP/1.1 200 X\r\nx-amz-crc32: 3217743393\r\n", b"{,"), "no JSON"),
        ((400, b"HTTP/1.1 400 X\r\nConnection: close\r\n", b""), "status 400 and the end of the connection"),
    ],
)
def test_an_improper_answer_is_reported(answer: tuple[int, bytes, bytes], fault: str | None) -> None:
    assert find_fault("values", SENT, *answer) == fault


def test_broken_http_may_be_answered_by_others_than_the_api() -> None:
    for answer in (
        (400, b"HTTP/1.1 400 X\r\nConnection: close\r\n", b""),
        (404, b"HTTP/1.1 404 X\r\n", b"<UnknownOperationException/>\n"),
        (501, b"HTTP/1.1 501 X\r\nConnection: close\r\n", b""),
    ):
        assert find_fault("framing", SENT, *answer) is None
    refused = (501, b"HTTP/1.1 501 X\r\nConnection: close\r\n", b"")
    assert find_fault("values", SENT, *refused) == "status 501 and the end of the connection"
    assert find_fault("framing", SENT, 501, b"", b"") == "status 501"
    assert find_fault("framing", SENT, 503, b"", b"") == "status 503"


def test_only_one_operation_and_what_is_no_gzip_may_fail_inside_the_service() -> None:
    kind = "com.amazonaws.dynamodb.v20120810#InternalServerError"
    message = {"__type": kind, "message": "Internal server error"}
    answer = _answer(500, message)
    assert find_fault("values", SENT, *answer, "ListGlobalTables") is None
    assert find_fault("values", SENT, *answer, "ListTables") == "status 500"
    coded = SENT.replace(b"Host:", b"Content-Encoding: gzip\r\nHost:")
    assert find_fault("framing", coded, *answer, "ListTables") is None
    assert find_fault("framing", coded, *_answer(500, message | {"more": ""}), "ListTables") == "status 500"


def test_only_operations_without_an_answer_may_say_nothing() -> None:
    answer = (200, b"HTTP/1.1 200 X\r\nx-amz-crc32: 0\r\n", b"")
    assert find_fault("values", SENT, *answer, "TagResource") is None
    assert find_fault("values", SENT, *answer, "PutItem") == "no JSON"


def test_mutations_of_one_seed_are_the_same_and_of_every_kind() -> None:
    first, second = (Mutator(Seeds(), "1/0") for _ in range(2))
    drawn = [first.draw() for _ in range(500)]
    assert drawn == [second.draw() for _ in range(500)]
    assert {mutation.kind for mutation in drawn} == set(KINDS)
    assert len({mutation.operation for mutation in drawn}) > 20
    assert Mutator(Seeds(), "2/0").draw() != drawn[0]


def test_every_operation_is_attacked() -> None:
    assert missing_operations() == set()


def test_very_deep_values_are_made_as_text() -> None:
    assert encode(["\u00011 2"]) == b'[{"L":[{"L":[{"S":"x"}]}]}]'


def test_surrogates_and_large_numbers_are_sent_as_json_has_them() -> None:
    assert encode({"a": "\ud800", "b": 2**64}) == b'{"a":"\\ud800","b":18446744073709551616}'


def test_a_failing_request_is_made_small() -> None:
    request = {"keep": [{"x": "culprit" * 10}, "rest"], "other": {"a": {"b": [1, 2, 3]}}}
    small = shrink(encode(request), lambda body: b"culprit" in body)
    assert b"culprit" in small
    assert len(small) <= len(b'{"keep":"culpritc"}')
    assert shrink(b"{,culprit and more", lambda body: b"culprit" in body) == b"culprit"


_LOG = """2026 ERROR hashrange.protocol internal error
Traceback (most recent call last):
  File "/x/hashrange/database.py", line 5, in submit
  File "/x/hashrange/tables/items.py", line 17, in apply
KeyError: 'a'
"""


def test_the_place_of_an_internal_error_is_read_from_the_log() -> None:
    assert place_of(_LOG) == "tables/items.py:17 apply: KeyError: 'a'"
    assert place_of(_LOG.replace("KeyError: 'a'", "RecursionError: maximum")) == "too deep a recursion"
    assert place_of("2026 INFO started\n") == ""
    assert error_lines(_LOG) == _LOG.splitlines()[:2]


def test_a_run_is_good_only_without_failures_and_growth() -> None:
    flat = [100 << 20] * 20
    assert Tally(memory=flat).is_good
    assert Tally(memory=[50 << 20, 80 << 20, *flat]).is_good
    assert not Tally(memory=[(100 + 10 * epoch) << 20 for epoch in range(20)]).is_good
    assert not Tally(log_errors=["x"]).is_good


def test_mixed_control_operations_succeed_and_leave_no_error(tmp_path: Path) -> None:
    with attacked(this_python(memory=False), tmp_path) as target:
        mixer = Mixer(target, 1)
        for count in range(STEPS_MAX):
            mixer.step()
            # Which steps succeed depends on how fast the server makes and restores tables.
            if count >= STEPS and mixer.report.refused() == set():
                break
        report = mixer.end()
    assert report.errors == []
    assert report.refused() == set()
    assert len(report.succeeded()) > 25


def test_a_store_is_sound_after_mixed_operations_with_every_option_and_then_with_none(tmp_path: Path) -> None:
    plain = this_python(memory=False)
    for number, server in enumerate((with_options(plain, *EVERY_OPTION), plain)):
        with running(server, tmp_path) as started:
            mixer = Mixer(Target(started), number)
            for _ in range(STEPS):
                mixer.step()
            report = mixer.end()
        assert report.errors == []
        assert problems_of(plain, tmp_path) == ""


def test_memory_that_ends_above_its_bound_is_reported() -> None:
    flat = [(float(second), 100 << 20) for second in range(600)]
    assert Report(samples=flat).is_good
    assert Report(samples=[(0.0, 50 << 20), *flat[1:-1], (600.0, 400 << 20)]).is_good  # a moment is no growth
    assert not Report(samples=[(second, int(count * (1 + second / 600))) for second, count in flat]).is_good
    assert not Report(samples=flat, errors=["x"]).is_good
