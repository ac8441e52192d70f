"""SQL for a look: a join of two tables, grouped, over a server on this machine.

    python -m bench.sql_looks --items 1000000

The items have 0.5 KB, and a hundredth as many customers belong to them. It prints how long the statement
took, the CPU seconds of this process and of the server, and the most memory that this process had. The
server is another process, and its tables are read whole: they are filled before, which is not measured.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import boto3

import hashrange_sql
from hashrange.database import Database

_BATCH: Final = 25
_NOTE: Final = "x" * 340
_SQL: Final = """SELECT c.country, count(*) AS orders, sum(o.amount) AS total
FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.country ORDER BY total DESC"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=100_000, metavar="N", help="default: 100,000")
    items = parser.parse_args().items
    with tempfile.TemporaryDirectory() as folder:
        _fill(Path(folder), items)
        command = [sys.executable, "-m", "hashrange", "serve", "--port", "0", "--data-dir", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
            try:
                _measure(_endpoint(server), items)
            finally:
                server.terminate()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.1f} CPU seconds of the server, its start included")


def _measure(endpoint: str, items: int) -> None:
    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    began, busy = time.perf_counter(), time.process_time()
    rows = hashrange_sql.query(_SQL, client)
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    assert sum(row["orders"] for row in rows) == items
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{items:,} items: {seconds:.1f} s, {busy:.1f} CPU seconds of the client, at most {memory} MiB")


def _fill(folder: Path, items: int) -> None:
    customers = max(items // 100, 1)
    with Database.open(folder) as database:
        _put(database, "customers", "id", [
            {"id": {"S": f"customer {one}"}, "country": {"S": f"country {one % 20}"}}
            for one in range(customers)
        ])  # fmt: skip
        for first in range(0, items, 10_000):
            _put(database, "orders", "id", [
                {
                    "id": {"S": f"order {one:010}"},
                    "customer": {"S": f"customer {one % customers}"},
                    "amount": {"N": f"{one % 9973}.{one % 100:02}"},
                    "tags": {"SS": ["a", "b", "c"]},
                    "place": {"M": {"city": {"S": "Paris"}, "code": {"N": "75001"}}},
                    "note": {"S": _NOTE},
                }
                for one in range(first, min(first + 10_000, items))
            ])  # fmt: skip


def _put(database: Database, table: str, key: str, items: list[dict[str, Any]]) -> None:
    if table not in database.execute("ListTables", {})["TableNames"]:
        request = {
            "TableName": table,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        }
        database.execute("CreateTable", request)
        database.settle()
    for first in range(0, len(items), _BATCH):
        writes = [{"PutRequest": {"Item": item}} for item in items[first : first + _BATCH]]
        database.execute("BatchWriteItem", {"RequestItems": {table: writes}})


def _endpoint(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        for word in line.split():
            if word.startswith("http://"):
                return word.rstrip(".,;")
    raise RuntimeError("the server did not start")


if __name__ == "__main__":
    main()
