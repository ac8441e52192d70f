"""`hashrange.local`: whose requests it answers, for how long, and what it leaves behind."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from botocore.stub import Stubber

import hashrange
import hashrange.testing
from collecting import young_objects_only
from hashrange.settings import Settings
from hashrange.storage.failures import StoreClosed
from hashrange.testing import RequestStopped, scopes
from worlds import table_of

TABLE: dict[str, Any] = table_of("things", "pk")
NOWHERE = "http://127.0.0.1:9"  # the port that discards, where nobody listens

# Made when this module is imported: as code under test does it that was written for AWS.
EARLY = boto3.client(
    "dynamodb",
    region_name="eu-west-1",
    endpoint_url=NOWHERE,
    aws_access_key_id="any",
    aws_secret_access_key="any",
    config=Config(retries={"total_max_attempts": 1}),
)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials, no region, no configuration: as on a new machine."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")


def names(client: Any) -> list[str]:
    found: list[str] = client.list_tables()["TableNames"]
    return found


def test_a_client_that_was_made_before_with_an_endpoint_of_its_own_is_answered() -> None:
    with hashrange.local() as database:
        EARLY.create_table(**TABLE)
        assert names(EARLY) == ["things"]
        assert names(database.client(region="eu-west-1")) == ["things"]


def test_after_the_block_a_client_goes_its_way_again() -> None:
    with hashrange.local():
        inside = boto3.client(
            "dynamodb",
            endpoint_url=NOWHERE,
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=Config(retries={"total_max_attempts": 1}),
            region_name="us-east-1",
        )
        assert names(inside) == []
    for client in (EARLY, inside):
        with pytest.raises(EndpointConnectionError):
            client.list_tables()


def test_no_credentials_and_no_region_are_needed_and_no_network_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("socket.socket.connect", None)
    with hashrange.local():
        assert names(boto3.client("dynamodb")) == []
        assert list(boto3.resource("dynamodb").tables.all()) == []
        assert boto3.Session().client("dynamodbstreams").list_streams()["Streams"] == []
        session = botocore.session.get_session()
        assert names(session.create_client("dynamodb", config=Config(signature_version=UNSIGNED))) == []
    assert [name for name in os.environ if name.startswith("AWS_")] == [
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
    ]


def test_what_the_user_has_set_in_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "sa-east-1")
    with hashrange.local():
        client = boto3.client("dynamodb")
        arn = client.create_table(**TABLE)["TableDescription"]["TableArn"]
        os.environ["AWS_EC2_METADATA_DISABLED"] = "false"
    assert arn == "arn:aws:dynamodb:sa-east-1:000000000000:table/things"
    assert os.environ["AWS_DEFAULT_REGION"] == "sa-east-1"
    assert os.environ.pop("AWS_EC2_METADATA_DISABLED") == "false"


def client_of(access_key: str, region: str = "us-east-1", **given: Any) -> Any:
    session = boto3.Session(aws_access_key_id=access_key, aws_secret_access_key="any", region_name=region)
    return session.client("dynamodb", **given)


def test_accounts_and_regions_have_tables_of_their_own() -> None:
    with hashrange.local():
        arn = client_of("111122223333", "eu-west-1").create_table(**TABLE)["TableDescription"]["TableArn"]
        assert arn == "arn:aws:dynamodb:eu-west-1:111122223333:table/things"
        assert names(client_of("111122223333", "us-east-1")) == []
        assert names(client_of("444455556666", "eu-west-1")) == []
        assert names(client_of("111122223333", "eu-west-1")) == ["things"]


def test_with_settings_of_ones_own_regions_share_their_tables() -> None:
    with hashrange.local(settings=Settings()):
        client_of("any", "eu-west-1").create_table(**TABLE)
        assert names(client_of("any", "us-east-1")) == ["things"]


def test_blocks_nest_and_the_innermost_answers() -> None:
    with hashrange.local():
        EARLY.create_table(**TABLE)
        with hashrange.local():
            assert names(EARLY) == []
        assert names(EARLY) == ["things"]


def test_blocks_may_end_in_any_order() -> None:
    first, second = hashrange.local(), hashrange.local()
    first.__enter__()
    database = second.__enter__()
    EARLY.create_table(**TABLE)
    first.__exit__(None, None, None)
    assert names(EARLY) == ["things"]
    assert names(database.client(region="eu-west-1")) == ["things"]
    second.__exit__(None, None, None)
    assert scopes.innermost() is None


def test_limits_let_databases_stand_side_by_side() -> None:
    near = client_of("any", endpoint_url="http://near.test:8000")
    far = client_of("any", endpoint_url="http://far.test:8000")
    account = client_of("111122223333")
    abroad = client_of("any", "ap-south-1")
    with (
        hashrange.local(endpoint_url="http://near.test:8000/") as first,
        hashrange.local(endpoint_url="http://far.test:8000"),
        hashrange.local(account_id="111122223333") as third,
        hashrange.local(region="ap-south-1"),
    ):
        clients = [near, far, account, abroad]
        for client, name in zip(clients, ("near", "far", "account", "abroad"), strict=True):
            client.create_table(**{**TABLE, "TableName": name})
        assert [names(client) for client in clients] == [["near"], ["far"], ["account"], ["abroad"]]
        assert names(first.client()) == ["near"]
        assert names(third.client()) == ["account"]


def test_a_request_that_no_block_takes_goes_its_way() -> None:
    with hashrange.local(region="ap-south-1"), pytest.raises(EndpointConnectionError):
        EARLY.list_tables()


def test_a_database_that_is_given_is_kept() -> None:
    with hashrange.Database.in_memory() as kept:
        with hashrange.local(kept):
            EARLY.create_table(**TABLE)
        with hashrange.local(kept) as database:
            assert names(EARLY) == ["things"]
        assert names(database.client()) == ["things"]
    with hashrange.local() as gone:
        client = gone.client()
    with pytest.raises(StoreClosed):
        client.list_tables()


def test_threads_and_tasks_are_answered() -> None:
    seen: list[list[str]] = []

    async def task() -> None:
        seen.append(await asyncio.to_thread(names, EARLY))

    async def main() -> None:
        async with hashrange.local():
            EARLY.create_table(**TABLE)
            thread = threading.Thread(target=lambda: seen.append(names(EARLY)))
            thread.start()
            await asyncio.gather(task(), task())
            thread.join()

    asyncio.run(main())
    assert seen == [["things"]] * 3


def test_another_service_without_credentials_is_stopped_loudly() -> None:
    unsigned = Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1})
    with hashrange.local():
        with pytest.raises(NoCredentialsError):
            boto3.client("s3").list_buckets()
        s3 = boto3.client("s3", config=unsigned)
        with pytest.raises(RequestStopped, match=r"s3\.ListObjectsV2 to some\.s3.*other_services"):
            s3.list_objects_v2(Bucket="some")
        here = boto3.client("s3", config=unsigned, endpoint_url=NOWHERE)
        with pytest.raises(EndpointConnectionError):
            here.list_buckets()
    with hashrange.local(other_services="allow"), pytest.raises(EndpointConnectionError):
        boto3.client("s3", config=unsigned, endpoint_url="http://nowhere.invalid").list_buckets()


def test_another_service_with_credentials_is_left_alone() -> None:
    with hashrange.local():
        sqs = boto3.client(
            "sqs",
            endpoint_url="http://sqs.test",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
        sent: list[Any] = []

        def answer(request: Any, **_: Any) -> None:
            sent.append(request.headers["Authorization"])
            raise RuntimeError("as far as the handlers go")

        sqs.meta.events.register_last("before-send", answer)
        with pytest.raises(RuntimeError):
            sqs.list_queues()
    assert b"AWS4-HMAC-SHA256" in sent[0]


def test_a_client_may_be_kept_from_aws_after_its_block() -> None:
    with hashrange.local(afterwards="refuse"):
        client = client_of("any", endpoint_url=NOWHERE)
        resource = boto3.resource("dynamodb")
        assert names(client) == []
    with pytest.raises(RequestStopped, match="ListTables"):
        client.list_tables()
    with pytest.raises(RequestStopped):
        resource.Table("things").load()
    with hashrange.local():
        assert names(client) == []
    with pytest.raises(EndpointConnectionError):
        EARLY.list_tables()


def test_errors_and_retries_are_those_of_the_service() -> None:
    with hashrange.local():
        EARLY.create_table(**TABLE)
        EARLY.put_item(TableName="things", Item={"pk": {"S": "a"}})
        with pytest.raises(EARLY.exceptions.ConditionalCheckFailedException) as failed:
            EARLY.put_item(
                TableName="things",
                Item={"pk": {"S": "a"}},
                ConditionExpression="attribute_not_exists(pk)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        assert failed.value.response.get("Item") == {"pk": {"S": "a"}}
        metadata = EARLY.list_tables()["ResponseMetadata"]
        assert metadata["HTTPStatusCode"] == 200
        assert metadata["RetryAttempts"] == 0
        assert len(metadata["RequestId"]) == 52


def test_a_stubbed_client_stays_stubbed() -> None:
    with hashrange.local(), Stubber(EARLY) as stubber:
        stubber.add_response("list_tables", {"TableNames": ["stubbed"]})
        assert names(EARLY) == ["stubbed"]


def test_a_client_of_a_database_is_not_answered_by_another() -> None:
    with hashrange.local() as outer:
        client = outer.client()
        with hashrange.local():
            client.create_table(**TABLE)
        assert names(client) == ["things"]


@hashrange.local
def test_a_decorated_function() -> None:
    EARLY.create_table(**TABLE)


@hashrange.local()
def test_each_call_of_a_decorated_function_has_a_new_database() -> None:
    EARLY.create_table(**TABLE)


@pytest.fixture
@hashrange.local
def seeded() -> Iterator[str]:
    EARLY.create_table(**TABLE)
    yield "things"
    assert names(EARLY) == ["things"]


def test_a_decorated_fixture(seeded: str) -> None:
    assert names(EARLY) == [seeded]


def test_decorated_coroutines_and_asynchronous_generators() -> None:
    @hashrange.local
    async def coroutine() -> list[str]:
        EARLY.create_table(**TABLE)
        await asyncio.sleep(0)
        return names(EARLY)

    @hashrange.local
    async def generator() -> AsyncIterator[list[str]]:
        EARLY.create_table(**TABLE)
        yield names(EARLY)

    async def main() -> list[list[str]]:
        together = await asyncio.gather(coroutine(), return_exceptions=True)
        assert not isinstance(together[0], BaseException)
        return [together[0], *[one async for one in generator()]]

    assert asyncio.run(main()) == [["things"], ["things"]]
    assert scopes.innermost() is None


def test_a_decorated_function_keeps_its_name_arguments_and_result() -> None:
    @hashrange.local
    def add(one: int, other: int = 2) -> int:
        """Adds."""
        return one + other

    assert add(1) == 3
    assert add(1, other=4) == 5
    assert (add.__name__, add.__doc__) == ("add", "Adds.")
    with pytest.raises(TypeError):
        add("no")  # type: ignore[arg-type]
    assert scopes.innermost() is None


def test_an_error_in_the_block_passes_and_ends_the_block() -> None:
    with pytest.raises(ClientError, match="ResourceNotFoundException"), hashrange.local():
        EARLY.describe_table(TableName="none")
    assert scopes.innermost() is None


def test_no_block_keeps_its_database_alive() -> None:
    def play() -> None:
        with hashrange.local():
            names(boto3.client("dynamodb"))

    play()  # the first block of a process looks for the clients that exist
    with young_objects_only():
        for _ in range(3):
            play()
        gc.collect()
        assert not any(type(one) is hashrange.Database for one in gc.get_objects())


FRESH = """
import sys
import boto3
session = boto3.Session(region_name="us-east-1")
early = session.client("dynamodb", endpoint_url="http://early.test")
import hashrange
assert not [name for name in sys.modules if name.startswith("hashrange.") and name != "hashrange"], "cheap"
with hashrange.local() as database:
    assert early.list_tables()["TableNames"] == []
    assert session.client("dynamodb").list_tables()["TableNames"] == []
    assert session.resource("dynamodb").meta.client.list_tables()["TableNames"] == []
heavy = ("hashrange.server", "hashrange.partiql", "hashrange.storage.embedded")
heavy += ("uvicorn", "starlette", "asyncio", "rocksdict", "unittest")
print([name for name in heavy if name in sys.modules])
"""


def test_what_was_made_before_the_first_import_is_answered_and_no_server_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_the_database_of_the_innermost_block() -> None:
    with hashrange.local() as outer:
        assert hashrange.testing.current() is outer
        with hashrange.local() as inner:
            assert hashrange.testing.current() is inner
    with pytest.raises(LookupError, match=r"no block of hashrange\.local"):
        hashrange.testing.current()


def test_a_file_of_configuration_without_a_region_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[default]\noutput = json\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with hashrange.local():
        assert boto3.Session().client("dynamodb").meta.region_name == "us-east-1"
    (tmp_path / "config").write_text("[default]\nregion = ap-south-1\n")
    with hashrange.local():
        assert boto3.Session().client("dynamodb").meta.region_name == "ap-south-1"


def test_partiql_is_imported_when_a_statement_is_run() -> None:
    with hashrange.local() as database:
        database.create_table("things", "pk")
        database.load("things", [{"pk": "a"}])
        found = database.client().execute_statement(Statement='SELECT * FROM "things"')
        assert found["Items"] == [{"pk": {"S": "a"}}]


def test_an_unknown_operation_is_named_to_a_program_without_a_log() -> None:
    program = """
import boto3, hashrange
with hashrange.local():
    client = boto3.client("dynamodb", region_name="us-east-1")
    operations = client.meta.service_model._service_description["operations"]
    operations["FrobTable"] = dict(operations["ListTables"], name="FrobTable")
    try:
        client._make_api_call("FrobTable", {})
    except client.exceptions.ClientError as error:
        print(error.response["Error"]["Code"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "UnknownOperationException\n"
    assert done.stderr == "request rejected: UnknownOperationException 'DynamoDB_20120810.FrobTable'\n"


def test_every_public_name_is_imported_by_its_name() -> None:
    for name in hashrange.testing.__all__:
        imported: dict[str, Any] = {}
        exec(f"from hashrange.testing import {name}", imported)
        assert callable(imported[name]), name
