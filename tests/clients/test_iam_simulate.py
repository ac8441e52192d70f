"""Random policies, decided here and by another simulator of IAM: a small dose of `make judges`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judges.cases import ACCOUNT, TABLE, Case
from judges.comparing import compare, evaluated, outcome
from judges.outside import decide, is_installed

needs_simulator = pytest.mark.skipif(
    not is_installed(), reason="the simulator of IAM is not installed: `make gate` does it with Node.js 20"
)
GET = {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": TABLE}
ALICE = Case(f"arn:aws:iam::{ACCOUNT}:user/alice", "dynamodb:GetItem", TABLE, {"aws:username": "alice"})


@needs_simulator
def test_decisions_on_random_policies_differ_for_known_reasons_only() -> None:
    made = compare(2_000, seed=7)
    assert made.unexplained == []
    assert not made.errors
    assert sum(made.known.values()) < 60
    assert min(made.agreed[name] for name in ("Allowed", "ImplicitlyDenied", "ExplicitlyDenied")) > 100


@needs_simulator
def test_a_wrong_decision_would_be_noticed() -> None:
    """Otherwise a simulator that agrees to everything would pass."""
    refused = replace(ALICE, identity=[{"Version": "2012-10-17", "Statement": [GET | {"Effect": "Deny"}]}])
    allowed = replace(ALICE, identity=[{"Version": "2012-10-17", "Statement": [GET]}])
    verdicts = decide([ALICE, refused, allowed])
    assert [verdict.decision for verdict in verdicts] == ["ImplicitlyDenied", "ExplicitlyDenied", "Allowed"]
    assert [outcome(evaluated(case)) for case in (ALICE, refused, allowed)] == [
        verdict.decision for verdict in verdicts
    ]
