"""The users file is read again when it changes; a wrong one changes nothing."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest

from hashrange.storage.failures import StoreClosed
from hashrange.storage.memory import MemoryEngine
from hashrange_access import plain_yaml
from hashrange_access import users as access_users
from hashrange_access.commands.watching import Watcher
from hashrange_access.directory import Directory
from hashrange_access.keys import sealing
from hashrange_access.keys.keyring import Keyring
from hashrange_access.users import Users, load, read

ACCOUNT = "123456789012"
KEY_BYTES = b"k" * 32


def users(*names: str) -> bytes:
    made = {name: {"keys": [{"id": f"AKID{name}", "secret": f"the-secret-of-{name}"}]} for name in names}
    return orjson.dumps({"accounts": {ACCOUNT: {"users": made}}})


def users_of(path: Path) -> Users:
    try:
        return load(path)
    except OSError as error:
        raise ValueError(str(error)) from error


class Watched:
    """A users file that is watched, and the directory that follows it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.engine = MemoryEngine()
        self.watcher = Watcher(path, lambda: users_of(path))
        self.directory = Directory(self.watcher.first())
        vault = sealing.in_memory(lambda length: KEY_BYTES[:length])
        self.keyring = Keyring(self.engine, vault, self.directory, lambda: 0.0)

    def write(self, content: bytes) -> None:
        """Write the file, at a time of its own: the file system's clock may tick slowly."""
        before = self.path.stat().st_mtime_ns
        self.path.write_bytes(content)
        os.utime(self.path, ns=(before + 1_000_000_000, before + 1_000_000_000))

    def look(self, *, asked: bool = False) -> list[str]:
        self.watcher.look(self.directory, self.keyring, asked=asked)
        return list(self.directory.state.users.keys)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    path = tmp_path / "users.json"
    path.write_bytes(users("alice"))
    return Watched(path)


def test_a_changed_file_counts_when_it_has_stayed_the_same_for_a_look(watched: Watched) -> None:
    assert watched.look() == ["AKIDalice"]
    watched.write(users("alice", "bob"))
    assert watched.look() == ["AKIDalice"]
    assert watched.look() == ["AKIDalice", "AKIDbob"]
    watched.write(users("bob"))
    watched.look()
    watched.write(users("carol"))
    assert watched.look() == ["AKIDalice", "AKIDbob"]
    assert watched.look() == ["AKIDcarol"]


def test_a_file_is_read_at_once_when_it_is_asked_for(watched: Watched) -> None:
    watched.path.write_bytes(users("bob"))
    assert watched.look(asked=True) == ["AKIDbob"]


DEEP = b'{"accounts": ' + b"[" * 3_000
ALIASES = b"a0: &a0 [x, x]\n"
ALIASES += b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 60))
ODD_GROUP = b'{"accounts": {"123456789012": {"users": {"alice": {"groups": [["g"]]}}}}}'
ODD_TAG = b'{"accounts": {"123456789012": {"users": {"alice": {"tags": {"team": ["red"]}}}}}}'
WRONG = [b"accounts: [", b"{}", users("x y"), None, DEEP, b"- " * 3_000, ALIASES, ODD_GROUP, ODD_TAG, b"\xff"]


@pytest.mark.parametrize("content", WRONG, ids=lambda content: repr(content)[:24])
def test_a_wrong_file_changes_nothing_and_the_log_says_why(
    watched: Watched, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    if content is None:
        watched.path.unlink()
    else:
        watched.write(content)
    for _ in range(3):
        assert watched.look() == ["AKIDalice"]
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert [record.getMessage() for record in errors] == [
        "the users are unchanged: the new users file is wrong"
    ]
    watched.path.write_bytes(users("bob"))
    watched.look()
    assert watched.look() == ["AKIDbob"]


def test_the_keys_of_the_store_follow_the_users(watched: Watched) -> None:
    key, _ = watched.keyring.create("alice", None)
    assert watched.directory.get(key.id) is not None
    watched.directory.set_users(read(orjson.loads(users("bob"))))
    watched.look()
    assert watched.directory.get(key.id) is None


def test_a_store_that_cannot_be_read_is_logged_once(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> bool:
        raise StoreClosed

    monkeypatch.setattr(watched.keyring, "refresh", fails)
    watched.look()
    watched.look()
    assert caplog.text.count("the keys of the store cannot be read") == 1


def test_the_watch_outlives_what_nothing_foresees(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watched.keyring, "refresh", lambda: 1 // 0)
    watched.look()
    assert "the keys of the store cannot be read" in caplog.text


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError(), KeyError("x"), OSError("gone")])
def test_whatever_goes_wrong_is_logged_and_the_watch_goes_on(
    watched: Watched, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(watched.watcher, "_load", fails)
        assert watched.look(asked=True) == ["AKIDalice"]
    assert "the users are unchanged" in caplog.text
    looked = threading.Semaphore(0)

    def look(directory: Directory, keyring: Keyring, *, asked: bool) -> None:
        looked.release()
        raise error

    monkeypatch.setattr(watched.watcher, "look", look)
    end = watched.watcher.watch(watched.directory, watched.keyring)
    try:
        for _ in range(3):
            watched.watcher.ask()
            assert looked.acquire(timeout=30)
    finally:
        end()
    assert caplog.text.count("looking for changed users and keys failed") == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_only_a_regular_file_of_bounded_size_is_read(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watched.path.unlink()
    os.mkfifo(watched.path)
    assert [watched.look() for _ in range(3)] == [["AKIDalice"]] * 3
    assert watched.look(asked=True) == ["AKIDalice"]
    watched.path.unlink()
    watched.path.mkdir()
    assert watched.look(asked=True) == ["AKIDalice"]
    watched.path.rmdir()
    monkeypatch.setattr(access_users, "FILE_BYTES_MAX", 100)
    watched.path.write_bytes(users("bob") + b" " * 100)
    assert watched.look(asked=True) == ["AKIDalice"]
    whys = [vars(record)["fields"]["why"] for record in caplog.records if record.levelname == "ERROR"]
    assert [why.partition("] ")[2].partition(":")[0] for why in whys] == [
        "it is a named pipe, not a regular file",
        "it is a named pipe, not a regular file",
        "it is a directory, not a regular file",
        "it has more than 100 bytes",
    ]


@pytest.mark.skipif(os.name != "posix", reason="there are no modes")
@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (0o600, None),
        (0o400, None),
        (0o640, "can read the users file"),
        (0o604, "can read the users file"),
        (0o660, "may change the users file"),
        (0o602, "may change the users file"),
    ],
)
def test_a_file_of_users_that_others_may_reach_is_named(
    watched: Watched, mode: int, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    watched.path.chmod(mode)
    watched.look(asked=True)
    assert watched.watcher.first().keys.keys() == {"AKIDalice"}
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ([] if text is None else [f"other users of this machine {text}"] * 2)


def test_many_names_are_read() -> None:
    made = plain_yaml.parsed(users(*[f"user{number}" for number in range(2_000)]).decode())
    assert len(read(made).keys) == 2_000
    with pytest.raises(plain_yaml.YamlError, match="an object has a name twice: 'a'"):
        plain_yaml.parsed("{" + ", ".join(f"n{number}: 1" for number in range(50_000)) + ", a: 1, a: 2}")
