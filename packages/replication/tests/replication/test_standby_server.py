"""`hashrange standby` and `hashrange replica promote` as users run them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import orjson
import pytest
from botocore.exceptions import BotoCoreError, ClientError
from click.testing import CliRunner, Result

from endpoints import connection
from hashrange.cli import main
from servers import asked, wait_for_base
from serving import Server, free_port, serving
from worlds import table_of

_ASKED_MAX = 20_000
BUCKET = "hashrange-copies"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["replica", *arguments])


def client_of(server: Server) -> Any:
    return boto3.client("dynamodb", **connection(server.endpoint))


def put(client: Any, key: str) -> None:
    client.put_item(TableName="table", Item={"p": {"S": key}})


def has(client: Any, key: str) -> bool:
    """Whether an item is there; no, where nobody answers at the moment."""
    try:
        return "Item" in client.get_item(TableName="table", Key={"p": {"S": key}})
    except (BotoCoreError, ClientError):
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    assert any(condition() for _ in range(_ASKED_MAX))


def health_of(server: Server) -> Any:
    return orjson.loads(asked(f"{server.admin}/health"))["of_rings"]["replication"]


def test_a_standby_follows_and_is_promoted(tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    with ExitStack() as stack:
        primaries = stack.enter_context(ExitStack())
        primary = primaries.enter_context(serving("--data-dir", str(tmp_path / "one"), "--copy-to", copy))
        first = client_of(primary)
        first.create_table(**table_of("table", "p"))
        put(first, "a")
        wait_for_base(primary)
        put(first, "b")
        options = ("--data-dir", str(tmp_path / "two"))
        standby = stack.enter_context(serving("--copy", copy, *options, name="standby"))
        second = client_of(standby)
        wait_for(lambda: has(second, "b"))
        put(first, "c")
        wait_for(lambda: has(second, "c"))
        with pytest.raises(ClientError, match=r"InternalServerError.* is a standby of the copy at"):
            put(second, "d")
        shown = health_of(standby)
        assert (shown["role"], "problem" in shown) == ("standby", False)
        assert "hashrange_standby_failing 0" in asked(f"{standby.admin}/metrics")
        refused = run("promote", "--endpoint-url", standby.endpoint)
        assert refused.exit_code == 1
        assert "was not promoted, and goes on to follow" in refused.stderr
        assert standby.admin != primary.admin
        told = run("status", "--copy", copy)
        assert f"standby {shown['id']}: " in told.stdout
        put(first, "last")
        primaries.close()
        done = run("promote", "--endpoint-url", standby.endpoint)
        assert done.exit_code == 0, done.output
        assert "the primary in epoch 2" in done.stdout
        put(second, "d")
        assert all(has(second, key) for key in ("a", "b", "c", "d", "last"))
        assert health_of(standby)["epoch"] == 2
        again = run("promote", "--endpoint-url", standby.endpoint)
        assert "This server is no standby" in again.stderr
    done = run("verify", "--copy", copy, "--restore", "--against", str(tmp_path / "two"))
    assert done.exit_code == 0, done.output


def test_a_standby_restores_itself_when_the_chain_begins_again(tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    primary_options = ("--data-dir", str(tmp_path / "one"), "--copy-to", copy)
    with ExitStack() as stack:
        with serving(*primary_options) as primary:
            client_of(primary).create_table(**table_of("table", "p"))
            put(client_of(primary), "a")
            wait_for_base(primary)
            options = ("--data-dir", str(tmp_path / "two"), "--port", str(free_port()))
            standby = stack.enter_context(serving("--copy", copy, *options, name="standby"))
            second = client_of(standby)
            wait_for(lambda: has(second, "a"))
            put(client_of(primary), "never shipped")
            primary.kill()
        primary = stack.enter_context(serving(*primary_options))
        put(client_of(primary), "b")
        wait_for(lambda: has(second, "b"))
        assert has(second, "never shipped")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("serve", "--standby", "--data-dir", "x"), "needs the copy, and a directory"),
        (("serve", "--promote-after", "30s", "--data-dir", "x"), "give --standby as well"),
        (("standby", "--copy", "nothing", "--data-dir", "x"), "there is no"),
        (("standby", "--data-dir", "x"), "--copy"),
        (("standby", "--copy", ".", "--data-dir", "x", "--copy-key-file", "none"), "none cannot be read"),
    ],
)
def test_wrong_command_lines_say_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, [*arguments])
    assert done.exit_code in (1, 2)
    assert text in done.output


def test_a_standby_that_is_lost_is_withdrawn(tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    with serving("--data-dir", str(tmp_path / "one"), "--copy-to", copy) as primary:
        wait_for_base(primary)
        with serving("--copy", copy, "--data-dir", str(tmp_path / "two"), name="standby") as standby:
            one = health_of(standby)["id"]
            wait_for(lambda: f"standby {one}" in run("status", "--copy", copy).stdout)
            standby.kill()
        done = run("withdraw", "--copy", copy)
        assert done.stdout.startswith(f"withdrawn: {one}")
        assert one not in run("status", "--copy", copy).stdout
        assert "has no standby" in run("withdraw", "--copy", copy).stderr


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An S3 API that nobody here wrote: moto's, or that of HASHRANGE_TEST_S3_ENDPOINT."""
    if given := os.environ.get("HASHRANGE_TEST_S3_ENDPOINT", ""):
        yield given
        return
    moto = pytest.importorskip("moto.server")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def test_of_two_standbys_one_takes_over_and_the_other_follows(tmp_path: Path, endpoint: str) -> None:
    store = boto3.client("s3", endpoint_url=endpoint)
    if BUCKET not in [one["Name"] for one in store.list_buckets()["Buckets"]]:
        store.create_bucket(Bucket=BUCKET)
    copy, s3 = f"s3://{BUCKET}/{uuid4().hex}", ("--s3-endpoint", endpoint)
    with ExitStack() as stack:
        primaries = stack.enter_context(ExitStack())
        primary = primaries.enter_context(
            serving("--data-dir", str(tmp_path / "one"), "--copy-to", copy, *s3, "--copy-ack")
        )
        first = client_of(primary)
        first.create_table(**table_of("table", "p"))
        put(first, "before the base")
        wait_for_base(primary)
        put(first, "behind the base")
        standbys = {
            name: stack.enter_context(
                serving("--copy", copy, "--data-dir", str(tmp_path / name), *s3, name="standby")
            )
            for name in ("two", "three")
        }
        for standby in standbys.values():
            wait_for(lambda: has(client_of(standby), "behind the base"))  # noqa: B023 (called at once)
        put(first, "last")
        primaries.close()

        def promote(name: str) -> int:
            return run("promote", "--endpoint-url", standbys[name].endpoint).exit_code

        with ThreadPoolExecutor(2) as pool:
            codes = dict(zip(standbys, pool.map(promote, standbys), strict=True))
        assert sorted(codes.values()) == [0, 1]
        winner, loser = sorted(codes, key=lambda name: codes[name])
        now_first, second = client_of(standbys[winner]), client_of(standbys[loser])
        put(now_first, "of the new primary")
        assert has(now_first, "last")
        wait_for(lambda: has(second, "of the new primary"))
    done = run("verify", "--copy", copy, *s3, "--restore", "--against", str(tmp_path / winner))
    assert done.exit_code == 0, done.output
    back = str(tmp_path / "back")
    assert run("restore", "--copy", copy, *s3, "--data-dir", back).exit_code == 0
    done = CliRunner().invoke(main, ["check", back])
    assert done.exit_code == 0, done.output
    for key in store.list_objects_v2(Bucket=BUCKET, Prefix=copy.rpartition("/")[2])["Contents"]:
        store.delete_object(Bucket=BUCKET, Key=key["Key"])
