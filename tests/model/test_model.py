"""Random histories against the reference model, on all engines.

HASHRANGE_EXAMPLES sets the number of histories per engine (default 5; the gate runs 15 on the compiled form),
of which PostgreSQL runs a tenth. Run a few thousand before a release.
"""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

import postgres
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.background import sweeps
from hashrange_engine_tests.reruns import Reruns
from model.vector_machine import VectorMachine

_HISTORIES = settings(
    max_examples=int(os.environ.get("HASHRANGE_EXAMPLES", "5")),
    stateful_step_count=int(os.environ.get("HASHRANGE_STEPS", "40")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    report_multiple_bugs=False,
)


class MemoryMachine(VectorMachine):
    def open_engine(self) -> Engine:
        return MemoryEngine()


class RerunsMachine(VectorMachine):
    """Every body is run several times, and must do the same each time."""

    def open_engine(self) -> Engine:
        return Reruns(MemoryEngine(), alone=True)


class EmbeddedMachine(VectorMachine):
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


class PostgresMachine(VectorMachine):
    can_reopen = True

    def __init__(self) -> None:
        super().__init__()
        self.schema = postgres.new_schema()

    def open_engine(self) -> Engine:
        return postgres.engine(postgres.shared().url, schema=self.schema)


@pytest.mark.parametrize("machine", [MemoryMachine, EmbeddedMachine, RerunsMachine, PostgresMachine])
def test_history(machine: type[VectorMachine], monkeypatch: pytest.MonkeyPatch) -> None:
    histories = _HISTORIES
    if machine is PostgresMachine:
        if not postgres.installed():
            pytest.skip("PostgreSQL is not installed")
        histories = settings(_HISTORIES, max_examples=max(_HISTORIES.max_examples // 10, 1))
    # Background work in bites of a few items, so that histories of a few items take several bites.
    monkeypatch.setattr(sweeps, "BITE_ITEMS", 3)
    run_state_machine_as_test(machine, settings=histories)
