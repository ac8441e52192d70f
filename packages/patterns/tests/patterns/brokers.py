"""A real RabbitMQ in a process of its own, which tests may kill; and workers.

In the place of SQS stands moto's server. It keeps everything in memory, so it is not killed.

RabbitMQ comes from the system's packages (Debian: apt-get install rabbitmq-server), and the tests that need
it are skipped where it is not installed. Only the gate (.ci/run) and `make pattern-rounds` ask it.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3

import endpoints
from hashrange_patterns import Jobs, SqsEvents
from hashrange_patterns.brokers import BrokerEvents

# It takes half a minute on a busy machine: the gate has that, and who asks for random rounds.
PATIENT = "CI" in os.environ or "HASHRANGE_PATTERN_ROUNDS" in os.environ
_SERVERS = [str(path) for path in Path("/usr/lib/rabbitmq").glob("**/bin/rabbitmq-server")]
RABBITMQ = _SERVERS[0] if PATIENT and _SERVERS else None
QUIET_SECONDS = 3.0


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class Broker:
    """A broker's process, in a group of its own."""

    def __init__(self, url: str, command: Sequence[str], ready: str, environment: Mapping[str, str]) -> None:
        self.url = url
        self._command = command
        self._ready = ready
        self._environment = environment
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, **self._environment},
        )
        assert self._process.stdout is not None
        seen = ""
        for line in self._process.stdout:
            seen += line
            if self._ready in line:
                return
        raise AssertionError(f"the broker ended before it was ready:\n{seen}")

    def kill(self) -> None:
        """End it as a power cut does: by SIGKILL."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


_SERVE_SQS = """
import logging, sys, threading
from moto.server import ThreadedMotoServer
logging.disable()
ThreadedMotoServer(port=int(sys.argv[1]), verbose=False).start()
print("ready", flush=True)
threading.Event().wait()
"""


def sqs(folder: Path) -> Broker:
    """What answers as SQS does; `folder` stays empty."""
    port = free_port()
    return Broker(f"http://127.0.0.1:{port}", [sys.executable, "-c", _SERVE_SQS, str(port)], "ready", {})


def queue_at(url: str, jobs: Jobs, **options: Any) -> BrokerEvents | SqsEvents:
    """The queue of `jobs` at a broker of the tests."""
    if url.startswith("amqp:"):
        options.pop("lease_seconds", None)
        return BrokerEvents(url, jobs, **options)
    options.pop("connect_seconds", None)
    client: Any = boto3.client("sqs", **endpoints.connection(url))
    # (the name of a queue at SQS may have 80 characters)
    queue_url = client.create_queue(QueueName=jobs.queue[-80:])["QueueUrl"]
    return SqsEvents(client, queue_url, jobs, **options)


def rabbitmq(folder: Path) -> Broker:
    """A RabbitMQ with its files in `folder`."""
    assert RABBITMQ
    port = free_port()
    environment = {
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"test{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_CONF_ENV_FILE": os.devnull,
        # The daemon that Erlang's nodes find each other by: one in this group, that ends with it.
        "ERL_EPMD_PORT": str(free_port()),
    }
    command = f'epmd -port "$ERL_EPMD_PORT" & exec {RABBITMQ}'
    return Broker(
        f"amqp://guest:guest@127.0.0.1:{port}//", ["sh", "-c", command], "startup complete", environment
    )


def started(module: str, *arguments: str) -> subprocess.Popen[str]:
    """A worker in a process of its own, which prints a line when it is ready, and one for each work."""
    folder = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", module, *arguments]
    # Where the modules are that the tests of the patterns share with those of the database.
    shared = str(Path(endpoints.__file__).parent)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([shared, os.environ.get("PYTHONPATH", "")])}
    worker = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    return worker


def wait_for_work(workers: Sequence[subprocess.Popen[str]], pieces: int) -> None:
    """Wait until the workers printed that many lines, or none for a while: nothing may be left to do."""
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            assert worker.stdout is not None
            selector.register(worker.stdout.fileno(), selectors.EVENT_READ)
        while pieces > 0 and (ready := selector.select(QUIET_SECONDS)):
            pieces -= sum(os.read(key.fd, 1 << 16).count(b"\n") for key, _ in ready)
