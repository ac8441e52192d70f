"""Following a table in the terminal: which records, in which order, and how they look."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from hashrange.cli import main
from hashrange.database import Settings
from hashrange_triggers import TriggerError, differences, events
from hashrange_triggers.tail import Tail
from serving import serving
from triggers.world import TABLE, World, keys_of
from worlds import table_of


def texts(record: dict[str, Any]) -> list[str]:
    return ["".join(text for _, text in line) for line in differences.lines_of(record)]


def change(old: dict[str, Any] | None, new: dict[str, Any] | None, name: str = "MODIFY") -> dict[str, Any]:
    images = {"OldImage": old, "NewImage": new}
    present = {image: {"id": {"S": "1"}, **item} for image, item in images.items() if item is not None}
    shown = {"Keys": {"id": {"S": "1"}}, "ApproximateCreationDateTime": 0.0, **present}
    return {"eventName": name, "dynamodb": shown}


def test_a_modified_item_shows_what_was_added_removed_and_changed() -> None:
    old = {
        "state": {"S": "new"},
        "same": {"N": "1"},
        "address": {"M": {"city": {"S": "Bern"}, "zip": {"N": "3000"}}},
        "lines": {"L": [{"S": "a"}, {"M": {"n": {"N": "1"}}}]},
        "coupon": {"NULL": True},
    }
    new = {
        "state": {"S": "paid"},
        "same": {"N": "1"},
        "address": {"M": {"city": {"S": "Basel"}, "zip": {"N": "3000"}, "new": {"BOOL": True}}},
        "lines": {"L": [{"S": "a"}, {"M": {"n": {"N": "2"}}}]},
        "tags": {"SS": ["x", "y"]},
    }
    assert texts(change(old, new))[1:] == [
        '  ~ state: "new" → "paid"',
        '  ~ address.city: "Bern" → "Basel"',
        "  + address.new: true",
        "  ~ lines[1].n: 1 → 2",
        "  - coupon: null",
        '  + tags: {"x", "y"}',
    ]


def test_inserts_removals_and_other_views() -> None:
    assert texts(change(None, {"a": {"N": "1"}}, "INSERT"))[1:] == ["  + a: 1"]
    assert texts(change({"a": {"N": "1"}}, None, "REMOVE"))[1:] == ["  - a: 1"]
    assert texts(change(None, {"a": {"N": "1"}}))[1:] == ["    a: 1"]
    assert len(texts(change(None, None))) == 1
    (head,) = texts(
        {**change(None, None, "REMOVE"), "userIdentity": {"principalId": "dynamodb.amazonaws.com"}}
    )
    assert head.endswith(' REMOVE id="1" (expired)')


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"S": 'a "b"'}, r'"a \"b\""'),
        ({"N": "1.5"}, "1.5"),
        ({"B": "AP8="}, "binary AP8="),
        ({"BS": ["AA=="]}, '{"AA=="}'),
        ({"NS": ["1", "2"]}, "{1, 2}"),
        ({"L": [{"NULL": True}, {"BOOL": False}]}, "[null, false]"),
        ({"M": {"a": {"N": "1"}}}, "{a: 1}"),
    ],
)
def test_values_are_shown_in_short(value: dict[str, Any], shown: str) -> None:
    assert differences.show(value) == shown


def test_long_values_are_cut() -> None:
    assert len(differences.show({"S": "x" * 1000})) == 72


class TestFollowing:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(stream_shards=3, stream_shard_seconds=3600.0)

    def test_changes_come_in_order_over_all_shards(self, world: World) -> None:
        world.put("before")
        tail = Tail(world.clients, TABLE, clock=world.clock)
        assert tail.poll() == []
        world.put(*"abcdefgh")
        assert keys_of({"Records": tail.poll()}) == list("abcdefgh")
        assert tail.poll() == []

    def test_children_are_followed(self, world: World) -> None:
        tail = Tail(world.clients, TABLE, clock=world.clock)
        seen: list[events.Record] = []
        for key in "abcdef":
            world.put(key)
            world.clock.advance(3601)
            world.sweep()
            for _ in range(3):
                seen += tail.poll()
        assert keys_of({"Records": seen}) == list("abcdef")

    def test_it_begins_at_the_position_given(self, world: World) -> None:
        began = world.clock.now()
        for key in "abcd":
            world.put(key)
            world.clock.advance(1800)
            world.sweep()
        for start, expected in (("TRIM_HORIZON", "abcd"), (began + 1800, "bcd"), ("LATEST", "")):
            tail = Tail(world.clients, TABLE, start, clock=world.clock)  # type: ignore[arg-type]
            seen = [record for _ in range(4) for record in tail.poll()]
            assert keys_of({"Records": seen}) == list(expected)

    def test_a_table_without_a_stream_is_refused(self, world: World) -> None:
        with pytest.raises(TriggerError, match="There is no table"):
            Tail(world.clients, "nowhere")
        world.clients.dynamodb.update_table(TableName=TABLE, StreamSpecification={"StreamEnabled": False})
        with pytest.raises(TriggerError, match="no stream that is on"):
            Tail(world.clients, TABLE)
        # What it had can still be read.
        assert Tail(world.clients, TABLE, "TRIM_HORIZON").poll() == []


def test_the_command_prints_a_block_or_a_line_for_each_record() -> None:
    import hashrange_triggers as triggers

    with serving("--memory") as server:
        clients = triggers.connect(server.endpoint)
        clients.dynamodb.create_table(**table_of(TABLE, "id", stream="NEW_AND_OLD_IMAGES"))
        for state in ("new", "paid"):
            clients.dynamodb.put_item(TableName=TABLE, Item={"id": {"S": "1"}, "state": {"S": state}})
        clients.dynamodb.close()
        clients.streams.close()

        def tail(*options: str) -> Any:
            command = [
                "stream",
                "tail",
                TABLE,
                "--endpoint-url",
                server.endpoint,
                "--until-caught-up",
                *options,
            ]
            return CliRunner().invoke(main, command, color=True)

        plain = tail("--since", "10m", "--no-color").stdout.splitlines()
        assert [line[9:] for line in plain[::2]] == ['INSERT id="1"', 'MODIFY id="1"']
        assert plain[1::2] == ['  + state: "new"', '  ~ state: "new" → "paid"']
        coloured = tail("--since", "TRIM_HORIZON").stdout
        assert '\x1b[31m"new"\x1b[0m → \x1b[32m"paid"\x1b[0m' in coloured
        records = [
            orjson.loads(line) for line in tail("--since", "1d", "--format", "json").stdout.splitlines()
        ]
        assert [record["eventName"] for record in records] == ["INSERT", "MODIFY"]
        assert tail().stdout == ""
        for moment in ("1d12h", "2020-01-01T00:00:00Z", "1577836800"):
            assert tail("--since", moment, "--no-color").stdout.splitlines() == plain
        assert tail("--since", "now").stdout == ""
        wrong = tail("--since", "soon")
        assert wrong.exit_code == 2
        assert "'soon' is not a time" in wrong.output
        assert "nor TRIM_HORIZON or LATEST" in wrong.output
