"""The tests of cachelib's own source distribution for its cache in DynamoDB, as they are.

They make clients with the endpoint http://localhost:8000, where DynamoDB Local is to listen. Nothing does:
each test runs in a block.
"""

import json
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest


class InBlocks:
    """A plugin of pytest that runs each test in a block, and counts the outcomes."""

    def __init__(self) -> None:
        self.outcomes: dict[str, int] = {}

    @pytest.fixture(autouse=True)
    def block(self):
        # Not before pytest has begun: it rewrites the asserts of a package that brings a plugin.
        import hashrange

        with hashrange.local():
            yield

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.outcomes[report.outcome] = self.outcomes.get(report.outcome, 0) + 1


(source,) = (Path(sys.prefix) / "sdist").glob("cachelib-*.tar.gz")
in_blocks = InBlocks()
with tempfile.TemporaryDirectory() as folder:
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    (tests,) = Path(folder).glob("*/tests")
    status = pytest.main(
        ["-q", "-p", "no:cacheprovider", str(tests / "test_dynamodb_cache.py")], [in_blocks]
    )
print(json.dumps({"status": int(status), "outcomes": in_blocks.outcomes}))
