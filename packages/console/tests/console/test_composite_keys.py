"""Keys of several attributes in the forms of the console."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from consoles import Browser, parsed
from hashrange.database import Database

CREATE: dict[str, Any] = {
    "name": "games",
    "partition": "id",
    "indexes": [
        {
            "name": "by-place",
            "partition": "league",
            "sort": "year",
            "sort_type": "N",
            "parts": [
                {"attribute": "round", "role": "RANGE", "type": "S"},
                {"attribute": "region", "role": "HASH", "type": "S"},
                {"attribute": "score", "role": "RANGE", "type": "N"},
            ],
        }
    ],
}
SCHEMA = [("league", "HASH"), ("region", "HASH"), ("year", "RANGE"), ("round", "RANGE"), ("score", "RANGE")]
GRID = "/console/t/games?index=by-place&pk=a&pk=eu"


@pytest.fixture
def games(database: Database, browser: Browser) -> Database:
    """A table with an index whose key has two attributes for the partition and three to sort by."""
    assert browser.post("/console/create-table", CREATE)[0] == 200
    for number in range(4):
        item = {
            "id": {"S": str(number)},
            "league": {"S": "a"},
            "region": {"S": "eu"},
            "year": {"N": "2026"},
            "round": {"S": f"final-{number}"},
            "score": {"N": str(number)},
        }
        database.execute("PutItem", {"TableName": "games", "Item": item})
    return database


def schema_of(database: Database, name: str) -> list[tuple[str, str]]:
    described = database.execute("DescribeTable", {"TableName": "games"})["Table"]
    [index] = [index for index in described["GlobalSecondaryIndexes"] if index["IndexName"] == name]
    return [(key["AttributeName"], key["KeyType"]) for key in index["KeySchema"]]


def said(page: str) -> str:
    return " ".join(parsed(page).text.split())


def test_tables_and_indexes_are_made_with_such_keys(games: Database, browser: Browser) -> None:
    assert schema_of(games, "by-place") == SCHEMA
    parts = CREATE["indexes"][0]["parts"][:1]
    more = {"table": "games", "name": "again", "partition": "region", "parts": parts}
    assert browser.post("/console/add-index", more)[0] == 200
    assert schema_of(games, "again") == [("region", "HASH"), ("round", "RANGE")]
    page = browser.ask("/console/t/games/about")[1]
    assert page.count("Add a key attribute") == 1
    local = {**CREATE["indexes"][0], "kind": "local"}
    status, answer = browser.post("/console/create-table", CREATE | {"name": "other", "indexes": [local]})
    assert (status, "has the partition key of its table and one sort key" in answer["error"]) == (400, True)


@pytest.mark.parametrize(
    ("conditions", "count"),
    [
        ("", 4),
        ("&op=%3D&sk=2026&sk2=", 4),
        ("&op=&sk=2026&sk2=&op=begins_with&sk=final-&sk2=", 4),
        ("&op=%3D&sk=2026&sk2=&op=%3D&sk=final-2&sk2=&op=between&sk=1&sk2=2", 1),
        ("&op=%3D&sk=2026&sk2=&op=%3D&sk=final-2&sk2=&op=between&sk=3&sk2=9", 0),
        ("&op=%3E&sk=2026&sk2=", 0),
    ],
)
def test_the_form_of_a_table_compares_sort_keys_from_left_to_right(
    games: Database, browser: Browser, conditions: str, count: int
) -> None:
    status, page = browser.ask(GRID + conditions)
    assert (status, f"Query: {count} of {count} item" in said(page)) == (200, True)
    assert all(page.count(f'aria-label="Condition on {name}"') == 1 for name in ("year", "round", "score"))


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        ("&op=&sk=&sk2=&op=%3D&sk=final-2&sk2=", "round has a condition, but year has none"),
        ("&op=%3E&sk=1&sk2=&op=%3D&sk=final-2&sk2=", "round has a condition, but the one of year is not ="),
        ("&op=like&sk=1&sk2=", "'like' is not a condition on a sort key"),
    ],
)
def test_conditions_that_no_query_has_are_refused(
    games: Database, browser: Browser, conditions: str, why: str
) -> None:
    status, page = browser.ask(GRID + conditions)
    assert (status, why in said(page)) == (400, True)
    assert 'value="final-2"' in page or "like" in conditions


def rows_of(page: str) -> list[tuple[str, str]]:
    """The attributes of the builder's conditions, and their types."""
    names = re.findall(r'name="attr" value="([^"]*)"', page)
    kinds = [
        re.findall(r"<option selected>(\w+)", part)[0] for part in page.split('<label class="type">')[1:]
    ]
    return list(zip(names, kinds, strict=True))


def builder(*conditions: tuple[str, str, str, str], **parameters: str) -> str:
    pairs = [*parameters.items()]
    for attribute, operator, kind, value in conditions:
        pairs += [("attr", attribute), ("op", operator), ("type", kind), ("value", value), ("value2", "")]
    return f"/console/ask?{urlencode(pairs)}"


def test_the_builder_offers_the_key_of_the_chosen_index(games: Database, browser: Browser) -> None:
    page = browser.ask(builder(table="games", source="by-place"))[1]
    wanted = [("league", "S"), ("region", "S"), ("year", "N"), ("round", "S"), ("score", "N"), ("", "S")]
    assert rows_of(page) == wanted
    assert "reads all of" in said(page)
    # Whatever is left empty is not a condition; what is given comes in the order of the key.
    region, league = ("region", "=", "S", "eu"), ("league", "=", "S", "a")
    given = (region, ("note", "=", "S", ""), league, ("year", "=", "N", ""))
    page = browser.ask(builder(*given, table="games", source="by-place", run="1"))[1]
    assert [name for name, _ in rows_of(page)] == ["league", "region", "year", "round", "score", "note", ""]
    assert "the index by-place of games by league = a, region = eu. Then it filters by note =" in said(page)
    page = browser.ask(builder(region, league, table="games", source="by-place", run="1"))[1]
    assert "Query: 4 of 4 items read" in said(page)


def test_a_form_of_an_item_offers_the_keys_of_indexes(games: Database, browser: Browser) -> None:
    games.execute("PutItem", {"TableName": "games", "Item": {"id": {"S": "new"}, "region": {"S": "eu"}}})
    page = browser.ask("/console/t/games/new")[1]
    assert re.findall(r'data-adds="(\w+)" data-kind="(\w)"', page) == [
        ("league", "S"), ("region", "S"), ("year", "N"), ("round", "S"), ("score", "N"),
    ]  # fmt: skip
    page = edited(browser, "new")
    assert 'data-adds="league"' in page
    assert 'data-adds="region"' not in page
    assert "data-adds" not in edited(browser, "1")


def edited(browser: Browser, id_: str) -> str:
    """The page that edits an item."""
    key = orjson.dumps({"id": {"S": id_}}).decode()
    return browser.ask("/console/t/games/item?" + urlencode({"key": key, "view": "edit"}))[1]
