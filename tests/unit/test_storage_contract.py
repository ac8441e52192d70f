"""Every engine against the shared contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import postgres
from hashrange.storage import contract
from hashrange.storage.api import Reader
from hashrange.storage.contract.reruns import Reruns
from hashrange.storage.contract.steps import (
    check_a_body_between_any_two_steps_of_a_commit,
    check_another_engine_between_any_two_steps,
)
from hashrange.storage.drafts import Draft
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine


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


class Forgetful:
    """An engine that may be open twice on one store, and commits whatever others have changed meanwhile."""

    def __init__(self, store: MemoryEngine) -> None:
        self._store = store
        self.commit_fault: Any = None

    def write(self, body: Callable[[Any], Any]) -> Any:
        def draft(reader: Reader) -> Any:
            return body(made := Draft(reader)), made

        result, made = self._store.read(draft)
        if self.commit_fault is not None:
            self.commit_fault("before")
        made._read.clear()
        self._store.write(made.commit)
        return result

    def submit(self, body: Callable[[Any], Any], done: Callable[[Any, Any], None]) -> None:
        done(self.write(body), None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_checks_of_steps_find_lost_additions() -> None:
    store = MemoryEngine()
    with pytest.raises(AssertionError):
        check_another_engine_between_any_two_steps(lambda name: Forgetful(store))
    with pytest.raises(AssertionError):
        check_a_body_between_any_two_steps_of_a_commit(lambda name: Forgetful(MemoryEngine()))
