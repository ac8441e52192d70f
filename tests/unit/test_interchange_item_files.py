"""Seed files are read by the form of their content, in every place where items are loaded."""

from __future__ import annotations

import gzip
import io
import json
import sys
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.interchange.compression import unreadable
from hashrange.interchange.item_files import rows
from hashrange.interchange.plain_json import NoItem
from hashrange.interchange.rows import Bad
from hashrange_console.items import pieces

TYPED: Final = [{"pk": {"S": "a"}, "n": {"N": "1.5"}}, {"pk": {"S": "b"}}]
PLAIN: Final = [{"pk": "a", "n": 1.5}, {"pk": "b"}]
OTHER: Final = [{"PutRequest": {"Item": {"pk": {"S": "other"}}}}]


def puts(items: Any) -> Any:
    return [{"PutRequest": {"Item": item}} for item in items]


def as_lines(rows_: Any) -> str:
    return "\n" + "".join(json.dumps(row) + "\n" for row in rows_)


def forms(items: Any) -> dict[str, str]:
    """The items in all forms that programs write."""
    requests = {"users": OTHER, "none": [], "tab": puts(items)}
    return {
        "list": json.dumps(items),
        "list over lines": json.dumps(items, indent=2),
        "list of puts": json.dumps(puts(items)),
        "lines": as_lines(items),
        "export": as_lines({"Item": item} for item in items),
        "answer": json.dumps({"Items": items, "Count": 2, "ScannedCount": 2}),
        "answer over lines": json.dumps({"Items": items, "Count": 2}, indent=4),
        "items alone": json.dumps({"Items": items}),
        "requests": json.dumps(requests),
        "requests over lines": json.dumps(requests, indent=2),
        "requests of one table": json.dumps({"tab": puts(items)}, indent=1),
        "requests by ARN": json.dumps({"arn:aws:dynamodb:eu-west-1:1:table/tab": puts(items)}),
        "requests of a command": json.dumps({"RequestItems": requests, "ReturnConsumedCapacity": "TOTAL"}),
    }


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


@pytest.mark.parametrize("items", [TYPED, PLAIN], ids=["typed", "plain"])
@pytest.mark.parametrize("form", forms([]))
def test_the_console_reads_every_form_too(form: str, items: Any) -> None:
    piece = forms(items)[form].encode()
    layout, start = pieces.recognised("seed", piece, "tab")
    found = [row.outcome for row in pieces.rows(layout, piece[start:], True, {"pk": "S"}, ["pk"])]
    assert found == TYPED


@pytest.mark.parametrize(
    "text", [json.dumps({"users": OTHER}), json.dumps({"RequestItems": {"users": OTHER}})]
)
def test_requests_for_other_tables_are_named(text: str) -> None:
    with pytest.raises(NoItem, match="for users, and none is for the table tab"):
        list(rows(io.BytesIO(text.encode()), "tab"))
    with pytest.raises(NoItem, match="for users, and none is for the table tab"):
        pieces.recognised("seed.json", text.encode(), "tab")


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
