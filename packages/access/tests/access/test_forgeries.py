"""A small dose of `make forgeries`: changed requests that nobody has signed are refused."""

from __future__ import annotations

import hmac
import logging
from dataclasses import replace
from typing import Any

import pytest

from forgeries.attack import attack
from forgeries.genuine import presigned, signed
from forgeries.meaning import reasons
from hashrange_access import signatures


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "hashrange.protocol")  # it logs each refusal


def test_no_changed_request_is_taken_unless_the_change_has_no_meaning() -> None:
    tally = attack(4_000, seed=1)
    assert tally.forged == []
    assert sum(tally.refused.values()) > 3_000
    # The liberties that a signature leaves have been tried, too.
    for reason in ("a header that is not signed", "the order of the query", "the spelling of the query"):
        assert tally.without_meaning[reason] > 0, tally.without_meaning


def _any_white_space(value: bytes) -> bytes:
    return b" ".join(part.encode("latin-1") for part in value.decode("latin-1").split())


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (hmac, "compare_digest", lambda own, given: True),
        (hmac, "compare_digest", lambda own, given: own[:2] == given[:2]),
        # A no-break space or a separator of records would be lost.
        (signatures, "_value", _any_white_space),
    ],
)
def test_the_attack_finds_what_a_weak_verifier_takes(
    owner: Any, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, broken)
    assert attack(1_000, seed=2).forgeries > 0


@pytest.mark.parametrize("sent", [signed(query="?a=1&b=2"), presigned(b"{}", 60, query="?a=1&b=2")])
def test_a_reason_is_only_found_for_a_change_without_meaning(sent: Any) -> None:
    agent = replace(sent, headers=sent.headers | {b"user-agent": b"x"})
    assert reasons(sent, agent) == ["a header that is not signed"]
    order = replace(sent, target=sent.target.replace(b"a=1&b=2", b"b=2&a=1"))
    assert reasons(sent, order) == ["the order of the query"]
    spelling = replace(sent, target=sent.target.replace(b"a=1", b"%61=1"))
    assert reasons(sent, spelling) == ["the spelling of the query"]
    spaces = replace(sent, headers=sent.headers | {b"host": b"  " + sent.headers[b"host"]})
    assert reasons(sent, spaces) == ["white space in a header"]
    for changed in (
        replace(sent, target=sent.target.replace(b"a=1", b"a=2")),
        replace(sent, headers=sent.headers | {b"x-amz-target": b"DynamoDB_20120810.DeleteTable"}),
        replace(sent, body=b"{} "),
        replace(sent, method=b"GET"),
        replace(sent, headers=sent.headers | {b"x-amz-security-token": b"x"}),
    ):
        assert reasons(sent, changed) == []
