"""Which server a command works on: one rule for all commands, and each of them says it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.cli.remote.asking import reachable
from hashrange.clock import VirtualClock
from hashrange.database import Database
from hashrange.rings import rings
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine
from worlds import table_of

ORDERS = table_of("orders", "pk", stream="KEYS_ONLY")
OF_THE_PLANE = (
    ["clock", "show"],
    ["faults", "list"],
    ["backup", "list"],
    ["as-of", "diff", "orders", "now"],
    ["restore", "--all"],
)
OF_THE_API = [["import", "orders", "items.jsonl"]]
if "triggers" in rings().installed:
    OF_THE_API.append(["stream", "tail", "orders", "--until-caught-up"])
# What a command exits with that finds its server.
STATUS = {"restore": 1}


class Server(NamedTuple):
    endpoint: str
    admin: str
    database: Database


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Server]]:
    """Three servers, none on the usual port, and a folder with items to import."""
    for name in (
        "AWS_ENDPOINT_URL_DYNAMODB",
        "AWS_ENDPOINT_URL",
        "HASHRANGE_ADMIN_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.chdir(tmp_path)
    Path("items.jsonl").write_text('{"Item": {"pk": {"S": "a"}}}\n')
    with ExitStack() as stack:
        started = []
        for _ in range(3):
            database = stack.enter_context(Database(MemoryEngine(), clock=VirtualClock(1_767_225_600.0)))
            database.execute("CreateTable", ORDERS)
            admin = bind_admin(0)
            started.append(Server(stack.enter_context(running(database, admin=admin)), admin.url, database))
        yield started


def run(arguments: list[str], **environment: str) -> Result:
    return CliRunner().invoke(main, arguments, env=environment)


@pytest.mark.parametrize("arguments", [*OF_THE_PLANE, *OF_THE_API], ids=" ".join)
def test_each_command_works_on_the_server_that_is_named(servers: list[Server], arguments: list[str]) -> None:
    option, dynamodb, all_services = servers
    everywhere = {
        "AWS_ENDPOINT_URL_DYNAMODB": dynamodb.endpoint,
        "AWS_ENDPOINT_URL": all_services.endpoint,
    }
    for expected, given, environment in (
        (option, ["--endpoint-url", option.endpoint], everywhere),
        (dynamodb, [], everywhere),
        (all_services, [], {"AWS_ENDPOINT_URL": all_services.endpoint}),
    ):
        result = run([*arguments, *given], **environment)
        assert f"Server: {expected.endpoint}\n" in result.stderr
        if arguments[:2] == ["as-of", "diff"]:
            assert "Table orders has no past" in result.stderr
        else:
            assert result.exit_code == STATUS.get(arguments[0], 0), result.output
        if arguments[0] == "import":
            counts = [server.database.execute("Scan", {"TableName": "orders"})["Count"] for server in servers]
            assert counts == [int(server is expected) for server in servers]
            expected.database.execute("DeleteItem", {"TableName": "orders", "Key": {"pk": {"S": "a"}}})


@pytest.mark.parametrize("arguments", OF_THE_PLANE, ids=" ".join)
def test_the_admin_plane_may_be_named_itself(servers: list[Server], arguments: list[str]) -> None:
    first, second, _ = servers
    result = run([*arguments, "--admin-url", first.admin], AWS_ENDPOINT_URL=second.endpoint)
    assert f"Server: admin plane {first.admin}\n" in result.stderr
    # What stands on the command line comes before the environment.
    result = run([*arguments, "--endpoint-url", first.endpoint], HASHRANGE_ADMIN_URL=second.admin)
    assert f"Server: {first.endpoint}\n" in result.stderr
    both = run([*arguments, "--endpoint-url", first.endpoint, "--admin-url", first.admin])
    assert both.exit_code == 2
    assert "give one of them" in both.stderr


def test_servers_without_a_plane_are_distinguished() -> None:
    with Database.in_memory() as database, running(database) as endpoint:
        assert "has no admin plane" in run(["clock", "show", "--endpoint-url", endpoint]).stderr
    nobody = run(["clock", "show", "--endpoint-url", endpoint])
    assert f"No server answers at {endpoint}" in nobody.stderr
    assert "AWS_ENDPOINT_URL_DYNAMODB" in nobody.stderr
    assert "is not a Hashrange server" in run(["clock", "show", "--endpoint-url", "aws"]).stderr


def test_a_server_that_is_not_hashrange_is_not_asked(servers: list[Server]) -> None:
    # The admin port answers HTTP as well, but GET / on it does not say what a server's endpoint says.
    result = run(["as-of", "undo", "orders", "1m", "--all", "--yes", "--endpoint-url", servers[0].admin])
    assert result.exit_code == 1
    assert "is not a Hashrange server" in result.stderr


@pytest.mark.parametrize(
    ("endpoint", "bound", "reached"),
    [
        ("http://localhost:8000", "http://127.0.0.1:8100", "http://127.0.0.1:8100"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8100", "http://127.0.0.1:8100"),
        ("http://[::1]:8000", "http://127.0.0.1:8100", "http://127.0.0.1:8100"),
        ("http://db.example:8000", "http://0.0.0.0:8100", "http://db.example:8100"),
        ("http://[2001:db8::1]:8000", "http://[::]:8100", "http://[2001:db8::1]:8100"),
        ("http://10.0.0.7:8000", "http://10.0.0.7:8100", "http://10.0.0.7:8100"),
    ],
)
def test_the_plane_is_reached_as_this_machine_reaches_it(endpoint: str, bound: str, reached: str) -> None:
    assert reachable(endpoint, bound) == reached


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_plane_on_any_address_is_reached_from_its_own_machine(address: str) -> None:
    token = "0123456789abcdef"
    admin = bind_admin(0, address, token)
    with (
        Database(MemoryEngine(), clock=VirtualClock(1_767_225_600.0)) as database,
        running(database, admin=admin) as endpoint,
    ):
        result = run(["clock", "show", "--endpoint-url", endpoint], HASHRANGE_ADMIN_TOKEN=token)
    assert result.exit_code == 0, result.output
    assert "2026-01-01T00:0" in result.output


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ("http://127.0.0.1:8100", "of its own machine only"),
        ("http://10.0.0.7:8100", "is at another address"),
        ("http://collector.example:80", "is at another address"),
    ],
)
def test_no_other_machine_is_asked_which_would_get_the_token(bound: str, reason: str) -> None:
    with pytest.raises(click.ClickException, match=reason):
        reachable("http://db.example:8000", bound)


def test_every_command_that_works_on_a_server_has_the_option() -> None:
    def commands(one: Any, path: str) -> Iterator[tuple[str, click.Command]]:
        if isinstance(one, click.Group):
            context = click.Context(one)
            for name in one.list_commands(context):
                yield from commands(one.get_command(context, name), f"{path} {name}")
        else:
            yield path, one

    local = {" serve", " standby", " check", " completion", " healthcheck", " config show", " config check"}
    local |= {" policy lint", " policy simulate", " audit hash"}
    local |= {" costs prices", " policy suggest"}
    local |= {" replica restore", " replica status", " replica verify", " replica withdraw"}
    # Its file names two endpoints.
    names = ("conflicts list", "conflicts restore", "conflicts show", "once", "policy", "reset", "run")
    local |= {f" sync {one}" for one in (*names, "status", "verify")}
    for path, one in commands(main, ""):
        variables = {option.name: option.envvar for option in one.params}
        assert (variables.get("endpoint_url") is not None) == (path not in local), path
        if path not in local:
            assert "AWS_ENDPOINT_URL_DYNAMODB" in (variables["endpoint_url"] or "")
