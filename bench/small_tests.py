"""`python -m bench.small_tests`: the time of a suite of small tests, from the start of pytest to its end.

The suite has 100 tests. Each has a new table; the code under test makes its own resource or client, as most
code does, and sends two or three requests. The contenders differ in the fixture that provides DynamoDB: moto,
a block of `hashrange.local`, and servers over HTTP, whose start counts. Each run is a new process with
nothing imported, and the contenders run in turn.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from bench.servers import PEERS, ROOT, SERVERS, running

TESTS = 100

SUITE = """
import boto3
import pytest

REGION = {"region_name": "us-east-1"}


def save(name, n):
    boto3.resource("dynamodb", **REGION).Table("users").put_item(Item={"name": name, "n": n})


def visits(name):
    client = boto3.client("dynamodb", **REGION)
    client.update_item(
        TableName="users",
        Key={"name": {"S": name}},
        UpdateExpression="ADD n :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
    )
    return client.get_item(TableName="users", Key={"name": {"S": name}})["Item"]["n"]["N"]


@pytest.mark.parametrize("number", range(%d))
def test_visits(users, number):
    save(f"user-{number}", number)
    assert visits(f"user-{number}") == str(number + 1)
"""

TABLE = """
import boto3
import pytest


def create():
    client = boto3.client("dynamodb", region_name="us-east-1")
    client.create_table(
        TableName="users",
        KeySchema=[{"AttributeName": "name", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "name", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return client

"""

MOTO = """
from moto import mock_aws


@pytest.fixture
def users():
    with mock_aws():
        create()
        yield
"""

IN_PROCESS = """
import hashrange


@pytest.fixture
def users():
    with hashrange.local():
        create()
        yield
"""

SERVER = """
@pytest.fixture
def users():
    client = create()
    client.get_waiter("table_exists").wait(TableName="users", WaiterConfig={"Delay": 1})
    yield
    client.delete_table(TableName="users")
"""


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to provide DynamoDB to a test. `server` is the title of the server it needs, "" for none."""

    title: str
    python: Path
    fixture: str
    server: str = ""

    def installed(self) -> bool:
        """Whether it can run here."""
        servers = [server for server in SERVERS if server.title == self.server and server.installed()]
        return self.python.exists() and (not self.server or bool(servers))


CONTENDERS = (
    Contender("moto", PEERS / "moto" / "bin" / "python", MOTO),
    Contender("hashrange in process", Path(sys.executable), IN_PROCESS),
    Contender("hashrange over HTTP", Path(sys.executable), SERVER, "hashrange memory"),
    Contender("DynamoDB Local", Path(sys.executable), SERVER, "dynamodb-local memory"),
)


@contextmanager
def _endpoint(contender: Contender, folder: Path) -> Iterator[dict[str, str]]:
    """Start the server that a contender needs, and yield its environment variables."""
    server = next((one for one in SERVERS if one.title == contender.server), None)
    with running(server, folder) if server is not None else nullcontext() as started:
        yield {} if started is None else {"AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{started.port}"}


def run(contender: Contender, tests: int) -> float:
    """The seconds of one run. Raises RuntimeError with the output of a run that fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "conftest.py").write_text(TABLE + contender.fixture)
        (folder / "test_suite.py").write_text(SUITE % tests)
        known = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        known |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT / "src")}
        known |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
        began = time.perf_counter()
        with _endpoint(contender, folder) as endpoint:
            done = subprocess.run(
                [str(contender.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
                cwd=folder,
                env=known | endpoint,
                capture_output=True,
                text=True,
                check=False,
            )
        seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise RuntimeError(f"{contender.title}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds


def render(seconds: dict[str, list[float]], tests: int) -> str:
    """The table: the median of each contender, and its ratio to Hashrange in process."""
    medians = {title: statistics.median(runs) for title, runs in seconds.items()}
    own = medians.get("hashrange in process")
    lines = [f"| {tests} tests, from cold start | seconds | against in process |", "| --- | ---: | ---: |"]
    for title, median in medians.items():
        ratio = f"{median / own:.1f}" if own else ""
        lines.append(f"| {title} | {median:.2f} | {ratio} |")
    return "\n".join(lines)


def main(note: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.small_tests", description=__doc__)
    parser.add_argument("--tests", type=int, default=TESTS, metavar="N", help="tests (default: 100)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each (default: 3)")
    options = parser.parse_args()
    chosen = [contender for contender in CONTENDERS if contender.installed()]
    for contender in CONTENDERS:
        if contender not in chosen:
            note(f"left out, not installed: {contender.title} (python -m bench.install)")
    seconds: dict[str, list[float]] = {contender.title: [] for contender in chosen}
    for number in range(options.rounds):
        for contender in chosen:
            seconds[contender.title].append(run(contender, options.tests))
            note(f"round {number + 1}: {contender.title}: {seconds[contender.title][-1]:.2f} s")
    print(f"Python {platform.python_version()}, {platform.machine()}\n\n{render(seconds, options.tests)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
