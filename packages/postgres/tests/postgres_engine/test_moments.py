"""Something changes between two steps, on two servers over one PostgreSQL: tests/model/moments.py.

HASHRANGE_EXAMPLES sets the number of histories, as for the other engines; here it is a fifth of it.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

import postgres
from hashrange.storage.api import Engine
from hashrange_postgres import PostgresEngine
from interruptions import in_small_bites
from model.moments import MomentsMachine

_HISTORIES = settings(
    max_examples=max(int(os.environ.get("HASHRANGE_EXAMPLES", "10")) // 5, 1),
    stateful_step_count=int(os.environ.get("HASHRANGE_STEPS", "40")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    report_multiple_bugs=False,
)


class PostgresMachine(MomentsMachine):
    def __init__(self) -> None:
        super().__init__()
        self.schema = postgres.new_schema()

    def open_engines(self) -> list[Engine]:
        return [PostgresEngine(postgres.shared().url, schema=self.schema) for _ in range(2)]


def test_what_changes_between_two_steps(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_small_bites(monkeypatch)
    run_state_machine_as_test(PostgresMachine, settings=_HISTORIES)
