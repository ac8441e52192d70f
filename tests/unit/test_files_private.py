"""Files that hold values of items, or secrets, may be read by their owner only, whatever the umask is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.files.durable import write_durably
from hashrange.files.regular import open_to_write
from hashrange.settings import Settings
from worlds import recovery_of, table_of

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / "src", *ROOT.glob("packages/*/src")]
_WRITES = re.compile(r"""open\((?!er).*["'][wxa]b?["']|\.write_(bytes|text)\(|O_CREAT""")
OPEN_TO_OTHERS = {
    "hashrange/files/regular.py": "passes its flags on to `private`",
    "hashrange_access/audit/log.py": "passes its flags on to `private`",
    "hashrange/storage/embedded/room.py": "zeros, in the data directory",
    "hashrange/storage/embedded/offline/salvage.py": "in a temporary directory of its own",
    "hashrange_patterns/migrations/files.py": "a part of the user's program",
    "hashrange_sql/child.py": "a pipe",
    "hashrange_access/testing.py": "a policy, which is no secret",
}
"""The modules that write files otherwise, and why they may."""
CREATE = table_of("table", "p")
RECOVERABLE = recovery_of("table")


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    former = os.umask(0o000)
    yield
    os.umask(former)


def test_only_the_owner_reads_what_holds_values(tmp_path: Path) -> None:
    settings = Settings(backup_dir=str(tmp_path / "backups"), s3_dir=str(tmp_path / "buckets"))
    (tmp_path / "buckets" / "a-bucket").mkdir(parents=True)
    with Database.in_memory(settings=settings, clock=ManualClock()) as database:
        database.execute("CreateTable", dict(CREATE))
        database.settle()
        database.execute("PutItem", {"TableName": "table", "Item": {"p": {"S": "rosebud"}}})
        database.execute("UpdateContinuousBackups", dict(RECOVERABLE))
        arn = "arn:aws:dynamodb:us-east-1:000000000000:table/table"
        database.execute("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": "a-bucket"})
        database.execute("CreateBackup", {"TableName": "table", "BackupName": "backup"})
        database.settle()
    write_durably(tmp_path / "durable", b"")
    open_to_write(tmp_path / "regular").close()
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    names = {path.relative_to(tmp_path).parts[0] for path in found}
    assert names == {"backups", "buckets", "durable", "regular"}
    assert [path for path in found if path.stat().st_mode & 0o077] == []


def test_every_file_is_written_so() -> None:
    """A new place that writes a file says `opener=private`, or why not."""
    open_ones = {
        str(path.relative_to(sources))
        for sources in SOURCES
        for path in sources.rglob("*.py")
        for line in path.read_text().splitlines()
        if _WRITES.search(line) and "opener=private" not in line
    }
    packages = {folder.name for sources in SOURCES for folder in sources.iterdir()}  # (rings may be deleted)
    assert open_ones == {name for name in OPEN_TO_OTHERS if name.partition("/")[0] in packages}
