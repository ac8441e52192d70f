"""`hashrange backup` and `hashrange restore`, against a server: tables come back, here and elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.database import Caller, Database, Settings
from hashrange.server import running
from worlds import create

pytestmark = pytest.mark.once


class Server:
    """A database with a server and its admin plane."""

    def __init__(self, stack: ExitStack, account_id: str = "000000000000", **given: Any) -> None:
        given = {"sweep_seconds": 0.05, **given}
        self.database = stack.enter_context(Database.in_memory(settings=Settings(**given)))
        admin = bind_admin(0)
        self.url = f"http://127.0.0.1:{admin.socket.getsockname()[1]}"
        stack.enter_context(running(self.database, admin=admin, account_id=account_id))

    def run(self, *arguments: object) -> Result:
        return CliRunner().invoke(main, [*map(str, arguments), "--admin-url", self.url])

    def done(self, *arguments: object) -> str:
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def fill(self, table: str, count: int = 20, caller: Caller = Caller()) -> None:  # noqa: B008 (immutable)
        create(self.database, table, "pk", caller)
        for number in range(count):
            item = {"pk": {"S": f"{table} {number}"}}
            self.database.execute("PutItem", {"TableName": table, "Item": item}, caller)

    def scan(self, table: str, caller: Caller = Caller()) -> list[Any]:  # noqa: B008 (immutable)
        found = orjson.loads(orjson.dumps(self.database.execute("Scan", {"TableName": table}, caller)))
        items: list[Any] = found["Items"]
        return items

    def drop(self, table: str) -> None:
        self.database.execute("DeleteTable", {"TableName": table})


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def server(stack: ExitStack, tmp_path: Path) -> Server:
    return Server(stack, backup_dir=str(tmp_path / "backups"))


def id_in(shown: str) -> str:
    return shown.split()[1]


def test_a_table_and_back(server: Server) -> None:
    server.fill("songs")
    before = server.scan("songs")
    shown = server.done("backup", "create", "songs", "--name", "first")
    assert shown.split()[0] == "songs"
    assert "first  AVAILABLE  20 items" in shown
    assert server.done("backup", "list") == shown
    server.fill("other")
    assert "restored 20 items" in server.done("restore", id_in(shown), "--to", "again")
    assert server.scan("again") == before
    taken = server.run("restore", id_in(shown))
    assert taken.exit_code == 1
    assert taken.stderr.endswith("\nsongs: a table with this name exists, and is left alone\n")
    server.drop("songs")
    server.done("restore", f"arn:aws:dynamodb:us-east-1:000000000000:table/songs/backup/{id_in(shown)}")
    assert server.scan("songs") == before


def test_the_whole_server_on_another_machine(server: Server, stack: ExitStack, tmp_path: Path) -> None:
    for table in ("songs", "users"):
        server.fill(table)
    before = {table: server.scan(table) for table in ("songs", "users")}
    server.done("backup", "create", "--all", "--name", "all-of-it")
    server.database.execute("PutItem", {"TableName": "songs", "Item": {"pk": {"S": "later"}}})
    server.done("backup", "create", "songs", "--name", "later")
    other = Server(stack, backup_dir=str(tmp_path / "other"))
    shown = other.done("restore", "--all", tmp_path / "backups", "--name", "all-of-it")
    assert shown.count("restored 20 items") == 2
    assert {table: other.scan(table) for table in before} == before
    other.drop("songs")
    [later] = [one for one in server.database.jobs.backups.runner.overview() if one["name"] == "later"]
    other.done("restore", later["folder"])
    assert len(other.scan("songs")) == 21
    for table in before:
        other.drop(table)
    assert other.done("restore", "--all").count("restored") == 2  # the newest of each
    assert (len(other.scan("songs")), len(other.scan("users"))) == (21, 20)


def test_tables_of_an_account(stack: ExitStack, tmp_path: Path) -> None:
    server = Server(stack, backup_dir=str(tmp_path), separate_accounts=True)
    caller = Caller(account_id="123456789012")
    server.fill("songs", caller=caller)
    shown = server.done("backup", "create", "--all")
    assert shown.startswith("123456789012/*/songs  ")
    server.done("restore", id_in(shown), "--to", "again")
    assert server.scan("again", caller) == server.scan("songs", caller)


def test_a_backup_belongs_to_the_account_of_the_server(stack: ExitStack, tmp_path: Path) -> None:
    account = "123456789012"
    server = Server(stack, account, backup_dir=str(tmp_path))
    caller = Caller(account_id=account)
    server.fill("pages", caller=caller)
    server.done("backup", "create", "pages")
    [backup] = server.database.execute("ListBackups", {}, caller)["BackupSummaries"]
    assert backup["BackupArn"].split(":")[4] == account
    described = server.database.execute("DescribeBackup", {"BackupArn": backup["BackupArn"]}, caller)
    assert described["BackupDescription"]["BackupDetails"]["BackupStatus"] == "AVAILABLE"
    server.done("restore", backup["BackupArn"].rpartition("/")[2], "--to", "again")
    assert len(server.scan("again", caller)) == 20


def test_without_waiting(server: Server) -> None:
    server.fill("songs")
    assert "songs: writing" in server.done("backup", "create", "songs", "--no-wait")


def test_a_damaged_folder_is_not_copied(server: Server, tmp_path: Path) -> None:
    server.fill("songs")
    server.done("backup", "create", "songs")
    [folder] = (tmp_path / "backups").iterdir()
    copy = shutil.copytree(folder, tmp_path / "copy")
    [data] = (copy / "data").iterdir()
    content = bytearray(data.read_bytes())
    content[20] ^= 1
    data.write_bytes(content)
    server.database.execute("DeleteBackup", {"BackupArn": arn_of(server)})
    server.database.settle()
    result = server.run("restore", copy, "--to", "again")
    assert result.exit_code == 1
    assert "does not have the SHA-256" in result.stderr
    assert list((tmp_path / "backups").iterdir()) == []
    result = server.run("restore", tmp_path, "--to", "again")
    assert "not a complete backup" in result.stderr
    result = server.run("restore", "--all", tmp_path / "backups")
    assert "There is no such backup" in result.stderr


def arn_of(server: Server) -> str:
    [found] = server.database.execute("ListBackups", {})["BackupSummaries"]
    return str(found["BackupArn"])


def test_a_restore_that_is_abandoned_is_reported(server: Server, tmp_path: Path) -> None:
    server.fill("songs")
    shown = server.done("backup", "create", "songs")
    [data] = tmp_path.glob("backups/*/data/*")
    content = bytearray(data.read_bytes())
    content[20] ^= 1
    data.write_bytes(content)
    result = server.run("restore", id_in(shown), "--to", "again")
    assert result.exit_code == 1
    assert "again: not restored" in result.stderr
    assert "does not have the SHA-256" in result.stderr
    assert "damaged: " in server.done("backup", "list")


def test_wrong_command_lines_and_requests(server: Server, stack: ExitStack) -> None:
    server.fill("songs")
    for wrong in (
        "backup create",
        "backup create songs --all",
        "restore",
        "restore a b --to c",
        "restore --all --to c",
    ):
        assert server.run(*wrong.split()).exit_code == 2
    for arguments, words in (
        (["backup", "create", "absent"], "Table not found: absent"),
        (["backup", "create", "songs", "--name", "a b"], "regular expression"),
        (["restore", "01763812345678-1a2b3c4d"], "The server has no backup 01763812345678-1a2b3c4d"),
        (["restore", "--all"], "There is no such backup"),
    ):
        result = server.run(*arguments)
        assert result.exit_code == 1
        assert words in result.stderr
    without = Server(stack)
    without.fill("songs")
    assert "--backup-dir" in without.run("backup", "create", "songs").stderr


@pytest.mark.parametrize("command", ["backup create", "restore"])
def test_without_a_server(command: str) -> None:
    result = CliRunner().invoke(main, [*command.split(), "--all", "--admin-url", "http://127.0.0.1:9"])
    assert result.exit_code == 1
    assert "No admin plane answers" in result.output
