"""`hashrange replica`, `hashrange serve --copy-to`, `/health` and the metrics; and a copy in S3."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import orjson
import pytest
from click.testing import CliRunner, Result

from endpoints import connection
from hashrange.buckets.s3 import S3Buckets
from hashrange.cli import main
from hashrange.database import Database
from hashrange.errors import InternalServerError
from hashrange_replication.costs import estimate
from hashrange_replication.format.sealing import read_key
from hashrange_replication.guard import Guard, is_consistent
from hashrange_replication.place import place_of
from hashrange_replication.serving import families, health
from hashrange_replication.verify import verify
from servers import asked, wait_for_base
from serving import serving
from shipping import World, contents, key_of, place_in, restored
from worlds import create, table_of

ITEM = {"p": {"S": "a"}, "n": {"N": "1"}}
GET = {"TableName": "table", "Key": {"p": {"S": "a"}}}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["replica", *arguments])


def copied(folder: Path, key_file: Path | None = None) -> World:
    key = read_key(key_file, os.urandom) if key_file is not None else None
    world = World(folder / "data", place_in(folder), key)
    create(world.database, "table", "p")
    world.database.execute("PutItem", {"TableName": "table", "Item": ITEM})
    world.step()
    world.clock.advance(9.0)
    world.database.execute("PutItem", {"TableName": "table", "Item": ITEM | {"p": {"S": "b"}}})
    world.step()
    world.close()
    return world


def test_a_copy_is_verified_drilled_shown_and_restored(tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.write_bytes(base64.b64encode(b"k" * 32))
    key_file.chmod(0o600)
    world = copied(tmp_path, key_file)
    where, key = ("--copy", str(tmp_path / "copy")), ("--copy-key-file", str(key_file))

    done = run("verify", *where, *key, "--restore", "--against", str(world.directory))
    assert done.exit_code == 0, done.output
    assert re.search(r"^[0-9a-f]{32} +2 items  table$", done.output, re.M)
    assert done.output.endswith("nothing is lost or damaged\n")

    shown = orjson.loads(run("status", *where, *key, "--format", "json").stdout)
    assert (shown["epoch"], shown["bases"], shown["segments"], shown["standby"]) == (1, 1, 1, None)
    assert shown["owner"] == "the test in data (ended)"
    assert shown["last_commit"].startswith("2023-11-14")
    assert "dollars a month" in run("status", *where).stdout

    refused = run("restore", *where, "--data-dir", str(tmp_path / "restored"))
    assert (refused.exit_code, "give its file to --copy-key-file" in refused.stderr) == (1, True)
    done = run("restore", *where, *key, "--data-dir", str(tmp_path / "restored"))
    assert done.exit_code == 0, done.output
    assert re.search(r"restored to commit \d+ of 2023-11-14T\S+, from a base of 0\.0 MiB and 1", done.output)
    with Database.open(tmp_path / "restored") as database:
        assert database.execute("Scan", {"TableName": "table"})["Count"] == 2
    again = run("restore", *where, *key, "--data-dir", str(tmp_path / "restored"))
    assert (again.exit_code, "holds a store already" in again.stderr) == (1, True)
    at = run("restore", *where, *key, "--data-dir", str(tmp_path / "past"), "--at", "2023-11-14T22:13:21Z")
    assert at.exit_code == 0, at.output
    with Database.open(tmp_path / "past") as database:
        assert database.execute("Scan", {"TableName": "table"})["Count"] == 1
    done = run("verify", *where, *key, "--restore", "--against", str(tmp_path / "past"))
    assert (done.exit_code, f"table: the copy differs from {tmp_path / 'past'}" in done.stderr) == (1, True)


def test_damage_ends_a_verification_with_1(tmp_path: Path) -> None:
    copied(tmp_path)
    segment = tmp_path / "copy" / "segments" / "0000000001" / "000000000001"
    segment.write_bytes(segment.read_bytes()[:-3])
    done = run("verify", "--copy", str(tmp_path / "copy"))
    assert (done.exit_code, "the object is cut off" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("status", "--copy", "nothing"), "there is no"),
        (("status", "--copy", "ftp://host/x"), "neither a folder nor a URL"),
        (("status", "--copy", "s3://"), "names no bucket"),
        (("verify", "--copy", ".", "--against", "."), "give both"),
        (("restore", "--copy", ".", "--data-dir", "x", "--at", "tomorrow"), "--at"),
    ],
)
def test_wrong_command_lines_say_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert done.exit_code in (1, 2)
    assert text in done.stderr


def test_an_empty_folder_is_no_copy(tmp_path: Path) -> None:
    place_in(tmp_path)
    for name in ("status", "restore"):
        more = ("--data-dir", str(tmp_path / "x")) if name == "restore" else ()
        done = run(name, "--copy", str(tmp_path / "copy"), *more)
        assert (done.exit_code, "no server has" in done.stderr) == (1, True)
    assert "there is no base" in run("verify", "--copy", str(tmp_path / "copy")).stderr


def test_which_reads_the_guard_refuses() -> None:
    assert is_consistent(GET | {"ConsistentRead": True})
    assert not is_consistent(GET | {"ConsistentRead": False})
    assert not is_consistent(GET)
    assert is_consistent({"RequestItems": {"table": {"ConsistentRead": True}}})
    assert not is_consistent({"RequestItems": {"table": {"Keys": []}}})
    assert is_consistent({"Statements": [{"Statement": ""}, {"Statement": "", "ConsistentRead": True}]})
    cause: list[str | None] = [None]
    with Database.in_memory() as database:
        create(database, "table", "p")
        database.observers.observe(Guard(lambda: cause[0]))
        database.execute("GetItem", GET | {"ConsistentRead": True})
        cause[0] = "the lease ran out"
        database.execute("GetItem", dict(GET))
        for name, request in (
            ("GetItem", GET | {"ConsistentRead": True}),
            ("TransactGetItems", {"TransactItems": [{"Get": GET}]}),
        ):
            with pytest.raises(InternalServerError, match="reads are refused: the lease ran out"):
                database.execute(name, request)


def test_costs_of_a_month() -> None:
    quiet = estimate(100 << 30, 90.0, None, None)
    assert (str(quiet.storage), quiet.writes, str(quiet.requests)) == ("2.30", 87_600, "0.44")
    assert quiet.dollars == quiet.storage + quiet.requests


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def test_a_copy_in_s3(tmp_path: Path, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket="bucket")
    place = place_of("s3://bucket/one/copy", s3_endpoint)
    world = World(tmp_path / "data", place, key_of(1))
    create(world.database, "table", "p")
    world.database.execute("PutItem", {"TableName": "table", "Item": ITEM})
    world.step()
    world.copying.keep_lease()
    world.database.execute("PutItem", {"TableName": "table", "Item": ITEM | {"n": {"S": "x" * 100_000}}})
    world.step()
    wanted = contents(world.engine)
    assert restored(place, tmp_path / "restored", key_of(1))[1] == wanted
    world.close()
    assert verify(place, key_of(1)).problems == []
    keys = [one.key for one in S3Buckets(s3_endpoint).list("bucket", "")]
    assert all(key.startswith("one/copy/") for key in keys)
    done = run("verify", "--copy", "s3://bucket/one/copy", "--s3-endpoint", s3_endpoint)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("acks", [True, False])
def test_a_server_ships_and_says_so(tmp_path: Path, acks: bool) -> None:
    options = ["--data-dir", str(tmp_path / "data"), "--copy-to", str(tmp_path / "copy")]
    options += ["--copy-ack"] if acks else []
    with serving(*options) as server:
        dynamodb = boto3.client("dynamodb", **connection(server.endpoint))
        dynamodb.create_table(**table_of("table", "p"))
        dynamodb.put_item(TableName="table", Item=ITEM)
        told = orjson.loads(asked(f"{server.admin}/health"))
        metrics = asked(f"{server.admin}/metrics")
        dynamodb.close()
        wait_for_base(server)
    shown = told["of_rings"]["replication"]
    assert (shown["epoch"], shown["standby"], "problem" in shown) == (1, None, False)
    assert told["status"] == "ok"
    assert "hashrange_copy_epoch 1" in metrics
    if acks:
        assert (shown["lag_seconds"], shown["lag_bytes"]) == (0.0, 0)
        assert "hashrange_copy_has_base 1" in metrics
    # The end is clean: the next server makes no new base.
    done = run("verify", "--copy", str(tmp_path / "copy"), "--restore", "--against", str(tmp_path / "data"))
    assert done.exit_code == 0, done.output
    with serving(*options) as server:
        shown = orjson.loads(asked(f"{server.admin}/health"))["of_rings"]["replication"]
        assert "base" not in shown
        assert shown["epoch"] == 2


def test_only_a_data_directory_is_shipped() -> None:
    done = CliRunner().invoke(main, ["serve", "--memory", "--port", "0", "--copy-to", "x"])
    assert (done.exit_code, "use it with --data-dir only" in done.output) == (2, True)


def test_a_server_without_a_copy_shows_none() -> None:
    with Database.in_memory() as database:
        subject: Any = SimpleNamespace(database=database)
        assert health(subject) is None
        assert families(subject) == []
