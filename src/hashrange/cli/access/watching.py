"""Watches over the users file, and over the keys of a store that several servers share: `Watcher`.

Once a second it looks whether the file or the stored keys have changed. A file counts when it has stayed the
same for a second, so that a half-written one is not read; a SIGHUP reads it at once. If the new file cannot
be used, the users stay as they were, and the log says where the fault is. A file may be wrong in ways that
nobody foresees, such as a thousand levels, so every error counts: a thread that ended would end the server.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hashrange.access.directory import Directory
    from hashrange.access.keys import Keyring
    from hashrange.access.users import Users

LOOK_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)

Seen = tuple[int, ...]


class Watcher:
    """Keeps a directory up to date. `load` reads the users anew; it raises ValueError if that fails."""

    def __init__(self, file: Path | None, load: Callable[[], Users]) -> None:
        self._file = file
        self._load = load
        self._read: Seen = ()
        self._seen: Seen = ()
        self._is_failing = False
        self._asked = threading.Event()
        self._ending = False

    def first(self) -> Users:
        """The users at the start. Raises ValueError."""
        self._read = self._seen = self._look()
        return self._load()

    def watch(self, directory: Directory, keyring: Keyring) -> Callable[[], None]:
        """Begin to watch, on a thread; returns what ends it."""
        before: Any = None
        has_signal = hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread()
        if has_signal:
            before = signal.signal(signal.SIGHUP, lambda *_: self._asked.set())

        def run() -> None:
            while not self._ending:
                asked = self._asked.wait(LOOK_SECONDS)
                self._asked.clear()
                if not self._ending:
                    self.look(directory, keyring, asked=asked)

        def end() -> None:
            if has_signal:
                signal.signal(signal.SIGHUP, before)
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
                _log.warning("the keys of the store cannot be read; the known ones stay: %s", error)
            self._is_failing = True
        else:
            self._is_failing = False

    def _reload(self, directory: Directory) -> None:
        fields = {"file": str(self._file)}
        try:
            users = self._load()
        except Exception as error:
            fields["why"] = str(error)
            _log.error("the users stay as they were: the new users file is wrong", extra={"fields": fields})
            return
        directory.set_users(users)
        _log.info("read the users file again", extra={"fields": fields | {"keys": len(users.keys)}})

    def _look(self) -> Seen:
        """What distinguishes the file from an earlier one; () if it is not there."""
        if self._file is None:
            return ()
        try:
            found = os.stat(self._file)
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino
