"""Events through RabbitMQ, by kombu.

    queue = BrokerEvents("amqp://guest:guest@localhost//", Jobs(client, "blog", "views"))

This module adds what kombu leaves open:

- *Attempts.* RabbitMQ says only that an event was delivered before. An event that was delivered before or
  that failed is put into the queue again with the number of its deliveries, and then the old event is
  removed. If the worker dies in between, there are two: events are delivered at least once. A worker has no
  more events than it was asked to take, so a connection that breaks counts for no others.
- *Dead letters* are items of the table, in the form of `Jobs`, so that they can be inspected and replayed in
  the same way with every queue, and survive the broker. A message that is not an event is put aside at once.
- *Broken connections.* The next call replaces a connection that broke. Events that were taken over the old
  connection are delivered again, because they can no longer be acknowledged.
- *Waiting for the broker.* RabbitMQ says when an event is on disk (publisher confirms), and only then `put`
  returns.

A connection belongs to one thread at a time: the methods of one object wait for each other.

Refuses Redis, which removes an event from its list before anything records whose it is, and so loses events
of killed workers; and SQS, for which `sqs` is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import kombu
from kombu.exceptions import KombuError

from hashrange_patterns.events import Delivery, Gauge
from hashrange_patterns.identifiers import Identifiers
from hashrange_patterns.jobs import PAYLOAD_BYTES_MAX, DeadJob, Jobs, check_payload
from hashrange_patterns.requests import Runtime, Unreachable

T = TypeVar("T")

_ATTEMPTS: Final = "attempts"
_MORE_SECONDS: Final = 0.01  # the wait for further events after the first


class BrokerEvents:
    """A queue at RabbitMQ, whose dead letters are those of `jobs`; its name is the jobs' name.

    An event belongs to its worker until the worker's connection ends, and is delivered at most `attempts_max`
    times.
    """

    lease_seconds: float | None = None

    def __init__(
        self,
        url: str,
        jobs: Jobs,
        *,
        attempts_max: int = 5,
        waiting_max: int | None = None,
        look_seconds: float = 1.0,
        connect_seconds: float = 5.0,
        transport_options: dict[str, Any] | None = None,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        if not url.startswith(("amqp://", "amqps://")):
            raise ValueError(
                f"{url!r} is not a URL of RabbitMQ (amqp://…): SqsEvents takes SQS; Redis loses events of "
                "workers that are killed, and TableEvents needs no broker at all"
            )
        self._url = url
        self._jobs = jobs
        self._attempts_max = attempts_max
        self._connect_seconds = connect_seconds
        self._options = {"confirm_publish": True, **(transport_options or {})}
        self._identifiers = Identifiers(runtime.now)
        self._queue = kombu.Queue(jobs.queue, durable=True)
        self._lock = threading.RLock()
        self._connection: Any = None
        self._consumer: Any = None
        self._fetched: list[Any] = []
        self._limit = 0
        self._gauge = Gauge(self._length, waiting_max, look_seconds, runtime.elapsed)

    def put(self, bodies: Sequence[str]) -> None:
        def put() -> None:
            self._gauge.check(bodies)
            for body in bodies:
                self._publish(body, self._identifiers.next(), 0)

        self._connected(put)

    def take(self, limit: int, wait_seconds: float) -> list[Delivery]:
        def take() -> list[Delivery]:
            self._consume(limit)
            self._drain(wait_seconds)
            while len(deliveries) < limit and (self._fetched or (deliveries and self._drain(_MORE_SECONDS))):
                delivery = self._delivery(self._fetched[0])
                self._fetched.pop(0)
                if delivery is not None:
                    deliveries.append(delivery)
            return deliveries

        deliveries: list[Delivery] = []
        try:
            return self._connected(take)
        except Unreachable:
            raise  # (the broker delivers again what was taken over this connection)
        except Exception:
            if not deliveries:
                raise
            return deliveries

    def done(self, deliveries: Sequence[Delivery]) -> None:
        def done() -> None:
            for delivery in deliveries:
                delivery.handle.ack()

        self._or_again_later(done)

    def extend(self, deliveries: Sequence[Delivery]) -> None:
        """Nothing: there is no lease."""

    def failed(self, delivery: Delivery, reason: str) -> None:
        self._or_again_later(lambda: self._again(delivery.handle, delivery.attempts, reason))

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        def give_back() -> None:
            for delivery in deliveries:
                message = delivery.handle
                self._publish(delivery.body, _identifier(message), delivery.attempts - 1)
                message.ack()

        self._or_again_later(give_back)

    def dead(self, *, limit: int = 100, after: DeadJob | None = None) -> list[DeadJob]:
        return self._jobs.dead(limit=limit, after=after)

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
        with suppress(Unreachable):
            self._connected(work)

    @staticmethod
    def _failures(connection: Any) -> tuple[type[BaseException], ...]:
        return (*connection.connection_errors, *connection.channel_errors, KombuError, OSError)

    def _consume(self, limit: int) -> None:
        """Let the broker send up to `limit` events."""
        if self._consumer is None:
            self._consumer = kombu.Consumer(
                self._connection.default_channel, queues=[self._queue], on_message=self._fetched.append
            )
            self._limit = 0
        if self._limit != limit:
            self._consumer.cancel()
            self._consumer.qos(prefetch_count=limit)
            self._consumer.consume()
            self._limit = limit

    def _drain(self, wait_seconds: float) -> bool:
        """Wait for events; returns whether there are any."""
        if not self._fetched:
            try:
                self._connection.drain_events(timeout=wait_seconds)
            except TimeoutError:
                return False
        return bool(self._fetched)

    def _delivery(self, message: Any) -> Delivery | None:
        """A message as an event; None for one that is put again, with another count, or aside."""
        attempts = int(message.headers.get(_ATTEMPTS, 0)) + 1
        try:
            text = _text(message)
            check_payload(text)
        except ValueError as error:
            dead = DeadJob(_identifier(message), _shown(message), attempts, f"no event: {error}")
            self._jobs.put_aside(dead)
            message.ack()
            return None
        if message.delivery_info.get("redelivered"):
            # Its worker ended without a word. Count that before it may happen again.
            self._again(message, attempts, "its worker ended without a word")
            return None
        return Delivery(text, attempts, message)

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


def _text(message: Any) -> str:
    """The body of a message. Raises ValueError if it is not a string."""
    body = message.body
    return body.decode() if isinstance(body, bytes) else str(body)


def _shown(message: Any) -> str:
    """As much of a body that is not an event as a dead letter holds."""
    body = message.body if isinstance(message.body, bytes) else str(message.body).encode()
    shown: str = body[: PAYLOAD_BYTES_MAX // 4].decode(errors="backslashreplace")
    return shown


def _identifier(message: Any) -> str:
    return str(message.headers.get("identifier") or message.delivery_tag)
