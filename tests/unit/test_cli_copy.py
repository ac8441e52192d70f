"""`hashrange copy`: the command beside servers that go on writing, killed commands, and wrong arguments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import orjson
import psycopg
import pytest
from click.testing import CliRunner, Result

from copies import CALLER, Directory, Place, Schema, World, contents, new_schema
from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import running
from hashrange.storage.api import Engine
from hashrange.storage.failures import UnfinishedCopy
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.inspection.check import check
from worlds import create

pytestmark = pytest.mark.once

ACCOUNTS = 20
BALANCE = 100


def arguments(origin: Place, target: Place) -> list[str]:
    given = ["copy", named(origin), named(target)]
    if isinstance(origin, Schema):
        given += ["--from-schema", origin.name]
    if isinstance(target, Schema):
        given += ["--to-schema", target.name]
    return given


def named(place: Place) -> str:
    return str(place.path) if isinstance(place, Directory) else place.url


def run(*given: str) -> Result:
    return CliRunner().invoke(main, list(given))


def done(*given: str) -> str:
    result = run(*given)
    assert result.exit_code == 0, result.output
    return result.stderr


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    """A directory with a store that has everything."""
    place = Directory(tmp_path / "origin")
    world = World(place.open())
    world.make(20)
    world.database.close()
    return place


@pytest.fixture
def schema(postgres_url: str) -> Schema:
    return new_schema(postgres_url)


def test_there_and_back(directory: Directory, schema: Schema, tmp_path: Path) -> None:
    back = Directory(tmp_path / "back")
    assert "copied and compared" in done(*arguments(directory, schema))
    assert "(schema test_" in done(*arguments(schema, back))
    assert contents(back) == contents(directory)
    assert not any(path.name.startswith("checkpoint") for path in directory.path.iterdir())


@contextmanager
def served(engine: Engine) -> Iterator[tuple[Database, str]]:
    """A server over an engine; yields its database, and the URL of its admin plane."""
    with ExitStack() as stack:
        database = stack.enter_context(Database(engine))
        admin = bind_admin(0)
        url = f"http://127.0.0.1:{admin.socket.getsockname()[1]}"
        stack.enter_context(running(database, admin=admin))
        yield database, url


def write(database: Database, n: int) -> None:
    """Move a unit from one account to the next, and note it in both."""

    def add(account: int, amount: int) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": "accounts",
                "Key": {"id": {"N": str(account % ACCOUNTS)}},
                "UpdateExpression": "ADD balance :amount, moves :one",
                "ExpressionAttributeValues": {":amount": {"N": str(amount)}, ":one": {"N": "1"}},
            }
        }

    database.execute("TransactWriteItems", {"TransactItems": [add(n, -1), add(n + 1, 1)]}, CALLER)


def make_accounts(database: Database) -> None:
    create(database, "accounts", "id:N", CALLER, indexes={"by-balance": "balance:N"}, stream="NEW_IMAGE")
    for n in range(ACCOUNTS):
        item = {"id": {"N": str(n)}, "balance": {"N": str(BALANCE)}, "moves": {"N": "0"}}
        database.execute("PutItem", {"TableName": "accounts", "Item": item}, CALLER)


@pytest.mark.parametrize("origin_kind", ["directory", "schema"])
def test_a_copy_beside_writers_is_of_one_moment(tmp_path: Path, postgres_url: str, origin_kind: str) -> None:
    origin: Place = new_schema(postgres_url)
    targets: list[Place] = [Directory(tmp_path / "copied"), new_schema(postgres_url)]
    if origin_kind == "directory":
        origin = Directory(tmp_path / "origin")
    with served(origin.open()) as (database, url):
        make_accounts(database)
        stop = Event()
        written: list[int] = []

        def go_on(first: int) -> None:
            while not stop.is_set():
                write(database, first + len(written))
                written.append(first)

        threads = [Thread(target=go_on, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        try:
            least = []
            for target in targets:
                least.append(len(written))
                # A process of its own, because the writers here would hardly let another thread run.
                command = [sys.executable, "-m", "hashrange", *arguments(origin, target), "--admin-url", url]
                subprocess.run(command, check=True, capture_output=True)
            assert len(written) > least[-1]
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        write(database, 0)  # the server goes on
    for target, before in zip(targets, least, strict=True):
        with Database(target.open()) as copy:
            items = copy.execute("Scan", {"TableName": "accounts"}, CALLER)
            moved = [balances(item) for item in _plain(items)]
            assert sum(balance for balance, _ in moved) == ACCOUNTS * BALANCE
            assert sum(moves for _, moves in moved) % 2 == 0
            assert sum(moves for _, moves in moved) >= 2 * before
            assert list(check(copy.engine)) == []
            write(copy, 0)
    if isinstance(origin, Directory):
        assert not list(origin.path.glob("checkpoint*"))


def _plain(answer: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = orjson.loads(orjson.dumps(answer))["Items"]
    return items


def balances(item: dict[str, Any]) -> tuple[int, int]:
    return int(item["balance"]["N"]), int(item["moves"]["N"])


# A copy that is killed after a given number of calls of its progress.
_KILLED = """
import os, signal, sys
from hashrange.cli import copying, main
from hashrange.storage import store_copy

store_copy.BATCH_RECORDS_MAX = 10
step = sys.argv.pop(1)

class Kill(copying.Progress):
    def __call__(self, now, done, total):
        if now == step:
            os.kill(os.getpid(), signal.SIGKILL)

copying.Progress = Kill
main()
"""


@pytest.mark.parametrize("kind", ["directory", "schema"])
@pytest.mark.parametrize("step", ["copying", "verifying"])
def test_a_killed_copy_is_refused_by_servers_and_begun_anew(
    directory: Directory, schema: Schema, tmp_path: Path, kind: str, step: str
) -> None:
    target: Place = schema if kind == "schema" else Directory(tmp_path / "copied")
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, step, *arguments(directory, target)], check=False, env=os.environ
    )
    assert killed.returncode == -signal.SIGKILL
    with pytest.raises(UnfinishedCopy):
        target.open()
    store = ["--data-dir", named(target)]
    if isinstance(target, Schema):
        store = ["--postgres", named(target), "--postgres-schema", target.name]
    refused = run("serve", "--port", "0", *store)
    assert refused.exit_code == 1
    assert "holds an unfinished copy. Run `hashrange copy` again" in refused.stderr
    done(*arguments(directory, target))
    assert contents(target) == contents(directory)
    target.open().close()


def test_what_a_killed_copy_of_a_served_directory_leaves_is_removed_by_the_next_one(tmp_path: Path) -> None:
    origin = Directory(tmp_path / "origin")
    with served(origin.open()) as (database, url):
        make_accounts(database)
        left = [origin.path / "checkpoint-1", origin.path / "checkpoint-2"]
        for path in left:
            database.engine.checkpoint(str(path))
        done(*arguments(origin, Directory(tmp_path / "copied")), "--admin-url", url)
    assert not list(origin.path.glob("checkpoint*"))


def test_a_server_over_another_store_is_noticed(directory: Directory, tmp_path: Path) -> None:
    other = Directory(tmp_path / "other")
    held = directory.open()
    with served(other.open()) as (_, url), ExitStack() as stack:
        stack.callback(held.close)
        refused = run(*arguments(directory, Directory(tmp_path / "copied")), "--admin-url", url)
    assert refused.exit_code == 1
    assert "has another store" in refused.stderr
    assert not (tmp_path / "copied").exists()
    assert not list(other.path.glob("checkpoint*"))


def test_a_server_without_a_directory_says_so(directory: Directory, tmp_path: Path) -> None:
    held = directory.open()
    with served(MemoryEngine()) as (_, url), ExitStack() as stack:
        stack.callback(held.close)
        refused = run(*arguments(directory, Directory(tmp_path / "copied")), "--admin-url", url)
    assert refused.exit_code == 1
    assert "its engine is memory" in refused.stderr


def test_a_held_directory_without_a_server_is_explained(directory: Directory, tmp_path: Path) -> None:
    held = directory.open()
    given = [*arguments(directory, Directory(tmp_path / "copied")), "--admin-url", "http://127.0.0.1:9"]
    refused = run(*given)
    held.close()
    assert refused.exit_code == 1
    assert "is in use, so its server has to make a checkpoint" in refused.stderr
    assert "--admin-url" in refused.stderr


@pytest.mark.parametrize(
    ("origin", "target", "code", "message"),
    [
        ("missing", "copied", 1, "There is no directory missing"),
        ("origin", "origin", 2, "TO is FROM"),
        ("origin", "origin/in", 2, "TO is FROM, or a folder in FROM"),
        ("origin", "mysql://host/database", 1, "is not a URL of PostgreSQL"),
        ("origin", "postgresql://nobody:secret@127.0.0.1:9/none", 1, "PostgreSQL does not answer"),
        ("postgresql://nobody:secret@127.0.0.1:9/none", "copied", 1, "PostgreSQL does not answer"),
    ],
)
def test_wrong_places_are_refused(
    directory: Directory,
    monkeypatch: pytest.MonkeyPatch,
    origin: str,
    target: str,
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(directory.path.parent)
    refused = run("copy", origin, target)
    assert refused.exit_code == code
    assert message in refused.stderr
    assert "secret" not in refused.output
    assert not Path("copied").exists()


def test_wrong_schemas_are_refused(directory: Directory, schema: Schema, tmp_path: Path) -> None:
    copied = Directory(tmp_path / "copied")
    refused = run(*arguments(schema, copied))
    assert (refused.exit_code, copied.path.exists()) == (1, False)
    assert "holds no Hashrange store" in refused.stderr
    done(*arguments(directory, schema))
    refused = run(*arguments(directory, schema))
    assert refused.exit_code == 1
    assert "holds a store already" in refused.stderr
    refused = run("copy", str(directory.path), schema.url, "--to-schema", 'no"name')
    assert "cannot be the name of the schema" in refused.stderr


def test_a_full_target_keeps_the_copy_unfinished(directory: Directory, schema: Schema) -> None:
    """PostgreSQL refuses a row in the middle."""
    engine = schema.open()
    engine.close()
    with psycopg.connect(schema.url, autocommit=True) as connection:
        connection.execute(f"UPDATE {schema.name}.store SET program = 'hashrange copy'")
        connection.execute(f"ALTER TABLE {schema.name}.records ADD CHECK (length(value) < 20)")
        refused = run(*arguments(directory, schema))
        assert refused.exit_code == 1
        assert "PostgreSQL refused a statement: new row" in refused.stderr
        with pytest.raises(UnfinishedCopy):
            schema.open()
        connection.execute(f"ALTER TABLE {schema.name}.records DROP CONSTRAINT records_value_check")
    done(*arguments(directory, schema))
    assert contents(schema) == contents(directory)
