"""Fixtures that every test may use: an endpoint, boto3 clients over HTTP and in process, table names.

The black-box tests run against any DynamoDB (see endpoints.py); if none is named, a `hashrange serve` is
started for the session, durable, on a free port.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import hypothesis
import pytest

pytest.register_assert_rewrite("hashrange_engine_tests")

import boto_data  # noqa: E402
import collecting  # noqa: E402
import pgbouncer  # noqa: E402
import postgres  # noqa: E402
from doses import examples  # noqa: E402
from endpoints import ON_AWS, OTHER_ENDPOINT, REGION, connection  # noqa: E402
from hashrange.client import connect  # noqa: E402
from hashrange.database import Database, Settings  # noqa: E402
from hashrange.storage.memory import MemoryEngine  # noqa: E402
from hashrange_engine_tests.reruns import Reruns  # noqa: E402
from reruns_everywhere import rerun_everywhere  # noqa: E402
from serving import serving  # noqa: E402

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodb.service_resource import DynamoDBServiceResource
    from types_boto3_dynamodbstreams.client import DynamoDBStreamsClient

# The machine is shared: a slow example is no failure. The gate (.ci/run sets CI) draws the same examples at
# every run, so that its verdict depends on the change alone; other runs draw new ones.
hypothesis.settings.register_profile(
    "hashrange",
    deadline=None,
    print_blob=True,
    derandomize="CI" in os.environ,
    max_examples=examples(100),
)
# For `make mutations`, which asks whether a test fails, and not why.
hypothesis.settings.register_profile(
    "mutations",
    hypothesis.settings.get_profile("hashrange"),
    derandomize=True,
    max_examples=100,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
hypothesis.settings.load_profile("hashrange")

# A process that collected all tests holds a million objects, which the garbage collector would look through
# often: that took a tenth of the time of the tests. So what collecting made is frozen (tests/collecting.py).
gc.set_threshold(20_000, 20, 10)

boto_data.read_once()

RERUNS = "HASHRANGE_RERUNS" in os.environ
if RERUNS:
    rerun_everywhere()


_IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
_SHOWN_BYTES_MAX = 16


def pytest_configure() -> None:
    if not _IS_WORKER:
        postgres.begin_run()


def pytest_unconfigure() -> None:
    if not _IS_WORKER:
        postgres.end_run()


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """The umask of each test: some commands, which tests run in this process, close it for good."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def default_session() -> Iterator[None]:
    """boto3's default session keeps the credentials that it has found: none sees those of another test."""
    yield
    boto3.DEFAULT_SESSION = None


def pytest_collection_finish() -> None:
    collecting.freeze_the_tests()


@pytest.fixture(scope="module", autouse=True)
def unfrozen() -> Iterator[None]:
    """No module leaves its objects frozen: `hashrange.local` could not find the clients among them."""
    collecting.freeze_the_tests()
    yield
    assert not collecting.thaw(), "objects were left frozen by gc.freeze()"


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """The connection string of a PostgreSQL whose schemas belong to the tests."""
    if not postgres.installed():
        pytest.skip("PostgreSQL is not installed")
    return postgres.shared().url


@pytest.fixture(scope="session")
def pooler(postgres_url: str) -> Iterator[pgbouncer.Pooler]:
    """A PgBouncer in front of the PostgreSQL of `postgres_url`."""
    if not pgbouncer.installed():
        pytest.skip("PgBouncer is not installed")
    pooler = pgbouncer.Pooler(postgres.shared())
    yield pooler
    pooler.remove()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgres",
        action="store_true",
        help="run what needs PostgreSQL, and only that: its own tests, and the suites of all engines on it",
    )


def pytest_make_parametrize_id(val: object) -> str | None:
    """The name of bytes among a test's parameters, if they are long: they may be random, or have the time in
    them, and each worker of a run needs the same names."""
    return f"{len(val)} bytes" if isinstance(val, bytes) and len(val) > _SHOWN_BYTES_MAX else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs PostgreSQL, or all else. On engines that run bodies again, skip the tests that
    watch the runs."""
    wanted = config.getoption("--postgres")
    left_out = [item for item in items if _is_on_postgres(item) != wanted]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _is_on_postgres(item) == wanted]
    for item in items:
        if RERUNS and item.get_closest_marker("once") is not None:
            item.add_marker(pytest.mark.skip(reason="it watches the runs of bodies"))


def _is_on_postgres(item: pytest.Item) -> bool:
    """Whether a test needs PostgreSQL: its path, its name with its parameters, or a fixture says so."""
    names = [item.nodeid, *getattr(item, "fixturenames", ())]
    return any("postgres" in name.lower() for name in names)


@pytest.fixture(scope="session")
def buckets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory whose folders are the buckets of the databases under test."""
    return tmp_path_factory.mktemp("buckets")


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory, buckets: Path) -> Iterator[str]:
    """The URL of the DynamoDB under test."""
    if ON_AWS:
        yield f"https://dynamodb.{os.environ['AWS_DEFAULT_REGION']}.amazonaws.com"
    elif OTHER_ENDPOINT:
        yield OTHER_ENDPOINT
    else:
        data = tmp_path_factory.mktemp("data")
        with serving("--data-dir", str(data), "--s3-dir", str(buckets)) as server:
            yield server.endpoint


@pytest.fixture
def command_environment(endpoint: str) -> dict[str, str]:
    """The environment in which the AWS CLI reaches `endpoint`."""
    ours = {
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    return {**os.environ, **({} if ON_AWS else ours), "AWS_ENDPOINT_URL_DYNAMODB": endpoint, "AWS_PAGER": ""}


@pytest.fixture(scope="session")
def http_client(endpoint: str) -> Iterator[DynamoDBClient]:
    """A boto3 client over HTTP; threads may share it."""
    client = boto3.client("dynamodb", **connection(endpoint))
    yield client
    client.close()


@pytest.fixture
def http_resource(endpoint: str) -> Iterator[DynamoDBServiceResource]:
    """A boto3 resource over HTTP."""
    resource = boto3.resource("dynamodb", **connection(endpoint))
    yield resource
    resource.meta.client.close()


@pytest.fixture(scope="session")
def http_streams(endpoint: str) -> Iterator[DynamoDBStreamsClient]:
    """A boto3 client of the streams API over HTTP."""
    streams_endpoint = endpoint.replace("://dynamodb.", "://streams.dynamodb.")
    client = boto3.client("dynamodbstreams", **connection(streams_endpoint))
    yield client
    client.close()


@pytest.fixture(scope="session")
def in_process_database(buckets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database in this process, in memory, on which every body runs several times."""
    backups = str(tmp_path_factory.mktemp("backups"))
    database = Database(Reruns(MemoryEngine()), settings=Settings(s3_dir=str(buckets), backup_dir=backups))
    yield database
    database.close()


@pytest.fixture(params=["http"] if OTHER_ENDPOINT else ["http", "in-process"])
def transport(request: pytest.FixtureRequest) -> str:
    """How the test's clients reach the database."""
    transport: str = request.param
    return transport


@pytest.fixture
def client(request: pytest.FixtureRequest, transport: str) -> DynamoDBClient:
    """A boto3 client; each test that takes it runs over HTTP and in process."""
    client: DynamoDBClient
    if transport == "http":
        client = request.getfixturevalue("http_client")
    else:
        client = connect(request.getfixturevalue("in_process_database"), region=REGION)
    return client


@pytest.fixture
def streams(request: pytest.FixtureRequest, transport: str) -> DynamoDBStreamsClient:
    """A boto3 client of the streams API, to the same database as `client`."""
    client: DynamoDBStreamsClient
    if transport == "http":
        client = request.getfixturevalue("http_streams")
    else:
        database = request.getfixturevalue("in_process_database")
        client = connect(database, region=REGION, service="dynamodbstreams")
    return client


@pytest.fixture
def name_table(request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """Gives names for tables that no other test uses, and deletes those tables at the end.

    `name_table("feed")` for a test that takes `client`, `name_table("feed", client)` for others.
    """
    named: list[tuple[DynamoDBClient, str]] = []
    test = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.nodeid.rpartition("/")[2])[-120:]

    def name_table(name: str, through: DynamoDBClient | None = None) -> str:
        unique = f"{name}-{test}-{os.getpid()}"
        named.append((through or request.getfixturevalue("client"), unique))
        return unique

    yield name_table
    for through, name in named:
        with suppress(through.exceptions.ResourceNotFoundException):
            through.delete_table(TableName=name)
