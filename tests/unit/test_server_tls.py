"""TLS on both ports: who gets in, what happens to handshakes that fail, and how a certificate is replaced."""

from __future__ import annotations

import http.client
import logging
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import orjson
import pytest
from botocore.config import Config
from click.testing import CliRunner, Result

import certificates
from certificates import Files
from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import ServerSettings, listening, running
from hashrange.server.tls import CertificateError, Certificates
from worlds import table_of

EVENTS = table_of("events", "id")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return certificates.make(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory() as made:
        yield made


@pytest.fixture
def endpoint(database: Database, files: Files) -> Iterator[str]:
    with running(database, certificates=files.certificates()) as url:
        yield url


def client(endpoint: str, files: Files, **more: Any) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        verify=str(files.ca),
        config=Config(retries={"total_max_attempts": 1}),
        **{"aws_access_key_id": "any", "aws_secret_access_key": "any", **more},
    )


def address(endpoint: str) -> tuple[str, int]:
    parts = urlsplit(endpoint)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def connected(endpoint: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    return context.wrap_socket(socket.create_connection(address(endpoint), 30), server_hostname="127.0.0.1")


def healthy(connection: ssl.SSLSocket) -> bool:
    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = connection.recv(65_536)
    return answer.startswith(b"HTTP/1.1 200 OK") and b"healthy: dynamodb" in answer


def test_boto3_writes_and_reads(endpoint: str, files: Files) -> None:
    assert endpoint.startswith("https://127.0.0.1:")
    dynamodb = client(endpoint, files)
    dynamodb.create_table(**EVENTS)
    text = {"S": "x" * 300_000}
    for number in range(8):
        dynamodb.put_item(TableName="events", Item={"id": {"S": str(number)}, "text": text})
    keys = [{"id": {"S": str(number)}} for number in range(8)]
    # an answer of several portions
    answer = dynamodb.batch_get_item(RequestItems={"events": {"Keys": keys}})
    assert sum(len(item["text"]["S"]) for item in answer["Responses"]["events"]) == 8 * 300_000


def test_who_does_not_know_the_authority_does_not_connect(endpoint: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        connected(endpoint, ssl.create_default_context())


def test_the_protocol_is_new_and_http_is_version_1(endpoint: str, files: Files) -> None:
    context = files.context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with connected(endpoint, context) as connection:
        assert connection.version() == "TLSv1.3"
        assert connection.selected_alpn_protocol() == "http/1.1"
        assert healthy(connection)
    context = files.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with connected(endpoint, context) as connection:
        assert connection.version() == "TLSv1.2"
        assert healthy(connection)
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError):
        connected(endpoint, context)


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01garbage", b"\x00" * 9000]
)
def test_other_protocols_are_closed_with_one_line(
    endpoint: str, files: Files, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            with socket.create_connection(address(endpoint), 30) as connection:
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
                try:
                    while connection.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
        with connected(endpoint, files.context()) as connection:
            assert healthy(connection)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * len(caplog.records)
    assert [record.exc_info for record in caplog.records] == [None] * len(caplog.records)
    assert len(caplog.records) <= 2


def test_silent_clients_keep_nobody_out(
    endpoint: str, files: Files, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening, "HANDSHAKES_MAX", 3)
    with ExitStack() as stack, caplog.at_level(logging.INFO):
        silent = [
            stack.enter_context(socket.create_connection(address(endpoint), 30)) for _ in range(10)
        ]
        with connected(endpoint, files.context()) as connection:
            assert healthy(connection)
        for given_up in silent[:7]:
            assert given_up.recv(1) == b""
        silent[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            silent[-1].recv(1)
    assert [record.message for record in caplog.records] == ["handshakes given up"]


def test_a_handshake_has_a_time(
    database: Database, files: Files, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening, "HANDSHAKE_SECONDS_MAX", 0.05)
    with (
        caplog.at_level(logging.INFO),
        running(database, certificates=files.certificates()) as endpoint,
        socket.create_connection(address(endpoint), 30) as connection,
    ):
        assert connection.recv(1) == b""
    assert [record.message for record in caplog.records] == ["connecting failed"]


def test_above_the_limit_a_connection_is_closed(database: Database, files: Files) -> None:
    settings = ServerSettings(connections_max=2)
    with (
        running(database, settings=settings, certificates=files.certificates()) as endpoint,
        connected(endpoint, files.context()) as first,
        connected(endpoint, files.context()) as second,
    ):
        assert healthy(first)
        assert healthy(second)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            connected(endpoint, files.context())
        assert healthy(first)


def test_a_server_stops_beside_idle_clients_and_open_handshakes(files: Files) -> None:
    with ExitStack() as stack:
        database = stack.enter_context(Database.in_memory())
        with running(database, certificates=files.certificates()) as endpoint:
            # First the silent one: the server has accepted it when it answers the other one. The kernel would
            # reset a connection that was not accepted.
            silent = stack.enter_context(socket.create_connection(address(endpoint), 30))
            idle = stack.enter_context(connected(endpoint, files.context()))
            assert healthy(idle)
        assert idle.recv(1) == b""
        assert silent.recv(1) == b""


def test_a_client_that_ends_in_the_middle_of_a_request(endpoint: str, files: Files) -> None:
    body = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    for sent in (body, b"GET / HTTP/1.1\r\n"):
        connection = connected(endpoint, files.context())
        connection.sendall(sent)
        connection.unwrap()
        connection.close()
    with connected(endpoint, files.context()) as connection:
        assert healthy(connection)


# -- Replacing the certificate ---------------------------------------------------------------------------


def test_new_connections_get_a_new_certificate(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = certificates.make(tmp_path)
    held = files.certificates()
    with running(database, certificates=held) as endpoint:
        before = connected(endpoint, files.context())
        former = before.getpeercert(binary_form=True)
        other = certificates.make(tmp_path)
        with caplog.at_level(logging.INFO):
            settle(held)
        assert [record.message for record in caplog.records] == ["new connections use the new certificate"]
        with connected(endpoint, other.context()) as after:
            assert after.getpeercert(binary_form=True) != former
            assert healthy(after)
        assert healthy(before)
        before.close()


def settle(held: Certificates) -> None:
    """Let time pass until a change has been noticed. (The server's own looks may come in between.)"""
    for now in (1e9, 2e9, 3e9, 4e9):
        held.look(now)


def test_a_wrong_pair_keeps_the_former_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = certificates.make(tmp_path)
    held = files.certificates()
    context = held.context
    key = files.key.read_bytes()
    (tmp_path / "other").mkdir()
    files.key.write_bytes(certificates.make(tmp_path / "other").key.read_bytes())
    settle(held)
    assert held.context is context
    files.certificate.unlink()
    held.look(5e9)
    held.look(6e9)
    assert held.context is context
    errors = [vars(record)["fields"]["why"] for record in caplog.records]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert "is not the key of the certificate" in errors[0]
    assert "server.pem cannot be read: No such file or directory" in errors[1]
    made = certificates.make(tmp_path)
    assert made.key.read_bytes() != key
    held.look(7e9)
    assert held.context is context, "files that have just changed may be half of a change"
    held.look(8e9)
    assert held.context is not context


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("kind", ["certificate", "key"])
def test_a_named_pipe_or_an_endless_file_does_not_stop_the_event_loop(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    files = certificates.make(tmp_path)
    held = files.certificates()
    context = held.context
    path: Path = getattr(files, kind)
    path.unlink()
    os.mkfifo(path)
    settle(held)
    path.unlink()
    path.write_bytes(b"x" * (1024 * 1024 + 1))
    held.look(5e9)
    held.look(6e9)
    assert held.context is context
    whys = [vars(record)["fields"]["why"] for record in caplog.records]
    assert [why.partition(" cannot be read: ")[2] for why in whys] == [
        "it is a named pipe, not a regular file.",
        "it has more than 1048576 bytes.",
    ]


def test_files_are_not_looked_at_all_the_time(tmp_path: Path) -> None:
    files = certificates.make(tmp_path)
    held = files.certificates()
    context = held.context
    certificates.make(tmp_path)
    held.look(10.0)
    held.look(11.9)
    assert held.context is context
    held.look(12.0)
    assert held.context is not context


# -- Wrong files -----------------------------------------------------------------------------------------


@pytest.fixture
def wrong(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Files, str]:
    files = certificates.make(tmp_path)
    match request.param:
        case "missing":
            files.key.unlink()
            return files, "server-key.pem cannot be read: No such file"
        case "garbage":
            files.certificate.write_text("no certificate")
            return files, "are not a certificate and its key in PEM"
        case "another":
            (tmp_path / "other").mkdir()
            other = certificates.make(tmp_path / "other")
            files.key.write_bytes(other.key.read_bytes())
            return files, "is not the key of the certificate"
        case _:
            from cryptography.hazmat.primitives.serialization import (
                BestAvailableEncryption,
                Encoding,
                PrivateFormat,
                load_pem_private_key,
            )

            key = load_pem_private_key(files.key.read_bytes(), None)
            locked = BestAvailableEncryption(b"secret")
            files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
            return files, "is encrypted. Give a key without a passphrase"


@pytest.mark.parametrize("wrong", ["missing", "garbage", "another", "encrypted"], indirect=True)
def test_a_server_does_not_start_with_a_wrong_pair(wrong: tuple[Files, str]) -> None:
    files, text = wrong
    with pytest.raises(CertificateError, match=text):
        files.certificates()
    outcome = serve(files.options())
    assert outcome.exit_code == 1
    assert text in " ".join(outcome.output.split())


@pytest.mark.parametrize("missing", ["--tls-cert", "--tls-key"])
def test_a_certificate_needs_its_key(files: Files, missing: str) -> None:
    options = files.options()
    at = options.index(missing)
    outcome = serve(options[:at] + options[at + 2 :])
    assert outcome.exit_code == 2
    assert f"give {missing} as well" in outcome.output


def serve(options: list[str]) -> Result:
    return CliRunner().invoke(main, ["serve", "--memory", "--port", "0", *options])


# -- The admin plane, commands ---------------------------------------------------------------------------


def test_commands_ask_the_admin_plane(
    database: Database, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = files.certificates()
    admin = bind_admin(0, certificates=held)
    with running(database, admin=admin, certificates=held) as endpoint:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(files.ca))
        shown = run(["clock", "show", "--endpoint-url", endpoint])
        assert shown.exit_code == 0, shown.output
        assert "the machine's clock" in shown.output
        assert run(["healthcheck", "--endpoint-url", endpoint]).stdout == "ok\n"
        plain = run(["clock", "show", "--endpoint-url", endpoint.replace("https", "http")])
        assert "does it speak TLS, and need https://?" in " ".join(plain.output.split())
        monkeypatch.delenv("AWS_CA_BUNDLE")
        stranger = run(["clock", "show", "--endpoint-url", endpoint])
        assert "AWS_CA_BUNDLE names the file of its authority" in " ".join(stranger.output.split())
        port = str(address(endpoint)[1])
        beside = run(["healthcheck", "--port", port, "--tls-cert", str(files.certificate)])
        assert beside.stdout == "ok\n"
        monkeypatch.setenv("AWS_CA_BUNDLE", str(files.key))
        assert "is not a file of certificates" in run(["healthcheck", "--endpoint-url", endpoint]).output
    with running(database) as endpoint:
        answer = run(["clock", "show", "--endpoint-url", endpoint.replace("http", "https")])
        assert "No server answers" in answer.output


def test_a_healthcheck_trusts_only_the_certificate_that_is_named(
    database: Database, files: Files, tmp_path: Path
) -> None:
    other = certificates.make(tmp_path, "db.example")
    for made in (files, other):
        with running(database, certificates=made.certificates()) as endpoint:
            arguments = ["healthcheck", "--port", str(address(endpoint)[1]), "--tls-cert"]
            outcome = run([*arguments, str(other.certificate)])
            assert (outcome.exit_code == 0) == (made is other), outcome.output


def run(arguments: list[str]) -> Result:
    return CliRunner().invoke(main, arguments)


def test_the_command_encrypts_both_ports(files: Files) -> None:
    from serving import serving

    with serving("--memory", *files.options()) as server:
        assert server.endpoint.startswith("https://")
        assert server.admin.startswith("https://")
        connection = http.client.HTTPSConnection(*address(server.admin), context=files.context())
        connection.request("GET", "/health")
        assert orjson.loads(connection.getresponse().read())["status"] == "ok"
        connection.close()
