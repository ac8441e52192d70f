"""`python -m bench.postgres`: Hashrange over PostgreSQL beside the embedded engine and beside pgbench.

It starts a PostgreSQL of its own in a temporary directory, a server on it (or two, with `--servers 2`), and a
server with the embedded engine. It fills all of them, and sends the same requests with wrk to each in turn.
pgbench does the same work in plain SQL. A row shows the requests a second, the CPU time of a request in the
servers, in PostgreSQL and in the generator, and the statements for each request.

The workloads put, get, spread (counters), some (5,000 of the counters), few (500 of them) and hot (one of
them) use plain tables; put-index a table with a global index; put-all and spread-all tables with a global
index, a stream and recovery.

Values are random, because equal ones shrink PostgreSQL's log. The items have 100,000 keys, and so have the
counters. Everything shares the cores of one machine: compare the rows of one run, not different runs.

Rounds of 3 seconds measure how PostgreSQL writes each page to its log once after a checkpoint.

`--setting commit_delay=2000 --setting commit_siblings=0` makes each commit take two milliseconds.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import pwd
import random
import re
import resource
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.connection import send_all
from bench.load import SCRIPT, run_wrk, write_requests
from bench.report import machine, table
from bench.servers import TICK_US, Running, Server, cpu_us, free_port, hashrange, running, stat_fields
from bench.wire import HOST, Request, call, render

KEYS: Final = 100_000
REQUESTS: Final = 30_000
VALUE_BYTES: Final = 300
BATCH: Final = 25
ADMIN_PORT: Final = "admin-port"  # a file of a server's directory
ITEMS, COUNTERS = "bench_items", "bench_counters"
INDEXED, ITEMS_WITH_ALL, COUNTERS_WITH_ALL = "bench_indexed", "bench_items_all", "bench_counters_all"
INDEX_KEYS: Final = 1_000
SHARED_KEYS: Final = {"some": 5_000, "few": 500}
"""By workload: how many of the counters it changes, so that several servers change the same ones."""
TABLES: Final = {
    "put": ITEMS,
    "get": ITEMS,
    "spread": COUNTERS,
    "some": COUNTERS,
    "few": COUNTERS,
    "hot": COUNTERS,
    "put-index": INDEXED,
    "put-all": ITEMS_WITH_ALL,
    "spread-all": COUNTERS_WITH_ALL,
}
"""The workloads, each with its table. A table "with all" has a global index, a stream and recovery."""
WORKLOADS: Final = tuple(TABLES)

_FILL_SQL: Final = """
CREATE TABLE plain_items (k text PRIMARY KEY, v bytea NOT NULL);
CREATE TABLE plain_counters (k text PRIMARY KEY, n bigint NOT NULL);
INSERT INTO plain_items
    SELECT 'item#' || lpad(n::text, 8, '0'), decode(string_agg(md5(random()::text), ''), 'hex')
    FROM generate_series(0, {keys} - 1) n, generate_series(1, 25) GROUP BY n;
INSERT INTO plain_counters SELECT 'counter#' || lpad(n::text, 8, '0'), 0
    FROM generate_series(0, {keys} - 1) n;
INSERT INTO plain_counters VALUES ('hot', 0);
VACUUM ANALYZE plain_items;
VACUUM ANALYZE plain_counters;
"""
# A value is random at both its ends, so that PostgreSQL's log of an update has all of it.
_SCRIPTS: Final = {
    "put": "\\set a random(0, 9000000000000000000)\n\\set b random(0, 9000000000000000000)\n{key}"
    "INSERT INTO plain_items VALUES ('item#' || lpad(:k::text, 8, '0'), int8send(:a) || '{value}'::bytea || "
    "int8send(:b)) ON CONFLICT (k) DO UPDATE SET v = excluded.v;\n",
    "get": "{key}SELECT v FROM plain_items WHERE k = 'item#' || lpad(:k::text, 8, '0');\n",
    "spread": "{key}UPDATE plain_counters SET n = n + 1 WHERE k = 'counter#' || lpad(:k::text, 8, '0') "
    "RETURNING n;\n",
    "hot": "UPDATE plain_counters SET n = n + 1 WHERE k = 'hot' RETURNING n;\n",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A figure: requests a second, and microseconds of CPU and statements for each of them."""

    workload: str
    store: str
    rate: float
    server_us: float = 0.0
    postgres_us: float = 0.0
    generator_us: float = 0.0
    statements: float = 0.0


# PostgreSQL.


class Cluster:
    """PostgreSQL in a directory of its own. As root it runs as the user `postgres`."""

    def __init__(self, directory: Path, settings: Sequence[str]) -> None:
        self._directory = directory
        self._settings = settings
        self.url = f"host={directory} user=postgres dbname=postgres"

    def start(self) -> None:
        owner = pwd.getpwnam("postgres") if not os.geteuid() else None
        if owner is not None:
            os.chown(self._directory, owner.pw_uid, owner.pw_gid)
        self._directory.chmod(0o755)
        self.run("initdb", "-D", "data", "-U", "postgres", "-A", "trust")
        given = ["listen_addresses=''", "shared_buffers=256MB", "max_wal_size=4GB", *self._settings]
        options = " ".join(f"-c {one}" for one in (f"unix_socket_directories={self._directory}", *given))
        self.run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", "data", "-w", "-m", "fast", "stop")

    def process(self) -> int:
        return int((self._directory / "data" / "postmaster.pid").read_text().split()[0])

    def cpu_us(self) -> int:
        """The CPU time of PostgreSQL, with that of backends that have ended."""
        process = self.process()
        ended = stat_fields(Path(f"/proc/{process}/stat").read_text())[13:15]
        return cpu_us(process) + sum(map(int, ended)) * TICK_US

    def run(self, program: str, *arguments: str) -> str:
        owner: dict[str, Any] = {}
        if not os.geteuid():
            entry = pwd.getpwnam("postgres")
            owner = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), key=lambda path: path.parts[-3])
        path = str(found[-1]) if found else program
        # PostgreSQL keeps pg_ctl's output open, so `run` would wait for the end of a pipe.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [path, *arguments], cwd=self._directory, stdout=output, stderr=output, check=False, **owner
            )
            output.seek(0)
            text = output.read()
        if done.returncode:
            raise RuntimeError(f"{program} failed: {text[-1500:]}")
        return text


@contextlib.contextmanager
def cluster(settings: Sequence[str]) -> Iterator[Cluster]:
    """A new, running PostgreSQL."""
    with tempfile.TemporaryDirectory(prefix="hashrange-pgbench-") as directory:
        one = Cluster(Path(directory), settings)
        one.start()
        try:
            yield one
        finally:
            one.stop()


def pgbench(one: Cluster, workload: str, clients: int, seconds: int, directory: Path) -> Row:
    """The same work in plain SQL, one statement for each request."""
    directory.chmod(0o755)
    script = directory / f"{workload}.sql"
    value = "\\x" + random.Random(1).randbytes(VALUE_BYTES * 4 // 3 - 16).hex()
    key = f"\\set k random(0, {KEYS - 1})\n"
    script.write_text(_SCRIPTS[workload].format(key=key, value=value))
    script.chmod(0o644)
    before, used = one.cpu_us(), _children_us()
    options = [f"-c{clients}", f"-j{min(clients, os.cpu_count() or 1)}", f"-T{seconds}", f"-f{script}"]
    connected = ["-h", one.url.split()[0].removeprefix("host="), "-U", "postgres", "postgres"]
    text = one.run("pgbench", "-n", "-M", "prepared", *options, *connected)
    found = re.search(r"tps = ([\d.]+)", text)
    count = re.search(r"actually processed: (\d+)", text)
    if found is None or count is None:
        raise RuntimeError(f"pgbench: {text[-1500:]}")
    postgres, generator = one.cpu_us() - before, _children_us() - used
    made = max(1, int(count[1]))
    return Row(
        workload, f"pgbench, {clients} clients", float(found[1]), 0.0, postgres / made, generator / made, 1
    )


# Servers.


def over_postgres(url: str, python: Path | None) -> Server:
    """A server over PostgreSQL."""
    own = hashrange("fsync")

    def command(port: int, directory: Path) -> list[str]:
        start = own.command(port, directory)
        where = start.index("--data-dir")
        admin_port = free_port()
        (directory / ADMIN_PORT).write_text(str(admin_port))
        start[where : where + 2] = ["--postgres", url, "--admin-port", str(admin_port)]
        return [str(python), *start[1:]] if python is not None else start

    return replace(own, name="hashrange on PostgreSQL", command=command)


def embedded(python: Path | None) -> Server:
    own = hashrange("fsync")

    def command(port: int, directory: Path) -> list[str]:
        start = own.command(port, directory)
        return [str(python), *start[1:]] if python is not None else start

    return replace(own, command=command)


def _make(port: int, name: str) -> None:
    keys = ["pk"] if name in (ITEMS, COUNTERS) else ["pk", "group"]
    table: dict[str, Any] = {
        "TableName": name,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in keys],
        "BillingMode": "PAY_PER_REQUEST",
    }
    if "group" in keys:
        index = {"IndexName": "by_group", "KeySchema": [{"AttributeName": "group", "KeyType": "HASH"}]}
        table["GlobalSecondaryIndexes"] = [{**index, "Projection": {"ProjectionType": "ALL"}}]
    has_all = name in (ITEMS_WITH_ALL, COUNTERS_WITH_ALL)
    if has_all:
        table["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    call(port, Request("CreateTable", table))
    if has_all:
        recovery = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
        call(port, Request("UpdateContinuousBackups", {"TableName": name, **recovery}))


def _item(number: int, noise: random.Random) -> dict[str, Any]:
    value = base64.b64encode(noise.randbytes(VALUE_BYTES)).decode()
    group = {"S": f"group#{noise.randrange(INDEX_KEYS)}"}
    return {"pk": {"S": f"item#{number:08d}"}, "group": group, "value": {"B": value}}


def _counter(number: int) -> dict[str, Any]:
    group = {"S": f"group#{number % INDEX_KEYS}"}
    return {"pk": {"S": f"counter#{number:08d}"}, "group": group, "n": {"N": "0"}}


def _fill(port: int, tables: Sequence[str]) -> None:
    """Make the tables, and put in all items and counters."""
    noise = random.Random(0)
    for name in tables:
        _make(port, name)

    def batches() -> Iterator[bytes]:
        for start in range(0, KEYS, BATCH):
            numbers = range(start, start + BATCH)
            for name in tables:
                counts = name in (COUNTERS, COUNTERS_WITH_ALL)
                items = [_counter(n) if counts else _item(n, noise) for n in numbers]
                puts = [{"PutRequest": {"Item": item}} for item in items]
                yield render(Request("BatchWriteItem", {"RequestItems": {name: puts}}), port)

    send_all(port, batches(), connections=16)


def _request(workload: str, noise: random.Random) -> Request:
    number = noise.randrange(SHARED_KEYS.get(workload, KEYS))
    name = TABLES[workload]
    if workload.startswith("put"):
        return Request("PutItem", {"TableName": name, "Item": _item(number, noise)})
    if workload == "get":
        return Request("GetItem", {"TableName": name, "Key": {"pk": {"S": f"item#{number:08d}"}}})
    key = "hot" if workload == "hot" else f"counter#{number:08d}"
    return Request(
        "UpdateItem",
        {
            "TableName": name,
            "Key": {"pk": {"S": key}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
            "ReturnValues": "UPDATED_NEW",
        },
    )


def _statements(servers: Sequence[Running]) -> float:
    """The number of statements that the servers have sent, according to their metrics."""
    total = 0.0
    for started in servers:
        admin_port = started.directory / ADMIN_PORT
        if not admin_port.exists():  # the embedded engine
            continue
        with urllib.request.urlopen(f"http://{HOST}:{admin_port.read_text()}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        for name in ("commits", "fetches"):
            found = re.search(rf"^hashrange_store_{name}_total (\S+)", text, re.MULTILINE)
            assert found is not None, text
            total += float(found[1])
    return total


def _children_us() -> int:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 1e6)


def measure(
    store: str,
    servers: Sequence[Running],
    one: Cluster,
    workload: str,
    seconds: int,
    seed: int,
    connections: int,
) -> Row:
    """Send requests to all servers at the same time, over so many connections together."""
    files = []
    for at, started in enumerate(servers):
        noise = random.Random(seed * 10 + at)
        path = started.directory / f"{workload}.requests"
        count = 200 if workload == "hot" else REQUESTS
        write_requests(path, (render(_request(workload, noise), started.port) for _ in range(count)))
        script = started.directory / "send.lua"
        script.write_text(SCRIPT)
        files.append((started, path, script))
    postgres, used, sent = one.cpu_us(), _children_us(), _statements(servers)
    own = sum(cpu_us(started.process.pid) for started in servers)
    with ThreadPoolExecutor(len(servers)) as threads:
        outcomes = list(
            threads.map(
                lambda file: run_wrk(
                    f"http://{HOST}:{file[0].port}/",
                    file[1],
                    file[2],
                    connections // len(servers),
                    seconds,
                ),
                files,
            )
        )
    for outcome in outcomes:
        if outcome.status_errors or outcome.socket_errors or outcome.timeouts:
            raise RuntimeError(f"{store}, {workload}: {outcome}")
    requests = max(1, sum(outcome.requests for outcome in outcomes))
    own = sum(cpu_us(started.process.pid) for started in servers) - own
    return Row(
        workload,
        store,
        sum(outcome.requests_per_second for outcome in outcomes),
        own / requests,
        (one.cpu_us() - postgres) / requests if store != "embedded" else 0.0,
        (_children_us() - used) / requests,
        (_statements(servers) - sent) / requests,
    )


def render_rows(rows: Sequence[Row]) -> str:
    """A table, with the medians of the rounds, and the ratios to the embedded engine and to pgbench."""
    heads = ["workload", "store", "requests/s", "best round", "of embedded", "of pgbench"]
    heads += ["server us", "PostgreSQL us", "generator us", "statements"]
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.workload, row.store), []).append(row)
    rates = {key: median(one.rate for one in group) for key, group in groups.items()}
    shown = []
    for (workload, store), group in groups.items():
        own = rates.get((workload, "embedded"))
        best = max((r for (w, s), r in rates.items() if w == workload and "pgbench" in s), default=None)
        rate = rates[workload, store]
        shown.append(
            [
                workload,
                store,
                f"{rate:,.0f}",
                f"{max(one.rate for one in group):,.0f}",
                f"{rate / own:.2f}" if own else "",
                f"{rate / best:.2f}" if best else "",
                *(f"{median(getattr(one, name) for one in group):.1f}" for name in _FIGURES),
                f"{median(one.statements for one in group):.3f}",
            ]
        )
    return "\n".join(table(heads, shown))


_FIGURES: Final = ("server_us", "postgres_us", "generator_us")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.postgres",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--workloads", default=",".join(WORKLOADS), metavar="NAMES")
    parser.add_argument("--seconds", type=int, default=8, metavar="S", help="of each run (default: 8)")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="medians are shown (default: 1)")
    parser.add_argument("--servers", type=int, default=1, help="how many share PostgreSQL (default: 1)")
    parser.add_argument("--connections", type=int, default=64, help="to all servers together (default: 64)")
    parser.add_argument("--clients", default="16,32", metavar="COUNTS", help="of pgbench; 0: not at all")
    parser.add_argument("--no-embedded", action="store_true", help="leave the embedded engine out")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="of PostgreSQL")
    parser.add_argument("--python", type=Path, help="with hashrange installed (what `make compile` made)")
    options = parser.parse_args()
    python = options.python and options.python.absolute()  # a server starts in a directory of its own
    workloads = options.workloads.split(",")
    tables = list(dict.fromkeys(TABLES[workload] for workload in workloads))
    clients = [int(count) for count in options.clients.split(",") if int(count)]
    print(machine())
    with contextlib.ExitStack() as stack:
        one = stack.enter_context(cluster(options.setting))
        if clients:
            one.run("psql", "-q", *_psql(one), "-c", "SELECT 1")
            for statement in _FILL_SQL.format(keys=KEYS).split(";\n"):
                if statement.strip():
                    one.run("psql", "-q", *_psql(one), "-c", statement)
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hashrange-bench-")))

        def start(server: Server, name: str) -> Running:
            directory = scratch / name
            directory.mkdir()
            return stack.enter_context(running(server, directory))

        stores: dict[str, list[Running]] = {}
        if not options.no_embedded:
            stores["embedded"] = [start(embedded(python), "embedded")]
        count = options.servers
        name = "PostgreSQL" if count == 1 else f"PostgreSQL, {count} servers"
        stores[name] = [start(over_postgres(one.url, python), f"s{n}") for n in range(count)]
        for servers in stores.values():
            _fill(servers[0].port, tables)
        one.run("psql", "-q", *_psql(one), "-c", "CHECKPOINT")
        rows: list[Row] = []
        for round_ in range(options.rounds + 1):
            for workload in workloads:
                for store, servers in stores.items():
                    seconds = options.seconds if round_ else 1  # the first round warms the caches
                    row = measure(store, servers, one, workload, seconds, round_, options.connections)
                    rows += [row] if round_ else []
                for number in clients if round_ and workload in _SCRIPTS else ():
                    rows.append(pgbench(one, workload, number, options.seconds, scratch))
        print(render_rows(rows))


def _psql(one: Cluster) -> list[str]:
    host = one.url.split()[0].removeprefix("host=")
    return ["-h", host, "-U", "postgres", "-d", "postgres", "-v", "ON_ERROR_STOP=1"]


if __name__ == "__main__":
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed (Debian, Ubuntu: apt-get install wrk)")
    main()
