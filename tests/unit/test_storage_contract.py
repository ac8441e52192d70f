"""Every engine against the shared contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hashrange.storage import contract
from hashrange.storage.contract.reruns import Reruns
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("engine", ["memory", "embedded", "memory with reruns", "embedded with reruns"])
def test_contract(engine: str, check: contract.Check, tmp_path: Path) -> None:
    def opener(name: str) -> Any:
        inner: Any = MemoryEngine() if engine.startswith("memory") else EmbeddedEngine(tmp_path / name)
        return Reruns(inner) if engine.endswith("reruns") else inner

    check(opener)


@pytest.mark.parametrize("check", contract.DURABLE_CHECKS, ids=lambda check: check.__name__)
def test_durable_contract(check: contract.Check, tmp_path: Path) -> None:
    check(lambda name: EmbeddedEngine(tmp_path / name))
