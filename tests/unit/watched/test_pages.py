"""The Python of the pages on faults and costs runs as it stands, and gives what its comments say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from patterns.test_guides import run

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("name", ["faults.md", "costs.md"])
def test_the_code_of_a_page_does_what_it_says(name: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 1
    names: dict[str, Any] = {}
    for block in blocks:
        run(block, names)
    names["database"].close()
    if "message" in names:
        assert f"```\n{names['message']}\n```" in (DOCS / name).read_text("utf-8"), names["message"]
