"""The console reads files of items in every form that `hashrange import` reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hashrange.interchange.plain_json import NoItem
from hashrange_console.items import pieces
from item_files import OTHER, PLAIN, TYPED, forms


@pytest.mark.parametrize("items", [TYPED, PLAIN], ids=["typed", "plain"])
@pytest.mark.parametrize("form", forms([]))
def test_every_form_is_read(form: str, items: Any) -> None:
    piece = forms(items)[form].encode()
    layout, start = pieces.recognised("seed", piece, "tab")
    found = [row.outcome for row in pieces.rows(layout, piece[start:], True, {"pk": "S"}, ["pk"])]
    assert found == TYPED


@pytest.mark.parametrize(
    "text", [json.dumps({"users": OTHER}), json.dumps({"RequestItems": {"users": OTHER}})]
)
def test_requests_for_other_tables_are_named(text: str) -> None:
    with pytest.raises(NoItem, match="for users, and none is for the table tab"):
        pieces.recognised("seed.json", text.encode(), "tab")
