"""Runs the golden scripts of operations and statements on both engines, and with bodies run several times."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_scripts import SCRIPTS, rewritten
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange_engine_tests.reruns import Reruns


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 30


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}-{script.stem}")
@pytest.mark.parametrize("engine_name", ["memory", "embedded", "memory with reruns"])
def test_script(script: Path, engine_name: str, tmp_path: Path) -> None:
    text = script.read_text(encoding="utf-8")
    engine: Engine = EmbeddedEngine(tmp_path / "data") if engine_name == "embedded" else MemoryEngine()
    if engine_name.endswith("reruns"):
        engine = Reruns(engine, alone=True)
    try:
        assert list(rewritten(text, engine)) == text.strip("\n").split("\n\n")
    finally:
        engine.close()
