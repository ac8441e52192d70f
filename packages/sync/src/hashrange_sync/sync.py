"""All pairs of the settings: once, or until somebody stops it.

    sync = Sync(load(Path("sync.toml")))
    sync.once()                             # both sides are equal now
    sync.run()                              # …and stay so, until `stop` is called

Each pair has a thread of its own in `run`, and a turn in `once`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final

from hashrange.cli.remote.clients import Clients, connect
from hashrange.clock import Clock, SystemClock
from hashrange_sync.errors import Denied, OutcomeUnknown, SettingsError, Superseded, SyncError, Unavailable
from hashrange_sync.pair import Pair
from hashrange_sync.settings import Place, Settings, checked
from hashrange_sync.sides.bodies import quicken
from hashrange_sync.stored.conflicts import Conflict
from hashrange_sync.stored.status import PairStatus

_log = logging.getLogger("hashrange_sync")

_PAUSE_SECONDS_MAX: Final = 30.0
_STOPPED_SECONDS: Final = 60.0


def clients_of(place: Place) -> Clients:
    """Clients of a side: of Amazon DynamoDB itself without an endpoint, whatever the environment names.
    Raises the errors of boto3."""
    only_aws = place.endpoint is None
    return quicken(connect(place.endpoint, place.region, profile=place.profile, only_aws=only_aws))


class Sync:
    """Keeps pairs of tables equal.

    cloud, edge: boto3's clients, made from the settings by default. clock: the time, for the log, expiries
    and the pace. wait: how to wait for so many seconds; a test may advance its clock. workers: how many
    requests are sent side by side for each pair; 0 sends one after the other. attempts: how often a request
    is sent at most. Raises `SettingsError`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        cloud: Clients | None = None,
        edge: Clients | None = None,
        clock: Clock | None = None,
        wait: Callable[[float], object] | None = None,
        workers: int = 16,
        attempts: int = 4,
    ) -> None:
        self.settings = checked(settings)
        self._stop = threading.Event()
        self._wait = wait or self._stop.wait
        self._pools = ExitStack()
        cloud = cloud or clients_of(settings.cloud)
        edge = edge or clients_of(settings.edge)
        self.pairs = [
            Pair(
                pair,
                cloud,
                edge,
                clock=clock or SystemClock(),
                wait=self._wait,
                pool=self._pools.enter_context(ThreadPoolExecutor(workers)) if workers else None,
                attempts=attempts,
                batches=settings.cloud.batches,
            )
            for pair in settings.pairs
        ]

    def __enter__(self) -> Sync:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and release the threads."""
        self.stop()
        self._pools.close()

    def stop(self) -> None:
        """Let `run` return after what it is doing."""
        self._stop.set()

    def pair(self, name: str) -> Pair:
        """A pair by its name. Raises `SettingsError`."""
        for pair in self.pairs:
            if pair.settings.title == name:
                return pair
        names = ", ".join(pair.settings.title for pair in self.pairs)
        raise SettingsError(f"There is no pair {name!r}; there are {names}.")

    def conflict(self, name: str) -> tuple[Pair, Conflict]:
        """A conflict with its images, by its id, and its pair. Raises `SyncError`."""
        for pair in self.pairs:
            if any(entry.id == name for entry in pair.log.entries()):
                return pair, pair.log.find(name)
        raise SyncError(f"There is no conflict {name}; `hashrange sync conflicts list` shows all.")

    def once(self) -> list[PairStatus]:
        """Make all pairs equal. Raises the first `SyncError`, after all pairs had their turn."""
        first: SyncError | None = None
        for pair in self.pairs:
            try:
                pair.once()
            except SyncError as error:
                pair.show_error()
                first = first or error
        if first is not None:
            raise first
        return [pair.current() for pair in self.pairs]

    def run(self) -> None:
        """Keep all pairs equal until `stop`. A pair that cannot go on is tried again: soon if a side does not
        answer, each minute if a person must act. Raises `Superseded` if another process has taken over."""
        with ThreadPoolExecutor(len(self.pairs)) as threads:
            running = [threads.submit(self._run_pair, pair) for pair in self.pairs]
            for one in running:
                one.result()

    def _run_pair(self, pair: Pair) -> None:
        try:
            self._keep(pair)
        except BaseException:
            self.stop()
            raise

    def _keep(self, pair: Pair) -> None:
        failures = 0
        last = ""
        while not self._stop.is_set():
            try:
                pause = 0.0 if pair.cycle() else self.settings.poll
                failures, last = 0, ""
            except Superseded:
                raise
            except SyncError as error:
                again, last = str(error) == last, str(error)
                if not again:
                    fields = {"pair": pair.settings.title, "error": last}
                    _log.warning("the pair cannot go on", extra={"fields": fields})
                pair.show_error(again=again)
                passing = isinstance(error, Unavailable) and not isinstance(error, Denied)
                pause = min(_PAUSE_SECONDS_MAX, 0.1 * 2**failures) if passing else _STOPPED_SECONDS
                pause = _PAUSE_SECONDS_MAX if isinstance(error, Denied) else pause
                pause = 0.0 if isinstance(error, OutcomeUnknown) and not failures else pause
                failures = min(failures + 1, 10)
            if pause:
                self._wait(pause)
