"""The tests of a program's own source distribution, as they are: ``python own_tests.py NAME``.

They ask for DynamoDB Local at some endpoint, for AWS or for moto. They run in a block, so that nothing
listens anywhere; other services, of which one of them uses S3, are moto's.
"""

import json
import os
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

STORE = "tests/integration_tests/store/dynamodb"
CHECKPOINTS = "tests/integration_tests/checkpoint/dynamodb"
OWN = {
    "cachelib": ["tests/test_dynamodb_cache.py"],
    # One of these tests uses moto's `mock_aws`, in whose place it gets Hashrange's.
    "celery": ["t/unit/backends/test_dynamodb.py"],
    # The conditions and the time to live of its documents. Its vectors are in S3.
    "dynavec": ["tests/test_dynamodb.py", "tests/test_dynamodb_ttl.py"],
    # The next three are written for AWS, and have vector indexes.
    "crewai_memory_dynamodb": ["tests"],
    "dynamodb_haystack": ["-m", "integration", "tests"],
    "langgraph_store_dynamodb": ["tests"],
    "langgraph_checkpoint_aws": [
        f"{STORE}/test_dynamodb_store_integration.py",
        f"{STORE}/test_async_dynamodb_store_integration.py",
        f"{STORE}/test_dynamodb_sync_async_parity_integration.py",
        f"{STORE}/test_vector_search_integration.py",  # (written for AWS)
        f"{CHECKPOINTS}/test_conformance.py",
        f"{CHECKPOINTS}/test_langgraph_dynamodb_integration.py",
        # They store floats, which boto3 refuses before it makes a request.
        "--deselect",
        f"{STORE}/test_dynamodb_store_integration.py::test_sync_complex_values",
        "--deselect",
        f"{STORE}/test_async_dynamodb_store_integration.py::test_async_complex_values",
    ],
}
OPTIONS = ["-q", "-p", "no:cacheprovider"]
for option in ("addopts=", "asyncio_mode=auto", "asyncio_default_fixture_loop_scope=function"):
    OPTIONS += ["-o", option]


class InBlock:
    """A plugin of pytest that runs all tests in a block, and counts outcomes and requests."""

    def __init__(self) -> None:
        self.outcomes: dict[str, int] = {}
        self.asked = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        # Not earlier: pytest rewrites the asserts of packages that bring a plugin. And not later: one of the
        # conftest files looks whether DynamoDB Local answers.
        import moto

        import hashrange
        from hashrange.testing import mock_aws

        self.others = moto.mock_aws()
        self.others.start()
        moto.mock_aws = mock_aws
        self.block = hashrange.local()
        self.database = self.block.__enter__()
        self.costs = self.database.costs()
        self.costs.__enter__()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] = self.outcomes.get(report.outcome, 0) + 1

    def pytest_sessionfinish(self) -> None:
        self.asked = len(self.costs.requests) > 0
        self.costs.__exit__(None, None, None)
        self.block.__exit__(None, None, None)
        self.others.stop()


name = sys.argv[1]
os.environ |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
os.environ |= {"HAYSTACK_DYNAMODB_INTEGRATION_TESTS": "1", "DDB_VECTOR_INTEG": "1"}
(source,) = (Path(sys.prefix) / "sdist").glob(f"{name}-*.tar.gz")
in_block = InBlock()
with tempfile.TemporaryDirectory() as folder:
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    (root,) = Path(folder).iterdir()
    os.chdir(root)
    status = pytest.main([*OPTIONS, *OWN[name]], [in_block])
    os.chdir("/")
print(json.dumps({"status": int(status), "outcomes": in_block.outcomes, "asked": in_block.asked}))
