"""Users on the admin plane: who gets in, what each role may do, and what commands send."""

from __future__ import annotations

import copy
import http.client
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.cli.remote.signing import Key, signature_headers
from hashrange.clock import SystemClock, VirtualClock
from hashrange.database import Database
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine
from hashrange_access.commands.serving import opened_log
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.keys import sealing
from hashrange_access.keys.keyring import Keyring
from hashrange_access.users import UsersError, read
from worlds import table_of

TOKEN = "0123456789abcdef"


def user(name: str, **more: Any) -> dict[str, Any]:
    return {"keys": [{"id": f"AKID{name}", "secret": f"the-secret-of-{name}"}], **more}


ROOT = user("root")
PEOPLE = {
    "reader": user("reader", admin="read"),
    "writer": user("writer", admin="write"),
    "boss": user("boss", admin="admin"),
    "nobody": user("nobody"),
}
USERS: dict[str, Any] = {"accounts": {"123456789012": {"users": PEOPLE, "root": ROOT}}}
WITHOUT_ROLES = {"accounts": {"123456789012": {"users": {"nobody": PEOPLE["nobody"]}, "root": ROOT}}}


class Plane(NamedTuple):
    url: str
    endpoint: str
    database: Database

    def ask(
        self, name: str, method: str, path: str, body: Any = None, secret: str = "", token: str = ""
    ) -> tuple[int, Any]:
        """The status and the answer to a request that `name` signs ("": nobody)."""
        sent = orjson.dumps(body) if body is not None else b""
        headers = {"Content-Type": "application/json"}
        if name:
            key = Key(f"AKID{name}", secret or f"the-secret-of-{name}", "")
            headers |= signature_headers(method, f"{self.url}{path}", sent, key, SystemClock().now())
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return self.send(method, path, sent, headers)

    def send(self, method: str, path: str, sent: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"))
        try:
            connection.request(method, path, sent, headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, orjson.loads(text) if text[:1] == b"{" else text
        finally:
            connection.close()


@pytest.fixture(params=[(USERS, "")])
def plane(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Plane]:
    users, token = request.param[:2]
    strict = request.param[2:] != ("soft",)
    admin = bind_admin(0, token=token)
    with Database(MemoryEngine(), clock=VirtualClock(1_767_225_600.0)) as database:
        if users is not None:
            guard(database, Gate(read(users), SystemClock().now, strict=strict))
        with running(database, admin=admin) as endpoint:
            yield Plane(admin.url, endpoint, database)


CREATE = table_of("events", "id")
READS: list[tuple[str, str, Any]] = [
    ("GET", "/v1/tables", None),
    ("GET", "/metrics", None),
    ("GET", "/v1/imports/some/errors?after=0&more=a%20b%2Fc", None),
    ("POST", "/v1/data/ListTables", {}),
    ("POST", "/v1/data/ListTables?scope=", {}),
    ("POST", "/v1/console-link", {}),
]
WRITES = [
    ("POST", "/v1/data/CreateTable", CREATE),
    ("POST", "/v1/clock", {"advance": "1d"}),
    ("POST", "/v1/faults", {"rule": "PutItem nth=1 throttle"}),
    ("DELETE", "/v1/faults/1", None),
]
OF_ADMINS: list[tuple[str, str, Any]] = [("POST", "/v1/checkpoints", {})]


@pytest.mark.parametrize(
    ("name", "may"), [("reader", 1), ("writer", 2), ("boss", 3), ("root", 3), ("nobody", 0)]
)
def test_each_role_may_do_what_it_says(plane: Plane, name: str, may: int) -> None:
    for least, requests in ((1, READS), (2, WRITES), (3, OF_ADMINS)):
        for method, path, body in requests:
            status, answer = plane.ask(name, method, path, body)
            if may == 0:
                error = "arn:aws:iam::123456789012:user/nobody has no role on the admin plane"
                assert (status, answer) == (403, {"error": error}), path
            elif may < least:
                needed = ("read", "write", "admin")[least - 1]
                role = ("read", "write", "admin")[may - 1]
                assert (status, answer) == (
                    403,
                    {"error": f"this needs the role {needed}, and yours is {role}"},
                ), path
            elif path == "/v1/checkpoints":
                assert status == 400, "the store is in memory"
            else:
                assert status == 200, (path, answer)


def test_nobody_else_gets_in(plane: Plane) -> None:
    status, answer = plane.ask("", "GET", "/v1/tables")
    assert (status, answer["error"]) == (401, "sign the request as a user who has a role on the admin plane")
    assert plane.ask("", "GET", "/v1/tables", token=TOKEN)[0] == 401
    status, answer = plane.ask("stranger", "GET", "/v1/tables")
    assert (status, answer["error"].partition(":")[0]) == (401, "UnrecognizedClientException")
    status, answer = plane.ask("reader", "GET", "/v1/tables", secret="the-secret-of-boss")
    assert (status, answer["error"].partition(":")[0]) == (401, "InvalidSignatureException")


def test_a_signature_is_for_one_request_only(plane: Plane) -> None:
    body = orjson.dumps({"advance": "1d"})
    key = Key("AKIDwriter", "the-secret-of-writer", "")
    now = SystemClock().now()
    json = {"Content-Type": "application/json"}
    headers = json | signature_headers("POST", f"{plane.url}/v1/clock", body, key, now)
    for method, path, sent in (
        ("POST", "/v1/clock", orjson.dumps({"advance": "2d"})),
        ("POST", "/v1/faults", body),
        ("POST", "/v1/clock?more=1", body),
        ("DELETE", "/v1/faults", body),
    ):
        assert plane.send(method, path, sent, headers)[0] == 401
    late = json | signature_headers("POST", f"{plane.url}/v1/clock", body, key, now - 301)
    assert plane.send("POST", "/v1/clock", body, late)[0] == 401
    assert plane.send("POST", "/v1/clock", body, headers)[0] == 200


@pytest.mark.parametrize(("service", "status"), [("hashrange", 200), ("dynamodb", 401)])
def test_it_is_what_botocore_signs(plane: Plane, service: str, status: int) -> None:
    for method, path, body in READS:
        sent = orjson.dumps(body) if body is not None else b""
        request = AWSRequest(method, f"{plane.url}{path}", {"Content-Type": "application/json"}, sent)
        credentials = Credentials("AKIDreader", "the-secret-of-reader")
        SigV4Auth(credentials, service, "us-east-1").add_auth(request)
        assert plane.send(method, path, sent, dict(request.headers.items()))[0] == status, path


@pytest.mark.parametrize("plane", [(USERS, TOKEN), (WITHOUT_ROLES, TOKEN)], indirect=True)
def test_the_token_is_an_admin(plane: Plane) -> None:
    assert plane.ask("", "POST", "/v1/checkpoints", {}, token=TOKEN)[0] == 400
    assert plane.ask("root", "GET", "/v1/tables")[0] == 200
    assert plane.ask("nobody", "GET", "/v1/tables")[0] == 403
    status, answer = plane.ask("", "GET", "/v1/tables")
    assert (status, answer["error"]) == (
        401,
        "send the token of --admin-token: Authorization: Bearer TOKEN",
    )


@pytest.mark.parametrize("plane", [(None, ""), (USERS, "", "soft")], indirect=True)
def test_without_strict_and_token_everybody_may_change_data(plane: Plane) -> None:
    for name in ("", "nobody", "stranger"):
        assert plane.ask(name, "POST", "/v1/clock", {"advance": "1d"})[0] == 200


def routes() -> list[tuple[str, str, str]]:
    """The method, the path and the role of every endpoint of the plane outside the console."""
    with Database.in_memory() as database, running(database, admin=(admin := bind_admin(0))):
        endpoints = Plane(admin.url, "", database).ask("", "GET", "/v1")[1]["endpoints"]
    return [(one["method"], re.sub(r"{\w+}", "some", one["path"]), one["role"]) for one in endpoints]


@pytest.mark.parametrize(
    "plane",
    [(USERS, ""), (WITHOUT_ROLES, ""), (WITHOUT_ROLES, TOKEN), (None, TOKEN), (USERS, TOKEN, "soft")],
    indirect=True,
)
def test_strict_and_a_token_close_every_route_to_strangers(plane: Plane) -> None:
    listed = routes()
    assert len(listed) > 30
    for method, path, role in listed:
        for name in ("", "stranger"):
            status, answer = plane.ask(name, method, path, {} if method == "POST" else None)
            if path == "/health":
                assert (status, answer, role) == (200, {"status": "ok"}, "none")
            else:
                assert (status, role != "none") == (401, True), (method, path)


@pytest.mark.parametrize("plane", [(WITHOUT_ROLES, "", "soft")], indirect=True)
def test_soft_gives_strangers_nothing_that_outlives_it(plane: Plane) -> None:
    of_admins = [(method, path) for method, path, role in routes() if role == "admin"]
    assert {("POST", "/v1/access-keys"), ("POST", "/v1/access-keys/some/rotate")} <= {*of_admins}
    for method, path in of_admins:
        for name in ("", "stranger", "nobody"):
            status, answer = plane.ask(name, method, path, {} if method != "GET" else None)
            assert (status, answer) == (403, {"error": "this needs the role admin, and yours is write"}), path
        assert plane.ask("root", method, path, {} if method != "GET" else None)[0] != 403


@pytest.mark.parametrize("plane", [(None, TOKEN)], indirect=True)
def test_a_server_without_users_knows_no_signature(plane: Plane) -> None:
    assert plane.ask("boss", "GET", "/v1/tables")[0] == 401


def test_a_large_body_is_signed_and_read(plane: Plane) -> None:
    plane.ask("boss", "POST", "/v1/data/CreateTable", CREATE)
    item = {"id": {"S": "a"}, "text": {"S": "x" * 300_000}}
    assert plane.ask("writer", "POST", "/v1/data/PutItem", {"TableName": "events", "Item": item})[0] == 200
    key = {"TableName": "events", "Key": {"id": {"S": "a"}}}
    assert plane.ask("reader", "POST", "/v1/data/GetItem", key)[1]["Item"] == item
    too_large = {"text": "x" * 17_000_000}
    assert plane.ask("writer", "POST", "/v1/data/PutItem", too_large)[0] == 413


@pytest.mark.parametrize(("name", "status"), [("reader", 403), ("writer", 200)])
def test_a_reader_gets_a_console_that_changes_nothing(plane: Plane, name: str, status: int) -> None:
    link = plane.ask(name, "POST", "/v1/console-link", {})[1]["link"]
    cookie = {"Cookie": session_of(plane, link)}
    page = plane.send("GET", "/console", b"", cookie)
    assert page[0] == 200
    assert (b"New table" in page[1]) == (name == "writer")
    change = orjson.dumps({"effect": "throttle", "operations": "PutItem", "times": "1"})
    json = cookie | {"Content-Type": "application/json"}
    assert plane.send("POST", "/console/faults/add", change, json)[0] == status
    forged = {"Cookie": cookie["Cookie"].replace("read.", "")}
    assert plane.send("GET", "/console", b"", forged)[0] == (401 if name == "reader" else 200)


def test_only_an_administrator_sees_and_changes_keys_in_the_console(plane: Plane) -> None:
    gate = plane.database.observers.gate
    assert isinstance(gate, Gate)
    now = SystemClock().now
    gate.keyring = Keyring(plane.database.engine, sealing.in_memory(os.urandom), gate.directory, now)
    key, secret = gate.keyring.create("nobody", None, None)

    def status_of_key() -> str:
        assert gate.keyring is not None
        return str(gate.keyring.overview()[0]["status"])

    for name in ("reader", "writer", "boss"):
        cookie = {"Cookie": session_of(plane, plane.ask(name, "POST", "/v1/console-link", {})[1]["link"])}
        page = plane.send("GET", "/console/access", b"", cookie)[1]
        assert (key.id.encode() in page, secret.encode() in page) == (name == "boss", False)
        body = orjson.dumps({"id": key.id})
        json = cookie | {"Content-Type": "application/json"}
        answer = plane.send("POST", "/console/access/key", body, json)
        assert answer[0] == {"reader": 403, "writer": 400, "boss": 200}[name]
        assert status_of_key() == ("disabled" if name == "boss" else "enabled")
    body = orjson.dumps({"id": key.id, "enable": "yes"})
    assert plane.send("POST", "/console/access/key", body, json)[0] == 200
    assert status_of_key() == "enabled"
    assert plane.send("POST", "/console/access/key", orjson.dumps({"id": "none"}), json)[0] == 400


def test_keys_are_made_rotated_and_deleted_in_the_console(plane: Plane) -> None:
    gate = plane.database.observers.gate
    assert isinstance(gate, Gate)
    now = SystemClock().now
    gate.keyring = keyring = Keyring(
        plane.database.engine, sealing.in_memory(os.urandom), gate.directory, now
    )

    def send(name: str, action: str, **body: str) -> tuple[int, Any]:
        cookie = session_of(plane, plane.ask(name, "POST", "/v1/console-link", {})[1]["link"])
        headers = {"Cookie": cookie, "Content-Type": "application/json"}
        answer: tuple[int, Any] = plane.send("POST", f"/console/access/{action}", orjson.dumps(body), headers)
        page = plane.send("GET", "/console/access", b"", {"Cookie": cookie})[1]
        assert b"SECRET_ACCESS_KEY=" not in page
        return answer

    for name, status in (("reader", 403), ("writer", 400)):
        for action, body in (("new", {}), ("rotate", {"id": "x"}), ("delete", {"id": "x"})):
            assert send(name, action, **body)[0] == status
    assert send("boss", "new", user="nobody-at-all")[0] == 400
    assert "not a JSON document" in send("boss", "new", user="guest", policy="allow")[1]["error"]
    assert keyring.overview() == []
    status, made = send("boss", "new", user="nobody")
    assert (status, made["of"], made["then"]) == (200, "nobody", "")
    (first,) = keyring.overview()
    assert made["credentials"].startswith(f"export AWS_ACCESS_KEY_ID={first['id']}\n")
    status, rotated = send("boss", "rotate", id=first["id"])
    assert (status, rotated["then"]) == (200, f"The key {first['id']} counts for a day more.")
    assert rotated["credentials"].splitlines()[1] != made["credentials"].splitlines()[1]
    assert send("boss", "delete", id=first["id"]) == (200, {"href": "/console/access"})
    assert [key["id"] in rotated["credentials"] for key in keyring.overview()] == [True]
    assert send("boss", "rotate", id=first["id"])[0] == 400


@pytest.mark.parametrize("change", ["deleted", "another secret", "expired", "another role", "no role"])
def test_a_session_of_the_console_ends_with_its_key(plane: Plane, change: str) -> None:
    links = [plane.ask("writer", "POST", "/v1/console-link", {})[1]["link"] for _ in range(2)]
    cookie = {"Cookie": session_of(plane, links[0])}
    assert plane.send("GET", "/console", b"", cookie)[0] == 200
    users = copy.deepcopy(USERS)
    writer = users["accounts"]["123456789012"]["users"]["writer"]
    if change == "deleted":
        writer["keys"] = []
    elif change == "another secret":
        writer["keys"][0]["secret"] = "changed-secret"
    elif change == "expired":
        writer["keys"][0]["expires"] = "2020-01-01T00:00:00Z"
    else:
        writer.pop("admin")
        writer |= {"admin": "read"} if change == "another role" else {}
    gate = plane.database.observers.gate
    assert isinstance(gate, Gate)
    gate.directory.set_users(read(users))
    assert plane.send("GET", "/console", b"", cookie)[0] == 401
    assert plane.send("GET", links[1], b"", {})[0] == 401


def session_of(plane: Plane, link: str) -> str:
    """The cookie that a link to the console gives."""
    connection = http.client.HTTPConnection(plane.url.removeprefix("http://"))
    connection.request("GET", link)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.headers["Set-Cookie"].partition(";")[0]


def test_the_description_names_the_roles() -> None:
    admin = bind_admin(0)
    with Database.in_memory() as database, running(database, admin=admin):
        paths = Plane(admin.url, "", database).ask("", "GET", "/v1/openapi.json")[1]["paths"]
    assert paths["/v1/checkpoints"]["post"]["x-role"] == "admin"
    assert paths["/v1/past/undo"]["post"]["x-role"] == "write"
    assert paths["/v1/past/read"]["post"]["x-role"] == "read"


# -- Commands ----------------------------------------------------------------------------------------------


def run(plane: Plane, name: str, *arguments: str, **more: str) -> Result:
    keys = {"AWS_ACCESS_KEY_ID": f"AKID{name}", "AWS_SECRET_ACCESS_KEY": f"the-secret-of-{name}"}
    return CliRunner().invoke(main, [*arguments, "--endpoint-url", plane.endpoint], env=keys | more)


def test_commands_sign_with_the_keys_of_the_environment(plane: Plane) -> None:
    assert run(plane, "reader", "clock", "show").exit_code == 0
    refused = run(plane, "reader", "clock", "advance", "1d")
    assert refused.exit_code == 1
    assert "this needs the role write, and yours is read" in refused.output
    assert run(plane, "writer", "clock", "advance", "1d").exit_code == 0
    assert run(plane, "reader", "healthcheck").stdout == "ok\n"
    stranger = " ".join(run(plane, "stranger", "clock", "show").output.split())
    assert "asks who you are (UnrecognizedClientException" in stranger
    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in stranger
    assert "set HASHRANGE_ADMIN_TOKEN" in stranger


@pytest.mark.parametrize("plane", [(USERS, TOKEN)], indirect=True)
def test_the_token_comes_before_keys(plane: Plane) -> None:
    assert run(plane, "nobody", "clock", "show", HASHRANGE_ADMIN_TOKEN=TOKEN).exit_code == 0
    assert run(plane, "nobody", "clock", "show").exit_code == 1


# -- The users file, and the audit log -----------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["", "root", "Read", ["read"]])
def test_a_role_is_one_of_three(wrong: Any) -> None:
    users = copy.deepcopy(USERS)
    users["accounts"]["123456789012"]["users"]["boss"]["admin"] = wrong
    with pytest.raises(UsersError, match=r"boss\.admin must be one of read, write, admin"):
        read(users)


def test_the_audit_log_names_the_user(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    admin = bind_admin(0)
    with Database.in_memory() as database:
        guard(database, Gate(read(USERS), SystemClock().now, strict=True))
        audit = opened_log({"audit_log": path, "audit_log_bytes": 10**6, "audit_log_files": 1}, database)
        with running(database, admin=admin, audit=audit) as endpoint:
            plane = Plane(admin.url, endpoint, database)
            plane.ask("writer", "POST", "/v1/faults", {"rule": "PutItem nth=1 throttle"})
            plane.ask("reader", "DELETE", "/v1/faults")
            plane.ask("boss", "DELETE", "/v1/faults", secret="the-secret-of-writer")
        audit.close()
    found = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    arn = "arn:aws:iam::123456789012:user/"
    assert [(e["who"], e["decision"], e["result"]) for e in found if e["event"] == "admin"] == [
        ({"by": "write", "key": "AKIDwriter", "arn": f"{arn}writer", "verified": True}, "allowed", 200),
        ({"by": "read", "key": "AKIDreader", "arn": f"{arn}reader", "verified": True}, "denied", 403),
        ({"by": "anyone", "key": "AKIDboss", "verified": False}, "denied", 401),
    ]
