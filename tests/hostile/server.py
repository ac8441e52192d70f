"""The server under attack: its log, its memory, its tables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.servers import Running, Server, hashrange, running
from bench.wire import CallError, Request, call
from hostile import seeds

Json = dict[str, Any]

CONTROL = "control"
CONTROL_ITEM: Json = {
    "pk": {"S": "kept"},
    "text": {"S": "é\u0000\U0001f600"},
    "number": {"N": "-12345678901234567890.123456789"},
    "binary": {"B": "AAECAw=="},
    "nested": {"L": [{"M": {"a": {"NS": ["1", "2"]}}}, {"BOOL": False}, {"NULL": True}]},
}
_ERROR_LINE = re.compile(r"\b(ERROR|CRITICAL)\b|^Traceback ")
_FRAME = re.compile(r'File "([^"]*)", line (\d+), in (\S+)')
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)?(:|$)")


def this_python(memory: bool) -> Server:
    """The server of the Python that runs the tests, compiled or not as that is."""

    def command(port: int, directory: Path) -> list[str]:
        where = ["--memory"] if memory else ["--data-dir", str(directory / "data")]
        return [sys.executable, "-m", "hashrange", "serve", "--port", str(port), *where]

    return Server("hashrange", "memory" if memory else "fsync", lambda: True, lambda: "", command)


def built(interpreted: bool) -> Server:
    """The server that `make compile` made, if it did; otherwise that of the sources."""
    return hashrange("fsync", interpreted=interpreted)


_SMALL_CACHES = """
from hashrange.cli import main
from hashrange.storage import embedded
sizes = dict(cache_bytes=8 << 20, write_buffer_bytes=8 << 20, recent_bytes=4 << 20)
whole = embedded.EmbeddedEngine
# In this order: `serve` gives a size of the cache itself.
embedded.EmbeddedEngine = lambda *given, **named: whole(*given, **{**named, **sizes})
main()
"""


def with_small_caches(server: Server) -> Server:
    """The same server with small caches: those of `hashrange serve` grow by 190 MB in the first million
    requests, which would hide a leak, or look like a leak."""

    def command(port: int, directory: Path) -> list[str]:
        python, *rest = server.command(port, directory)
        assert rest[:2] == ["-m", "hashrange"], rest
        return [python, "-c", _SMALL_CACHES, *rest[2:]]

    return replace(server, command=command)


NO_KINESIS = "http://127.0.0.1:9"
"""Nothing listens there, so changes for Kinesis stay in the store."""
EVERY_OPTION = (
    *("--gsi-delay-seconds", "0.5", "--create-seconds", "0.05"),
    *("--update-seconds", "0.1", "--delete-seconds", "0.1"),
    *("--transaction-seconds", "0.05", "--stream-shards", "2", "--stream-shard-seconds", "1"),
    *("--vector-fill-seconds", "0.05", "--vector-start-seconds", "0.05", "--vector-exact-max", "2"),
    *("--sweep-seconds", "0.05", "--eventual-reads", "0.2 seed=1", "--throttle", "--costs"),
    *("--kinesis-endpoint", NO_KINESIS),
)
"""Everything that makes the store keep more, or does background work, in short times."""


def with_options(server: Server, *options: str) -> Server:
    """The same server with more options of `hashrange serve`."""

    def command(port: int, directory: Path) -> list[str]:
        return [*server.command(port, directory), *options]

    return replace(server, command=command)


def problems_of(server: Server, directory: Path) -> str:
    """What `hashrange check` finds in the store that the server has left; "" if it is sound."""
    python, data = server.command(0, directory)[0], str(directory / "data")
    checked = subprocess.run(
        [python, "-m", "hashrange", "check", data],
        capture_output=True,
        text=True,
        env=os.environ | server.environment(0),
        check=False,
    )
    return "" if checked.returncode == 0 else checked.stdout + checked.stderr


@dataclass(slots=True)
class Target:
    """A running server, and how far its log has been read."""

    started: Running
    log_read_bytes: int = 0
    control_count: int = 0

    @property
    def port(self) -> int:
        return self.started.port

    def ask(self, operation: str, body: Json) -> Json:
        """Send a proper request and wait for its answer; raises CallError for an error."""
        return call(self.port, Request(operation, body)).body

    def new_log(self) -> str:
        """The text that was logged since the last call."""
        with (self.started.directory / "server.log").open("rb") as log:
            log.seek(self.log_read_bytes)
            added = log.read()
        self.log_read_bytes += len(added)
        return added.decode(errors="replace")

    def memory_bytes(self) -> int:
        status = Path(f"/proc/{self.started.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) * 1024 if found else 0

    def set_up_control(self) -> None:
        key = [{"AttributeName": "pk", "KeyType": "HASH"}]
        types = [{"AttributeName": "pk", "AttributeType": "S"}]
        create = {"TableName": CONTROL, "KeySchema": key, "AttributeDefinitions": types}
        self.ask("CreateTable", {**create, "BillingMode": "PAY_PER_REQUEST"})
        self._wait(CONTROL, "ACTIVE")
        self.ask("PutItem", {"TableName": CONTROL, "Item": CONTROL_ITEM})

    def check_control(self) -> None:
        """Assert that the control item is unchanged and a counter is exact."""
        where = {"TableName": CONTROL, "Key": {"pk": {"S": "kept"}}, "ConsistentRead": True}
        found = self.ask("GetItem", where).get("Item")
        assert found == CONTROL_ITEM, f"the control item became {found}"
        self.control_count += 1
        update = {
            "TableName": CONTROL,
            "Key": {"pk": {"S": "counter"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
            "ReturnValues": "ALL_NEW",
        }
        counted = self.ask("UpdateItem", update)["Attributes"]["n"]["N"]
        assert counted == str(self.control_count), f"counted {counted} where {self.control_count} is right"
        scanned = self.ask("Scan", {"TableName": CONTROL, "ConsistentRead": True})
        assert scanned["Count"] == 2, f"the control table has {scanned['Count']} items"

    def renew_tables(self) -> dict[str, list[Json]]:
        """Delete all tables but the control's, make those of the seeds; return the requests for streams."""
        for name in self._tables():
            if name != CONTROL:
                self._delete(name)
        for create in (seeds.CREATE_MAIN, seeds.CREATE_PLAIN, seeds.CREATE_OTHER):
            self._wait(create["TableName"], "")
            with suppress(CallError):
                self.ask("CreateTable", create)
            self._wait(create["TableName"], "ACTIVE")
        self.ask("PutItem", {"TableName": seeds.MAIN, "Item": seeds.ITEM})
        return seeds.stream_requests(self.ask)

    def _tables(self) -> Iterator[str]:
        start: Json = {}
        while True:
            page = self.ask("ListTables", start)
            yield from page["TableNames"]
            if "LastEvaluatedTableName" not in page:
                return
            start = {"ExclusiveStartTableName": page["LastEvaluatedTableName"]}

    def _wait(self, name: str, status: str) -> None:
        """Wait until a table has this status; "": until it does not exist, if it is being deleted."""
        shown = "DELETING"
        while shown in ("CREATING", "UPDATING", "DELETING") and shown != status:
            shown = ""
            with suppress(CallError):
                shown = self.ask("DescribeTable", {"TableName": name})["Table"]["TableStatus"]

    def _delete(self, name: str) -> None:
        with suppress(CallError):
            self.ask("DeleteTable", {"TableName": name})
            return
        with suppress(CallError):
            self.ask("UpdateTable", {"TableName": name, "DeletionProtectionEnabled": False})
        with suppress(CallError):
            for replica in self.ask("DescribeTable", {"TableName": name})["Table"].get("Replicas", ()):
                delete = {"Delete": {"RegionName": replica["RegionName"]}}
                self.ask("UpdateTable", {"TableName": name, "ReplicaUpdates": [delete]})
        with suppress(CallError):
            self.ask("DeleteTable", {"TableName": name})


def error_lines(log: str) -> list[str]:
    """The lines of a log that report an internal error."""
    # (the service has an internal error for a region that does not exist)
    expected = ("operation=ListGlobalTables", f"Undelivered: Kinesis at {NO_KINESIS}")
    found = [line for line in log.splitlines() if _ERROR_LINE.search(line)]
    return [line for line in found if not any(text in line for text in expected)]


def place_of(log: str) -> str:
    """The place and the type of the last traceback in a log, which identify the fault."""
    frames = _FRAME.findall(log)
    if not frames:
        return ""
    path, line, function = frames[-1]
    if "recursion" in log[-2_000:].lower():
        # The place where the stack ends is random.
        return "too deep a recursion"
    raised = [text for text in log.splitlines() if _RAISED.match(text)]
    path = path.rpartition("hashrange/")[2] if "hashrange/" in path else Path(path).name
    return f"{path}:{line} {function}: {raised[-1][:200] if raised else ''}"


@contextmanager
def attacked(server: Server, directory: Path) -> Iterator[Target]:
    """A server with the control's table."""
    with running(server, directory) as started:
        target = Target(started)
        target.set_up_control()
        yield target
