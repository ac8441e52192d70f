"""Runs the golden scripts of operations and statements on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_scripts import SCRIPTS, rewritten
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 30


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}-{script.stem}")
@pytest.mark.parametrize("engine_name", ["memory", "embedded"])
def test_script(script: Path, engine_name: str, tmp_path: Path) -> None:
    text = script.read_text(encoding="utf-8")
    engine: Engine = MemoryEngine() if engine_name == "memory" else EmbeddedEngine(tmp_path / "data")
    try:
        assert list(rewritten(text, engine)) == text.strip("\n").split("\n\n")
    finally:
        engine.close()
