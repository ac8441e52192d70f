"""The Python of the pages on faults and costs runs as it stands, and gives what its comments say."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from guides import blocks_of, run
from plugin_runs import run_pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("name", ["faults.md", "costs.md"])
def test_the_code_of_a_page_does_what_it_says(name: str) -> None:
    blocks = blocks_of(DOCS / name)
    assert len(blocks) > 1
    names: dict[str, Any] = {}
    for block in blocks:
        run(block, names)
    names["database"].close()
    if "message" in names:
        assert f"```\n{names['message']}\n```" in (DOCS / name).read_text("utf-8"), names["message"]


PREAMBLE = """
    import boto3
    import pytest
    from hashrange.faults import throttle

    pytestmark = pytest.mark.dynamodb("orders", "customer, number:N")
    client = boto3.client("dynamodb", region_name="us-east-1")

    def store_order(customer, number):
        item = {"customer": {"S": customer}, "number": {"N": str(number)}}
        client.put_item(TableName="orders", Item=item)

    def find_order(customer, number):
        key = {"customer": {"S": customer}, "number": {"N": str(number)}}
        client.get_item(TableName="orders", Key=key)
"""


def test_the_tests_of_the_pages_pass(tmp_path: Path) -> None:
    pages = [(DOCS / name).read_text("utf-8") for name in ("faults.md", "costs.md")]
    blocks = [block for page in pages for block in re.findall(r"^```py\n(.*?)^```", page, re.M | re.S)]
    assert len(blocks) == 2
    (tmp_path / "test_page.py").write_text(textwrap.dedent(PREAMBLE) + "\n\n".join(blocks), "utf-8")
    assert "2 passed" in run_pytest(tmp_path)
