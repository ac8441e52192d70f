"""Requests to Kinesis, made to a server that speaks its protocol, and what becomes of its errors."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from botocore.exceptions import UnknownServiceError

from hashrange import kinesis
from hashrange.kinesis import Kinesis, KinesisError, Refused, StreamName

CHANGES = StreamName("us-east-1", "changes")


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kinesis]:
    """A server with one stream, `changes`. There are no credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    streams = Kinesis(f"http://{host}:{port}")
    streams._client("us-east-1").create_stream(StreamName="changes", ShardCount=1)
    yield streams
    streams._client("us-east-1").delete_stream(StreamName="changes")
    streams.close()
    server.stop()


def test_a_stream_takes_records(streams: Kinesis) -> None:
    assert streams.status(CHANGES) == "ACTIVE"
    assert streams.put(CHANGES, [("a", b"1"), ("b", b"2")]) == ["", ""]


def test_a_stream_that_does_not_exist(streams: Kinesis) -> None:
    for absent in (StreamName("us-east-1", "absent"), StreamName("eu-west-1", "changes")):
        assert streams.status(absent) is None
        with pytest.raises(KinesisError, match="There is no Kinesis data stream"):
            streams.put(absent, [("a", b"1")])


def test_a_record_that_is_too_large_is_refused(streams: Kinesis) -> None:
    with pytest.raises(Refused):
        streams.put(CHANGES, [("a", b"x" * 11 * 1024 * 1024)])


def answering(body: bytes) -> HTTPServer:
    """A server that answers every request with an error."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.mark.parametrize("code", ["AccessDeniedException", "LimitExceededException"])
def test_a_stream_that_may_not_be_used_is_none(code: str) -> None:
    server = answering(b'{"__type":"%b","message":"no"}' % code.encode())
    streams = Kinesis(f"http://127.0.0.1:{server.server_port}")
    if code == "AccessDeniedException":
        assert streams.status(CHANGES) is None
    else:
        with pytest.raises(KinesisError, match=code):
            streams.status(CHANGES)
    with pytest.raises(KinesisError, match=code):
        streams.put(CHANGES, [("a", b"1")])
    streams.close()
    server.shutdown()
    server.server_close()


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    streams = Kinesis(f"http://127.0.0.1:{port}")
    with pytest.raises(KinesisError, match=f"Kinesis at http://127.0.0.1:{port}"):
        streams.status(CHANGES)
    streams.close()


def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinesis, "READ_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        streams = Kinesis(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(KinesisError, match="timeout"):
            streams.put(CHANGES, [("a", b"1")])
        streams.close()


def test_an_endpoint_that_is_no_url() -> None:
    with pytest.raises(KinesisError, match="--kinesis-endpoint: Invalid endpoint"):
        Kinesis("kinesis.test:4567").status(CHANGES)


@pytest.mark.parametrize(
    ("arn", "stream"),
    [
        ("arn:aws:kinesis:us-east-1:000000000000:stream/changes", CHANGES),
        ("arn:aws-cn:kinesis:cn-north-1:1:stream/a.b-c_D", StreamName("cn-north-1", "a.b-c_D")),
        ("arn:aws:kinesis:us-east-1:000000000000:stream/changes/consumer/c:1", None),
        ("arn:aws:firehose:us-east-1:000000000000:deliverystream/changes", None),
        ("arn:aws:kinesis:us-east-1:000000000000:stream/", None),
        ("arn:aws:kinesis:us-east-1:000000000000:stream/changes\n", None),
        ("changes", None),
    ],
)
def test_arns(arn: str, stream: StreamName | None) -> None:
    assert kinesis.parse(arn) == stream


def test_a_botocore_without_kinesis_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an image from which the descriptions of other services were taken."""

    def unknown(self: Any, service: str, **given: Any) -> Any:
        raise UnknownServiceError(service_name=service, known_service_names="s3")

    monkeypatch.setattr("boto3.session.Session.client", unknown)
    for endpoint in ("aws", "http://127.0.0.1:1"):
        with pytest.raises(KinesisError, match="no description of Kinesis"):
            Kinesis(endpoint).status(CHANGES)


def test_a_profile_that_does_not_exist_is_an_error_of_kinesis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "absent")
    with pytest.raises(KinesisError, match="absent"):
        Kinesis("http://127.0.0.1:1").status(CHANGES)
