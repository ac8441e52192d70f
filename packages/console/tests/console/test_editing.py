"""Editing an item in the console: every value goes through every form of editing exactly; the differences."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consoles import EVERY_TYPE, ITEM, KEY, Browser, fill, parsed, put, stored
from hashrange.database import Database
from hashrange.values import admit_item
from hashrange_console import differences as by_path
from hashrange_console.differences import same
from hashrange_console.items import forms, plain
from hashrange_console.items.expressions import update
from hashrange_console.items.texts import admit_all
from hashrange_console.reach import Refused

DIGITS = st.integers(-(10**38) + 1, 10**38 - 1).map(str)
NUMBERS = DIGITS | st.builds(lambda digits, exponent: f"{digits}E{exponent}", DIGITS, st.integers(-90, 80))
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text("\r\n\t\0\"\\ 1{['a", max_size=6)
BINARIES = st.binary(max_size=9).map(lambda value: orjson_base64(value))
NAMES = TEXTS.filter(bool)
LEAVES = st.one_of(
    st.builds(lambda text: {"S": text}, TEXTS),
    st.builds(lambda text: {"N": text}, NUMBERS),
    st.builds(lambda text: {"B": text}, BINARIES),
    st.builds(lambda truth: {"BOOL": truth}, st.booleans()),
    st.just({"NULL": True}),
    st.builds(lambda members: {"SS": sorted(members)}, st.sets(TEXTS, min_size=1, max_size=3)),
    st.builds(
        lambda members: {"NS": sorted(members)},
        st.sets(st.integers().map(lambda n: str(n % 10**30)), min_size=1, max_size=3),
    ),
    st.builds(lambda members: {"BS": sorted(members)}, st.sets(BINARIES, min_size=1, max_size=3)),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda members: {"L": members}, st.lists(inner, max_size=4)),
        st.builds(lambda members: {"M": members}, st.dictionaries(NAMES, inner, max_size=4)),
    ),
    max_leaves=12,
)
ITEMS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=6).map(lambda item: admit_all(copy(item)))


def orjson_base64(value: bytes) -> str:
    text: str = orjson.loads(msgspec.json.encode(value))
    return text


def copy(item: Any) -> Any:
    return orjson.loads(orjson.dumps(item))


@given(item=ITEMS, form=st.sampled_from(list(forms.FORMS)))
@example(item=EVERY_TYPE, form="form")
@example(item=EVERY_TYPE, form="json")
@example(item=EVERY_TYPE, form="dynamodb")
def test_every_value_goes_through_every_form_exactly(item: Any, form: str) -> None:
    text = forms.written(item, form, ["pk"])
    assert orjson.dumps(forms.read(text, form, copy(item)), option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        admit_all(copy(item)), option=orjson.OPT_SORT_KEYS
    )


@given(before=ITEMS, after=ITEMS, mixed=st.data())
def test_an_update_makes_the_item_what_it_was_edited_to(
    before: Any, after: Any, mixed: st.DataObject
) -> None:
    # Some attributes of the edited item are those that were shown, with a few members changed.
    for name in before:
        if mixed.draw(st.booleans()):
            after[name] = mixed.draw(st.builds(_nearly, st.just(before[name]), VALUES))
    after = admit_all(copy(after))
    key = {"pk": {"S": "k"}, "sk": {"N": "1"}}
    before, after = before | key, after | key
    with Database.in_memory() as database:
        fill(database)
        put(database, before)
        assert len(by_path.differences(before, after)) >= len(by_path.whole(before, after))
        try:
            request = update("orders", ["pk", "sk"], before, after)
        except Refused as error:
            assert "no changes to save" in str(error)
            return
        database.execute("UpdateItem", copy(request))
        now = stored(database, key)
        assert all(same(now.get(name), after.get(name)) for name in {**now, **after})


def _nearly(value: Any, other: Any) -> Any:
    """A value with a member changed, added or removed."""
    match value:
        case {"M": members} if members:
            first, *rest = members.items()
            return {"M": {first[0]: _nearly(first[1], other), **dict(rest[:-1]), "added": other}}
        case {"L": members} if members:
            return {"L": [*members[1:]] if "S" in other else [_nearly(members[0], other), *members[1:]]}
        case {"L": _}:
            return {"L": [other]}
        case _:
            return other


def test_the_form_of_a_page_saves_what_was_typed(orders: Database, browser: Browser) -> None:
    fields = parsed(browser.ask(ITEM + "&view=edit")[1]).fields
    rows = orjson.loads(fields["edited"])
    assert [row["name"] for row in rows[:2]] == ["pk", "sk"]
    assert "\\u0000" in next(row["text"] for row in rows if row["name"] == "text")
    for row in rows:
        if row["name"] == "small":
            row["text"] = " 0.10000000000000000000000000000000000001 "
        if row["name"] == "list":
            row["rows"].append(
                {"kind": "NS", "rows": [{"kind": "N", "text": "1"}, {"kind": "N", "text": "2"}]}
            )
    body = {
        "table": "orders",
        "form": "form",
        "shown": fields["shown"],
        "edited": orjson.dumps(rows).decode(),
    }
    _, answer = browser.post("/console/review", body)
    assert answer["count"] == 2
    said = " ".join(parsed(answer["html"]).text.split())
    assert "changed small -0.12345678901234567890123456789012345678 → 0.1000" in said
    assert "added list[3]" in said
    assert "SET #a" in said
    assert browser.post("/console/save", body)[0] == 200
    expected = copy(EVERY_TYPE)
    expected["small"] = {"N": "0.10000000000000000000000000000000000001"}
    expected["list"]["L"].append({"NS": ["1", "2"]})
    assert stored(orders) == expected


def test_every_form_leads_to_every_other(orders: Database, browser: Browser) -> None:
    fields = parsed(browser.ask(ITEM + "&view=edit&as=dynamodb")[1]).fields
    text, form = fields["edited"], "dynamodb"
    for to in ("form", "json", "form", "dynamodb", "json", "dynamodb"):
        body = {"table": "orders", "shown": fields["shown"], "edited": text, "form": form, "to": to}
        status, answer = browser.post("/console/convert", body)
        assert status == 200, answer
        text, form = answer["edited"], to
    assert orjson.loads(text) == EVERY_TYPE
    assert browser.post("/console/convert", {**body, "to": "xml"})[0] == 400
    assert browser.ask(ITEM + "&view=edit&as=xml")[0] == 400


SHOWN = {
    **KEY,
    "b": {"B": "AA=="},
    "set": {"NS": ["1"]},
    "l": {"L": [{"B": "AA=="}, {"S": "x"}, {"SS": ["a"]}]},
}


@pytest.mark.parametrize(
    ("edited", "becomes"),
    [
        ('"b": "AQ=="', {"b": {"B": "AQ=="}}),
        ('"b": "no base64"', "b: this value is binary"),
        ('"b": 1.50', {"b": {"N": "1.5"}}),
        ('"b": null', {"b": {"NULL": True}}),
        ('"set": [2, 1]', {"set": {"NS": ["1", "2"]}}),
        ('"set": []', "set: this value is a number set"),
        ('"set": ["1"]', "set: this value is a number set"),
        ('"new": [1]', {"new": {"L": [{"N": "1"}]}}),
        (
            '"l": ["new", "AA==", "x", ["a"]]',
            {"l": {"L": [{"S": "new"}, {"B": "AA=="}, {"S": "x"}, {"SS": ["a"]}]}},
        ),
        ('"l": ["AA==", ["a"]]', {"l": {"L": [{"B": "AA=="}, {"SS": ["a"]}]}}),
        ('"l": ["AQ==", "y", ["b"]]', {"l": {"L": [{"B": "AQ=="}, {"S": "y"}, {"SS": ["b"]}]}}),
        ('"l": ["p", "q"]', "l: plain JSON does not say"),
        ('"n": 1e500', "number is infinity"),
        (
            '"n": {"a": [true, {"b": 123456789012345678901234567890.12345678}]}',
            {
                "n": {
                    "M": {
                        "a": {
                            "L": [
                                {"BOOL": True},
                                {"M": {"b": {"N": "123456789012345678901234567890.12345678"}}},
                            ]
                        }
                    }
                }
            },
        ),
        ('"n": {"a": 1, "\\u0061": 2}', "n.a: this name occurs twice"),
        ('"n": ' + "[" * 300 + "]" * 300, "nested too deeply"),
    ],
)
def test_plain_json_keeps_the_types_that_it_cannot_say(edited: str, becomes: Any) -> None:
    text = f"{{ {edited} }}"
    if isinstance(becomes, str):
        with pytest.raises(Refused) as refused:
            forms.read(text, "json", copy(SHOWN))
        assert becomes in str(refused.value)
    else:
        assert forms.read(text, "json", copy(SHOWN)) == becomes


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            '[{"kind": "S", "name": "a"}, {"kind": "N", "name": "a", "text": "1"}]',
            "a: this name occurs twice",
        ),
        ('[{"kind": "S", "text": "a"}]', "has no name"),
        ('[{"kind": "N", "name": "a", "text": "one"}]', "a: "),
        ('[{"kind": "SS", "name": "a"}]', "a: "),
        (
            '[{"kind": "NS", "name": "a","rows": [{"kind": "N", "text": "1"},{"kind": "N", "text": "1.0"}]}]',
            "a: ",
        ),
        ('[{"kind": "B", "name": "a", "text": "?"}]', "a: "),
        ('[{"kind": "BOOL", "name": "a", "text": "yes"}]', "a: a boolean"),
        (
            '[{"kind": "M", "name": "a", "rows": [{"kind": "L", "name": "b", "rows": [{"kind": "Q"}]}]}]',
            "a.b[0]: 'Q'",
        ),
        ('[{"kind": "S", "name": "a", "text": "\\"", "escaped": true}]', "a: this text is written with"),
        ("[1]", "not rows of a form"),
    ],
)
def test_a_wrong_form_says_where_it_is_wrong(
    orders: Database, browser: Browser, rows: str, says: str
) -> None:
    body = {"table": "orders", "form": "form", "shown": "", "edited": rows}
    status, answer = browser.post("/console/review", body)
    assert (status, says in answer["error"]) == (400, True), answer


def test_a_name_that_stands_twice_is_refused(orders: Database, browser: Browser) -> None:
    edited = '{"pk": {"S": "n"}, "a": {"M": {"b": {"S": "}"}, "c": {"S": "\\"b\\":"}, "b": {"N": "1"}}}}'
    status, answer = browser.post("/console/save", {"table": "orders", "edited": edited})
    assert (status, "a.M.b: this name occurs twice" in answer["error"]) == (400, True)
    status, answer = browser.post(
        "/console/save", {"table": "orders", "edited": '{"pk": {"S": "n"}, "pk": {"S": "m"}}'}
    )
    assert (status, "pk: this name occurs twice" in answer["error"]) == (400, True)


def test_differences_are_named_by_their_paths() -> None:
    before: Any = {
        "address": {"M": {"city": {"S": "Bern"}, "a b": {"S": "x"}}},
        "tags": {"SS": ["a", "b"]},
        "list": {"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]},
        "moved": {"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]},
        "long": {"S": "x" * 500 + "one" + "y" * 500},
    }
    after = copy(before)
    after["address"]["M"] |= {"city": {"S": "Basel"}, "a b": {"S": "y"}}
    after["tags"] = {"SS": ["b", "c"]}
    after["list"]["L"].pop(1)
    after["moved"]["L"].insert(0, {"N": "0"})
    after["long"] = {"S": "x" * 500 + "two" + "y" * 500}
    found = {one.name: one for one in by_path.differences(before, after)}
    assert {name: one.kind for name, one in found.items()} == {
        "address.city": "changed",
        'address."a b"': "changed",
        "tags": "changed",
        "list[1]": "removed",
        "moved": "changed",
        "long": "changed",
    }
    removed, added = found["tags"].members
    assert [cell.text for cell in (*removed, *added) if cell] == ["a", "c"]
    assert [
        ("one" if n == 0 else "two") in cell.text for n, cell in enumerate(found["long"].cells) if cell
    ] == [True] * 2
    request = update("orders", [], before, after)
    assert re.match(r"SET #a\d\.#a\d = :v\d, ", request["UpdateExpression"])
    assert request["UpdateExpression"].endswith("[1]")


def test_very_many_changes_are_saved_by_attributes_or_refused(orders: Database, browser: Browser) -> None:
    before = {**KEY, "m": {"M": {f"a{n}": {"N": str(n)} for n in range(900)}}}
    put(orders, before)
    after = {**KEY, "m": {"M": {f"a{n}": {"N": str(n + 1)} for n in range(900)}}}
    body = {"table": "orders", "shown": orjson.dumps(before).decode(), "edited": orjson.dumps(after).decode()}
    _, answer = browser.post("/console/review", body)
    assert answer["count"] == 900
    assert "and 700 more" in answer["html"]
    assert browser.post("/console/save", body)[0] == 200
    assert stored(orders) == after
    put(orders, after | after["m"]["M"])
    wide = {
        **body,
        "shown": orjson.dumps(after | after["m"]["M"]).decode(),
        "edited": orjson.dumps(after | before["m"]["M"]).decode(),
    }
    status, answer = browser.post("/console/save", wide)
    assert (status, "too many changes for one UpdateItem" in answer["error"]) == (400, True)
    _, answer = browser.post("/console/review", wide)
    assert "too many changes for one UpdateItem" in answer["html"]


def test_a_save_can_be_undone_until_somebody_changes_the_item(orders: Database, browser: Browser) -> None:
    def save(text: str, shown: Any) -> str:
        edited = orjson.dumps(shown | {"empty": {"S": text}}).decode()
        sent = {"table": "orders", "shown": orjson.dumps(shown).decode(), "edited": edited}
        _, answer = browser.post("/console/save", sent)
        assert orjson.loads(answer["saved"]) == shown | {"empty": {"S": text}}
        _, page = browser.ask(answer["href"])
        assert "data-undo-save" in page
        since: str = page.partition('data-saved="')[2].partition('"')[0]
        return since

    undo = {"table": "orders", "key": KEY, "since": save("new", EVERY_TYPE)}
    assert browser.post("/console/undo-save", undo)[0] == 200
    assert stored(orders) == EVERY_TYPE
    since = save("newer", EVERY_TYPE)
    put(orders, EVERY_TYPE | {"empty": {"S": "theirs"}, "more": {"S": ""}})
    status, answer = browser.post("/console/undo-save", {**undo, "since": since})
    assert (status, "cannot be undone" in answer["error"]) == (400, True)


def test_a_new_item_that_was_saved_can_be_undone(orders: Database, browser: Browser) -> None:
    key = {"pk": {"S": "new"}, "sk": {"N": "1"}}
    _, answer = browser.post("/console/save", {"table": "orders", "edited": orjson.dumps(key).decode()})
    _, page = browser.ask(answer["href"])
    since = page.partition('data-saved="')[2].partition('"')[0]
    undo = {"table": "orders", "key": key, "since": since}
    assert browser.post("/console/undo-save", undo) == (200, {"href": "/console/t/orders"})
    assert stored(orders, key) is None


def test_an_exact_reading_keeps_the_text_of_numbers() -> None:
    assert plain.exact(b' {"a": [1.50, -0, 1E5 ], "b": " 1 "} ') == {"a": ["1.50", "-0", "1E5"], "b": " 1 "}
    item = {"n": {"N": "1.50"}}
    admit_item(item)
    assert item == {"n": {"N": "1.5"}}
