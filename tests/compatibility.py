"""Writes the operation tables of docs/compatibility.md: `python tests/compatibility.py`.

The groups and their order are defined here. The registry says whether an operation works. It is verified by
the tests that call it, once git knows them (`git add`). `tests/all_rings/test_docs.py` compares the page with
both.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from hashrange.operations import REGISTRY

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "compatibility.md"
BEGIN, END = "<!-- operations -->\n", "<!-- end of operations -->\n"
HEAD = "| operation | state | verified by, in `tests/` |\n|---|---|---|\n"

GROUPS = {
    "Items": """PutItem GetItem UpdateItem DeleteItem Query Scan BatchGetItem BatchWriteItem TransactGetItems
        TransactWriteItems""",
    "PartiQL": "ExecuteStatement BatchExecuteStatement ExecuteTransaction",
    "Tables": """CreateTable DescribeTable ListTables UpdateTable DeleteTable UpdateTimeToLive
        DescribeTimeToLive TagResource UntagResource ListTagsOfResource DescribeLimits DescribeEndpoints""",
    "Streams": """ListStreams DescribeStream GetShardIterator GetRecords EnableKinesisStreamingDestination
        DescribeKinesisStreamingDestination UpdateKinesisStreamingDestination
        DisableKinesisStreamingDestination""",
    "Backups": """CreateBackup DescribeBackup ListBackups DeleteBackup RestoreTableFromBackup
        UpdateContinuousBackups DescribeContinuousBackups RestoreTableToPointInTime""",
    "Import, export and bulk work": """ImportTable DescribeImport ListImports ExportTableToPointInTime
        DescribeExport ListExports StartBulkPutItems DescribeBulkOperation ListBulkOperations
        CancelBulkOperation SearchVectors""",
    "Policies and insight": """PutResourcePolicy GetResourcePolicy DeleteResourcePolicy
        UpdateContributorInsights DescribeContributorInsights ListContributorInsights""",
    "Global tables and scaling": """CreateGlobalTable DescribeGlobalTable ListGlobalTables UpdateGlobalTable
        DescribeGlobalTableSettings UpdateGlobalTableSettings DescribeTableReplicaAutoScaling
        UpdateTableReplicaAutoScaling""",
}

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


def tables() -> str:
    """The operation tables, in Markdown."""
    texts = test_texts()
    parts = []
    for group, names in GROUPS.items():
        rows = []
        for operation in names.split():
            if operation in REGISTRY:
                verified = ", ".join(f"`{file}`" for file in evidence(operation, texts))
                rows.append(f"| {operation} | works | {verified} |\n")
            else:
                rows.append(f"| {operation} | planned | |\n")
        parts.append(f"### {group}\n\n{HEAD}{''.join(rows)}")
    return "\n".join(parts)


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{tables()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
