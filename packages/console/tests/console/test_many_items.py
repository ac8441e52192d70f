"""Many items in the console: the grid's columns, downloads, imports, bulk changes."""

from __future__ import annotations

import base64
import csv
import io
import re
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlsplit

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consoles import EVERY_TYPE, KEY, Browser, parsed, put, stored
from hashrange.database import Database
from hashrange.interchange.rows import Bad
from hashrange_console.items import bulk, exports, imports
from hashrange_console.items.pieces import Layout, recognised, rows
from hashrange_console.reach import Refused, View

TABLE = "/console/t/orders"


def fill_many(orders: Database, count: int = 60) -> None:
    for number in range(count):
        put(orders, {"pk": {"S": "b"}, "sk": {"N": str(number)}, "n": {"N": str(number % 3)}})


def scanned(orders: Database, **sent: Any) -> list[Any]:
    items: list[Any] = orjson.loads(orjson.dumps(orders.execute("Scan", {"TableName": "orders", **sent})))[
        "Items"
    ]
    return items


def test_columns_are_chosen_and_ordered_by_the_address(orders: Database, browser: Browser) -> None:
    fill_many(orders)
    _, text = browser.ask(f"{TABLE}?pk=b&col=n&col=pk")
    head = text.partition("<thead>")[2].partition("</thead>")[0]
    assert re.findall(r"<bdi>([^<]+)</bdi>", head) == ["n", "pk"]
    [following] = re.findall(r'rel="next" href="([^"]+)"', text)
    assert "col=n&amp;col=pk" in following
    assert '<a class="button" href="/console/t/orders?pk=b">The usual columns</a>' in text
    assert text.count('type="hidden" name="col"') == 4
    _, text = browser.ask(f"{TABLE}?col=nothing")
    assert "nothing" in text.partition("<thead>")[2].partition("</thead>")[0]


def test_values_that_do_not_fit_open_in_the_grid(orders: Database, browser: Browser) -> None:
    put(
        orders,
        {**KEY, "long": {"S": "x" * 5_000}, "map": {"M": {"deep": {"L": [{"N": "1.5"}]}}}, "s": {"S": "no"}},
    )
    _, text = browser.ask(TABLE)
    assert text.count('<details class="cell">') == 2
    assert "x" * 3_000 + "…" in text
    assert "x" * 3_001 not in text
    assert "deep&#34;: [1.5]" in text


def test_a_download_has_every_item_of_the_request(orders: Database, browser: Browser) -> None:
    fill_many(orders, 450)
    for query, expected in {
        "": 451,
        "pk=b": 450,
        "pk=b&filter=n+%3D+:n&values=" + quote('{":n":{"N":"1"}}'): 150,
    }.items():
        _, text = browser.ask(f"{TABLE}/export?format=dynamodb&{query}")
        items = [orjson.loads(line)["Item"] for line in text.split("\n")[:-1]]
        assert len(items) == expected
        assert len({orjson.dumps([item["pk"], item["sk"]]) for item in items}) == expected
    assert browser.last.getheader("Content-Disposition") == 'attachment; filename="orders.json"'
    assert next(item for item in scanned(orders) if item["pk"] == {"S": "a"}) == EVERY_TYPE
    _, text = browser.ask(f"{TABLE}/export?format=dynamodb&pk=a")
    assert orjson.loads(text)["Item"] == EVERY_TYPE


def test_a_download_of_selected_items(orders: Database, browser: Browser) -> None:
    fill_many(orders, 3)
    keys = [{"pk": {"S": "b"}, "sk": {"N": str(number)}} for number in (2, 0, 9)]
    query = "&".join(f"key={quote(orjson.dumps(key))}" for key in keys)
    _, text = browser.ask(f"{TABLE}/export?format=json&{query}")
    assert text == '{"pk":"b","sk":2,"n":2}\n{"pk":"b","sk":0,"n":0}\n'
    _, text = browser.ask(f"{TABLE}/export?format=csv&{query}")
    assert text == "pk,sk,n\nb,2,2\nb,0,0\n"
    assert browser.ask(f"{TABLE}/export?format=csv&key=x")[0] == 400


def test_a_csv_has_all_columns_and_json_all_digits(orders: Database, browser: Browser) -> None:
    put(orders, {"pk": {"S": "b"}, "sk": {"N": "1"}, "rare": {"S": 'a "b", c\nd'}})
    _, text = browser.ask(f"{TABLE}/export?format=csv")
    lines = list(csv.DictReader(io.StringIO(text)))
    assert set(lines[0]) == {*EVERY_TYPE, "rare"}
    by_key = {line["pk"]: line for line in lines}
    assert by_key["b"]["rare"] == 'a "b", c\nd'
    assert by_key["a"]["small"] == EVERY_TYPE["small"]["N"]
    assert by_key["a"]["list"] == '[{"deep":[]},100,null]'
    _, text = browser.ask(f"{TABLE}/export?format=csv&col=rare&pk=b")
    assert text == 'rare\n"a ""b"", c\nd"\n'
    _, text = browser.ask(f"{TABLE}/export?format=json&pk=a")
    assert f'"sk":{KEY["sk"]["N"]}' in text
    assert browser.ask(f"{TABLE}/export?format=xml")[0] == 400
    assert browser.ask(f"{TABLE}/export?format=csv&filter=%23")[0] == 400
    assert browser.ask("/console/t/nothing/export?format=csv")[0] == 404


def test_a_download_of_the_past(orders: Database, browser: Browser) -> None:
    _, text = browser.ask(f"{TABLE}/export?format=dynamodb&at=now")
    assert orjson.loads(text)["Item"] == EVERY_TYPE


def test_a_download_ends_when_the_browser_goes_away(
    orders: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        put(orders, {"pk": {"S": "b"}, "sk": {"N": str(number)}, "text": {"S": "x" * 300_000}})
    reads: list[Any] = []
    read = View.read

    async def counted(self: View, operation: str, sent: dict[str, Any]) -> dict[str, Any]:
        if operation == "Query":
            reads.append(sent)
        return await read(self, operation, sent)

    monkeypatch.setattr(View, "read", counted)
    connection = HTTPConnection(urlsplit(browser.url).netloc, timeout=30)
    connection.request("GET", f"{TABLE}/export?format=dynamodb&pk=b", headers={"Cookie": browser.cookie})
    answer = connection.getresponse()
    assert answer.read(100)
    answer.close()
    connection.close()
    for _ in range(20):
        assert browser.ask(TABLE)[0] == 200
    assert len(reads) < 14  # (all of them are 14 pages of 1 MB)


def piece(text: bytes, name: str = "x.json", **members: Any) -> dict[str, Any]:
    sent = {"table": "orders", "name": name, "piece": base64.b64encode(text).decode(), "layout": {}}
    return sent | {"is_first": True, "is_last": True} | members


def imported(browser: Browser, file: bytes, name: str, size: int, **members: Any) -> dict[str, Any]:
    """What the page does: sends a file in pieces."""
    layout: dict[str, Any] = {}
    place, lines, growing = 0, 0, size
    said: dict[str, Any] = {"written": 0, "kept": 0, "errors": []}
    while True:
        is_last = place + growing >= len(file)
        sent = piece(file[place : place + growing], name, is_first=not place, is_last=is_last, **members)
        status, answer = browser.post("/console/import", sent | {"layout": layout})
        assert status == 200, answer
        said["written"] += answer["written"]
        said["kept"] += answer["kept"]
        said["errors"] += [(lines + error["line"], error["why"]) for error in answer["errors"]]
        if answer["is_over"]:
            return said
        if answer["reached"]:
            place, lines, growing = place + answer["reached"], lines + answer["lines"], size
        else:
            growing *= 2
        layout = answer["layout"]


@pytest.mark.parametrize("size", [7, 100, 100_000])
@pytest.mark.parametrize(
    "form", ["export", "typed", "plain", "list", "lines of a list", "answer", "one item"]
)
def test_json_files_are_imported(orders: Database, browser: Browser, form: str, size: int) -> None:
    items = [
        {"pk": {"S": f'i[{n}]"{{'}, "sk": {"N": "12345678901234567890123456789012345678"}} for n in range(30)
    ]
    plain = [
        b'{"pk": %s, "sk": %s}' % (orjson.dumps(item["pk"]["S"]), item["sk"]["N"].encode()) for item in items
    ]
    file = {
        "export": b"".join(b'{"Item":%s}\n' % orjson.dumps(item) for item in items),
        "typed": b"\r\n\n".join(map(orjson.dumps, items)),
        "plain": b"\n".join(plain),
        "list": b"\xef\xbb\xbf[" + b",".join(map(orjson.dumps, items)) + b"] ",
        "lines of a list": b"[\n" + b",\n".join(plain) + b"\n]\n\n",
        "answer": orjson.dumps({"Count": 30, "Items": items, "More": {}}, option=orjson.OPT_INDENT_2),
        "one item": orjson.dumps(items[0], option=orjson.OPT_INDENT_2),
    }[form]
    orders.execute("DeleteItem", {"TableName": "orders", "Key": orjson.loads(orjson.dumps(KEY))})
    said = imported(browser, file, "x.json", size)
    expected = items[:1] if form == "one item" else items
    assert said == {"written": len(expected), "kept": 0, "errors": []}
    assert sorted(map(orjson.dumps, scanned(orders))) == sorted(map(orjson.dumps, expected))


FORMULAS = ("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\uff1d1", '=HYPERLINK("x", "y")', "=a;b")
PLAIN = ("", "'=1", "a=1", " =1", '"=1"', "a\rb", "a\r\nb", "1", "{}")


def test_a_csv_for_spreadsheets_has_no_formulas_and_the_typed_one_comes_back(
    orders: Database, browser: Browser
) -> None:
    texts = [*FORMULAS, *PLAIN]
    for number, text in enumerate(texts):
        item = {"pk": {"S": "f"}, "sk": {"N": str(-number)}, "=note": {"S": text}}
        put(orders, item)
    before = scanned(orders)
    _, guarded = browser.ask(f"{TABLE}/export?format=csv&pk=f")
    rows = {row["sk"]: row["'=note"] for row in csv.DictReader(io.StringIO(guarded, newline=""))}
    for number, text in enumerate(texts):
        assert rows[str(-number)] == (f"'{text}" if text in FORMULAS else text)
    _, typed = browser.ask(f"{TABLE}/export?format=csv-typed&pk=f")
    assert "orders.typed.csv" in (browser.last.getheader("Content-Disposition") or "")
    for number in range(len(texts)):
        key = {"pk": {"S": "f"}, "sk": {"N": str(-number)}}
        orders.execute("DeleteItem", {"TableName": "orders", "Key": key})
    assert imported(browser, typed.encode(), "x.typed.csv", 100_000)["errors"] == []
    assert sorted(scanned(orders), key=str) == sorted(before, key=str)


def test_items_of_every_type_come_back_from_a_csv_with_types(orders: Database, browser: Browser) -> None:
    odd: tuple[Any, ...] = (
        *({"S": text} for text in ("1", "007", "true", "null", '"a"', "[1]", '{"S": "x"}', "{", "-", "1E+2")),
        {"N": "1E-7"}, {"N": "-0.5"}, {"BOOL": False}, {"NULL": True}, {"B": "AAE="}, {"L": []}, {"M": {}},
        {"M": {"S": {"S": "x"}}}, {"BS": ["AA=="]}, {"L": [{"NS": ["1"]}]},
    )  # fmt: skip
    for number, value in enumerate(odd):
        put(orders, {"pk": {"S": "o"}, "sk": {"N": str(number)}, "value": value, f"rare{number}": value})
    before = sorted(scanned(orders), key=str)
    _, text = browser.ask(f"{TABLE}/export?format=csv-typed")
    for item in before:
        key = {name: item[name] for name in ("pk", "sk")}
        orders.execute("DeleteItem", {"TableName": "orders", "Key": key})
    assert imported(browser, text.encode(), "orders.typed.csv", 100_000)["errors"] == []
    assert sorted(scanned(orders), key=str) == before


def test_the_types_of_columns_are_proposed_from_a_sample(orders: Database, browser: Browser) -> None:
    file = (
        b"pk,sk,size,code,done,tags,name,mixed\n"
        b'p,1,2.5,007,true,"[""a""]",ann,1\np,2,,12,false,"{""a"": 1}",bo,true\n'
    )
    sent = {**piece(file), "name": "x.csv"}
    _, answer = browser.post("/console/import/preview", sent)
    kinds = {"size": "N", "code": "S", "done": "BOOL", "tags": "JSON", "name": "S", "mixed": "AUTO"}
    assert answer["kinds"] == kinds
    assert 'data-kind="size"' in answer["html"]
    # A user's own choice stays, and its problems are told.
    _, answer = browser.post("/console/import/preview", {**sent, "layout": {"kinds": {"name": "N"}}})
    assert "Line 2 The field of name is wrong" in " ".join(parsed(answer["html"]).text.split())
    _, said = browser.post("/console/import", {**sent, "layout": {"kinds": kinds}})
    assert (said["written"], said["errors"]) == (2, [])
    found = stored(orders, {"pk": {"S": "p"}, "sk": {"N": "2"}})
    assert found == {
        "pk": {"S": "p"}, "sk": {"N": "2"}, "code": {"S": "12"}, "done": {"BOOL": False},
        "tags": {"M": {"a": {"N": "1"}}}, "name": {"S": "bo"}, "mixed": {"BOOL": True},
    }  # fmt: skip


@pytest.mark.parametrize("size", [5, 60, 100_000])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_is_imported(orders: Database, browser: Browser, delimiter: str, size: int) -> None:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerows(
        [
            ("pk", "sk", "kind", "note"),
            ("c", 1, "", 'two\nlines, "quoted"; 1'),
            ("c", "x", "", ""),
            ("c", 2, "k", ""),
        ]
    )
    said = imported(browser, file.getvalue().encode(), "x.csv", size)
    assert said["written"] == 2
    assert [line for line, _ in said["errors"]] == [4]
    found = [item for item in scanned(orders) if item["pk"] == {"S": "c"}]
    assert sorted(found, key=str) == [
        {"pk": {"S": "c"}, "sk": {"N": "1"}, "note": {"S": 'two\nlines, "quoted"; 1'}},
        {"pk": {"S": "c"}, "sk": {"N": "2"}, "kind": {"S": "k"}, "note": {"S": ""}},
    ]


def test_rows_that_cannot_be_imported_are_told_by_their_lines(orders: Database, browser: Browser) -> None:
    file = b'{"pk": "a1", "sk": 1}\n\n{"pk": "a2"}\nnothing\n{"pk": "a3", "sk": 1}\n[1]\n'
    for size in (10, 10_000):
        said = imported(browser, file, "x.jsonl", size)
        assert said["written"] == 2
        assert [line for line, _ in said["errors"]] == [3, 4, 6]
    said = imported(browser, b'[{"pk": "a1", "sk": 1},\n{"pk": "a2",', "x.json", 100)
    assert (said["written"], said["errors"]) == (1, [(2, "The object has no end")])
    said = imported(browser, b'[{"pk": "a1", "sk": 1},\n 7, {"pk": "a2", "sk": 1}]', "x.json", 100)
    assert (said["written"], said["errors"][0][0]) == (1, 2)
    assert imported(browser, b"", "x.csv", 100)["written"] == 0
    assert imported(browser, b"pk,pk\nx,y\n", "x.csv", 100)["errors"][0][0] == 1


def test_an_import_may_leave_items_alone(orders: Database, browser: Browser) -> None:
    file = b'{"Item": %s}\n{"pk": "n", "sk": 1}\n' % orjson.dumps({**KEY, "empty": {"S": "imported"}})
    assert imported(browser, file, "x.json", 1_000, keep=True) == {"written": 1, "kept": 1, "errors": []}
    assert stored(orders) == EVERY_TYPE
    assert imported(browser, file, "x.json", 1_000)["written"] == 2
    assert stored(orders) == {**KEY, "empty": {"S": "imported"}}


def test_an_import_stops_after_a_second_and_goes_on(
    orders: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "WORK_SECONDS", -1)
    file = b"".join(b'{"pk": "n", "sk": %d}\n' % number for number in range(80))
    _, answer = browser.post("/console/import", piece(file))
    assert (answer["written"], answer["is_over"]) == (25, False)
    assert imported(browser, file, "x.json", 100_000)["written"] == 80
    assert len(scanned(orders)) == 81


def test_a_preview_shows_types_and_problems_and_writes_nothing(orders: Database, browser: Browser) -> None:
    file = (
        b'{"pk": "n", "sk": 1, "tags": ["x"]}\n{"pk": "n", "sk": "text"}\n' + b'{"pk": "n", "sk": 2}\n' * 20
    )
    _, answer = browser.post("/console/import/preview", piece(file))
    said = " ".join(parsed(answer["html"]).text.split())
    assert answer["rows"] == 10
    assert "Line 2 The item has no key attribute sk that is a number" in said
    assert "tags L" in said
    assert len(scanned(orders)) == 1
    status, answer = browser.post("/console/import/preview", piece(b"\x1f\x8b..."))
    assert (status, "Unpack it first" in answer["error"]) == (400, True)
    assert (
        browser.post("/console/import/preview", piece(b"", layout={"format": "x"}, is_first=False))[0] == 400
    )


@given(texts=st.lists(st.text('"\\{}[],\n ax'), max_size=5), cut=st.integers(1, 60))
def test_pieces_of_any_size_hold_the_same_rows(texts: list[str], cut: int) -> None:
    for file in (
        orjson.dumps([{"pk": text} for text in texts]),
        b"".join(orjson.dumps({"pk": text}) + b"\n" for text in texts),
    ):
        found: list[Any] = []
        layout, place = recognised("x.json", file, "tab")
        size = cut
        while not layout.is_over and place < len(file):
            is_last = place + size >= len(file)
            got = list(rows(layout, file[place : place + size], is_last, {}, ["pk"]))
            found += [row.outcome for row in got]
            if got:
                place, size = place + got[-1].end, cut
            elif is_last:
                break
            else:
                size *= 2
        if texts:
            assert found == [{"pk": {"S": text}} for text in texts]


def test_a_layout_knows_csv_by_name_and_by_look() -> None:
    assert recognised("x.csv", b"{a;b\n", "tab")[0] == Layout("csv", ";")
    assert recognised("x", b"a\tb\n", "tab")[0] == Layout("csv", "\t")
    assert isinstance(next(rows(Layout("lines"), b"{\n", True, {}, [])).outcome, Bad)


def step(browser: Browser, query: str = "", **members: Any) -> dict[str, Any]:
    """All steps of a change, as the page asks for them."""
    total = {"done": 0, "same": 0, "left": 0, "failed": 0}
    start = ""
    while True:
        sent = {"table": "orders", "action": "delete", "start": start, **members}
        status, answer = browser.post(f"/console/bulk?{query}", sent)
        assert status == 200, answer
        total = {name: total[name] + answer[name] for name in total}
        start = answer["start"]
        if not start:
            return total


@pytest.mark.parametrize("seconds", [-1, 1])
def test_all_items_that_are_found_are_changed(
    orders: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    monkeypatch.setattr(bulk, "WORK_SECONDS", seconds)
    fill_many(orders)
    query = "filter=n+%3D+:n&values=" + quote('{":n":{"N":"1"}}')
    assert browser.post(f"/console/bulk/count?{query}", {"table": "orders"})[1] == {"count": 20, "start": ""}
    value = {"kind": "N", "text": "12345678901234567890.5"}
    changed = step(browser, query, action="set", name="set", value=value)
    assert changed == {"done": 20, "same": 0, "left": 0, "failed": 0}
    assert step(browser, query, action="set", name="set", value=value)["same"] == 20
    assert sum(item.get("set") == {"N": "12345678901234567890.5"} for item in scanned(orders)) == 20
    assert step(browser, "pk=b", action="remove", name="set") == {
        "done": 20,
        "same": 40,
        "left": 0,
        "failed": 0,
    }
    assert step(browser, query)["done"] == 20
    assert len(scanned(orders)) == 41
    assert step(browser, "pk=b&op=%3C&sk=30")["done"] == 20
    assert len(scanned(orders)) == 21


def test_selected_items_are_left_alone_if_somebody_changed_them(orders: Database, browser: Browser) -> None:
    fill_many(orders, 4)
    _, text = browser.ask(f"{TABLE}?pk=b")
    boxes = re.findall(r'name="key" form="many" value="([^"]+)" data-seen="([^"]+)"', text)
    chosen = [{"key": key.replace("&#34;", '"'), "seen": seen} for key, seen in boxes]
    assert len(chosen) == 4
    put(orders, {"pk": {"S": "b"}, "sk": {"N": "1"}, "theirs": {"S": "x"}})
    orders.execute("DeleteItem", {"TableName": "orders", "Key": {"pk": {"S": "b"}, "sk": {"N": "2"}}})
    sent = {"table": "orders", "action": "delete", "chosen": chosen}
    _, answer = browser.post("/console/bulk", sent)
    assert {name: answer[name] for name in ("done", "left", "taken", "start")} == {
        "done": 2,
        "left": 2,
        "taken": 4,
        "start": "",
    }
    assert {item["sk"]["N"] for item in scanned(orders) if item["pk"] == {"S": "b"}} == {"1"}


def test_an_item_that_changes_while_it_is_found_is_left_alone(
    orders: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = View.change

    async def late(self: View, operation: str, sent: dict[str, Any]) -> dict[str, Any]:
        put(orders, EVERY_TYPE | {"empty": {"S": "theirs"}})
        return await change(self, operation, sent)

    monkeypatch.setattr(View, "change", late)
    assert step(browser) == {"done": 0, "same": 0, "left": 1, "failed": 0}
    assert stored(orders) == EVERY_TYPE | {"empty": {"S": "theirs"}}


def test_a_table_that_takes_no_more_writes_is_asked_again(
    orders: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_many(orders, 3)
    change, calls = View.change, []

    async def slow(self: View, operation: str, sent: dict[str, Any]) -> dict[str, Any]:
        calls.append(sent["Key"])
        if len(calls) == 3:
            raise Refused("Too many.", "ThrottlingException")
        return await change(self, operation, sent)

    monkeypatch.setattr(View, "change", slow)
    sent = {"table": "orders", "action": "delete"}
    _, answer = browser.post("/console/bulk", sent)
    assert (answer["done"], answer["is_slow"], bool(answer["start"])) == (2, True, True)
    _, answer = browser.post("/console/bulk", {**sent, "start": answer["start"]})
    assert (answer["done"], answer["is_slow"], answer["start"]) == (2, False, "")
    assert calls[2] == calls[3]
    assert scanned(orders) == []


def test_items_of_an_index_are_changed_as_a_whole(orders: Database, browser: Browser) -> None:
    put(orders, {**KEY, "kind": {"S": "k"}, "more": {"S": "x"}})
    assert (
        step(browser, "index=by-kind&pk=k", action="set", name="new", value={"kind": "S", "text": "v"})[
            "done"
        ]
        == 1
    )
    assert stored(orders) == {**KEY, "kind": {"S": "k"}, "more": {"S": "x"}, "new": {"S": "v"}}
    assert step(browser, "index=by-kind")["done"] == 1
    assert stored(orders) is None


def test_failures_are_told_by_key(orders: Database, browser: Browser) -> None:
    sent = {"table": "orders", "action": "set", "name": "kind", "value": {"kind": "N", "text": "1"}}
    _, answer = browser.post("/console/bulk", sent)
    assert (answer["failed"], answer["done"]) == (1, 0)
    assert answer["failures"][0]["key"] == f"a, {KEY['sk']['N']}"
    assert "kind" in answer["failures"][0]["why"]


@pytest.mark.parametrize(
    ("query", "members", "says"),
    [
        ("", {"action": "drop"}, "not a bulk change"),
        ("", {"action": "set", "name": "pk", "value": {"kind": "S"}}, "of the table's key"),
        ("", {"action": "remove"}, "Name the attribute"),
        ("", {"action": "set", "name": "x"}, "Give the value"),
        ("", {"action": "set", "name": "x", "value": {"kind": "N", "text": "one"}}, "x: "),
        ("index=by-kind", {"action": "remove", "name": "kind"}, "of the key of the index"),
        ("at=now", {"action": "delete"}, "past cannot be changed"),
        ("filter=%23", {"action": "delete"}, "FilterExpression"),
    ],
)
def test_a_wrong_bulk_change_says_why(
    orders: Database, browser: Browser, query: str, members: dict[str, Any], says: str
) -> None:
    status, answer = browser.post(f"/console/bulk?{query}", {"table": "orders", **members})
    assert (status, says in answer["error"]) == (400, True), answer
    assert stored(orders) == EVERY_TYPE


def test_the_formats_of_downloads_are_those_of_the_page(orders: Database, browser: Browser) -> None:
    _, text = browser.ask(TABLE)
    assert re.findall(r'name="format" value="([\w-]+)"', text) == list(exports.FORMATS)
