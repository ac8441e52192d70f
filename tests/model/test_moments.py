"""Something changes between two steps, on the engines in memory and on disk; on PostgreSQL in
packages/postgres/tests. HASHRANGE_EXAMPLES sets the number of histories per engine (default 10)."""

from __future__ import annotations

import os
import tempfile
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from doses import examples
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from interruptions import in_small_bites
from model.moments import MomentsMachine

HISTORIES: Final = settings(
    max_examples=int(os.environ.get("HASHRANGE_EXAMPLES", examples(10))),
    stateful_step_count=int(os.environ.get("HASHRANGE_STEPS", "40")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    report_multiple_bugs=False,
)


class MemoryMachine(MomentsMachine):
    def __init__(self) -> None:
        super().__init__()
        self.memory = MemoryEngine()

    def open_engines(self) -> list[Engine]:
        return [self.memory] * 2

    def close_engines(self) -> None:
        """What the engine holds is not kept anywhere else."""


class EmbeddedMachine(MomentsMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(prefix="hashrange-moments-")

    def open_engines(self) -> list[Engine]:
        return [EmbeddedEngine(self.directory.name)] * 2

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.directory.cleanup()


@pytest.mark.parametrize("machine", [MemoryMachine, EmbeddedMachine])
def test_what_changes_between_two_steps(
    machine: type[MomentsMachine], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_bites(monkeypatch)
    run_state_machine_as_test(machine, settings=HISTORIES)
