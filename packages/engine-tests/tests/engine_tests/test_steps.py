"""The checks find engines that break the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hashrange.storage.api import Reader
from hashrange.storage.drafts import Draft
from hashrange.storage.memory import MemoryEngine
from hashrange_engine_tests.steps import (
    check_a_body_between_any_two_steps_of_a_commit,
    check_another_engine_between_any_two_steps,
)


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
