"""Events through a broker: RabbitMQ, Redis or SQS, by kombu.

    queue = BrokerEvents("redis://localhost:6379/0", Jobs(client, "blog", "views"))

This module adds what kombu leaves open:

- *Attempts.* Brokers say only that an event was delivered before; SQS gives a count. An event that was
  delivered before or that failed is put into the queue again with the number of its deliveries, and then the
  old event is removed. If the worker dies in between, there are two: events are delivered at least once.
- *Dead letters* are items of the table, in the form of `Jobs`, so that they can be inspected and replayed in
  the same way with every broker, and survive it.
- *Broken connections.* The next call replaces a connection that broke. Events that were taken over the old
  connection are delivered again, because they can no longer be acknowledged.
- *Waiting for the broker.* RabbitMQ says when an event is on disk (publisher confirms), and only then `put`
  returns. Redis answers after its log is on disk if it runs with ``appendonly yes`` and
  ``appendfsync always``, and loses the events of the last second or more if it does not.

A connection belongs to one thread at a time: the methods of one object wait for each other.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import kombu
from kombu.exceptions import KombuError, OperationalError

from hashrange_patterns.events import Delivery, Gauge, QueueFull, Unreachable
from hashrange_patterns.identifiers import Identifiers
from hashrange_patterns.jobs import DeadJob, Jobs
from hashrange_patterns.requests import Runtime

T = TypeVar("T")

_ATTEMPTS: Final = "attempts"
_MORE_SECONDS: Final = 0.01  # the wait for further events after the first
_SQS_WAIT_SECONDS: Final = 1  # a request to SQS waits this long for events, whatever `take` asks for

__all__ = ["BrokerEvents", "QueueFull", "Unreachable"]


class BrokerEvents:
    """A queue at a broker, whose dead letters are those of `jobs`; its name is the jobs' name.

    An event belongs to its worker for `lease_seconds`, and is delivered at most `attempts_max` times.
    RabbitMQ has no leases, but takes an event back as soon as the worker's connection ends. Each worker
    fetches `prefetch` events ahead.
    """

    def __init__(
        self,
        url: str,
        jobs: Jobs,
        *,
        lease_seconds: float = 60.0,
        attempts_max: int = 5,
        prefetch: int = 200,
        waiting_max: int | None = None,
        look_seconds: float = 1.0,
        connect_seconds: float = 5.0,
        transport_options: dict[str, Any] | None = None,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        self._url = url
        self._jobs = jobs
        self._attempts_max = attempts_max
        self._prefetch = prefetch
        self._connect_seconds = connect_seconds
        self._options = {
            "visibility_timeout": math.ceil(lease_seconds),  # (SQS takes whole seconds only)
            "wait_time_seconds": _SQS_WAIT_SECONDS,
            "unacked_restore_interval": max(1, int(lease_seconds / 4)),
            "unacked_restore_throttle": 1,
            "confirm_publish": True,
            "socket_timeout": connect_seconds + lease_seconds,
            "socket_connect_timeout": connect_seconds,
            **(transport_options or {}),
        }
        self._identifiers = Identifiers(runtime.now)
        self._queue = kombu.Queue(jobs.queue, durable=True)
        self._lock = threading.RLock()
        self._connection: Any = None
        self._consumer: Any = None
        self._fetched: list[Any] = []
        self._gauge = Gauge(self._length, waiting_max, look_seconds, runtime.elapsed)

    def put(self, bodies: Sequence[str]) -> None:
        def put() -> None:
            self._gauge.check(len(bodies))
            for body in bodies:
                self._publish(body, self._identifiers.next(), 0)

        self._connected(put)

    def take(self, limit: int, wait_seconds: float) -> list[Delivery]:
        def take() -> list[Delivery]:
            self._consume()
            deliveries: list[Delivery] = []
            self._drain(wait_seconds)
            while len(deliveries) < limit and (self._fetched or (deliveries and self._drain(_MORE_SECONDS))):
                message = self._fetched.pop(0)
                attempts = int(message.headers.get(_ATTEMPTS, 0)) + 1
                if _was_received_before(message):
                    # Its worker ended without a word. Count that before it may happen again.
                    self._again(message, attempts, "its worker ended without a word")
                else:
                    deliveries.append(Delivery(_text(message), attempts, message))
            return deliveries

        return self._connected(take)

    def done(self, deliveries: Sequence[Delivery]) -> None:
        def done() -> None:
            for delivery in deliveries:
                delivery.handle.ack()

        self._or_again_later(done)

    def failed(self, delivery: Delivery, reason: str) -> None:
        self._or_again_later(lambda: self._again(delivery.handle, delivery.attempts, reason))

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        def give_back() -> None:
            for delivery in deliveries:
                message = delivery.handle
                self._publish(delivery.body, _identifier(message), delivery.attempts - 1)
                message.ack()

        self._or_again_later(give_back)

    def dead(self, *, limit: int = 100) -> list[DeadJob]:
        return self._jobs.dead(limit=limit)

    def replay(self, dead: DeadJob) -> bool:
        # (into the queue first: if this process dies in between, the event is delivered twice rather than
        # never)
        self._connected(lambda: self._publish(dead.payload, self._identifiers.next(), 0))
        return self._jobs.forget(dead)

    def close(self) -> None:
        """Give back the events that were fetched ahead, and end the connection."""
        with self._lock:
            connection, self._connection, self._consumer, self._fetched = self._connection, None, None, []
            if connection is not None:
                try:
                    connection.release()
                except Exception as error:
                    if not isinstance(error, self._failures(connection)):
                        raise

    def _connected(self, work: Callable[[], T]) -> T:
        """Perform `work` over a connection. Raises `Unreachable`."""
        with self._lock:
            if self._connection is None:
                self._connection = kombu.Connection(
                    self._url, transport_options=self._options, connect_timeout=self._connect_seconds
                )
            failures = self._failures(self._connection)
            try:
                self._connection.ensure_connection(max_retries=1, timeout=self._connect_seconds)
                return work()
            except failures as error:
                self.close()
                raise Unreachable(f"{type(error).__name__}: {error}") from error

    def _or_again_later(self, work: Callable[[], None]) -> None:
        """Perform `work`; if the connection breaks, the events are delivered again, and counted again."""
        try:
            self._connected(work)
        except Unreachable:
            return

    @staticmethod
    def _failures(connection: Any) -> tuple[type[BaseException], ...]:
        return (
            *connection.connection_errors,
            *connection.channel_errors,
            OperationalError,
            KombuError,
            OSError,
        )

    def _consume(self) -> None:
        if self._consumer is None:
            self._consumer = kombu.Consumer(
                self._connection.default_channel,
                queues=[self._queue],
                on_message=self._fetched.append,
                prefetch_count=self._prefetch,
            )
            self._consumer.consume()

    def _drain(self, wait_seconds: float) -> bool:
        """Wait for events; returns whether there are any."""
        if not self._fetched:
            try:
                self._connection.drain_events(timeout=wait_seconds)
            except TimeoutError:
                return False
        return bool(self._fetched)

    def _again(self, message: Any, attempts: int, reason: str) -> None:
        """Put an event that was delivered `attempts` times into the queue again, or aside."""
        body, identifier = _text(message), _identifier(message)
        if attempts >= self._attempts_max:
            self._jobs.put_aside(DeadJob(identifier, body, attempts, reason))
        else:
            self._publish(body, identifier, attempts)
        message.ack()

    def _publish(self, body: str, identifier: str, attempts: int) -> None:
        producer = kombu.Producer(self._connection.default_channel)
        producer.publish(
            body.encode(),
            routing_key=self._queue.name,
            declare=[self._queue],
            content_type="application/octet-stream",
            content_encoding="binary",
            headers={_ATTEMPTS: attempts, "identifier": identifier},
            delivery_mode=2,
        )

    def _length(self) -> int:
        declared = self._queue.bind(self._connection.default_channel).queue_declare(passive=False)
        waiting: int = declared.message_count
        return waiting


def _was_received_before(message: Any) -> bool:
    info = message.delivery_info
    of_sqs = info.get("sqs_message", {}).get("Attributes", {})
    return bool(info.get("redelivered")) or int(of_sqs.get("ApproximateReceiveCount", 1)) > 1


def _text(message: Any) -> str:
    body = message.body
    return body.decode() if isinstance(body, bytes) else str(body)


def _identifier(message: Any) -> str:
    return str(message.headers.get("identifier") or message.delivery_tag)
