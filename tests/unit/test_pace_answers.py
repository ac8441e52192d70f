"""Encoding an answer piece by piece gives what encoding it at once gives."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.pace import answers
from hashrange.server.frames import Frames

FRAGMENTS = st.sampled_from([b"{}", b'{"pk":{"S":"x"}}', b'{"l":{"L":[{"N":"1"}]}}']).map(orjson.Fragment)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5) | FRAGMENTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=40,
)


@given(VALUES)
def test_the_pieces_are_the_whole(value: Any) -> None:
    assert b"".join(answers.pieces(value)) == orjson.dumps(value)


@given(VALUES)
def test_the_frame_of_pieces_is_that_of_the_whole(value: Any) -> None:
    frames = Frames(0)
    framed = frames.success_in_pieces(answers.pieces(value)), frames.success(orjson.dumps(value))
    in_pieces, whole = (re.sub(rb"x-amzn-RequestId: [A-Z0-9]+", b"", frame) for frame in framed)
    assert in_pieces == whole


@pytest.mark.parametrize("count", [1, answers.MEMBERS_MAX])
def test_a_batch_has_a_piece_for_each_member(count: int) -> None:
    """Encoding keeps the interpreter's lock."""
    item = orjson.Fragment(b'{"b":{"S":"%b"}}' % (b"x" * 1_000))
    for members in ([item] * count, [{"TableName": "table", "Item": item}] * count):
        for responses in (members, {"table": members}):
            found = answers.pieces({"Responses": responses, "UnprocessedKeys": {}})
            assert max(map(len, found)) < 1_100
            assert b"".join(found) == orjson.dumps({"Responses": responses, "UnprocessedKeys": {}})


def test_a_page_is_one_piece() -> None:
    page = {"Items": [orjson.Fragment(b"{}")] * 10_000, "Count": 10_000}
    found = answers.pieces(page)
    assert len(found) < 10
    assert b"".join(found) == orjson.dumps(page)
