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
@pytest.mark.parametrize(
    "engine",
    ["memory", "embedded", "embedded in small batches", "memory with reruns", "embedded with reruns"],
)
def test_contract(engine: str, check: contract.Check, tmp_path: Path) -> None:
    batch_bodies_max = 3 if "small" in engine else 4_096

    def opener(name: str) -> Any:
        if engine.startswith("memory"):
            inner: Any = MemoryEngine()
        else:
            inner = EmbeddedEngine(tmp_path / name, batch_bodies_max=batch_bodies_max)
        return Reruns(inner) if engine.endswith("reruns") else inner

    check(opener)


@pytest.mark.parametrize("check", contract.DURABLE_CHECKS, ids=lambda check: check.__name__)
def test_durable_contract(check: contract.Check, tmp_path: Path) -> None:
    check(lambda name: EmbeddedEngine(tmp_path / name))
