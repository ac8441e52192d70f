"""The users file is read again when it changes; a wrong one changes nothing."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import orjson
import pytest

from hashrange.access.directory import Directory
from hashrange.access.keys import Keyring, sealing
from hashrange.access.users import Users, load, read
from hashrange.cli.access.watching import Watcher
from hashrange.storage.failures import StoreClosed
from hashrange.storage.memory import MemoryEngine

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


@pytest.mark.parametrize("content", [b"accounts: [", b"{}", users("x y"), b"[" * 5_000, b"\xff", None])
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
        "the users stay as they were: the new users file is wrong"
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


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")
def test_a_signal_makes_the_watch_look(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = threading.Event()

    def look(directory: Directory, keyring: Keyring, *, asked: bool) -> None:
        if asked:
            looked.set()

    monkeypatch.setattr(watched.watcher, "look", look)
    before = signal.getsignal(signal.SIGHUP)
    end = watched.watcher.watch(watched.directory, watched.keyring)
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        assert looked.wait(30)
    finally:
        end()
    assert signal.getsignal(signal.SIGHUP) is before
