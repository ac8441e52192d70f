"""Writes the table of operations in docs/compatibility.md: `python tests/compatibility.py`.

The order is defined here. An operation in the registry works, verified by the tests that call it, once git
knows them (`git add`); neighbours with the same tests share a row. `tests/all_rings/test_docs.py` compares
the page with both.
"""

from __future__ import annotations

import re
import subprocess
from itertools import groupby
from pathlib import Path

from hashrange.operations import REGISTRY

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "compatibility.md"
BEGIN, END = "<!-- operations -->\n", "<!-- end of operations -->\n"
HEAD = "| operations | verified by, in `tests/` |\n|---|---|\n"

OPERATIONS = """
    PutItem GetItem UpdateItem DeleteItem Query Scan BatchGetItem BatchWriteItem TransactGetItems
    TransactWriteItems ExecuteStatement BatchExecuteStatement ExecuteTransaction CreateTable
    DescribeTable ListTables UpdateTable DeleteTable UpdateTimeToLive DescribeTimeToLive TagResource
    UntagResource ListTagsOfResource DescribeLimits DescribeEndpoints ListStreams DescribeStream
    GetShardIterator GetRecords EnableKinesisStreamingDestination DescribeKinesisStreamingDestination
    UpdateKinesisStreamingDestination DisableKinesisStreamingDestination CreateBackup DescribeBackup
    ListBackups DeleteBackup RestoreTableFromBackup UpdateContinuousBackups DescribeContinuousBackups
    RestoreTableToPointInTime ImportTable DescribeImport ListImports ExportTableToPointInTime
    DescribeExport ListExports StartBulkPutItems DescribeBulkOperation ListBulkOperations
    CancelBulkOperation SearchVectors PutResourcePolicy GetResourcePolicy DeleteResourcePolicy
    UpdateContributorInsights DescribeContributorInsights ListContributorInsights CreateGlobalTable
    DescribeGlobalTable ListGlobalTables UpdateGlobalTable DescribeGlobalTableSettings
    UpdateGlobalTableSettings DescribeTableReplicaAutoScaling UpdateTableReplicaAutoScaling
"""

# The order of evidence: first the tests closest to a user. One file of a kind is enough.
KINDS = ("api", "golden", "e2e", "clients", "model", "unit")
FILES_OF_A_KIND_MAX = 1
FILES_MAX = 2
# These name operations without calling them.
NO_EVIDENCE = re.compile(
    r"unit/test_(docs|tidy|bench|protocol|server_\w+|shapes\w*|storage\w*)\.py|golden/.*shapes.*"
)


def snake_case(operation: str) -> str:
    """The name of the method that boto3 gives an operation."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()


def test_texts() -> dict[str, str]:
    """The tests and golden scripts that git knows, by their path below `tests/`."""
    listed = subprocess.run(["git", "ls-files"], cwd=TESTS, check=True, capture_output=True, text=True)
    files = [file for file in listed.stdout.splitlines() if file.endswith((".py", ".txt")) and "/" in file]
    return {
        file: (TESTS / file).read_text(encoding="utf-8")
        for file in sorted(files)
        if not NO_EVIDENCE.fullmatch(file)
    }


def evidence(operation: str, texts: dict[str, str]) -> list[str]:
    """The tests that call an operation, the best first."""
    name = snake_case(operation)
    call = re.compile(rf"\b{name}\(|\"({name}|{operation})\"|^{operation}\b", re.MULTILINE)
    calls = {file: len(call.findall(text)) for file, text in texts.items()}
    chosen: list[str] = []
    for kind in KINDS:
        of_kind = [file for file in calls if calls[file] and file.startswith(f"{kind}/")]
        chosen += sorted(of_kind, key=lambda file: -calls[file])[:FILES_OF_A_KIND_MAX]
    return chosen[:FILES_MAX]


def table() -> str:
    """The table of operations, in Markdown."""
    texts = test_texts()
    operations = OPERATIONS.split()
    verified = {name: evidence(name, texts) if name in REGISTRY else [] for name in operations}
    rows = []
    for files, names in groupby(operations, key=lambda name: verified[name]):
        told = ", ".join(f"`{file}`" for file in files) or "nothing: planned"
        rows.append(f"| {', '.join(names)} | {told} |\n")
    return HEAD + "".join(rows)


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
