"""Seed files are read by the form of their content, in every place where items are loaded."""

from __future__ import annotations

import gzip
import io
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.interchange.compression import unreadable
from hashrange.interchange.item_files import rows
from hashrange.interchange.plain_json import NoItem
from hashrange.interchange.rows import Bad
from item_files import OTHER, PLAIN, TYPED, forms, puts


def compressed(content: bytes, compression: str) -> bytes:
    if compression == "gzip":
        return gzip.compress(content)
    if compression == "zstd":
        if unreadable("ZSTD"):
            pytest.skip("needs backports.zstd")
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        return bytes(zstd.compress(content))
    return content


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
@pytest.mark.parametrize("items", [TYPED, PLAIN], ids=["typed", "plain"])
@pytest.mark.parametrize("form", forms([]))
def test_every_form_is_read(form: str, items: Any, compression: str) -> None:
    content = compressed(forms(items)[form].encode(), compression)
    assert list(rows(io.BytesIO(content), "tab")) == TYPED


@pytest.mark.parametrize(
    "text", [json.dumps({"users": OTHER}), json.dumps({"RequestItems": {"users": OTHER}})]
)
def test_requests_for_other_tables_are_named(text: str) -> None:
    with pytest.raises(NoItem, match="for users, and none is for the table tab"):
        list(rows(io.BytesIO(text.encode()), "tab"))


def test_a_request_to_delete_is_no_item() -> None:
    requests = [*puts(TYPED[:1]), {"DeleteRequest": {"Key": {"pk": {"S": "a"}}}}]
    first, second = rows(io.BytesIO(json.dumps({"tab": requests}).encode()), "tab")
    assert first == TYPED[0]
    assert isinstance(second, Bad)
    assert "to delete an item" in second.message


@pytest.mark.parametrize(
    "text", ['{"pk": "a", "Items": [{"x": 1}]}', '{"pk": "a", "tab": [{"PutRequest": 1}]}']
)
def test_an_item_with_a_list_is_an_item(text: str) -> None:
    (item,) = rows(io.BytesIO(text.encode()), "tab")
    assert not isinstance(item, Bad)
    assert item["pk"] == {"S": "a"}


@pytest.mark.parametrize("form", ["list", "lines", "export", "requests over lines"])
def test_a_file_that_was_cut_off_says_so(form: str) -> None:
    content = gzip.compress(forms(TYPED * 500)[form].encode())
    *_, last = rows(io.BytesIO(content[: len(content) // 2]), "tab")
    assert isinstance(last, Bad)
    assert last.is_end
    assert "decompressed as GZIP" in last.message


@given(st.binary(max_size=60) | st.text('[]{}:,"\\\n ItemsPutRequest1', max_size=60).map(str.encode))
def test_any_content_is_read_or_refused(content: bytes) -> None:
    try:
        found = list(rows(io.BytesIO(content), "tab"))
    except NoItem:
        return
    assert all(isinstance(row, (dict, Bad)) for row in found)
