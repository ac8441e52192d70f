"""How fast an import is, and how much memory it takes: `python -m bench.imports`.

It writes a file of items of 0.5 KB, imports it into a durable database in this process, and prints items a
second, CPU time and memory. `python -m bench.imports --server` imports through a server in a process of its
own, while a client sends requests for an item, and also prints how long these requests took.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from bench.servers import peak
from hashrange import form
from hashrange.database import Database, Settings
from hashrange.interchange import ion

BUCKET = "bucket"
GROUPS = {
    "IndexName": "by-group",
    "KeySchema": [{"AttributeName": "group", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}


def item_of(number: int) -> dict[str, Any]:
    """An item of about 0.5 KB with 6 attributes."""
    return {
        "pk": {"S": f"user-{number:010}"},
        "group": {"S": f"group-{number % 1_000}"},
        "n": {"N": str(number)},
        "tags": {"L": [{"S": "first"}, {"S": "second"}]},
        "name": {"S": "x" * 100},
        "body": {"S": "lorem ipsum dolor sit amet " * 11},
    }


def line_of(number: int, format_: str) -> bytes:
    item = item_of(number)
    if format_ == "ION":
        return ion.write(item)
    if format_ == "CSV":
        row = [next(iter(value.values())) for name, value in item.items() if name != "tags"]
        return ",".join(row).encode() + b"\n"
    return orjson.dumps({"Item": item}) + b"\n"


def write(path: Path, count: int, format_: str, compression: str) -> int:
    """Write the file; returns its bytes before compression."""
    written = 0
    with gzip.open(path, "wb", compresslevel=1) if compression == "GZIP" else path.open("wb") as file:
        if format_ == "CSV":
            written += file.write(b"pk,group,n,name,body\n")
        for number in range(count):
            written += file.write(line_of(number, format_))
    return written


def request(format_: str, compression: str, *, indexed: bool) -> dict[str, Any]:
    types = {"pk": "S", **({"group": "S"} if indexed else {})}
    return {
        "S3BucketSource": {"S3Bucket": BUCKET},
        "InputFormat": format_,
        "InputCompressionType": compression,
        "TableCreationParameters": {
            "TableName": "imported",
            "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, t in types.items()],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
            **({"GlobalSecondaryIndexes": [GROUPS]} if indexed else {}),
        },
    }


def megabytes() -> float:
    """The peak memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_process(directory: Path, given: dict[str, Any], count: int, *, exports: bool) -> None:
    with Database.open(directory / "data", settings=Settings(s3_dir=str(directory / "s3"))) as database:
        arn = database.execute("ImportTable", given)["ImportTableDescription"]["ImportArn"]
        before = megabytes()
        began, used = time.perf_counter(), time.process_time()
        database.settle()
        took, used = time.perf_counter() - began, time.process_time() - used
        shown = database.execute("DescribeImport", {"ImportArn": arn})["ImportTableDescription"]
        assert (shown["ImportStatus"], shown["ImportedItemCount"]) == ("COMPLETED", count), shown
        print(
            f"{count / took:,.0f} items/s, {used / count * 1e6:.1f} us of CPU an item, "
            f"memory {before:.0f} MiB before, {megabytes():.0f} MiB at most"
        )
        if exports:
            export(database, count)


def export(database: Database, count: int) -> None:
    """Export the table that was imported."""
    recovery = {"PointInTimeRecoveryEnabled": True}
    request = {"TableName": "imported", "PointInTimeRecoverySpecification": recovery}
    database.execute("UpdateContinuousBackups", request)
    table_arn = database.execute("DescribeTable", {"TableName": "imported"})["Table"]["TableArn"]
    given = {"TableArn": table_arn, "S3Bucket": BUCKET}
    arn = database.execute("ExportTableToPointInTime", given)["ExportDescription"]["ExportArn"]
    began, used = time.perf_counter(), time.process_time()
    database.settle()
    took, used = time.perf_counter() - began, time.process_time() - used
    shown = database.execute("DescribeExport", {"ExportArn": arn})["ExportDescription"]
    assert (shown["ExportStatus"], shown["ItemCount"]) == ("COMPLETED", count), shown
    print(
        f"exported: {count / took:,.0f} items/s, {used / count * 1e6:.1f} us of CPU an item, "
        f"memory {megabytes():.0f} MiB at most"
    )


def through_a_server(directory: Path, given: dict[str, Any], count: int) -> None:
    import boto3

    command = [sys.executable, "-m", "hashrange", "serve", "--port", "0", "--admin-port", "0"]
    options = ["--data-dir", str(directory / "data"), "--s3-dir", str(directory / "s3")]
    server = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        endpoint = next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
        session = boto3.Session(aws_access_key_id="x", aws_secret_access_key="x", region_name="us-east-1")
        client: Any = session.client("dynamodb", endpoint_url=endpoint.rstrip(".,"))
        client.create_table(
            TableName="other",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        began = time.perf_counter()
        arn = client.import_table(**given)["ImportTableDescription"]["ImportArn"]
        waits: list[float] = []
        while True:
            sent = time.perf_counter()
            client.put_item(TableName="other", Item={"pk": {"S": "x"}})
            waits.append(time.perf_counter() - sent)
            if len(waits) % 50 == 0:
                shown = client.describe_import(ImportArn=arn)["ImportTableDescription"]
                if shown["ImportStatus"] != "IN_PROGRESS":
                    break
        took = time.perf_counter() - began
        assert (shown["ImportStatus"], shown["ImportedItemCount"]) == ("COMPLETED", count), shown
        cuts = statistics.quantiles(waits, n=1_000)
        print(
            f"{count / took:,.0f} items/s beside {len(waits) / took:,.0f} puts/s, which took "
            f"{cuts[499] * 1e3:.1f} ms (50 %), {cuts[989] * 1e3:.1f} ms (99 %), {max(waits) * 1e3:.0f} ms at "
            f"most; the server had {peak(server.pid):.0f} MiB at most"
        )
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--format", choices=("DYNAMODB_JSON", "ION", "CSV"), default="DYNAMODB_JSON")
    parser.add_argument("--compression", choices=("NONE", "GZIP"), default="NONE")
    parser.add_argument("--indexed", action="store_true", help="give the table a global index")
    parser.add_argument("--export", action="store_true", help="export the table afterwards")
    parser.add_argument("--server", action="store_true", help="import through a server, beside a client")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="hashrange-imports-") as name:
        directory = Path(name)
        (directory / "s3" / BUCKET).mkdir(parents=True)
        size = write(directory / "s3" / BUCKET / "items", options.items, options.format, options.compression)
        what = f"{options.items:,} items of {size // options.items} bytes, {options.format}, {form()}"
        print(what, end=": ", flush=True)
        given = request(options.format, options.compression, indexed=options.indexed)
        if options.server:
            through_a_server(directory, given, options.items)
        else:
            in_process(directory, given, options.items, exports=options.export)


if __name__ == "__main__":
    main()
