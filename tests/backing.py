"""Helpers for the tests of backups: a database with a directory of backups, and a table to back up."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import worlds
from hashrange.storage.api import Reader
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from worlds import NOW as NOW
from worlds import schema_of

DAY: Final = 24 * 3600.0

TABLE: Final[dict[str, Any]] = schema_of(
    "pk, sk:N", indexes={"by-v": "v:N"}, local_indexes={"local": "pk, v | text"}
)


class World(worlds.World):
    """A database with a fixed clock and a directory of backups."""

    def __init__(self, directory: Path, *, durable: bool = False, **given: Any) -> None:
        self.backups = directory / "backups"
        self.data = directory / "data" if durable else None
        super().__init__(self.data or MemoryEngine, **{"backup_dir": str(self.backups), **given})

    def reopen(self) -> None:
        """Open the database again, as a restart does."""
        if self.data is None:
            self.database.jobs.backups.forget()
        else:
            super().reopen()

    def create(self, name: str = "music", **given: Any) -> None:
        self("CreateTable", **{"TableName": name, **TABLE, **given})

    def put(self, number: int, table: str = "music", **given: Any) -> None:
        self("PutItem", TableName=table, Item=item_of(number) | given)

    def fill(self, count: int, table: str = "music") -> None:
        for number in range(count):
            self.put(number, table)

    def begin(self, table: str = "music", name: str = "nightly") -> str:
        """Begin a backup; returns its ARN."""
        details = self("CreateBackup", TableName=table, BackupName=name)["BackupDetails"]
        assert details["BackupStatus"] == "CREATING"
        arn: str = details["BackupArn"]
        return arn

    def backup(self, table: str = "music", name: str = "nightly") -> str:
        """A backup that is AVAILABLE."""
        arn = self.begin(table, name)
        self.database.settle()
        assert self.details(arn)["BackupStatus"] == "AVAILABLE"
        return arn

    def details(self, arn: str) -> dict[str, Any]:
        found: dict[str, Any] = self("DescribeBackup", BackupArn=arn)["BackupDescription"]["BackupDetails"]
        return found

    def listed(self, **given: Any) -> list[str]:
        return [one["BackupArn"] for one in self("ListBackups", **given)["BackupSummaries"]]

    def folder(self, arn: str) -> Path:
        known = self.database.jobs.backups.runner.overview()
        [found] = [one for one in known if one["id"] == arn.rpartition("/")[2]]
        return Path(found["folder"])

    def restore(self, arn: str, name: str = "restored", **given: Any) -> dict[str, Any]:
        answer = self("RestoreTableFromBackup", BackupArn=arn, TargetTableName=name, **given)
        shown: dict[str, Any] = answer["TableDescription"]
        assert shown["TableStatus"] == "CREATING"
        return shown

    def definition(self, name: str) -> Table | None:
        return self.database.engine.read(lambda reader: catalog.find_full(reader, name))

    def rows(self, name: str = "music") -> list[tuple[bytes, bytes, bytes]]:
        """All records of a table."""

        def body(reader: Reader) -> list[tuple[bytes, bytes, bytes]]:
            table = catalog.find_full(reader, name)
            assert table is not None
            return list(reader.scan_space(table.space))

        return self.database.engine.read(body)

    def status(self, table: str) -> str:
        status: str = self("DescribeTable", TableName=table)["Table"]["TableStatus"]
        return status


def item_of(number: int) -> dict[str, Any]:
    return {
        "pk": {"S": f"item {number // 3}"},
        "sk": {"N": str(number % 3)},
        "v": {"N": str(number % 7)},
        "text": {"S": "x" * (number % 50)},
        "binary": {"B": "AAEC"},
        "set": {"SS": ["a", "b"]},
        "map": {"M": {"list": {"L": [{"NULL": True}, {"BOOL": False}]}}},
    }
