"""Broken requests with everything on that looks at requests; `python -m hostile.onlookers` sends more."""

from __future__ import annotations

from pathlib import Path

from hashrange.operations import REGISTRY
from hostile.onlookers import compare, full_requests

MUTATIONS = 600


def test_no_onlooker_changes_an_answer_or_fails(tmp_path: Path) -> None:
    outcome = compare(tmp_path, each=1, mutations=MUTATIONS, seed="1")
    assert outcome.faults == []
    assert outcome.sent > 3_000


def test_the_requests_have_all_operations() -> None:
    """Those that botocore's model lacks are new; the others come with every member."""
    assert set(REGISTRY) - set(full_requests()) <= {"SearchVectors"}
