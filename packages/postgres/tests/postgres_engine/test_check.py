"""`hashrange check` of a store in PostgreSQL: it finds whatever SQL has damaged, and reads only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any

import orjson
import psycopg
import pytest
from click.testing import CliRunner, Result

from copies import Schema, World, contents, new_schema
from hashrange.cli import main
from hashrange.tables import streams
from hashrange.tables.definitions import catalog

pytestmark = pytest.mark.once

HOURS = 3600.0


@dataclass(frozen=True)
class Store:
    """A store, its spaces by name, and a connection that damages it."""

    schema: Schema
    spaces: dict[str, int]
    connection: psycopg.Connection[Any]

    def damage(self, statement: str) -> None:
        """Run SQL, with `{records}`, other tables and the spaces filled in."""
        words = {
            table: f"{self.schema.name}.{table}"
            for table in ("records", "total", "log", "log_number", "body_stamp", "cleared")
        }
        done = self.connection.execute(statement.format(**words, **self.spaces))
        assert done.rowcount > 0, f"{statement} changed nothing"

    def check(self, *more: str) -> Result:
        given = ["check", self.schema.url, "--postgres-schema", self.schema.name, *more]
        return CliRunner().invoke(main, given)


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    """A store with a table that has everything, whose shards have been rolled over."""
    schema = new_schema(postgres_url)
    world = World(schema.open())
    world.make(20)
    world.clock.advance(0.1)
    engine = world.database.engine
    table = engine.read(lambda reader: catalog.find_full(reader, "orders"))
    assert table is not None
    assert table.ttl is not None
    assert table.history is not None
    world.clock.advance(4 * HOURS - 3000)
    world.put(500)
    world.clock.advance(3001)
    world.database.tend()
    [stream] = engine.read(lambda reader: list(streams.all_streams(reader)))
    assert len(stream.shards) == 6
    for n in range(500, 510):
        world.put(n, ttl={"N": "5000000000"})
    world.database.close()
    spaces = {
        "items": table.space,
        "local_index": table.indexes[0].space,
        "global_index": table.indexes[1].space,
        "collections": table.collection_space,
        "queue": table.ttl.space,
        "history": table.history.space,
        "stream": stream.space,
    }
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield Store(schema, spaces, connection)


def one(table: str, order: str = "partition, sort") -> str:
    """The condition that chooses the first record of a space."""
    return f"ctid = (SELECT ctid FROM {{records}} WHERE space = {{{table}}} ORDER BY {order} LIMIT 1)"


def test_a_sound_store(store: Store) -> None:
    before = contents(store.schema)
    found = store.check()
    assert found.stdout == ""
    assert found.exit_code == 0
    assert "no damage in schema test_" in found.stderr
    assert contents(store.schema) == before


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (f"UPDATE {{records}} SET value = '\\x00' WHERE {one('items')}", "no header of a known format"),
        (
            f"UPDATE {{records}} SET value = substr(value, 1, length(value) - 1) WHERE {one('items')}",
            "the record cannot be decoded",
        ),
        (f"UPDATE {{records}} SET sort = sort || 'x' WHERE {one('items')}", "belongs to another address"),
        (f"DELETE FROM {{records}} WHERE {one('items')}", "index local.*the entry's item does not exist"),
        (f"DELETE FROM {{records}} WHERE {one('items')}", "orders: the totals are"),
        (f"DELETE FROM {{records}} WHERE {one('items')}", "item collection"),
        (f"DELETE FROM {{records}} WHERE {one('items')}", "the expiry queue says .* no item here expires"),
        (f"DELETE FROM {{records}} WHERE {one('global_index')}", "global.*the item has no entry"),
        (f"DELETE FROM {{records}} WHERE {one('local_index')}", "index local: the totals are"),
        (
            "UPDATE {records} SET value = (SELECT value FROM {records} WHERE space = {global_index} ORDER BY "
            f"partition DESC, sort DESC LIMIT 1) WHERE {one('global_index')}",
            "the entry does not hold what the item says",
        ),
        (
            f"DELETE FROM {{records}} WHERE {one('queue', 'length(sort) DESC')}",
            "but the expiry queue does not hold it",
        ),
        (f"UPDATE {{records}} SET value = '\\x7b7d' WHERE {one('history')}", "not an image of an item"),
        ("UPDATE {total} SET records = records + 1 WHERE space = {items}", "orders: the totals are"),
        ("DELETE FROM {total} WHERE space = {global_index}", "index global: the totals are 0 records"),
        (
            "UPDATE {records} SET value = 'no table' WHERE space = 0 AND sort LIKE '%orders'::bytea "
            "AND partition = 'table'",
            "orders: the definition cannot be decoded",
        ),
        (f"UPDATE {{records}} SET value = '\\x00' WHERE {one('stream')}", "stream record cannot be decoded"),
        (
            f"UPDATE {{records}} SET sort = int8send(1) WHERE {one('stream', 'partition DESC, sort')}",
            "the number 1, which is not between those of its shard",
        ),
        (f"UPDATE {{records}} SET partition = 'none' WHERE {one('stream')}", "in no shard of the stream"),
        (f"UPDATE {{records}} SET sort = 'x' WHERE {one('stream')}", "the record has no sequence number"),
        (
            "UPDATE {records} r SET value = (SELECT value FROM {records} s WHERE s.space = r.space AND "
            f"s.partition = r.partition ORDER BY sort DESC LIMIT 1) WHERE {one('stream')}",
            "older than the one before it",
        ),
        ("SELECT setval('{log_number}', 5)", "but the next one will be above 5"),
        ("DELETE FROM {log} WHERE space = {stream}", "but the next one will be above 0"),
        (
            "SELECT setval('{body_stamp}', (7 - 9223372036854775808)::bigint)",
            "the image has the stamp .* up to 7",
        ),
        ("INSERT INTO {cleared} VALUES ({items})", "are being deleted, but it is in use"),
        (
            "INSERT INTO {records} SELECT space + 50, partition, sort, version, value FROM {records} "
            "WHERE space = {items}",
            "holds records, but no table owns it",
        ),
        (
            f"UPDATE {{records}} SET version = 0 WHERE {one('items')}",
            "1 records have a version that no server gives",
        ),
        (
            "UPDATE {records} SET value = replace(encode(value, 'escape'), '\"low\":0,', '\"low\":1,')"
            "::bytea WHERE space = 0 AND partition = 'stream'",
            "leave a gap or overlap at the hash 0",
        ),
        (
            "UPDATE {records} SET value = regexp_replace(encode(value, 'escape'), '\"end\":(\\d+)', "
            "'\"end\":1\\1')::bytea WHERE space = 0 AND partition = 'stream'",
            "there is a gap between them",
        ),
        (
            "UPDATE {records} SET value = 'none' WHERE space = 0 AND partition = 'stream'",
            "stream .* be decoded",
        ),
    ],
)
def test_damage_is_found(store: Store, statement: str, message: str) -> None:
    store.damage(statement)
    before = contents(store.schema)
    found = store.check()
    assert re.search(message, found.stdout), found.stdout + found.stderr
    assert found.exit_code == 1
    assert contents(store.schema) == before


def test_all_damage_is_reported_to_the_end(store: Store) -> None:
    store.damage(f"UPDATE {{records}} SET value = '\\x00' WHERE {one('items')}")
    store.damage("UPDATE {total} SET bytes = bytes + 1 WHERE space = {local_index}")
    store.damage(f"UPDATE {{records}} SET value = '\\x00' WHERE {one('stream')}")
    store.damage("INSERT INTO {cleared} VALUES ({history})")
    found = store.check("--format", "json")
    messages = [orjson.loads(line)["message"] for line in found.stdout.splitlines()]
    assert found.exit_code == 1
    for expected in ("no header", "the totals are", "stream record cannot", "are being deleted"):
        assert any(expected in message for message in messages), messages
    assert f"{len(messages)} problems found" in found.stderr


def test_a_check_beside_writers(store: Store) -> None:
    """It reads one snapshot, in which all fits together."""
    world = World(store.schema.open(), 1_700_020_000.0)
    stop = Event()
    written: list[int] = []

    def go_on() -> None:
        while not stop.is_set():
            written.append(len(written))
            world.put(len(written) % 50, g={"S": f"g{len(written)}"}, ttl={"N": "5000000000"})

    writer = Thread(target=go_on)
    writer.start()
    try:
        for _ in range(3):
            before = len(written)
            found = store.check()
            assert (found.stdout, found.exit_code) == ("", 0)
            assert len(written) > before
    finally:
        stop.set()
        writer.join()
        world.database.close()


def test_what_cannot_be_checked(store: Store, postgres_url: str) -> None:
    runner = CliRunner()
    missing = new_schema(postgres_url)
    for given, message in (
        ([missing.url, "--postgres-schema", missing.name], "holds no Hashrange store"),
        (["postgresql://nobody:secret@127.0.0.1:9/none"], "PostgreSQL does not answer"),
        (
            [store.schema.url, "--postgres-schema", store.schema.name, "--repair"],
            "--repair is for directories",
        ),
        (["no-directory"], "does not exist"),
    ):
        found = runner.invoke(main, ["check", *given])
        assert found.exit_code == 2
        assert message in found.stderr
        assert "secret" not in found.output
    target = missing.target()
    target.close()
    found = runner.invoke(main, ["check", missing.url, "--postgres-schema", missing.name])
    assert found.exit_code == 2
    assert "holds an unfinished copy" in found.stderr
