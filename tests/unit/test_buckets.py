"""Buckets as folders and in S3: one set of promises, kept by both."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from botocore.exceptions import ClientError, ResponseStreamingError, UnknownServiceError

from hashrange import buckets
from hashrange.buckets import BucketError, Buckets, Unreachable, s3
from hashrange.buckets.folders import Folders
from hashrange.buckets.s3 import S3Buckets
from importing import BUCKET, COMPRESS, World, encoded, item_of, request
from worlds import recovery_of

# Their order is that of the bytes: "a.b" comes before "a/b", and "a/c" is a folder.
KEYS = ["a.b", "a/b", "a/c/d", "a0", "data/part 1", "data/ä", "z"]


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """A server that speaks S3's protocol."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["folders", "s3"])
def found(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Buckets:
    """Buckets of which there is one, called `bucket`."""
    if request.param == "folders":
        (tmp_path / "bucket").mkdir()
        return Folders(tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    endpoint = request.getfixturevalue("s3_endpoint")
    import boto3

    s3 = boto3.resource("s3", endpoint_url=endpoint)
    bucket = s3.Bucket("bucket")
    bucket.create()
    bucket.objects.all().delete()
    return S3Buckets(endpoint)


@pytest.mark.parametrize("compression", ["GZIP", "NONE"])
def test_an_import_from_s3_goes_on_after_a_restart(
    s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    import boto3

    s3 = boto3.client("s3", endpoint_url=s3_endpoint)
    s3.create_bucket(Bucket="source")
    items = [item_of(number) for number in range(1_000)]
    for number in range(2):
        data = COMPRESS[compression](encoded(items[number::2], "DYNAMODB_JSON"))
        s3.put_object(Bucket="source", Key=f"{compression}/part-{number}", Body=data)
    world = World(tmp_path, durable=True, s3_endpoint=s3_endpoint)
    arn = world.begin(bucket="source", prefix=f"{compression}/", InputCompressionType=compression)
    for _ in range(3):
        world.database.sweep()
    assert 0 < world.shown(arn)["ImportedItemCount"] < 1_000
    world.reopen()
    world.database.settle()
    shown = world.shown(arn)
    assert (shown["ImportStatus"], shown["ImportedItemCount"]) == ("COMPLETED", 1_000)
    assert len(world.scan()) == 1_000
    shown = world.done("other", bucket="absent-from-s3")
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert "Status Code: 404; Error Code: NoSuchBucket" in shown["FailureMessage"]
    world.database.close()


def put(found: Buckets, key: str, data: bytes) -> str:
    with found.create("bucket", key) as sink:
        sink.write(data)
    return sink.etag


def content(found: Buckets, key: str, offset: int = 0) -> bytes:
    one = next(found.list("bucket", key))
    source = found.open("bucket", one, offset)
    parts = iter(lambda: source.read(1_000), b"")
    data = b"".join(parts)
    source.close()
    return data


def keys(found: Buckets, prefix: str = "", after: str = "") -> list[str]:
    return [one.key for one in found.list("bucket", prefix, after)]


def test_objects_are_listed_by_prefix_in_order(found: Buckets) -> None:
    for key in reversed(KEYS):
        put(found, key, key.encode())
    assert keys(found) == KEYS
    assert keys(found, "a") == ["a.b", "a/b", "a/c/d", "a0"]
    assert keys(found, "data/") == ["data/part 1", "data/ä"]
    assert keys(found, "a/c/d") == ["a/c/d"]
    assert keys(found, "none") == []
    for number, key in enumerate(KEYS):
        assert keys(found, after=key) == KEYS[number + 1 :]
    assert keys(found, "data", after="data/part 1") == ["data/ä"]


def test_what_is_written_is_read_from_any_byte(found: Buckets) -> None:
    put(found, "data/a", b"0123456789")
    assert content(found, "data/a") == b"0123456789"
    assert content(found, "data/a", 4) == b"456789"
    assert content(found, "data/a", 10) == b""
    put(found, "data/a", b"other")
    assert content(found, "data/a") == b"other"
    put(found, "empty", b"")
    assert content(found, "empty") == b""


def test_a_large_object_is_written_in_parts(found: Buckets) -> None:
    digest = hashlib.md5(usedforsecurity=False)
    with found.create("bucket", "large") as sink:
        for number in range(20):
            part = bytes([number]) * 1_000_000
            sink.write(part)
            digest.update(part)
    assert next(found.list("bucket", "large")).bytes == 20_000_000
    assert hashlib.md5(content(found, "large"), usedforsecurity=False).digest() == digest.digest()
    assert "-" in sink.etag  # that of an object in parts


def test_an_object_that_is_not_written_to_its_end_is_not_there(found: Buckets) -> None:
    put(found, "kept", b"before")
    for key in ("kept", "new"):
        with suppress(InterruptedError), found.create("bucket", key) as sink:
            sink.write(b"x" * 9_000_000)
            raise InterruptedError
    assert keys(found) == ["kept"]
    assert content(found, "kept") == b"before"


def test_a_bucket_that_is_not_there(found: Buckets) -> None:
    found.check("bucket")

    def write() -> None:
        with found.create("absent", "key"):
            pass

    attempts: list[Callable[[], object]] = [
        lambda: found.check("absent"),
        lambda: list(found.list("absent", "")),
        write,
    ]
    for attempt in attempts:
        with pytest.raises(BucketError) as caught:
            attempt()
        assert caught.value.code == "S3NoSuchBucket"
        assert "NoSuchBucket" in caught.value.message


def test_an_object_that_is_gone_or_was_replaced(found: Buckets) -> None:
    put(found, "a", b"first")
    listed = next(found.list("bucket", "a"))
    put(found, "a", b"second one")
    with pytest.raises(BucketError) as caught:
        found.open("bucket", listed)
    assert caught.value.code == "S3PreconditionFailed"
    with pytest.raises(BucketError) as caught:
        found.open("bucket", listed._replace(key="gone"))
    assert caught.value.code == "S3NoSuchKey"


@pytest.mark.parametrize("key", ["../a", "a/../../b", "/a", "a//b", "a/", ".", "", ".hashrange/x", "a\0b"])
def test_no_key_leads_out_of_its_folder(tmp_path: Path, key: str) -> None:
    (tmp_path / "bucket").mkdir()
    with pytest.raises(BucketError), Folders(tmp_path).create("bucket", key):
        pass
    assert [path.name for path in tmp_path.rglob("*") if path.name != ".hashrange"] == ["bucket"]


@pytest.mark.parametrize("bucket", ["..", ".", "", "a/b", "../bucket"])
def test_no_name_of_a_bucket_leads_out_of_the_directory(tmp_path: Path, bucket: str) -> None:
    (tmp_path / "top" / "a" / "b").mkdir(parents=True)
    with pytest.raises(BucketError):
        Folders(tmp_path / "top").check(bucket)


def test_files_that_are_being_written_are_not_listed(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    found = Folders(tmp_path)
    with found.create("bucket", "a") as sink:
        sink.write(b"x")
        assert keys(found) == []
    assert keys(found) == ["a"]
    assert [path.name for path in (tmp_path / "bucket").iterdir()] == [".hashrange", "a"] or os.name == "nt"


def test_a_store_that_does_not_answer_may_answer_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such an error is an OSError: the caller retries forever."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setattr("hashrange.buckets.s3._ATTEMPTS_MAX", 1)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Unreachable, match="Could not connect"):
        S3Buckets(f"http://127.0.0.1:{port}").check("bucket")


@pytest.mark.parametrize(
    ("status", "code", "wanted"),
    [
        (503, "SlowDown", Unreachable),
        (500, "InternalError", Unreachable),
        (400, "RequestTimeout", Unreachable),
        (400, "ExpiredToken", Unreachable),
        (403, "AccessDenied", BucketError),
        (404, "404", Unreachable),  # its end was lost
        (412, "412", BucketError),
        (400, "InvalidRequest", ClientError),  # the job is given up after some tries
    ],
)
def test_which_answers_of_s3_may_pass(status: int, code: str, wanted: type[Exception]) -> None:
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    with pytest.raises(wanted), s3._translated():
        raise ClientError(answer, "GetObject")


def test_an_object_whose_connection_is_lost_may_be_read_later() -> None:
    class Lost:
        def read(self, size: int) -> bytes:
            raise ResponseStreamingError(error="the connection is lost")

    with pytest.raises(Unreachable):
        s3._Body(Lost()).read(1)


def test_an_endpoint_that_is_no_url_and_a_botocore_without_s3_end_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(BucketError, match="--s3-endpoint: Invalid endpoint: nowhere"):
        S3Buckets("nowhere")

    def unknown(service: str, **given: Any) -> Any:
        raise UnknownServiceError(service_name=service, known_service_names="kinesis")

    monkeypatch.setattr("boto3.client", unknown)
    with pytest.raises(BucketError, match="no description of S3"):
        S3Buckets("aws")


def test_which_buckets_settings_name(tmp_path: Path) -> None:
    assert buckets.of("", "") is None
    assert isinstance(buckets.of(str(tmp_path), ""), Folders)
    assert isinstance(buckets.of(str(tmp_path), "http://127.0.0.1:1"), S3Buckets)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


SPECIAL = pytest.mark.parametrize("make", [_pipe, _socket, _device, Path.mkdir])


@pytest.mark.skipif(os.name == "nt", reason="Windows has none of these files")
@SPECIAL
def test_only_regular_files_are_read_also_if_one_takes_the_place_of_a_listed_file(
    tmp_path: Path, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    found = Folders(tmp_path)
    (tmp_path / "bucket").mkdir()
    put(found, "a", b"x")
    [listed] = found.list("bucket", "a")
    (tmp_path / "bucket" / "a").unlink()
    make(Path("bucket/a"))
    with pytest.raises(BucketError, match=r"a cannot be used: it is .*not a regular file") as caught:
        found.open("bucket", listed)
    assert caught.value.code == "S3InvalidObjectKey"


@pytest.mark.skipif(os.name == "nt", reason="Windows has none of these files")
@SPECIAL
def test_only_regular_files_are_written(
    tmp_path: Path, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of an unfinished object follows from its key, so anybody can be there before."""
    monkeypatch.chdir(tmp_path)
    found = Folders(tmp_path)
    (tmp_path / "bucket").mkdir()
    with found.create("bucket", "a"):
        [made] = (tmp_path / "bucket" / ".hashrange").iterdir()
    make(made.relative_to(tmp_path))
    with pytest.raises(BucketError, match="cannot be used"):
        put(found, "a", b"x")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes")
def test_an_import_passes_over_a_named_pipe_and_says_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.put("a", encoded([item_of(1)], "DYNAMODB_JSON"))
    os.mkfifo(world.folder / "b")
    world.put("c", encoded([item_of(2)], "DYNAMODB_JSON"))
    arn = world.begin()
    world.database.settle()
    shown = world.shown(arn)
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "ItemValidationError")
    [error] = world.errors(arn)
    assert error["itemS3Pointer"]["key"] == "b"
    assert "named pipe, not a regular file" in error["errorMessages"][0]
    assert len(world.scan()) == 2
    world.database.close()


PASSES = ["ENOSPC", "EIO", "EAGAIN", "EINTR", "ETIMEDOUT", "ENOMEM", "EMFILE", "EBUSY", "ECONNRESET"]
STAYS = ["ENAMETOOLONG", "ELOOP", "ENOTDIR", "EISDIR", "EACCES", "EPERM", "EROFS", "EINVAL", "EFBIG"]


@pytest.mark.parametrize("name", PASSES + STAYS)
@pytest.mark.parametrize("call", ["open", "scandir", "fsync"])
def test_an_error_of_the_file_system_fails_the_job_unless_it_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: str
) -> None:
    found = Folders(tmp_path)
    (tmp_path / "bucket").mkdir()
    put(found, "a", b"x")

    def fail(*arguments: object) -> None:
        raise OSError(getattr(errno, name), os.strerror(getattr(errno, name)))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises((OSError, BucketError)) as caught:
        put(found, "b", b"x") if call == "fsync" else content(found, "a")
    monkeypatch.undo()
    assert isinstance(caught.value, OSError) == (name in PASSES)
    if name in STAYS:
        assert os.strerror(getattr(errno, name)) in str(caught.value)
    assert keys(found) == ["a"]


def loop(folder: Path) -> str:
    (folder / "loop").symlink_to("loop")
    return "loop"


def file(folder: Path) -> str:
    (folder / "file").write_bytes(b"")
    return "file"


@pytest.mark.skipif(os.name == "nt", reason="names and links are others on Windows")
@pytest.mark.parametrize("prefix_of", [lambda folder: "x" * 300, loop, file])
def test_an_export_whose_prefix_cannot_be_a_folder_fails(
    tmp_path: Path, prefix_of: Callable[[Path], str]
) -> None:
    world = World(tmp_path)
    world("CreateTable", **request("music")["TableCreationParameters"])
    world("UpdateContinuousBackups", **recovery_of("music"))
    table_arn = "arn:aws:dynamodb:us-east-1:000000000000:table/music"
    begun = world(
        "ExportTableToPointInTime", TableArn=table_arn, S3Bucket=BUCKET, S3Prefix=prefix_of(world.folder)
    )
    world.database.settle()
    shown = world("DescribeExport", ExportArn=begun["ExportDescription"]["ExportArn"])["ExportDescription"]
    assert (shown["ExportStatus"], shown["FailureCode"]) == ("FAILED", "S3InvalidObjectKey")
    assert "cannot be used" in shown["FailureMessage"]
    assert world.database.background.failing == {}
    world.database.close()


@pytest.mark.skipif(os.name == "nt", reason="links are others on Windows")
def test_a_link_to_itself_is_an_object_that_cannot_be_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.put("a", encoded([item_of(1)], "DYNAMODB_JSON"))
    loop(world.folder)
    shown = world.done()
    assert shown["ImportStatus"] == "FAILED"
    assert world.database.background.failing == {}
    world.database.close()


def _code(function: Callable[..., object], *arguments: Any, **named: Any) -> str:
    with pytest.raises(BucketError) as caught:
        function(*arguments, **named)
    return caught.value.code


@pytest.mark.parametrize("size", [1, buckets.CHUNK_BYTES + 1])
def test_an_object_is_written_on_a_condition(found: Buckets, size: int) -> None:
    assert _code(found.read, "bucket", "lease") == buckets.NO_SUCH_KEY
    assert _code(found.put, "bucket", "lease", b"0", etag="of nothing") == buckets.CHANGED
    first = found.put("bucket", "lease", b"1" * size, new=True)
    assert _code(found.put, "bucket", "lease", b"2", new=True) == buckets.CHANGED
    assert found.read("bucket", "lease") == (b"1" * size, first)
    second = found.put("bucket", "lease", b"2", etag=first)
    assert _code(found.put, "bucket", "lease", b"3", etag=first) == buckets.CHANGED
    assert found.read("bucket", "lease") == (b"2", second)
    third = found.put("bucket", "lease", b"4")
    assert found.read("bucket", "lease") == (b"4", third)
    found.delete("bucket", "lease")
    found.delete("bucket", "lease")
    assert [one.key for one in found.list("bucket", "")] == []
    found.put("bucket", "lease", [b"5", bytearray(size), memoryview(b"6")], new=True)
    assert found.read("bucket", "lease")[0] == b"5" + bytes(size) + b"6"


def test_of_many_who_write_on_a_condition_one_does(found: Buckets) -> None:
    etag = found.put("bucket", "lease", b"0", new=True)
    done = []

    def write(number: int) -> None:
        with suppress(BucketError):
            done.append(found.put("bucket", "lease", b"%d" % number, etag=etag))

    threads = [Thread(target=write, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1
    assert found.read("bucket", "lease")[1] == done[0]
