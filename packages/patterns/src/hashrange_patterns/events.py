"""Events in: a queue between an endpoint that answers at once and workers that count.

    queue = TableEvents(client, "blog", "views")                       # no server needed
    queue = BrokerEvents("amqp://localhost", Jobs(client, "blog", "views"))    # RabbitMQ: `brokers`
    queue = SqsEvents(sqs, queue_url, Jobs(client, "blog", "views"))           # SQS: `sqs`

    queue.put(['{"id": "e1", "url": "/home"}'])                        # the endpoint

    def count(bodies: list[str]) -> None:                              # the workers
        counters.count([Event(**json.loads(body)) for body in bodies])

    Worker(queue, count).run(stop)

Every event is delivered at least once: again if its worker died, if handling it failed, and sometimes for no
visible reason. So the handler has to tolerate duplicates, as counters do by the event's id. An event that
failed `attempts_max` times is put aside, with the reason; `dead` shows such events, `replay` puts one back. A
delivery after which the event is given back, because its worker stops or its table is throttled, does not
count.

If more than `waiting_max` events wait, `put` raises `QueueFull`: answer with status 503, and let the sender
try again. Without this limit a queue that nobody empties would grow until it fails.

Refuses to know what is in events.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hashrange_patterns.flows import Client
from hashrange_patterns.jobs import DeadJob, Jobs, check_payload
from hashrange_patterns.leases import Leases, reason_of, repeat
from hashrange_patterns.requests import Runtime, Unreachable, is_passing
from hashrange_patterns.tables import Table

_log = logging.getLogger(__name__)

Handler = Callable[[list[str]], object]
"""Handles events; if it raises, they are delivered again, one by one."""


class QueueFull(Exception):
    """Too many events wait; nothing was put. Answer with status 503."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event that was taken, and the number of its deliveries, including this one. `handle` belongs to the
    queue."""

    body: str
    attempts: int
    handle: Any


class EventQueue(Protocol):
    """A durable queue of events, each a text."""

    @property
    def lease_seconds(self) -> float | None:
        """How long an event belongs to its worker; None if as long as the worker is connected."""

    def put(self, bodies: Sequence[str]) -> None:
        """Put events into the queue.

        Raises `QueueFull`, `Unreachable` if they may not be in it, and ValueError for an event that is larger
        than a dead letter may be; then none is put.
        """

    def take(self, limit: int, wait_seconds: float) -> list[Delivery]:
        """Up to `limit` events; waits up to `wait_seconds` for the first."""

    def done(self, deliveries: Sequence[Delivery]) -> None:
        """Remove finished events from the queue."""

    def extend(self, deliveries: Sequence[Delivery]) -> None:
        """Keep events for `lease_seconds` from now."""

    def failed(self, delivery: Delivery, reason: str) -> None:
        """Give an event back, or put it aside if this was its last attempt."""

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Give back events that were not handled, for others; this delivery does not count."""

    def dead(self, *, limit: int = 100, after: DeadJob | None = None) -> list[DeadJob]:
        """The events that were put aside, oldest first; with `after`, those behind that one."""

    def replay(self, dead: DeadJob) -> bool:
        """Put a dead event back into the queue, with all its attempts; False if somebody else did."""


class Gauge:
    """Checks whether too many events wait; counts them at most once in `look_seconds`."""

    def __init__(
        self,
        length: Callable[[], int],
        waiting_max: int | None,
        look_seconds: float,
        elapsed: Callable[[], float],
    ) -> None:
        self._length = length
        self._waiting_max = waiting_max
        self._look_seconds = look_seconds
        self._elapsed = elapsed
        self._looked_at = -look_seconds
        self._waiting = 0

    def check(self, bodies: Sequence[str]) -> None:
        """Raise `QueueFull` if the events are too many for now; ValueError if they always are, or one is too
        large."""
        if isinstance(bodies, str):
            raise TypeError(f"put takes a list of events, and {bodies!r} is a text: put [{bodies!r}]")
        for body in bodies:
            check_payload(body)
        more = len(bodies)
        if self._waiting_max is None:
            return
        if more > self._waiting_max:
            raise ValueError(f"{more} events at once never fit: waiting_max is {self._waiting_max}")
        now = self._elapsed()
        if now - self._looked_at >= self._look_seconds:
            self._waiting = self._length()
            self._looked_at = now
        self._waiting += more
        if self._waiting > self._waiting_max:
            # (count again at the next call: the queue may be empty by then)
            self._looked_at = -self._look_seconds
            raise QueueFull(f"{self._waiting - more} events wait, and {self._waiting_max} may")


class TableEvents:
    """A queue in a table: needs no server but the database; see `Jobs` for the meaning of the numbers.

    Costs 2 write units to put an event and 3 to take and finish it, besides the handler's costs.
    """

    def __init__(
        self,
        client: Client,
        table: Table | str,
        name: str,
        *,
        lease_seconds: float = 60.0,
        attempts_max: int = 5,
        shards: int = 1,
        waiting_max: int | None = None,
        look_seconds: float = 1.0,
        poll_seconds: float = 0.25,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._jobs = Jobs(
            client,
            table,
            name,
            lease_seconds=lease_seconds,
            attempts_max=attempts_max,
            shards=shards,
            runtime=runtime,
        )
        self.lease_seconds: float | None = lease_seconds
        self._runtime = runtime
        self._poll_seconds = poll_seconds
        self._sleep = sleep
        at_most = (waiting_max or 0) + 1
        self._gauge = Gauge(
            lambda: self._jobs.waiting(at_most=at_most), waiting_max, look_seconds, runtime.elapsed
        )

    def put(self, bodies: Sequence[str]) -> None:
        self._gauge.check(bodies)
        for body in bodies:
            try:
                self._jobs.put(body)
            except Exception as error:
                if is_passing(error):
                    raise Unreachable(str(error)) from error
                raise

    def take(self, limit: int, wait_seconds: float) -> list[Delivery]:
        until = self._runtime.elapsed() + wait_seconds
        deliveries: list[Delivery] = []
        while len(deliveries) < limit:
            try:
                job = self._jobs.take()
            except Exception:
                if deliveries:
                    break  # (those that were taken are not to wait until their leases are over)
                raise
            if job is not None:
                deliveries.append(Delivery(job.payload, job.attempts - job.uncounted, job))
            elif deliveries or self._runtime.elapsed() >= until:
                break
            else:
                self._sleep(min(self._poll_seconds, max(0.0, until - self._runtime.elapsed())))
        return deliveries

    def done(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._jobs.done(delivery.handle)

    def extend(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._jobs.extend(delivery.handle)

    def failed(self, delivery: Delivery, reason: str) -> None:
        self._jobs.retry(delivery.handle, reason, delay_seconds=2.0 ** min(delivery.attempts, 6) - 2)

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._jobs.give_back(delivery.handle)

    def dead(self, *, limit: int = 100, after: DeadJob | None = None) -> list[DeadJob]:
        return self._jobs.dead(limit=limit, after=after)

    def replay(self, dead: DeadJob) -> bool:
        return self._jobs.replay(dead)


class Worker:
    """Takes events from a queue in batches, and handles them; several may run, in threads or processes.

    The events of a batch that fails are handled one by one, so that a bad event does not hold up the others.
    While the table is throttled or cannot be reached, which is not the events' fault, the worker waits, and
    the attempts do not count. While it waits or handles, a thread extends the leases of its events: a slow
    handler keeps them.
    """

    def __init__(
        self,
        queue: EventQueue,
        handle: Handler,
        *,
        batch_max: int = 99,
        wait_seconds: float = 1.0,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        self._queue = queue
        self._handle = handle
        self._batch_max = batch_max
        self._wait_seconds = wait_seconds
        self._runtime = runtime

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; the current batch is finished, or given back."""
        repeat(lambda: self.step(stop), stop, self._runtime)

    def step(self, stop: threading.Event) -> int:
        """Take and handle a batch; returns the number of its events."""
        deliveries = self._queue.take(self._batch_max, self._wait_seconds)
        if not deliveries:
            return 0
        held = Leases(deliveries, self._queue.extend, self._queue.lease_seconds)
        with held:
            try:
                self._work(held, stop)
            except Exception as error:
                if is_passing(error):
                    self._queue.give_back(held.all)
                raise
        return len(deliveries)

    def _work(self, held: Leases[Delivery], stop: threading.Event) -> None:
        deliveries = held.all
        if self._tried(deliveries, stop) is None:
            self._queue.done(deliveries)
            return
        for delivery in deliveries:
            if stop.is_set():
                self._queue.give_back(held.all)
                return
            reason = self._tried([delivery], stop)
            held.drop(delivery)
            self._settle(delivery, reason)

    def _settle(self, delivery: Delivery, reason: str | None) -> None:
        """Say how one event ended. If that fails for another reason than the table's, the others go on: the
        event is delivered again when its lease is over."""
        try:
            if reason is None:
                self._queue.done([delivery])
            else:
                self._queue.failed(delivery, reason)
        except Exception as error:
            if is_passing(error):
                raise
            _log.exception("the queue did not take the end of an event")

    def _tried(self, deliveries: Sequence[Delivery], stop: threading.Event) -> str | None:
        """Handle events; returns why that failed, or None.

        Raises the table's error if `stop` is set.
        """
        failures = 0
        while True:
            try:
                self._handle([delivery.body for delivery in deliveries])
                return None
            except Exception as error:
                if not is_passing(error):
                    return reason_of(error)
                if stop.is_set():
                    raise
            stop.wait(self._runtime.pause(failures).seconds)
            failures += 1
