"""The tables of packages/patterns/docs/costs.md hold what is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from endpoints import ON_AWS, OTHER_ENDPOINT
from hashrange_patterns import Table
from patterns.costs import COUNTER_ROWS, ENTITY_ROWS, FEED_ROWS, GUARD_ROWS, Row, line, measure

PAGE = Path(__file__).resolve().parents[2] / "docs" / "costs.md"


@pytest.mark.skipif(bool(OTHER_ENDPOINT) and not ON_AWS, reason="others report other units than AWS")
@pytest.mark.parametrize("row", COUNTER_ROWS + FEED_ROWS + ENTITY_ROWS + GUARD_ROWS, ids=lambda row: row.text)
def test_a_row_says_what_is_measured(client: Any, table: Table, row: Row) -> None:
    measured = line(row, measure(client, table, row))
    assert measured in PAGE.read_text(encoding="utf-8").splitlines()
