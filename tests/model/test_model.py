"""Random histories against the reference model, on both engines.

HASHRANGE_EXAMPLES sets the number of histories per engine (default 40); run a few thousand before a
release.
"""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from hashrange.storage.api import Engine
from hashrange.storage.contract.reruns import Reruns
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.background import sweeps
from model.machine import TableMachine

_HISTORIES = settings(
    max_examples=int(os.environ.get("HASHRANGE_EXAMPLES", "40")),
    stateful_step_count=int(os.environ.get("HASHRANGE_STEPS", "40")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    report_multiple_bugs=False,
)


class MemoryMachine(TableMachine):
    def open_engine(self) -> Engine:
        return MemoryEngine()


class RerunsMachine(TableMachine):
    """Every body is run several times, and must do the same each time."""

    def open_engine(self) -> Engine:
        return Reruns(MemoryEngine(), alone=True)


class EmbeddedMachine(TableMachine):
    can_reopen = True

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(prefix="hashrange-model-")

    def open_engine(self) -> Engine:
        return EmbeddedEngine(self.directory.name)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.directory.cleanup()


@pytest.mark.parametrize("machine", [MemoryMachine, EmbeddedMachine, RerunsMachine])
def test_history(machine: type[TableMachine], monkeypatch: pytest.MonkeyPatch) -> None:
    # Background work in bites of a few items, so that histories of a few items take several bites.
    monkeypatch.setattr(sweeps, "BITE_ITEMS", 3)
    run_state_machine_as_test(machine, settings=_HISTORIES)
