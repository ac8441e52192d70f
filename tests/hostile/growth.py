"""Whether a server's memory grows under mixed control operations: tables are made, changed, backed up,
exported, filled from files, restored and deleted, in any order, for as long as you have time.

    python -m hostile.growth --minutes 60

The server has small caches, because those of `hashrange serve` fill during hours, up to sizes that
docs/settings.md names, and would hide a leak or look like one; --usual-caches leaves them as they are. The
tables stay small and few. The server's memory at the end may be at most GROWTH_MAX times that of the first
minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.connection import Connection
from bench.wire import Request, render
from hostile.server import (
    EVERY_OPTION,
    Target,
    attacked,
    built,
    error_lines,
    problems_of,
    with_options,
    with_small_caches,
)

Json = dict[str, Any]

GROWTH_MAX: Final = 1.5
TABLES: Final = 12
BUCKET: Final = "growth"
_FIRST_SHARE: Final = 0.2
_FIRST_SECONDS_MAX: Final = 180.0
_SAMPLE_SECONDS: Final = 2.0
_NOTE_SECONDS: Final = 30.0
_ANSWER_SECONDS_MAX: Final = 60.0
_BACKUPS_MAX: Final = 20
_ITEMS: Final = 5
_KINESIS: Final = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
_ARN: Final = "arn:aws:dynamodb:us-east-1:000000000000:table/"


@dataclass(slots=True)
class Report:
    """The result of a run; `samples` are (seconds since the start, bytes of the server's memory)."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    samples: list[tuple[float, int]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def first_and_last_bytes(self) -> tuple[int, int]:
        """The median of the memory in the first minutes, and in as many minutes at the end."""
        end = self.samples[-1][0]
        span = min(end * _FIRST_SHARE, _FIRST_SECONDS_MAX)
        first = [count for seconds, count in self.samples if seconds <= span]
        last = [count for seconds, count in self.samples if seconds >= end - span]
        return int(median(first)), int(median(last))

    @property
    def is_good(self) -> bool:
        first, last = self.first_and_last_bytes()
        return not self.errors and last <= first * GROWTH_MAX

    def succeeded(self) -> set[str]:
        """The operations that succeeded at least once."""
        return {operation for operation, outcome in self.outcomes if outcome == "done"}

    def refused(self) -> set[str]:
        """The operations that were sent and never succeeded."""
        return {operation for operation, _ in self.outcomes} - self.succeeded()

    def __str__(self) -> str:
        by_operation: dict[str, dict[str, int]] = {}
        for (operation, outcome), count in sorted(self.outcomes.items()):
            by_operation.setdefault(operation, {})[outcome] = count
        lines = [
            f"{operation:28} " + ", ".join(f"{outcome}: {count:,}" for outcome, count in counts.items())
            for operation, counts in by_operation.items()
        ]
        first, last = self.first_and_last_bytes()
        grown = f"{first >> 20} MiB in the first minutes, {last >> 20} at the end: {last / first:.2f} times"
        return "\n".join([*lines, *self.errors, grown])


class Mixer:
    """Sends random control operations to one server, one after the other."""

    def __init__(self, target: Target, seed: int) -> None:
        self.report = Report()
        self._target = target
        self._random = random.Random(seed)
        self._connection = Connection(target.port, _ANSWER_SECONDS_MAX)
        self._count = 0
        self._fill_bucket(target.started.directory / "data" / "s3" / BUCKET)
        self._steps: list[Callable[[str], None]] = [
            *(self._create, self._delete, self._put, self._read, self._tag, self._expire, self._record),
            *(self._index, self._stream, self._back_up, self._restore, self._restore_moment),
            *(self._export, self._import, self._bulk, self._transact, self._vectors, self._deliver),
        ]

    def play(self, seconds: float, note: Callable[[str], None]) -> Report:
        """Send operations for `seconds`. Raises OSError if the server does not answer."""
        start = time.monotonic()
        sampled = noted = start - _NOTE_SECONDS
        while (now := time.monotonic()) - start < seconds:
            if now - sampled >= _SAMPLE_SECONDS:
                sampled = now
                self.report.samples.append((now - start, self._target.memory_bytes()))
            if now - noted >= _NOTE_SECONDS:
                noted = now
                note(
                    f"{now - start:6.0f} s  {self._count:9,} requests  {self.report.samples[-1][1] >> 20} MiB"
                )
            self.step()
        self.report.samples.append((time.monotonic() - start, self._target.memory_bytes()))
        return self.end()

    def step(self) -> None:
        """Do a random step with a random table."""
        self._random.choice(self._steps)(f"table-{self._random.randrange(TABLES)}")

    def end(self) -> Report:
        """Stop sending; return the report, with the errors that the server logged."""
        self._connection.close()
        self.report.errors += error_lines(self._target.new_log())[:20]
        return self.report

    def _ask(self, operation: str, **body: Any) -> Json | None:
        """The answer to a request; None if it was refused, as many are: their tables change all the time."""
        self._count += 1
        self._connection.send(render(Request(operation, body), self._target.port))
        status, _, raw = self._connection.answer()
        answer: Json = json.loads(raw) if raw else {}
        outcome = "done" if status == 200 else str(answer.get("__type", "")).rpartition("#")[2]
        self.report.outcomes[operation, outcome] += 1
        if status >= 500:
            self.report.errors.append(f"{operation}: {status} {raw[:200]!r}")
        return answer if status == 200 else None

    @staticmethod
    def _fill_bucket(bucket: Path) -> None:
        (bucket / "in").mkdir(parents=True, exist_ok=True)
        rows = ({"Item": {"pk": {"S": f"imported {number}"}}} for number in range(_ITEMS))
        (bucket / "in" / "items.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def _is_likely(self, share: float) -> bool:
        return self._random.random() < share

    # The steps. Each takes the name of a table, which may not exist.

    def _create(self, table: str) -> None:
        by_group = {
            "IndexName": "groups",
            "KeySchema": _keys("group"),
            "Projection": {"ProjectionType": "ALL"},
        }
        given = _table(table, "pk", "group") | {"GlobalSecondaryIndexes": [by_group]}
        if self._is_likely(0.3):
            given["AttributeDefinitions"] += _types("sk", "other")
            given["KeySchema"] = _keys("pk", "sk")
            local = {"IndexName": "local", "KeySchema": _keys("pk", "other")}
            given["LocalSecondaryIndexes"] = [{**local, "Projection": {"ProjectionType": "KEYS_ONLY"}}]
        if self._is_likely(0.5):
            given["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        self._ask("CreateTable", **given)
        self._put(table)

    def _delete(self, table: str) -> None:
        self._ask("DeleteTable", TableName=table)

    def _put(self, table: str) -> None:
        for number in range(_ITEMS):
            self._ask("PutItem", TableName=table, Item=self._item(number))
        only_new = {"ConditionExpression": "attribute_not_exists(pk)"}
        self._ask("PutItem", TableName=table, Item=self._item(number), **only_new)

    def _item(self, number: int) -> Json:
        """An item with this key and new values, which is soon to expire if it is among the first two."""
        item: Json = {"pk": {"S": f"{number}"}, "sk": {"S": "s"}, "other": {"S": "x" * 100}}
        item["group"] = {"S": f"{self._count % 7}"}
        item["until"] = {"N": str(int(time.time()) + (1 if number < 2 else 3_600))}
        item["vector"] = {"L": [{"N": str(self._random.random())}, {"N": "1"}]}
        return item

    def _transact(self, table: str) -> None:
        other = f"table-{self._random.randrange(TABLES)}"
        puts = [{"Put": {"TableName": table, "Item": self._item(number)}} for number in range(_ITEMS)]
        for delete in ({"pk": {"S": "0"}}, {"pk": {"S": "0"}, "sk": {"S": "s"}}):
            if other != table:
                gone = {"Delete": {"TableName": other, "Key": delete}}
                self._ask("TransactWriteItems", TransactItems=[*puts, gone])
            self._ask("DeleteItem", TableName=table, Key=delete)

    def _read(self, table: str) -> None:
        self._ask("Scan", TableName=table)
        self._ask("DescribeTable", TableName=table)
        self._ask("DescribeContinuousBackups", TableName=table)
        self._ask("ListTables")

    def _tag(self, table: str) -> None:
        tag = {"Key": f"key {self._count}", "Value": "value"}
        self._ask("TagResource", ResourceArn=_ARN + table, Tags=[tag])
        self._ask("UntagResource", ResourceArn=_ARN + table, TagKeys=[tag["Key"]])

    def _expire(self, table: str) -> None:
        wanted = {"Enabled": self._is_likely(0.5), "AttributeName": "until"}
        self._ask("UpdateTimeToLive", TableName=table, TimeToLiveSpecification=wanted)

    def _record(self, table: str) -> None:
        wanted = {"PointInTimeRecoveryEnabled": self._is_likely(0.7)}
        self._ask("UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=wanted)

    def _index(self, table: str) -> None:
        given: Json = {"TableName": table}
        if self._is_likely(0.5):
            index = {
                "IndexName": "others",
                "KeySchema": _keys("other"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
            given |= {
                "AttributeDefinitions": _types("other"),
                "GlobalSecondaryIndexUpdates": [{"Create": index}],
            }
        else:
            name = self._random.choice(("groups", "others"))
            given |= {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": name}}]}
        self._ask("UpdateTable", **given)

    def _vectors(self, table: str) -> None:
        index = {
            "IndexName": "near",
            "VectorAttribute": {"AttributeName": "vector"},
            "Projection": {"ProjectionType": "ALL"},
            "Dimensions": 2,
            "DistanceFunction": "COSINE",
        }
        change = {"Create": index} if self._is_likely(0.6) else {"Delete": {"IndexName": "near"}}
        self._ask("UpdateTable", TableName=table, VectorIndexUpdates=[change])

    def _deliver(self, table: str) -> None:
        change = "Enable" if self._is_likely(0.6) else "Disable"
        self._ask(f"{change}KinesisStreamingDestination", TableName=table, StreamArn=_KINESIS)
        action = "ENABLE" if self._is_likely(0.5) else "DISABLE"
        self._ask("UpdateContributorInsights", TableName=table, ContributorInsightsAction=action)

    def _stream(self, table: str) -> None:
        wanted = (
            {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
            if self._is_likely(0.5)
            else {"StreamEnabled": False}
        )
        self._ask("UpdateTable", TableName=table, StreamSpecification=wanted)
        for stream in (self._ask("ListStreams", TableName=table) or {}).get("Streams", ())[-1:]:
            arn = stream["StreamArn"]
            shown = self._ask("DescribeStream", StreamArn=arn) or {}
            for shard in shown.get("StreamDescription", {}).get("Shards", ())[:1]:
                where = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
                begun = self._ask("GetShardIterator", StreamArn=arn, **where)
                if begun is not None:
                    self._ask("GetRecords", ShardIterator=begun["ShardIterator"])

    def _back_up(self, table: str) -> None:
        self._ask("CreateBackup", TableName=table, BackupName="backup")
        backups = self._backups()
        for arn in backups[: len(backups) - _BACKUPS_MAX]:
            self._ask("DeleteBackup", BackupArn=arn)

    def _backups(self) -> list[str]:
        listed = self._ask("ListBackups") or {}
        return [backup["BackupArn"] for backup in listed.get("BackupSummaries", ())]

    def _restore(self, table: str) -> None:
        self._ask("DeleteTable", TableName=table)
        for arn in self._backups()[:1]:
            self._ask("RestoreTableFromBackup", BackupArn=arn, TargetTableName=table)

    def _restore_moment(self, table: str) -> None:
        source = f"table-{self._random.randrange(TABLES)}"
        given = {"SourceTableName": source, "TargetTableName": table, "UseLatestRestorableTime": True}
        self._ask("RestoreTableToPointInTime", **given)

    def _export(self, table: str) -> None:
        self._ask("ExportTableToPointInTime", TableArn=_ARN + table, S3Bucket=BUCKET, S3Prefix="out")
        self._ask("ListExports")

    def _import(self, table: str) -> None:
        source = {"S3Bucket": BUCKET, "S3KeyPrefix": "in/"}
        given = {"S3BucketSource": source, "InputFormat": "DYNAMODB_JSON"}
        self._ask("ImportTable", **given, TableCreationParameters=_table(table, "pk"))
        self._ask("ListImports")

    def _bulk(self, table: str) -> None:
        given = {
            "InputS3Configuration": {
                "S3Bucket": BUCKET,
                "S3KeyPrefix": "in/",
                "InputFormat": "DYNAMODB_JSON",
            },
            "OutputS3Configuration": {"S3Bucket": BUCKET, "S3KeyPrefix": "out/", "OutputType": ["ERROR"]},
        }
        self._ask("StartBulkPutItems", TableName=table, **given)
        self._ask("ListBulkOperations")


def _keys(*attributes: str) -> list[Json]:
    kinds = zip(attributes, ("HASH", "RANGE"), strict=False)
    return [{"AttributeName": attribute, "KeyType": kind} for attribute, kind in kinds]


def _types(*attributes: str) -> list[Json]:
    return [{"AttributeName": attribute, "AttributeType": "S"} for attribute in attributes]


def _table(name: str, *attributes: str) -> Json:
    types = {"KeySchema": _keys(attributes[0]), "AttributeDefinitions": _types(*attributes)}
    return {"TableName": name, "BillingMode": "PAY_PER_REQUEST", **types}


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m hostile.growth",
        description="Check whether memory grows under mixed control operations.",
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--usual-caches", action="store_true", help="the caches of `hashrange serve`")
    parser.add_argument("--interpreted", action="store_true", help="do not use the compiled hot path")
    parser.add_argument("--every-option", action="store_true", help="delays, deliveries and more")
    given = parser.parse_args(None if arguments is None else list(arguments))
    server = built(given.interpreted)
    if not given.usual_caches:
        server = with_small_caches(server)
    if given.every_option:
        server = with_options(server, *EVERY_OPTION)
    print(f"{server.title}: {server.version()}, seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="hashrange-growth-") as directory:
        with attacked(server, Path(directory)) as target:
            report = Mixer(target, given.seed).play(given.minutes * 60, lambda line: print(line, flush=True))
        problems = problems_of(server, Path(directory))
    print(report)
    print(problems or "the store is sound")
    is_good = report.is_good and not problems
    print("GOOD" if is_good else "FAILED")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
