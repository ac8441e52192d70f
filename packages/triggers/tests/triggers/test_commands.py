"""`hashrange trigger run` as a user runs it: a process, signals, and what it says when it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

import hashrange_triggers as triggers
from hashrange.cli import main
from hashrange_triggers import functions
from serving import serving
from worlds import table_of

TABLE = "commanded"

FUNCTION = """
import json

def note(event, context):
    for record in event["Records"]:
        key = record["dynamodb"]["Keys"]["id"]["S"]
        print(key, context.attempt, flush=True)
        if key == "bad":
            raise ValueError("bad record")

class Box:
    def method(self, event):
        print(len(event["Records"]))

box = Box()
number = 1
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serving("--memory") as server:
        clients = triggers.connect(server.endpoint)
        clients.dynamodb.create_table(**table_of(TABLE, "id", stream="NEW_AND_OLD_IMAGES"))
        for key in ("a", "bad", "c"):
            clients.dynamodb.put_item(TableName=TABLE, Item={"id": {"S": key}})
        clients.dynamodb.close()
        clients.streams.close()
        yield server.endpoint


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "noting.py").write_text(FUNCTION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return tmp_path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_when_the_batch_is_done(endpoint: str, folder: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "hashrange", "trigger", "run", "--table", TABLE, "--name", number.name]
    # One of its own: the other case has the same server, and may come before.
    command += ["--checkpoint-table", f"checkpoints-{number.name}"]
    command += ["--endpoint-url", endpoint, "--batch-size", "10", "--bisect-on-error", "--retries", "0"]
    command += [
        "--on-failure",
        "failed.jsonl",
        "--poll-interval",
        "0.01",
        "--log-format",
        "json",
        "noting:note",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        while process.stdout.readline() != "c 1\n":
            assert process.poll() is None
        process.send_signal(number)
        logged = [orjson.loads(line) for line in process.stderr]
        assert process.wait(30) == 0
    events = [line["event"] for line in logged]
    assert events[0] == "created table of checkpoints"
    assert {"started", "shard opened", "the function failed", "records discarded"} <= set(events)
    assert events[-2:] == ["stopping", "stopped"]
    assert logged[-1]["delivered"] == 2
    assert logged[-1]["given_up"] == 1
    failure = orjson.loads((folder / "failed.jsonl").read_bytes())
    assert failure["Records"][0]["dynamodb"]["Keys"] == {"id": {"S": "bad"}}


def run(*options: str) -> Any:
    return CliRunner().invoke(main, ["trigger", "run", *options])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--table", "nowhere", "noting:note"], "There is no table nowhere."),
        (["--table", TABLE, "noting"], "'noting' names no function; write module:function"),
        (["--table", TABLE, "nothing:note"], "There is no module nothing in"),
        (["--table", TABLE, "noting:absent"], "The module noting has no function absent."),
        (["--table", TABLE, "noting:number"], "The module noting has no function number."),
        (["--table", TABLE, "--filter", "{", "noting:note"], "is not JSON"),
        (
            ["--table", TABLE, "--filter", '{"a": 1}', "noting:note"],
            "a has to be an object or a list of rules",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    endpoint: str, folder: Path, options: list[str], message: str
) -> None:
    result = run("--endpoint-url", endpoint, *options)
    assert result.exit_code == 1
    assert message in result.output
    assert len(result.output.splitlines()) == 1


def test_a_server_that_is_not_there_is_said_to_be(folder: Path, unused_port: int) -> None:
    result = run("--endpoint-url", f"http://127.0.0.1:{unused_port}", "--table", TABLE, "noting:note")
    assert result.exit_code == 1
    assert "Could not connect" in result.output


def test_help_has_examples_and_every_option() -> None:
    shown = run("--help").output
    for option in ("--batch-window", "--starting-position", "--filter", "--retries", "--max-record-age"):
        assert option in shown
    assert "hashrange trigger run --table views totals:count_views" in shown


def test_functions_take_an_event_or_an_event_and_a_context(folder: Path) -> None:
    context = triggers.Context("name", "id", "shard", 1)
    assert functions.adapt(lambda event: ("one", event))({}, context) == ("one", {})
    assert functions.adapt(lambda event, second: second)({}, context) is context
    assert functions.adapt(lambda event, second=None: second)({}, context) is context
    functions.load("noting:box.method")({"Records": []}, context)
