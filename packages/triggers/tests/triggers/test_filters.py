"""Filter patterns: the examples of the documentation, each operator, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange_triggers import filters

RECORD: dict[str, Any] = {
    "eventName": "MODIFY",
    "awsRegion": "us-east-1",
    "dynamodb": {
        "Keys": {"CustomerName": {"S": "AnyCompany Industries"}},
        "NewImage": {
            "AccountManager": {"S": "Pat Candella"},
            "PaymentTerms": {"S": "60 days"},
            "Amount": {"N": "101.50"},
            "Open": {"BOOL": True},
            "Empty": {"S": ""},
            "Tags": {"SS": ["red", "green"]},
            "Lines": {"L": [{"M": {"sku": {"S": "A-1"}}}, {"M": {"sku": {"S": "B-2"}}}]},
            "Nothing": {"NULL": True},
        },
        "SizeBytes": 26,
        "SequenceNumber": None,
    },
}


def image(**rules: Any) -> dict[str, Any]:
    return {"dynamodb": {"NewImage": rules}}


MATCHING = [
    # [docs] Lambda Developer Guide, "Using event filtering with a DynamoDB event source"
    {"dynamodb": {"Keys": {"CustomerName": {"S": ["AnyCompany Industries"]}}}},
    {
        "dynamodb": {
            "NewImage": {
                "AccountManager": {"S": ["Pat Candella", "Shirley Rodriguez"]},
                "PaymentTerms": {"S": ["60 days"]},
            }
        }
    },
    image(AccountManager={"S": [{"exists": True}]}),
    image(ManagerId={"S": [{"exists": False}]}),
    image(Open={"BOOL": [True]}),
    # [docs] "Filter rule syntax"
    {"eventName": ["INSERT", "MODIFY"]},
    {"dynamodb": {"SequenceNumber": [None]}},
    image(Empty={"S": [""]}),
    {"dynamodb": {"SizeBytes": [26]}},
    {"dynamodb": {"SizeBytes": [{"numeric": [">", 20, "<=", 26]}]}},
    {"dynamodb": {"SizeBytes": [{"numeric": ["=", 26]}]}},
    image(PaymentTerms={"S": [{"anything-but": ["30 days"]}]}),
    image(PaymentTerms={"S": [{"anything-but": "30 days"}]}),
    image(PaymentTerms={"S": [{"anything-but": {"prefix": "30"}}]}),
    image(PaymentTerms={"S": [{"anything-but": {"suffix": ["weeks", "years"]}}]}),
    image(PaymentTerms={"S": [{"prefix": "60"}]}),
    image(PaymentTerms={"S": [{"suffix": "days"}]}),
    image(PaymentTerms={"S": [{"wildcard": "6*da*s"}]}),
    image(AccountManager={"S": [{"equals-ignore-case": "pat candella"}]}),
    image(AccountManager={"S": [{"prefix": {"equals-ignore-case": "PAT"}}]}),
    image(AccountManager={"S": [{"suffix": {"equals-ignore-case": "ELLA"}}]}),
    {"$or": [{"eventName": ["INSERT"]}, image(Open={"BOOL": [True]})]},
    {"awsRegion": [{"prefix": "us-"}], "$or": [{"eventName": ["MODIFY"]}, {"eventName": ["REMOVE"]}]},
    # A list or a set matches by any of its members.
    image(Tags={"SS": ["green"]}),
    image(Lines={"L": {"M": {"sku": {"S": ["B-2"]}}}}),
    # DynamoDB's numbers are texts; here they compare as numbers all the same.
    image(Amount={"N": [{"numeric": [">", 101, "<", 102]}]}),
    image(Amount={"N": [{"numeric": ["=", 101.5]}]}),
    image(Amount={"N": ["101.50"]}),
]
OTHERS = [
    {"eventName": ["modify"]},
    {"eventName": ["INSERT"]},
    {"eventName": ["MODIFY"], "awsRegion": ["eu-west-1"]},
    image(AccountManager={"S": [{"exists": False}]}),
    image(ManagerId={"S": [{"exists": True}]}),
    image(ManagerId={"S": [{"anything-but": ["x"]}]}),
    image(PaymentTerms={"S": [{"anything-but": ["60 days", "x"]}]}),
    image(PaymentTerms={"S": [{"anything-but": {"equals-ignore-case": "60 DAYS"}}]}),
    image(PaymentTerms={"S": [{"prefix": "days"}]}),
    image(PaymentTerms={"S": [{"wildcard": "6*weeks"}]}),
    image(PaymentTerms={"S": [{"wildcard": "60.days"}]}),
    image(PaymentTerms={"S": [{"numeric": [">", 0]}]}),
    {"dynamodb": {"SizeBytes": ["26"]}},
    {"dynamodb": {"SizeBytes": [{"numeric": [">", 26]}]}},
    image(Open={"BOOL": [1]}),
    image(Open={"BOOL": [{"numeric": ["=", 1]}]}),
    image(Tags={"SS": ["blue"]}),
    image(Lines={"L": {"M": {"sku": {"S": ["C-3"]}}}}),
    image(AccountManager=["Pat Candella"]),
    {"eventName": {"deeper": ["MODIFY"]}},
    {"$or": [{"eventName": ["INSERT"]}, {"eventName": ["REMOVE"]}]},
]


@pytest.mark.parametrize("pattern", MATCHING, ids=str)
def test_a_pattern_matches(pattern: dict[str, Any]) -> None:
    assert filters.compile([pattern])(RECORD)


@pytest.mark.parametrize("pattern", OTHERS, ids=str)
def test_a_pattern_does_not_match(pattern: dict[str, Any]) -> None:
    assert not filters.compile([pattern])(RECORD)


@given(st.text("ab*", max_size=6), st.text("ab*", max_size=8))
def test_a_wildcard_stands_for_any_text(pattern: str, text: str) -> None:
    wanted = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None
    assert filters.compile([{"x": [{"wildcard": pattern}]}])({"x": text}) == wanted


def test_a_wildcard_looks_once_at_each_character_of_a_long_text() -> None:
    """A pattern that tries every place for each part takes years for this."""
    matches = filters.compile([{"x": [{"wildcard": "*a*a*a*a*a*b"}]}])
    assert not matches({"x": "a" * 100_000})
    assert matches({"x": "a" * 100_000 + "b"})


def test_of_several_patterns_one_has_to_match() -> None:
    assert filters.compile([])(RECORD)
    assert filters.compile([OTHERS[0], MATCHING[0]])(RECORD)
    assert not filters.compile(OTHERS[:3])(RECORD)


def test_patterns_are_read_from_json() -> None:
    assert filters.parse(['{"eventName": ["MODIFY"]}', '{"eventName": ["INSERT"]}'])(RECORD)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "has to be an object"),
        ("{}", "at least one field"),
        ('{"a": 1}', "a has to be an object or a list of rules"),
        ('{"a": []}', "empty list"),
        ('{"a": [[1]]}', "a list in its list"),
        ('{"a": [{}]}', "0 operators"),
        ('{"a": [{"prefix": "x", "suffix": "y"}]}', "2 operators"),
        ('{"a": [{"like": "x"}]}', "unknown operator 'like'"),
        ('{"a": [{"prefix": 1}]}', "needs a text"),
        ('{"a": [{"exists": "yes"}]}', "true or false"),
        ('{"a": [{"numeric": [">"]}]}', "has to be a list"),
        ('{"a": [{"numeric": ["~", 1]}]}', "cannot compare"),
        ('{"a": [{"numeric": [">", "1"]}]}', "cannot compare"),
        ('{"a": [{"anything-but": {"numeric": [">", 1]}}]}', "takes one of"),
        ('{"a": [{"anything-but": []}]}', "needs texts or numbers"),
        ('{"$or": [{"a": [1]}]}', "at least two patterns"),
    ],
)
def test_a_pattern_that_means_nothing_is_refused(text: str, reason: str) -> None:
    with pytest.raises(filters.InvalidPattern, match=reason):
        filters.parse([text])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(record=json_values, text=json_values)
def test_any_pattern_compiles_or_is_refused_and_any_record_is_judged(record: Any, text: Any) -> None:
    try:
        matches = filters.parse([orjson.dumps(text, option=orjson.OPT_NON_STR_KEYS).decode(errors="replace")])
    except (filters.InvalidPattern, TypeError):
        return
    assert matches(record) in (True, False)
