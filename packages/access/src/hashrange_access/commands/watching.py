"""Watches over the users file, and over the keys of a store that several servers share: `Watcher`.

Once a second it looks whether the file or the stored keys have changed. A file counts when it has stayed the
same for a second, so that a half-written one is not read; `ask` reads it at once. If the new file cannot be
used, the users are unchanged, and the log says where the fault is. Whatever goes wrong here is logged:
the watch goes on, and so does the server.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hashrange.files import regular

if TYPE_CHECKING:
    from hashrange_access.directory import Directory
    from hashrange_access.keys.keyring import Keyring
    from hashrange_access.users import Users

LOOK_SECONDS: Final = 1.0
_WHY_CHARS_MAX: Final = 1_000

_log = logging.getLogger("hashrange.access")

Seen = tuple[int, ...]


class Watcher:
    """Keeps a directory up to date. `load` reads the users again; it raises ValueError if that fails."""

    def __init__(self, file: Path | None, load: Callable[[], Users]) -> None:
        self._file = file
        self._load = load
        self._read: Seen = ()
        self._seen: Seen = ()
        self._is_failing = False
        self._is_broken = False
        self._asked = threading.Event()
        self._ending = False

    def first(self) -> Users:
        """The users at the start. Raises ValueError."""
        self._read = self._seen = self._look()
        users = self._load()
        self._warn(users)
        return users

    def ask(self) -> None:
        """Let the watch read the users file at once."""
        self._asked.set()

    def watch(self, directory: Directory, keyring: Keyring) -> Callable[[], None]:
        """Begin to watch, on a thread; returns what ends it."""

        def run() -> None:
            while True:
                asked = self._asked.wait(LOOK_SECONDS)
                self._asked.clear()
                if self._ending:
                    return
                try:
                    self.look(directory, keyring, asked=asked)
                except Exception:
                    # (damaged records of keys, for one)
                    if not self._is_broken:
                        _log.exception(
                            "looking for changed users and keys failed; known users and keys stay valid"
                        )
                    self._is_broken = True
                else:
                    self._is_broken = False

        def end() -> None:
            self._ending = True
            self._asked.set()
            thread.join()

        thread = threading.Thread(target=run, name="hashrange-access", daemon=True)
        thread.start()
        return end

    def look(self, directory: Directory, keyring: Keyring, *, asked: bool) -> None:
        """Read what has changed. `asked`: the users file, whether it has changed or not."""
        if self._file is not None:
            seen, self._seen = self._seen, self._look()
            if asked or (self._seen != self._read and self._seen == seen):
                self._read = self._seen
                self._reload(directory)
        try:
            keyring.refresh()
        except Exception as error:
            if not self._is_failing:
                _log.warning("the keys of the store cannot be read; known keys stay valid: %s", error)
            self._is_failing = True
        else:
            self._is_failing = False

    def _reload(self, directory: Directory) -> None:
        fields = {"file": str(self._file)}
        try:
            users = self._load()
        except Exception as error:
            known = isinstance(error, ValueError)
            fields["why"] = (str(error) if known else f"it cannot be read: {error!r}")[:_WHY_CHARS_MAX]
            _log.error("the users are unchanged: the new users file is wrong", extra={"fields": fields})
            return
        directory.set_users(users)
        _log.info("read the users file again", extra={"fields": fields | {"keys": len(users.keys)}})
        self._warn(users)

    def _warn(self, users: Users) -> None:
        """Warn of a file that others may write, or read although it has secrets. The server uses it all the
        same: a file that is refused would keep keys that it revokes."""
        if self._file is None:
            return
        try:
            others = regular.others_may(self._file)
        except OSError:  # the file has just disappeared
            return
        fields = {"file": str(self._file), "remedy": f"chmod 600 {self._file}"}
        if others & (stat.S_IWGRP | stat.S_IWOTH):
            _log.warning("other users of this machine may change the users file", extra={"fields": fields})
        elif users.keys and others & (stat.S_IRGRP | stat.S_IROTH):
            _log.warning("other users of this machine can read the users file", extra={"fields": fields})

    def _look(self) -> Seen:
        """What distinguishes the file from an earlier one; () if it is not there."""
        if self._file is None:
            return ()
        try:
            found = os.stat(self._file)
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino
