"""Every engine against the shared contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hashrange_engine_tests as contract
import postgres
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange_engine_tests.reruns import Reruns


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "engine",
    [
        "memory",
        "embedded",
        "embedded in small batches",
        "memory with reruns",
        "embedded with reruns",
        "postgresql",
        "postgresql in small batches",
        "postgresql through PgBouncer",
        "postgresql with reruns",
    ],
)
def test_contract(engine: str, check: contract.Check, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    batch_bodies_max = 3 if "small" in engine else 1_000

    def opener(name: str) -> Any:
        if engine.startswith("memory"):
            inner: Any = MemoryEngine()
        elif engine.startswith("postgresql"):
            pooled = engine.endswith("PgBouncer")
            url = request.getfixturevalue("pooler").url if pooled else request.getfixturevalue("postgres_url")
            inner = postgres.engine(url, schema=postgres.new_schema(), batch_bodies_max=batch_bodies_max)
        else:
            inner = EmbeddedEngine(tmp_path / name, batch_bodies_max=batch_bodies_max)
        return Reruns(inner) if engine.endswith("reruns") else inner

    check(opener)


@pytest.mark.parametrize("check", contract.DURABLE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("engine", ["embedded", "postgresql"])
def test_durable_contract(
    engine: str, check: contract.Check, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if engine == "embedded":
        check(lambda name: EmbeddedEngine(tmp_path / name))
        return
    url, schema = request.getfixturevalue("postgres_url"), postgres.new_schema()
    check(lambda name: postgres.engine(url, schema=schema))


@pytest.mark.parametrize("check", contract.SHARED_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("reruns", [False, True], ids=["", "with reruns"])
def test_shared_contract(check: contract.Check, reruns: bool, postgres_url: str) -> None:
    schema = postgres.new_schema()

    def opener(name: str) -> Any:
        engine = postgres.engine(postgres_url, schema=schema)
        return Reruns(engine) if reruns else engine

    check(opener)
