"""`make reruns`, of which the gate takes a small dose: some modules on engines that run bodies again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hashrange import compiled
from hashrange.database import Database
from hashrange.storage.api import Engine, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange_engine_tests.reruns import Reruns

RERUNS = "HASHRANGE_RERUNS"
ROOT = Path(__file__).parents[2]
DOSE = ["background", "bills", "replica_changes", "reruns_everywhere", "streams", "tables_check"]


@pytest.mark.skipif(RERUNS in os.environ, reason="it is part of such a run")
def test_some_modules_pass() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    modules = [f"tests/unit/test_{name}.py" for name in DOSE]
    environment = {**os.environ, RERUNS: "1"}
    ended = subprocess.run([*command, *modules], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout
    assert " passed" in ended.stdout


@pytest.mark.skipif(RERUNS not in os.environ, reason="engines run bodies once")
def test_engines_run_bodies_again(tmp_path: Path) -> None:
    runs: list[bytes | None] = []

    def body(txn: Transaction) -> None:
        runs.append(txn.get(9, b"p", b""))

    engines: list[Engine] = [MemoryEngine(), EmbeddedEngine(tmp_path / "data")]
    if not compiled():  # compiled code makes the engine without looking its class up
        engines.append(Database.in_memory().engine)
    for engine in engines:
        assert isinstance(engine, Reruns)
        engine.write(body)
        engine.close()
    # A run for nothing, and one that counts; the interrupted run reads nothing.
    assert len(runs) == len(engines) * 2
