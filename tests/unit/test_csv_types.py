"""The types of a CSV's columns: what fields look like, and values that come back as they were."""

from __future__ import annotations

from base64 import b64encode
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.interchange import csv_types
from hashrange.values import admit_item

ODD = ('"', "[1]", '{"S": "x"}', "true", "null", "1", "1.50", "-0", "007")
TEXTS = st.text(max_size=8) | st.sampled_from(ODD)
SCALARS = st.one_of(
    TEXTS.map(lambda text: {"S": text}),
    st.decimals(-(10**9), 10**9, places=3).map(lambda number: {"N": str(number)}),
    st.binary(max_size=4).map(lambda data: {"B": b64encode(data).decode()}),
    st.booleans().map(lambda value: {"BOOL": value}),
    st.just({"NULL": True}),
    st.sets(TEXTS.filter(bool), min_size=1, max_size=3).map(lambda texts: {"SS": sorted(texts)}),
)
VALUES = st.recursive(
    SCALARS,
    lambda members: (
        st.lists(members, max_size=3).map(lambda values: {"L": values})
        | st.dictionaries(st.sampled_from("SMa"), members, max_size=2).map(lambda values: {"M": values})
    ),
    max_leaves=6,
)


@given(value=VALUES)
def test_a_value_that_is_written_looks_like_itself(value: Any) -> None:
    item = {"value": deepcopy(value)}
    admit_item(item)  # (brings numbers into their normal form)
    assert csv_types.read(csv_types.write(item["value"]), "AUTO") == item["value"]


@pytest.mark.parametrize(
    ("field", "kind", "value"),
    [
        ("", "S", {"S": ""}), ("", "N", None), ("", "AUTO", None), ("007", "AUTO", {"S": "007"}),
        ("007", "N", {"N": "7"}), (" 1e2", "N", {"N": "100"}), ("True", "BOOL", {"BOOL": True}),
        ("[1, null]", "JSON", {"L": [{"N": "1"}, {"NULL": True}]}), ('{"SS": ["a"]}', "JSON", {"SS": ["a"]}),
        ("{", "AUTO", {"S": "{"}),
    ],
)  # fmt: skip
def test_fields_of_every_type(field: str, kind: str, value: Any) -> None:
    assert csv_types.read(field, kind) == value


@pytest.mark.parametrize(("field", "kind"), [("x", "N"), ("1" * 40, "N"), ("yes", "BOOL"), ("{", "JSON")])
def test_a_wrong_field_says_why(field: str, kind: str) -> None:
    with pytest.raises(ValueError, match=r"is n|is not"):
        csv_types.read(field, kind)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (["1", "", "2.5"], "N"), (["a", "b"], "S"), (["1", "A-1"], "S"), (["true"], "BOOL"),
        (["[]", "{}"], "JSON"), (["1", "true"], "AUTO"), (["null"], "AUTO"), ([], "S"), (["01", "12"], "S"),
    ],
)  # fmt: skip
def test_the_type_of_a_column_is_proposed(fields: list[str], kind: str) -> None:
    assert csv_types.proposed(fields) == kind
