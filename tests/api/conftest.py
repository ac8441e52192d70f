"""Fixtures of the black-box tests: boto3 over HTTP, in process, and over HTTP to a server whose tables are in
PostgreSQL; and tables made in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

import postgres
from endpoints import OTHER_ENDPOINT, REGION, SOON, connection
from hashrange.client import connect
from serving import serving

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodb.service_resource import DynamoDBServiceResource, Table
    from types_boto3_dynamodbstreams.client import DynamoDBStreamsClient

IN_PROCESS = "in-process"
ON_POSTGRES = "postgresql"


@pytest.fixture(scope="session")
def postgres_endpoint(
    postgres_url: str, buckets: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a server whose tables are in PostgreSQL."""
    options = ["--postgres", postgres_url, "--postgres-schema", postgres.new_schema()]
    backups = tmp_path_factory.mktemp("backups")
    with serving(*options, "--s3-dir", str(buckets), "--backup-dir", str(backups)) as server:
        yield server.endpoint


@pytest.fixture(scope="session")
def postgres_client(postgres_endpoint: str) -> Iterator[DynamoDBClient]:
    client = boto3.client("dynamodb", **connection(postgres_endpoint))
    yield client
    client.close()


@pytest.fixture(params=["http"] if OTHER_ENDPOINT else ["http", IN_PROCESS, ON_POSTGRES])
def transport(request: pytest.FixtureRequest) -> str:
    """How the test's clients reach the database."""
    transport: str = request.param
    return transport


@pytest.fixture
def transport_endpoint(request: pytest.FixtureRequest, transport: str) -> str | None:
    """The URL that the test's clients reach the database by; None in process."""
    if transport == IN_PROCESS:
        return None
    name = "postgres_endpoint" if transport == ON_POSTGRES else "endpoint"
    return request.getfixturevalue(name)  # type: ignore[no-any-return]


@pytest.fixture
def client(request: pytest.FixtureRequest, transport: str) -> DynamoDBClient:
    """A boto3 client; each test that takes it runs by each transport."""
    if transport == IN_PROCESS:
        in_process: DynamoDBClient = connect(request.getfixturevalue("in_process_database"), region=REGION)
        return in_process
    name = "postgres_client" if transport == ON_POSTGRES else "http_client"
    return request.getfixturevalue(name)  # type: ignore[no-any-return]


@pytest.fixture
def streams(
    request: pytest.FixtureRequest, transport_endpoint: str | None
) -> Iterator[DynamoDBStreamsClient]:
    """A boto3 client of the streams API, to the same database as `client`."""
    if transport_endpoint is None:
        database = request.getfixturevalue("in_process_database")
        yield connect(database, region=REGION, service="dynamodbstreams")
        return
    streams_endpoint = transport_endpoint.replace("://dynamodb.", "://streams.dynamodb.")
    streams: DynamoDBStreamsClient = boto3.client("dynamodbstreams", **connection(streams_endpoint))
    yield streams
    streams.close()


@pytest.fixture
def resource(
    request: pytest.FixtureRequest, transport_endpoint: str | None
) -> Iterator[DynamoDBServiceResource]:
    """A boto3 resource; each test that takes it runs by each transport."""
    if transport_endpoint is None:
        from hashrange.client import resource

        yield resource(request.getfixturevalue("in_process_database"), region=REGION)
        return
    made: DynamoDBServiceResource = boto3.resource("dynamodb", **connection(transport_endpoint))
    yield made
    made.meta.client.close()


@pytest.fixture
def create(client: DynamoDBClient, name_table: Callable[..., str]) -> Callable[..., str]:
    """`create("music", pk="S", sk="N", GlobalSecondaryIndexes=[…], x="S")` makes a table and gives its name.

    The first two attributes are its key, the others those of its indexes.
    """

    def create(name: str, *, hash_only: bool = False, **given: Any) -> str:
        types = {attribute: type_ for attribute, type_ in given.items() if attribute[0].islower()}
        members = {member: value for member, value in given.items() if not member[0].islower()}
        names = list(types)[: 1 if hash_only else 2]
        unique = name_table(name)
        client.create_table(
            TableName=unique,
            AttributeDefinitions=[{"AttributeName": one, "AttributeType": types[one]} for one in types],
            KeySchema=[
                {"AttributeName": one, "KeyType": key_type}  # type: ignore[typeddict-item]
                for one, key_type in zip(names, ("HASH", "RANGE"), strict=False)
            ],
            BillingMode="PAY_PER_REQUEST",
            **members,
        )
        client.get_waiter("table_exists").wait(TableName=unique, WaiterConfig=SOON)
        return unique

    return create


@pytest.fixture
def table(resource: DynamoDBServiceResource, create: Callable[..., str]) -> Table:
    """A table with a partition key `pk` (text) and a sort key `sk` (number)."""
    return resource.Table(create("table", pk="S", sk="N"))
