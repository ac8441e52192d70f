"""`hashrange record` and `hashrange serve --record`, as a person or a script uses them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import running
from hashrange_lab.recordings import reader
from hashrange_lab.recordings.recording import recordings_of
from serving import serving
from unit.test_admin import ask


def record(*arguments: str, url: str) -> Result:
    return CliRunner().invoke(
        main, ["record", *arguments], prog_name="hashrange", env={"HASHRANGE_ADMIN_URL": url}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    return folder


@pytest.fixture
def server(folder: Path) -> Iterator[tuple[str, str]]:
    """The URLs of the data plane and of the admin plane."""
    listening = bind_admin(0)
    with Database.in_memory() as database, running(database, admin=listening) as endpoint:
        recordings_of(database).directory = str(folder)
        yield endpoint, listening.url


def test_a_running_server_is_recorded(server: tuple[str, str], folder: Path) -> None:
    endpoint, url = server
    client = boto3.client("dynamodb", endpoint_url=endpoint)
    assert record("show", url=url).stdout == "nothing has been recorded\n"
    client.list_tables()
    started = record("start", "monday", "--values", "hashed", "--limit", "100000B", url=url)
    assert (started.exit_code, started.stdout.split()[:2]) == (0, ["recording", str(folder / "monday")])
    client.list_tables(Limit=7)
    stopped = record("stop", url=url)
    assert stopped.exit_code == 0
    assert stopped.stdout.startswith(f"stopped  {folder / 'monday'}  1 requests, 0 dropped, ")
    assert stopped.stdout.endswith("values hashed\n")
    assert record("show", url=url).stdout == stopped.stdout
    client.list_tables()
    client.close()
    with reader.open(folder / "monday") as recording:
        assert [entry.request for entry in recording.entries()] == [{"Limit": 7}]
        assert recording.end is not None
        assert recording.end.why == "stopped"


@pytest.mark.parametrize(
    ("sent", "status", "text"),
    [
        ({"name": "../monday"}, 400, "is not the name of a file: give letters, digits and _.- without"),
        ({"name": "monday", "bytes_max": 0}, 400, "bytes_max is 0; give a number from 1."),
        ({"name": "tuesday"}, 409, "tuesday exists already; give another name."),
        ({"name": "monday", "values": "shown"}, 400, "values"),
    ],
)
def test_wrong_requests_are_explained(
    server: tuple[str, str], folder: Path, sent: dict[str, object], status: int, text: str
) -> None:
    (folder / "tuesday").touch()
    answered, shown = ask(server[1], "/v1/recording", sent)
    assert answered == status
    assert text in shown["error"]
    assert [path.name for path in folder.iterdir()] == ["tuesday"]


def test_there_is_one_recording_at_a_time(server: tuple[str, str]) -> None:
    url = server[1]
    assert record("start", "monday", url=url).exit_code == 0
    second = record("start", "tuesday", url=url)
    assert second.exit_code == 1
    assert "monday; stop that recording first" in second.stderr
    assert record("stop", url=url).exit_code == 0
    nothing = record("stop", url=url)
    assert (nothing.exit_code, "Nothing is being recorded." in nothing.stderr) == (1, True)


def test_a_server_without_a_directory_names_the_option() -> None:
    listening = bind_admin(0)
    with Database.in_memory() as database, running(database, admin=listening):
        result = record("start", "monday", url=listening.url)
    assert result.exit_code == 1
    assert "start it with --record-dir DIR" in result.stderr


def test_what_a_killed_server_has_recorded_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "load"
    with serving("--memory", "--record", str(path)) as server:
        client = boto3.client("dynamodb", endpoint_url=server.endpoint)
        begun = path.stat().st_size
        while path.stat().st_size == begun:  # a block is written after a second at the latest
            client.list_tables()
        client.close()
        server.kill()
    with reader.open(path) as recording:
        entries = list(recording.entries())
        assert recording.is_cut
    assert entries
    assert {entry.operation for entry in entries} == {"ListTables"}


def test_a_server_that_ends_completes_its_recording(tmp_path: Path) -> None:
    path = tmp_path / "load"
    with serving("--memory", "--record", str(path), "--record-values", "hashed") as server:
        client = boto3.client("dynamodb", endpoint_url=server.endpoint)
        client.list_tables()
        client.close()
    with reader.open(path) as recording:
        assert [entry.operation for entry in recording.entries()] == ["ListTables"]
        assert recording.head.values == "hashed"
        assert not recording.is_cut


def test_a_file_that_exists_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "load").write_text("precious")
    result = CliRunner().invoke(
        main, ["serve", "--memory", "--port", "0", "--record", str(tmp_path / "load")], prog_name="hashrange"
    )
    assert result.exit_code == 1
    assert "exists already, and a recording is never overwritten" in result.output
    assert (tmp_path / "load").read_text() == "precious"
