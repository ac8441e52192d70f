"""Crashes of the process and of the machine; `make crash` and `make machine-crash` play more."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash import machine
from crash.rounds import play


@pytest.mark.parametrize(
    ("level", "rounds"),
    [("storage", 25), ("api", 10), ("history", 10), ("transfers", 10), ("vectors", 10)],
)
def test_acknowledged_writes_survive_crashes(level: str, rounds: int, tmp_path: Path) -> None:
    assert play(level, tmp_path, rounds, seed=1) > 0


def test_acknowledged_writes_survive_crashes_of_the_machine(tmp_path: Path) -> None:
    library = machine.build(tmp_path)
    if library is None:
        pytest.skip("crashes of the machine need Linux and a C compiler, cc")
    assert machine.play(tmp_path, library, 30, seed=1) > 0
