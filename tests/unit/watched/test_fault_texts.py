"""Rules as text: the text means the same as the rule, and an error names what is wrong with the text."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

import hypothesis.strategies as st
import pytest
from hypothesis import given

from hashrange import faults
from hashrange.faults import WrongRule, parse, parse_lines, show
from hashrange.faults.effects import CODES, EFFECTS, Latency, Throttle
from hashrange.faults.rules import Rule
from hashrange.operations import REGISTRY
from hashrange.operations.throttling import EXCEPTIONS, LIMITS


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("PutItem table=orders nth=3 throttle", faults.throttle("PutItem", table="orders").on_call(3)),
        ("throttle", faults.throttle()),
        ("* latency seconds=0.25", faults.latency(seconds=0.25)),
        ("latency seconds=15m virtual=yes", faults.latency(seconds=900, virtual=True)),
        (
            "index=by-date Query,Scan probability=0.1 seed=7 throttle limit=AccountLimitExceeded",
            faults.throttle("Query", "Scan", index="by-date", limit="AccountLimitExceeded").with_probability(
                0.1, seed=7
            ),
        ),
        (
            "BatchWriteItem key.pk='user 1' key.sk=7 unprocessed after=2 times=1 share=1",
            faults.unprocessed("BatchWriteItem", key={"pk": "user 1", "sk": 7}, share=1)
            .after_calls(2)
            .at_most(1),
        ),
        ("conflict key.pk=a=b", faults.conflict(key={"pk": {"S": "a=b"}})),
        ("conflict key.pk=AAE=", faults.conflict(key={"pk": b"\x00\x01"})),
        ("TransactWriteItems cancel code=ThrottlingError nth=1,4",
         faults.cancel("TransactWriteItems", code="ThrottlingError").on_call(1, 4)),
        ("lose-answer performed=no", faults.lose_answer(performed=False)),
        ("internal-error performed=yes", faults.internal_error(performed=True)),
        ("in-progress", faults.in_progress()),
        ("expire-iterator table=t", faults.expire_iterator(table="t")),
        ("GetRecords trim", faults.trim("GetRecords")),
    ],
)  # fmt: skip
def test_a_text_says_what_the_function_says(text: str, rule: Rule) -> None:
    assert parse(text) == rule
    assert parse(show(rule)) == rule


def test_every_effect_has_a_function() -> None:
    made = {
        faults.throttle(), faults.internal_error(), faults.conflict(), faults.cancel(), faults.in_progress(),
        faults.latency(seconds=1), faults.lose_answer(), faults.unprocessed(), faults.expire_iterator(),
        faults.trim(),
    }  # fmt: skip
    assert {rule.effect.word for rule in made} == set(EFFECTS)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    kind: Any = EFFECTS[draw(st.sampled_from(sorted(EFFECTS)))]
    choices: dict[str, Any] = {
        "limit": st.sampled_from(sorted(LIMITS)),
        "exception": st.sampled_from(["", *EXCEPTIONS]),
        "code": st.sampled_from(CODES),
        "seconds": st.floats(0, 1e6),
        "share": st.floats(0.001, 1),
    }
    hints = get_type_hints(kind)
    options = {
        field.name: draw(choices.get(field.name, st.booleans() if hints[field.name] is bool else st.none()))
        for field in fields(kind)
    }
    effect = kind(**options)
    fitting = [name for name in REGISTRY if effect.fits(name) and name not in ("Scan",)]
    operations = draw(st.lists(st.sampled_from(fitting), max_size=3, unique=True))
    named = [name for name in operations if "Execute" not in name]
    text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1)
    key = draw(st.dictionaries(text.filter(lambda name: "=" not in name), st.text(), max_size=2))
    # Fields that default in the text (the seed of no chance) default here.
    probability = draw(st.floats(0.001, 1))
    return Rule(
        effect,
        tuple(operations),
        table=draw(st.just("") | text),
        key=tuple(key.items()) if named == operations else (),
        calls=tuple(draw(st.lists(st.integers(1, 99), max_size=2))),
        after=draw(st.integers(0, 9)),
        times=draw(st.none() | st.integers(1, 9)),
        probability=probability,
        seed=draw(st.integers(-9, 9)) if probability < 1 else 0,
    )


@given(rules())
def test_the_text_of_a_rule_reads_as_the_rule(rule: Rule) -> None:
    assert parse(show(rule)) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the effect is missing; it is one of throttle, internal-error"),
        ("PutItem table=orders", "the effect is missing"),
        ("PutIten throttle", "'PutIten' is neither an operation nor an effect; did you mean PutItem?"),
        ("PutItem trottle", "did you mean throttle?"),
        ("PutItem xyzzy", "effects are throttle, internal-error"),
        ("throttle conflict", "throttle and conflict are two effects; write two faults"),
        ("PutItem tabel=orders throttle", "tabel is unknown; did you mean table?"),
        ("throttle limits=x", "throttle has no option limits; its options are limit, exception"),
        ("trim x=y", "trim has no option x; it has none"),
        ("throttle limit=Often", "limit=Often is not known; it is one of ProvisionedThroughputExceeded"),
        ("throttle exception=Often", "exception=Often is not known"),
        ("cancel code=Often", "code=Often is not known; it is one of ConditionalCheckFailed"),
        ("latency", "latency needs seconds, as in latency seconds=0.2"),
        ("latency seconds=soon", "seconds=soon is not a duration, as 0.2s and 10m are"),
        ("latency seconds=-1", "seconds=-1.0 is not a number of seconds"),
        ("latency seconds=inf", "is not a number of seconds"),
        ("latency seconds=1 virtual=1", "virtual=1 is neither yes nor no"),
        ("unprocessed share=0", "share=0.0 is not a share of a batch"),
        ("throttle nth=0", "nth counts the requests that a rule matches, from 1 on"),
        ("throttle nth=third", "nth=third is not a whole number, as 3 is"),
        ("throttle after=-1", "after is 0 or more"),
        ("throttle times=0", "times is 1 or more"),
        ("throttle probability=2", "probability=2.0 is not above 0 and at most 1"),
        ("throttle table=a table=b", "table is given twice"),
        ("PutItem unprocessed", "unprocessed cannot happen to PutItem; it is for BatchGetItem, Batch"),
        ("Query conflict", "conflict cannot happen to Query"),
        ("PutItem index=i internal-error", "a PutItem reads no index; leave index=i out"),
        ("Scan key.pk=a throttle", "a Scan names no key, so a rule with a key never matches one"),
        ("key.pk='a throttle", "No closing quotation"),
    ],
)  # fmt: skip
def test_an_error_comes_with_an_example(text: str, message: str) -> None:
    with pytest.raises(WrongRule) as caught:
        parse(text)
    assert message in str(caught.value)
    assert repr(text.strip()) in str(caught.value)
    assert "'PutItem table=orders nth=3 throttle'" in str(caught.value)


def test_the_lines_of_a_file() -> None:
    lines = ["# what goes wrong on Mondays", "", "PutItem throttle", "  # and", " latency seconds=1 "]
    assert [rule.effect for rule in parse_lines(lines)] == [Throttle(), Latency(1.0)]


def test_a_wrong_rule_cannot_be_made_by_a_function_either() -> None:
    with pytest.raises(ValueError, match="did you mean UpdateItem"):
        faults.throttle("UpdateItems")
    with pytest.raises(ValueError, match="unprocessed cannot happen to GetItem"):
        faults.unprocessed("GetItem")
