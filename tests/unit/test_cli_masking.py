"""The rules of `hashrange pull --mask`: what becomes of values, and which rules are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hashrange.cli.pulling.masking import Masks, Rule, Unmasked, WrongRules, masks_of

KEY = b"a key"
Item = dict[str, Any]


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Masks]:
    def make(text: str, key: bytes = KEY) -> Masks:
        file = tmp_path / "rules.toml"
        file.write_text(text, encoding="utf-8")
        return masks_of(file, key)

    return make


def masked(masks: Masks, item: Item, table: str = "orders") -> Item:
    [made] = masks.apply(masks.of(table, ["pk"]), [item])
    return made


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("redact", {"S": "secret"}, {"S": "redacted"}),
        ("redact", {"N": "5"}, {"N": "0"}),
        ("redact", {"B": b"x"}, {"B": b"redacted"}),
        ("redact", {"BOOL": True}, {"BOOL": False}),
        ("redact", {"NULL": True}, {"NULL": True}),
        ("redact", {"SS": ["a", "b"]}, {"SS": ["redacted"]}),
        (
            "redact",
            {"M": {"x": {"L": [{"S": "a"}, {"N": "1"}]}}},
            {"M": {"x": {"L": [{"S": "redacted"}, {"N": "0"}]}}},
        ),
        ("mask 4", {"S": "4111111111111234"}, {"S": "************1234"}),
        ("mask 4", {"S": "1234"}, {"S": "****"}),
        ("mask 4", {"S": "**1234"}, {"S": "******"}),
        ("mask 0", {"S": "abc"}, {"S": "***"}),
        ("mask 2", {"N": "-12.345"}, {"N": "45"}),
        ("mask 4", {"N": "123"}, {"N": "0"}),
        ("mask 2", {"N": "1200"}, {"N": "0"}),
        ("mask 1", {"B": b"abc"}, {"B": b"**c"}),
        ("mask 2", {"BOOL": True}, {"BOOL": False}),
    ],
)
def test_a_value_keeps_its_type(made: Callable[..., Masks], rule: str, before: Item, after: Item) -> None:
    masks = made(f'[orders]\na = "{rule}"')
    item = {"pk": {"S": "1"}, "a": before}
    assert masked(masks, item) == {"pk": {"S": "1"}, "a": after}
    assert masks.unmet() == []


def test_hashes_are_equal_in_all_tables(made: Callable[..., Masks]) -> None:
    masks = made('["*"]\npk = "hash #"\ncustomer = "hash"\nnumber = "hash"\nbytes = "hash"')
    item = {"pk": {"S": "CUSTOMER#42"}, "number": {"N": "42"}, "bytes": {"B": b"42"}}
    one = masked(masks, item)
    other = masked(masks, {"pk": {"S": "x"}, "customer": {"S": "42"}}, "customers")
    assert one["pk"]["S"] == f"CUSTOMER#{other['customer']['S']}"
    assert len(other["customer"]["S"]) == 32
    assert one["number"]["N"].isdigit()
    assert len(one["number"]["N"]) <= 38
    assert len({one["bytes"]["B"], b"42"}) == 2
    assert masked(made('["*"]\npk = "hash #"', b"another"), item)["pk"] != one["pk"]
    assert item["pk"] == {"S": "CUSTOMER#42"}


def test_the_same_value_has_the_same_fake(made: Callable[..., Masks]) -> None:
    pytest.importorskip("faker")
    masks = made('[orders]\nemail = "fake email"\nnames = "fake first_name"\nage = "fake pyint"')
    item = {
        "pk": {"S": "1"},
        "email": {"S": "a@example.org"},
        "names": {"SS": ["Ann", "Bob"]},
        "age": {"N": "5"},
    }
    one = masked(masks, item)
    assert one == masked(masks, item)
    assert one["email"]["S"] != "a@example.org"
    assert "@" in one["email"]["S"]
    assert not {"Ann", "Bob"} & set(one["names"]["SS"])
    assert one["age"]["N"].isdigit()
    assert masked(masks, {**item, "email": {"S": "b@example.org"}})["email"] != one["email"]


def test_paths_reach_into_lists_and_maps(made: Callable[..., Masks]) -> None:
    masks = made(
        """["ord*"]
        "contacts[*].phone" = "redact"
        "addresses.*.street" = "redact"
        '"a.b".c' = "redact"
        "tags[*]" = "mask 1"
        missing = "redact"
        """
    )
    item = {
        "pk": {"S": "1"},
        "contacts": {"L": [{"M": {"phone": {"S": "1"}, "name": {"S": "x"}}}, {"S": "no map"}]},
        "addresses": {"M": {"home": {"M": {"street": {"S": "s"}}}, "work": {"M": {}}}},
        "a.b": {"M": {"c": {"S": "x"}}},
        "tags": {"L": [{"S": "abc"}, {"NULL": True}]},
    }
    assert masked(masks, item) == {
        "pk": {"S": "1"},
        "contacts": {"L": [{"M": {"phone": {"S": "redacted"}, "name": {"S": "x"}}}, {"S": "no map"}]},
        "addresses": {"M": {"home": {"M": {"street": {"S": "redacted"}}}, "work": {"M": {}}}},
        "a.b": {"M": {"c": {"S": "redacted"}}},
        "tags": {"L": [{"S": "**c"}, {"NULL": True}]},
    }
    assert [rule.path for rule in masks.unmet()] == ["missing"]
    assert masked(masks, item, "other") == item


@pytest.mark.parametrize(
    "value",
    [{"S": "x"}, {"N": "5"}, {"B": b"x"}, {"SS": ["x"]}, {"L": [{"S": "x"}]}, {"M": {"y": {"BOOL": True}}}],
)
def test_what_stays_is_noticed(value: Item) -> None:
    masks = Masks([Rule("*", "a", "redact", ("a",), lambda kind, content: content)])
    with pytest.raises(Unmasked, match="a = 'redact' leaves a value"):
        masked(masks, {"pk": {"S": "1"}, "a": value})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no rules"),
        ("[orders", "is not TOML"),
        ('email = "redact"', r"begin with \[TABLE\]"),
        ('[orders]\na.b = "redact"', "write a path in quotes"),
        ("[orders]\na = 5", "a rule as a text"),
        ('[orders]\n"a..b" = "redact"', "no path"),
        ('[orders]\n"a[0]" = "redact"', "no path"),
        ('[orders]\na = "drop"', "is no rule"),
        ('[orders]\na = "mask"', "is no rule"),
        ('[orders]\na = "redact all"', "is no rule"),
        ('[orders]\na = "fake"', "is no rule"),
    ],
)
def test_wrong_rules_are_told(made: Callable[..., Masks], text: str, said: str) -> None:
    with pytest.raises(WrongRules, match=said):
        made(text)


@pytest.mark.parametrize("kind", ["nothing", "_providers", "seed_instance", "random_choices"])
def test_kinds_that_nobody_invents_are_told(made: Callable[..., Masks], kind: str) -> None:
    pytest.importorskip("faker")
    with pytest.raises(WrongRules, match="Faker has no kind"):
        made(f'[orders]\na = "fake {kind}"')


@pytest.mark.parametrize("rule", ['pk = "redact"', '"*" = "mask 4"', 'pk = "fake name"'])
def test_keys_stay_apart(made: Callable[..., Masks], rule: str) -> None:
    if "fake" in rule:
        pytest.importorskip("faker")
    with pytest.raises(WrongRules, match="only `hash` keeps items apart"):
        made(f"[orders]\n{rule}").of("orders", ["pk"])
