"""The admin plane is as described: docs/admin-api.md, the OpenAPI document, and what a server answers."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import boto3
import msgspec
import orjson
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from tools import admin_api

from hashrange.cli.admin import load
from hashrange.database import Database
from hashrange.server.admin.application import Endpoint, Problem, described, description
from hashrange.server.admin.port import Subject
from hashrange.storage.memory import MemoryEngine
from hashrange_sync import PairStatus
from hashrange_sync.stored.status import KEY as STATUS
from hashrange_sync.stored.status import Progress
from serving import serving
from worlds import table_of

if TYPE_CHECKING:
    from starlette.requests import Request as OnlyForCheckers

TOKEN = "0123456789abcdef"
ROOT = {"keys": [{"id": "AKIDroot", "secret": "the-secret-of-root"}]}
USERS = {"accounts": {"123456789012": {"users": {"alice": {}}, "root": ROOT}}}
ARN = "arn:aws:kinesis:us-east-1:123456789012:stream/changes"
OF_STANDBYS = {"POST /v1/promote"}
TROUBLES = {
    *("AuditState", "ClockProblem", "FailingObserver", "FailingRing", "FailingUnit", "WaitingUnit"),
}
"""The shapes of what goes wrong, which a sound server does not send."""
KEY = {"pk": {"S": "a"}, "sk": {"N": "1"}}


def named(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def structs(shape: Any) -> Iterator[type[msgspec.Struct]]:
    """The classes that a shape consists of."""
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        yield shape
        for field in msgspec.structs.fields(shape):
            yield from structs(field.type)
    for inner in getattr(shape, "__args__", ()):
        yield from structs(inner)


def test_the_page_is_what_the_program_says() -> None:
    text = admin_api.PAGE.read_text(encoding="utf-8")
    assert text == admin_api.page(), "docs/admin-api.md is old: run python -m tools.admin_api"


def test_no_route_is_missing_but_the_pages_of_the_console() -> None:
    with Database(MemoryEngine()) as database:
        app: Any = load(Subject(database, *[None] * 2)).config.app  # type: ignore[arg-type]
    served = {
        f"{method} {route.path}" for route in app.routes for method in route.methods if method != "HEAD"
    }
    ours = {named(endpoint) for endpoint in admin_api.endpoints()}
    assert {name for name in served - ours if " /console" not in name} == set()
    assert ours <= served
    assert {name for name in ours if " /v1" not in name} == {"GET /health", "GET /metrics"}
    text = admin_api.PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^## `(.*)`$", text, re.M)) == ours


@pytest.mark.parametrize("endpoint", admin_api.endpoints(), ids=named)
def test_every_shape_is_declared_and_described(endpoint: Endpoint) -> None:
    assert endpoint.gives is not None
    assert (endpoint.takes is not None) == (endpoint.method == "POST")
    shapes = (endpoint.takes, endpoint.query, endpoint.gives)
    for struct in (one for shape in shapes for one in structs(shape)):
        if struct.__struct_config__.array_like:
            continue
        told = re.findall(r"^ *(\w+): \S", struct.__doc__ or "", re.M)
        assert told == [field.encode_name for field in msgspec.structs.fields(struct)], struct
        assert struct.__struct_config__.forbid_unknown_fields or struct not in structs(endpoint.takes), struct


def test_the_document_has_all_that_it_refers_to() -> None:
    document = description(admin_api.endpoints())
    schemas = document["components"]["schemas"]
    for reference in re.findall(r'"#/components/schemas/([^"]+)"', orjson.dumps(document).decode()):
        assert reference in schemas
    for name, schema in schemas.items():
        assert schema["description"], name
        for member, about in schema.get("properties", {}).items():
            assert about["description"], (name, member)


async def unannotated(request):  # type: ignore[no-untyped-def]
    return {}


async def for_checkers(request: OnlyForCheckers) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("answer", [unannotated, for_checkers, partial(unannotated)])
def test_what_is_no_page_is_described_though_its_shape_is_not_known(answer: Any) -> None:
    mine = Endpoint("GET", "/v1/mine", "Mine.", answer)
    [*_, last] = described([mine])
    assert (last.gives, last.is_page) == (None, False)
    assert description([mine])["paths"]["/v1/mine"]["get"]["responses"]["200"] == {
        "description": "Mine.",
        "content": {"application/json": {"schema": {}}},
    }


class World:
    """A server in which there is something of everything, and what it has answered."""

    def __init__(self, url: str, endpoint: str) -> None:
        self.url = url
        self.endpoints = {named(endpoint): endpoint for endpoint in admin_api.endpoints()}
        self.asked: set[str] = set()
        self.seen: set[str] = set()
        self.client: Any = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="AKIDroot",
            aws_secret_access_key="the-secret-of-root",
            config=Config(retries={"total_max_attempts": 1}),
        )

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = None if body is None else orjson.dumps(body)
        try:
            with urlopen(Request(self.url + path, data, headers, method=method), timeout=60) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            with error:
                return error.code, error.read()

    def ask(self, name: str, body: Any = None, query: str = "", **parts: str) -> Any:
        """The answer of an endpoint, which fits its declared shape, and has nothing besides."""
        endpoint = self.endpoints[name]
        status, text = self.send(endpoint.method, endpoint.path.format(**parts) + query, body)
        assert status == 200, text
        self.asked.add(name)
        if isinstance(endpoint.gives, str):
            return text.decode()
        made = msgspec.json.decode(text, type=endpoint.gives)
        assert orjson.loads(msgspec.json.encode(made)) == orjson.loads(text)
        self.note(made)
        return made

    def note(self, made: Any) -> None:
        """Note the shapes that were seen."""
        if isinstance(made, msgspec.Struct):
            self.seen.add(type(made).__name__)
            for field in made.__struct_fields__:
                self.note(getattr(made, field))
        elif isinstance(made, list | tuple):
            for one in made:
                self.note(one)
        elif isinstance(made, dict):
            self.note([*made.values()])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    (folder / "users.yaml").write_bytes(orjson.dumps(USERS))
    (folder / "recordings").mkdir()
    (folder / "s3" / "bucket").mkdir(parents=True)
    (folder / "s3" / "bucket" / "a.json.gz").write_bytes(gzip.compress(b'{"Item":{"other":{"S":"x"}}}\n'))
    options = {
        "--data-dir": "data",
        "--users": "users.yaml",
        "--record-dir": "recordings",
        "--s3-dir": "s3",
        "--audit-log": "audit.log",
    }
    paths = [part for name, file in options.items() for part in (name, str(folder / file))]
    more = ("--auth", "strict", "--admin-token", TOKEN, "--kinesis-endpoint", "http://127.0.0.1:9")
    with serving(*paths, *more, "--virtual-clock", "--costs", "--throttle") as server:
        yield World(server.admin, server.endpoint)


def fill(world: World) -> str:
    """Make a table that has everything, and an import. Returns the id of the import."""
    client = world.client
    client.create_table(
        **table_of("orders", "pk, sk:N", indexes={"by-total": "pk, total:N"}, stream="KEYS_ONLY")
    )
    recovery = {"PointInTimeRecoveryEnabled": True}
    client.update_continuous_backups(TableName="orders", PointInTimeRecoverySpecification=recovery)
    client.update_contributor_insights(TableName="orders", ContributorInsightsAction="ENABLE")
    until = {"Enabled": True, "AttributeName": "until"}
    client.update_time_to_live(TableName="orders", TimeToLiveSpecification=until)
    made = client.import_table(
        S3BucketSource={"S3Bucket": "bucket"},
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters=table_of("imported", "pk"),
    )
    return str(made["ImportTableDescription"]["ImportArn"]).rpartition("/")[2]


def keep_in_step(client: Any) -> None:
    """Store what a sync stores of a pair, with a conflict."""
    for name in ("hashrange-sync.orders", "hashrange-sync.orders.conflicts"):
        client.create_table(**table_of(name, "id, part"))
    status = PairStatus(name="orders", sweep=Progress("first copy", 1.0))
    text = {"S": msgspec.json.encode(status).decode()}
    client.put_item(TableName="hashrange-sync.orders", Item={**STATUS, "text": text})
    entry = {"at": {"N": "1"}, "kind": {"S": "conflict"}, "winner": {"S": "cloud"}, "key": {"M": KEY}}
    place = {"id": {"S": "1"}, "part": {"S": "entry"}}
    client.put_item(TableName="hashrange-sync.orders.conflicts", Item={**place, **entry})


def test_what_a_server_answers_fits_the_declared_shapes(world: World, tmp_path: Path) -> None:
    ask, client = world.ask, world.client
    import_id = fill(world)
    ask("POST /v1/clock", {"frozen": True})
    then = ask("GET /v1/clock").time
    ask("GET /v1/heat")
    ask("POST /v1/lab/throttling", {"throttle": True, "table": "orders"})
    ask("POST /v1/recording", {"name": "all.hashrange"})
    client.put_item(TableName="orders", Item={**KEY, "total": {"N": "5"}, "until": {"N": "9"}})
    client.get_item(TableName="orders", Key=KEY)
    client.query(
        TableName="orders",
        KeyConditionExpression="pk = :a",
        ExpressionAttributeValues={":a": KEY["pk"]},
    )
    ask("POST /v1/faults", {"rule": "GetItem nth=1 throttle"})
    with pytest.raises(ClientError):
        client.get_item(TableName="orders", Key=KEY)
    client.enable_kinesis_streaming_destination(TableName="orders", StreamArn=ARN)
    ask("POST /v1/clock", {"advance": "10s"})
    client.put_item(TableName="orders", Item={**KEY, "total": {"N": "6"}})

    for name in ("GET /v1", "GET /v1/openapi.json", "GET /health", "GET /metrics", "GET /v1/tables"):
        ask(name)
    ask("GET /v1/imports/{id}/errors", id=import_id)
    for name in ("GET /v1/insights", "GET /v1/destinations", "GET /v1/faults", "GET /v1/heat", "GET /v1/lab"):
        ask(name)
    ask("DELETE /v1/faults/{number}", number="1")
    ask("DELETE /v1/faults")
    ask("GET /v1/lab/partitions", query="?table=orders")
    ask("POST /v1/lab/eventual", {"seconds": 0})
    ask("GET /v1/costs")
    ask("POST /v1/costs", {"record": True})
    ask("GET /v1/recording")
    ask("DELETE /v1/recording")
    ask("POST /v1/data/{operation}", {"TableName": "orders"}, operation="Scan")

    past = {"operation": "Scan", "request": {"TableName": "orders"}, "at": then}
    ask("POST /v1/past/read", past)
    ask("POST /v1/past/versions", {"table": "orders", "key": KEY})
    ask("POST /v1/past/differences", {"table": "orders", "since": then})
    ask("POST /v1/past/undo", {"table": "orders", "to": then, "keys": [KEY]})
    ask("POST /v1/past/undo", {"table": "orders", "to": then, "all": True})

    backup = ask("POST /v1/backups", {"table": "orders", "name": "first"}).backup
    ask("POST /v1/clock", {})
    ask("GET /v1/backups")
    ask("POST /v1/restores", {"backup": backup, "table": "again"})
    ask("GET /v1/tables")
    ask("POST /v1/checkpoints", {})
    ask("POST /v1/console-link", {})

    keep_in_step(client)
    assert ask("GET /v1/sync").pairs[0].name == "orders"
    assert ask("GET /v1/sync/{pair}/conflicts", pair="orders").count == 1

    key = ask("POST /v1/access-keys", {"user": "alice", "account": "123456789012"}).id
    ask("GET /v1/access-keys")
    ask("POST /v1/access-keys/{id}", {"enabled": True}, id=key)
    ask("POST /v1/access-keys/{id}/rotate", {}, id=key)
    ask("DELETE /v1/access-keys/{id}", id=key)

    assert world.asked == world.endpoints.keys() - OF_STANDBYS
    declared = {one.__name__ for each in world.endpoints.values() for one in structs(each.gives)}
    assert declared - world.seen <= {*TROUBLES, "Promoted"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/nothing", None, 404),
        ("GET", "/clock", None, 404),
        ("GET", "/", None, 404),
        ("GET", "/v1/insights?keys=0", None, 400),
        ("GET", "/v1/lab/partitions", None, 400),
        ("POST", "/v1/clock", {"at": "now"}, 400),
        ("DELETE", "/v1/clock", None, 405),
        ("DELETE", "/v1/faults/77", None, 404),
        ("POST", "/v1/console-link", {"more": 1}, 400),
    ],
)
def test_a_refusal_has_its_shape_too(
    world: World, method: str, path: str, body: Any, status: int
) -> None:
    answered, text = world.send(method, path, body)
    assert answered == status
    assert orjson.loads(text) == {"error": msgspec.json.decode(text, type=Problem).error}
