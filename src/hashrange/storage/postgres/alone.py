"""Bodies that run alone, on the calling thread: under the exclusive lock of the store, in place of a commit.

Refuses to know: SQL.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from hashrange.storage.postgres.commits import FORGOTTEN, Commits
from hashrange.storage.postgres.connections import Lost, Refused, Retry
from hashrange.storage.postgres.direct import DirectTransaction
from hashrange.storage.postgres.groups import Group
from hashrange.storage.postgres.members import commit_failed, commit_unknown
from hashrange.storage.postgres.writer import Doubt, Undone

_log = logging.getLogger(__name__)


class Alone:
    """Runs bodies alone among the commits of an engine."""

    def __init__(self, commits: Commits) -> None:
        self._commits = commits

    def run(self, body: Callable[[Any], Any]) -> Any:
        """Run a body. Raises what the body raises, CommitFailed, CommitUnknown."""
        lost = False
        while True:
            try:
                return self._run_once(self._commits.take_place(), body, lost)
            except Retry:
                pass
            except Lost:
                # The connection may have been cut while it was idle, so try once more.
                lost = True

    def _run_once(self, place: Group, body: Callable[[Any], Any], lost: bool) -> Any:
        """Raises Retry, or Lost if no connection was `lost` before, if the body has to run again."""
        commits = self._commits
        try:
            return commits.writer.alone(place.version, body, commits.fault, self._learn)
        except (Undone, Refused) as error:
            _log.error("%s", error)
            raise commit_failed(str(error)) from None
        except Doubt as doubt:
            with commits.lock:
                commits.cache.clear()
            commits.catalog.forget()
            if doubt.chosen:
                raise commit_unknown(str(doubt)) from None
            if self._resolve(place, doubt):
                return doubt.result
            raise Retry(str(doubt)) from None
        except Lost as error:
            if not lost:
                raise
            commits.break_off(str(error), [], commit_failed(str(error)))
            raise commit_failed(str(error)) from None
        finally:
            commits.end_place(place)

    def _resolve(self, place: Group, doubt: Doubt) -> bool:
        """Whether a body was committed. Raises CommitUnknown."""
        try:
            came_to_pass = self._commits.resolve(place, str(doubt))
        except Lost as error:
            self._commits.break_off(str(error), [], commit_failed(str(error)))
            raise commit_unknown(f"{doubt}; and then: {error}") from None
        if came_to_pass is None:
            raise commit_unknown(f"{doubt}; {FORGOTTEN}")
        return came_to_pass

    def _learn(self, txn: DirectTransaction, version: int) -> None:
        """Add a body's writes to what the engine knows."""
        with self._commits.lock:
            self._commits.cache.add({key: value for key, value in txn.own.items() if key[0]}, version)
