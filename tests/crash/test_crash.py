"""Twenty-five crashes, and a few through the API; `make crash` plays more."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.rounds import play


@pytest.mark.parametrize(("level", "rounds"), [("storage", 25), ("api", 10)])
def test_acknowledged_writes_survive_crashes(level: str, rounds: int, tmp_path: Path) -> None:
    assert play(level, tmp_path, rounds, seed=1) > 0
