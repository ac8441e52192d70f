"""The worker: follows all streams and shards of a table, parents before children, until it is stopped.

The life of a record: `Worker._discover_shards` finds its shard, and makes a `ShardRun` for the shard when the
shard's parent has been read to its end. `ShardRun.step` reads the record (`source.Cursor`), filters it
(`filters`), puts it into a batch, delivers it (`delivery.Lane`), and saves the checkpoint (`checkpoints`).

A stream that was disabled is read to its end before the next stream of the same table. Shards are processed
at the same time, so several threads call the function if there are several shards.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Final

from hashrange.cli.remote import clients as remote
from hashrange.cli.remote.clients import Clients
from hashrange.clock import Clock, SystemClock, has_come
from hashrange_triggers import failures, source
from hashrange_triggers.checkpoints import DEFAULT_TABLE, Checkpoint, Checkpoints
from hashrange_triggers.delivery import PAUSE_SECONDS_MAX as LANE_PAUSE_SECONDS_MAX
from hashrange_triggers.delivery import Attempt, Policy, Reason
from hashrange_triggers.events import Context, Record, created_at
from hashrange_triggers.filters import Predicate
from hashrange_triggers.functions import Function
from hashrange_triggers.shard import Batching, Handling, ShardRun
from hashrange_triggers.source import Cursor, ShardInfo, Start, StreamInfo, TriggerError

_log = logging.getLogger("hashrange_triggers")

_DISCOVER_SECONDS: Final = 5.0
_PROGRESS_SECONDS: Final = 10.0
_PAUSE_SECONDS_MAX: Final = 30.0
# This machine's clock may be this far ahead of the service's, so positions are looked up for a time that is
# earlier by this much.
_AHEAD_SECONDS_MAX: Final = 60.0
_SHARDS_AT_ONCE_MAX: Final = 64
_NO_STREAM: Final = "The table {table} has no stream that is on; enable one with UpdateTable."


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a trigger.

    name: the name of its checkpoints; another name makes another trigger.
    starting_position: where it starts when it has no checkpoint yet.
    on_failure: ``table:NAME`` or the path of a file, for records that were given up.
    """

    name: str
    batching: Batching = Batching()  # noqa: RUF009 (immutable)
    policy: Policy = Policy()  # noqa: RUF009 (immutable)
    starting_position: Start = "TRIM_HORIZON"
    matches: Predicate = lambda record: True
    on_failure: str | None = None
    checkpoint_table: str = DEFAULT_TABLE


@dataclass(slots=True)
class Totals:
    """The work of a worker so far, in records and calls; `behind` is the age of the last record, in
    seconds."""

    delivered: int = 0
    discarded: int = 0
    calls: int = 0
    errors: int = 0
    behind: float = 0.0


@dataclass(slots=True)
class _Running:
    """The state of a shard: its run, the time of its next step, and how often it could not reach the
    service."""

    place: str
    run: ShardRun
    due: float = 0.0
    troubles: int = 0
    future: Future[float] | None = field(default=None)


class Worker:
    """Runs one trigger. `cycle` does the work that is due; `run` calls it until `stop` is set."""

    def __init__(
        self,
        clients: Clients,
        table: str,
        function: Function,
        options: Options,
        *,
        clock: Clock = SystemClock(),  # noqa: B008 (stateless)
        threads: bool = True,
    ) -> None:
        """Raises `TriggerError`. Without `threads`, shards and lanes take turns in the caller's thread."""
        self.totals = Totals()
        self._clients, self._table, self._function = clients, table, function
        self._options, self._clock = options, clock
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_SHARDS_AT_ONCE_MAX) if threads else None
        self._checkpoints = Checkpoints(clients, options.checkpoint_table, options.name)
        self._destination = failures.destination(clients, options.on_failure) if options.on_failure else None
        self._shards: dict[str, _Running] = {}
        self._cursors: dict[str, Cursor] = {}
        # No shard waits longer than this. If a shard seems to, it was postponed before the clock was set
        # back.
        self._wait_seconds_max = max(LANE_PAUSE_SECONDS_MAX, options.batching.poll_interval)
        self._discover_at = 0.0
        self._progress_at = 0.0
        self._shown = 0
        self._troubles = 0
        self._known: dict[str, Checkpoint] = {}
        self._load()

    def _load(self) -> None:
        streams, current = source.table_streams(self._clients, self._table)
        if not streams:
            raise TriggerError(_NO_STREAM.format(table=self._table))
        if self._checkpoints.create_table():
            fields = {"table": self._options.checkpoint_table}
            _log.info("created table of checkpoints", extra={"fields": fields})
        self._known = self._checkpoints.load()
        if not any(_is_stream(place) for place in self._known):
            # The stream's checkpoint is written last: a worker that was killed before this has not started
            # yet.
            stream = next((enabled for enabled in streams if enabled.arn == current), None)
            if stream is None:
                raise TriggerError(_NO_STREAM.format(table=self._table))
            self._begin(stream)
            self._known = self._checkpoints.load()

    def run(self, stop: threading.Event) -> Totals:
        """Work until `stop` is set; then finish the current deliveries, and save their checkpoints."""
        try:
            while not stop.is_set():
                seconds = self.cycle()
                running = [shard.future for shard in self._shards.values() if shard.future is not None]
                if running:
                    patience = min(seconds, self._options.batching.poll_interval)
                    wait(running, timeout=patience, return_when=FIRST_COMPLETED)
                elif seconds > 0:
                    stop.wait(seconds)
        finally:
            self._drain()
        return self.totals

    def cycle(self) -> float:
        """Do the work that is due, and return the seconds until more is due."""
        now = self._clock.now()
        for shard in list(self._shards.values()):
            if shard.future is not None and shard.future.done():
                self._settle(shard, shard.future, now)
        if has_come(self._discover_at, now, _PAUSE_SECONDS_MAX):
            self._discover_at = now + self._find_shards(now)
        for shard in list(self._shards.values()):
            if shard.future is None and has_come(shard.due, now, self._wait_seconds_max):
                self._start(shard, now)
        self._show_progress(now)
        waiting = [shard.due for shard in self._shards.values() if shard.future is None]
        return max(0.0, min([self._discover_at, *waiting]) - now)

    def _start(self, shard: _Running, now: float) -> None:
        if self._pool is not None:
            shard.future = self._pool.submit(shard.run.step, now)
            return
        future: Future[float] = Future()
        try:
            future.set_result(shard.run.step(now))
        except Exception as error:
            future.set_exception(error)
        self._settle(shard, future, now)

    def _settle(self, shard: _Running, future: Future[float], now: float) -> None:
        """Handle the outcome of a shard's step: the time of its next step, the end of the shard, or an
        error."""
        shard.future = None
        try:
            shard.due = now + future.result()
            if shard.run.finished:
                self._finish(shard, now)
            shard.troubles = 0
        except Exception as error:
            # Records that nobody keeps stay, and the shard waits: somebody may mend the destination.
            if not remote.is_transient(error) and not isinstance(error, failures.NotStored):
                raise
            shard.troubles += 1
            shard.due = now + self._pause(shard.place, error, shard.troubles)

    def _pause(self, where: str, error: Exception, times: int) -> float:
        seconds = min(0.5 * 2.0 ** min(times, 10), _PAUSE_SECONDS_MAX)
        fields = {"where": where, "error": remote.explain(error), "again_in_seconds": seconds}
        if isinstance(error, failures.NotStored):
            _log.error("discarded records cannot be stored", extra={"fields": fields})
        else:
            _log.warning("the service does not answer", extra={"fields": fields})
        return seconds

    def _finish(self, shard: _Running, now: float) -> None:
        self._checkpoints.finish(shard.place, now)
        shard.run.close()
        del self._shards[shard.place]
        self._known[shard.place] = Checkpoint(done=True)
        # The shard's children may begin.
        self._discover_at = now
        _log.info("shard finished", extra={"fields": {"shard": shard.place}})

    # Streams and shards

    def _begin(self, stream: StreamInfo) -> None:
        """Save where the trigger starts, so that a restart before its first record misses none.

        The stream's checkpoint is written after those of all its shards. A worker that was killed before that
        starts again, and keeps the saved positions, because they are earlier than the current ones.
        """
        now = self._clock.now()
        if self._options.starting_position == "LATEST":
            for shard in source.shards_of(self._clients, stream.arn)[0]:
                place = f"{stream.label}/{shard.id}"
                if place in self._known:
                    continue
                iterator = None
                if not shard.closed:
                    self._cursors[place] = Cursor(self._clients, stream.arn, shard.id, "LATEST")
                    iterator = self._cursors[place].open(since=now - _AHEAD_SECONDS_MAX)
                since = now - _AHEAD_SECONDS_MAX
                self._checkpoints.begin(place, now, since=since, iterator=iterator, done=shard.closed)
        self._checkpoints.begin(stream.label, now)

    def _find_shards(self, now: float) -> float:
        """Start the shards whose turn it is. Returns the seconds until the next call."""
        try:
            self._discover(now)
        except Exception as error:
            if not remote.is_transient(error):
                raise
            self._troubles += 1
            return self._pause(self._table, error, self._troubles)
        self._troubles = 0
        return _DISCOVER_SECONDS

    def _discover(self, now: float) -> None:
        streams, _ = source.table_streams(self._clients, self._table)
        first = min(place for place in self._known if _is_stream(place))
        labels = {stream.label for stream in streams}
        # Streams before the first stream are older than the trigger, and are not read. If the first stream no
        # longer exists, they do not exist either: an earlier label then belongs to a newer stream, which was
        # made after the clock was set back.
        oldest = first if first in labels else ""
        for place in [
            known_place
            for known_place in self._known
            if known_place.partition("/")[0] not in labels and known_place != first
        ]:
            self._forget(place)
        for stream in streams:
            if stream.label < oldest or self._known.get(stream.label, Checkpoint()).done:
                continue
            if stream.label not in self._known:
                self._checkpoints.begin(stream.label, now)
                self._known[stream.label] = Checkpoint()
            if not self._discover_shards(stream, now):
                return

    def _discover_shards(self, stream: StreamInfo, now: float) -> bool:
        """Start the shards of a stream whose turn it is. Returns whether all shards of the stream are
        done."""
        shards, is_on = source.shards_of(self._clients, stream.arn)
        listed = {f"{stream.label}/{shard.id}" for shard in shards}
        for place in [
            known_place
            for known_place in self._known
            if known_place.startswith(stream.label + "/") and known_place not in listed
        ]:
            self._forget(place)
        unfinished = {place for place in listed if not self._known.get(place, Checkpoint()).done}
        for shard in shards:
            place = f"{stream.label}/{shard.id}"
            waits = shard.parent is not None and f"{stream.label}/{shard.parent}" in unfinished
            if place in unfinished and not waits and place not in self._shards:
                self._open(stream, shard, place)
        if unfinished or is_on:
            return False
        self._checkpoints.finish(stream.label, now)
        self._known[stream.label] = Checkpoint(done=True)
        return True

    def _forget(self, place: str) -> None:
        """Remove the checkpoint of a shard or stream that no longer exists."""
        if place not in self._shards:
            self._checkpoints.forget(place)
            del self._known[place]

    def _open(self, stream: StreamInfo, shard: ShardInfo, place: str) -> None:
        checkpoint = self._known.get(place, Checkpoint())
        start: Start | float = checkpoint.since if checkpoint.since is not None else "TRIM_HORIZON"
        cursor = self._cursors.pop(place, None)
        cursor = cursor or Cursor(
            self._clients, stream.arn, shard.id, start, checkpoint.sequence, iterator=checkpoint.iterator
        )
        context = f"{self._options.name}/{shard.id}"

        def call(records: list[Record], attempt: int) -> Any:
            lambda_context = Context(self._options.name, records[0]["eventID"], shard.id, attempt)
            return self._function({"Records": records}, lambda_context)

        def discard(records: list[Record], reason: Reason, calls: int) -> None:
            self._discard(shard.id, records, reason, calls)

        handling = Handling(self._options.matches, call, discard, self._options.policy)
        run = ShardRun(
            cursor,
            self._options.batching,
            handling,
            save=lambda sequence: self._checkpoints.advance(place, sequence, self._clock.now()),
            report=lambda attempt, record: self._report(context, attempt, record),
        )
        self._shards[place] = _Running(place, run)
        fields = {"shard": place, "from": checkpoint.sequence or start}
        _log.info("shard opened", extra={"fields": fields})

    # What happens to records

    def _discard(self, shard_id: str, records: list[Record], reason: Reason, calls: int) -> None:
        now = self._clock.now()
        fields = {"shard": shard_id, "records": len(records), "reason": reason, "calls": calls}
        _log.error("records discarded", extra={"fields": fields})
        if self._destination is not None:
            failure = failures.describe(self._options.name, shard_id, records, reason, calls, now)
            try:
                self._destination.store(failure)
            except Exception as error:
                raise failures.NotStored(remote.explain(error)) from error

    def _report(self, context: str, attempt: Attempt, record: Record | None) -> None:
        with self._lock:
            self.totals.delivered += attempt.delivered
            self.totals.discarded += attempt.discarded
            self.totals.calls += 1
            self.totals.errors += attempt.error is not None
            if record is not None:
                self.totals.behind = max(0.0, self._clock.now() - created_at(record))
        if attempt.error is not None:
            fields = {"where": context, "error": f"{type(attempt.error).__name__}: {attempt.error}"}
            _log.warning("the function failed", extra={"fields": fields}, exc_info=attempt.error)

    def _show_progress(self, now: float) -> None:
        if not has_come(self._progress_at, now, _PROGRESS_SECONDS) or self.totals.calls == self._shown:
            return
        self._progress_at, self._shown = now + _PROGRESS_SECONDS, self.totals.calls
        totals = self.totals
        fields = {
            "delivered": totals.delivered,
            "calls": totals.calls,
            "errors": totals.errors,
            "given_up": totals.discarded,
            "behind_seconds": round(totals.behind, 1),
        }
        _log.info("progress", extra={"fields": fields})

    def _drain(self) -> None:
        """Wait until the running steps end, and save the checkpoint of each shard."""
        wait([shard.future for shard in self._shards.values() if shard.future is not None])
        for shard in self._shards.values():
            try:
                shard.run.save()
            except Exception as error:
                fields = {"shard": shard.place, "error": remote.explain(error)}
                _log.error("the last records will be delivered again", extra={"fields": fields})
            shard.run.close()
        if self._pool is not None:
            self._pool.shutdown()


def _is_stream(place: str) -> bool:
    """Whether a checkpoint is a stream's, not a shard's."""
    return "/" not in place
