"""Events through Amazon SQS, or a server that speaks its protocol.

    queue = SqsEvents(boto3.client("sqs"), queue_url, Jobs(client, "blog", "views"))

SQS counts how often it delivered an event. An event that is given back is sent again with that count, less
one, and then the old event is deleted; if the worker dies in between, there are two: events are delivered at
least once. Dead letters are items of the table, as with every queue, so SQS's own redrive policy should not
be set.

Refuses FIFO queues: they hold a group of events back while one of them fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from hashrange_patterns.events import Delivery, Gauge
from hashrange_patterns.jobs import DeadJob, Jobs
from hashrange_patterns.requests import Runtime, Unreachable, error_code, is_passing

_BATCH_MAX: Final = 10
_BATCH_BYTES_MAX: Final = 262_144
_WAIT_SECONDS_MAX: Final = 20
_DELAY_SECONDS_MAX: Final = 43_200
_BEFORE: Final = "attempts_before"
_THROTTLED: Final = {"RequestThrottled", "OverLimit", "KmsThrottled", "ServiceUnavailable"}


class SqsEvents:
    """A standard queue at SQS, with a boto3 client for ``sqs``; its dead letters are those of `jobs`.

    An event belongs to its worker for `lease_seconds`, and is delivered at most `attempts_max` times. An
    event has at most 262,144 bytes, and characters that XML 1.0 has. Costs SQS's requests: one for up to 10
    events.
    """

    def __init__(
        self,
        sqs: Any,
        queue_url: str,
        jobs: Jobs,
        *,
        lease_seconds: float = 60.0,
        attempts_max: int = 5,
        waiting_max: int | None = None,
        look_seconds: float = 1.0,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        if queue_url.endswith(".fifo"):
            raise ValueError(
                f"{queue_url} is a FIFO queue, where a failed event holds up the others: use a standard one"
            )
        self.lease_seconds: float | None = lease_seconds
        self._sqs = sqs
        self._url = queue_url
        self._jobs = jobs
        self._attempts_max = attempts_max
        self._gauge = Gauge(self._length, waiting_max, look_seconds, runtime.elapsed)

    def put(self, bodies: Sequence[str]) -> None:
        for body in bodies:
            if len(body.encode()) > _BATCH_BYTES_MAX:
                raise ValueError(f"an event has at most {_BATCH_BYTES_MAX:,} bytes at SQS")
        self._gauge.check(bodies)
        for batch in batches_of(bodies):
            self._send([{"MessageBody": body} for body in batch])

    def take(self, limit: int, wait_seconds: float) -> list[Delivery]:
        deliveries: list[Delivery] = []
        wait = min(_WAIT_SECONDS_MAX, math.ceil(wait_seconds))
        while len(deliveries) < limit:
            try:
                messages = self._receive(min(_BATCH_MAX, limit - len(deliveries)), 0 if deliveries else wait)
                deliveries += [one for message in messages if (one := self._delivery(message)) is not None]
            except Exception:
                if deliveries:
                    break  # (those that were taken are not to wait until their leases are over)
                raise
            if not messages:
                break
        return deliveries

    def done(self, deliveries: Sequence[Delivery]) -> None:
        # (an event that is not deleted is delivered again)
        self._all(self._sqs.delete_message_batch, deliveries)

    def extend(self, deliveries: Sequence[Delivery]) -> None:
        assert self.lease_seconds is not None
        lease = {"VisibilityTimeout": math.ceil(self.lease_seconds)}
        self._all(self._sqs.change_message_visibility_batch, deliveries, lease)

    def failed(self, delivery: Delivery, reason: str) -> None:
        if delivery.attempts >= self._attempts_max:
            self._put_aside(delivery, reason)
            return
        delay = min(_DELAY_SECONDS_MAX, 2 ** min(delivery.attempts, 6) - 2)
        self._all(self._sqs.change_message_visibility_batch, [delivery], {"VisibilityTimeout": delay})

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            before = {_BEFORE: {"DataType": "Number", "StringValue": str(delivery.attempts - 1)}}
            self._send([{"MessageBody": delivery.body, "MessageAttributes": before}])
            self.done([delivery])

    def dead(self, *, limit: int = 100, after: DeadJob | None = None) -> list[DeadJob]:
        return self._jobs.dead(limit=limit, after=after)

    def replay(self, dead: DeadJob) -> bool:
        # (into the queue first: if this process dies in between, the event is delivered twice rather than
        # never)
        self._send([{"MessageBody": dead.payload}])
        return self._jobs.forget(dead)

    def _receive(self, number: int, wait_seconds: int) -> list[Mapping[str, Any]]:
        assert self.lease_seconds is not None
        lease = math.ceil(self.lease_seconds)
        answer = self._call(
            self._sqs.receive_message,
            MaxNumberOfMessages=number,
            WaitTimeSeconds=wait_seconds,
            VisibilityTimeout=lease,
            AttributeNames=["ApproximateReceiveCount"],
            MessageAttributeNames=[_BEFORE],
        )
        messages: list[Mapping[str, Any]] = answer.get("Messages", [])
        return messages

    def _delivery(self, message: Mapping[str, Any]) -> Delivery | None:
        """A message as an event; None if it was put aside, because its workers ended without a word."""
        before = message.get("MessageAttributes", {}).get(_BEFORE, {}).get("StringValue", "0")
        attempts = int(message["Attributes"]["ApproximateReceiveCount"]) + int(before)
        delivery = Delivery(message["Body"], attempts, message)
        if attempts <= self._attempts_max:
            return delivery
        self._put_aside(delivery, "its worker ended without a word")
        return None

    def _put_aside(self, delivery: Delivery, reason: str) -> None:
        identifier = delivery.handle["MessageId"]
        self._jobs.put_aside(DeadJob(identifier, delivery.body, delivery.attempts, reason))
        self.done([delivery])

    def _send(self, messages: Sequence[Mapping[str, Any]]) -> None:
        entries = [{"Id": str(place), **message} for place, message in enumerate(messages)]
        answer = self._call(self._sqs.send_message_batch, Entries=entries)
        for failure in answer.get("Failed", []):
            text = f"{failure.get('Code')}: {failure.get('Message')}"
            raise ValueError(text) if failure.get("SenderFault") else Unreachable(text)

    def _length(self) -> int:
        names = ["ApproximateNumberOfMessages"]
        answer = self._call(self._sqs.get_queue_attributes, AttributeNames=names)
        return int(answer["Attributes"][names[0]])

    def _all(
        self,
        request: Callable[..., Mapping[str, Any]],
        deliveries: Sequence[Delivery],
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Send a request for all deliveries, in batches."""
        for start in range(0, len(deliveries), _BATCH_MAX):
            entries = [
                {"Id": str(place), "ReceiptHandle": delivery.handle["ReceiptHandle"], **more}
                for place, delivery in enumerate(deliveries[start : start + _BATCH_MAX])
            ]
            self._call(request, Entries=entries)

    def _call(self, request: Callable[..., Mapping[str, Any]], **parameters: Any) -> Mapping[str, Any]:
        """The answer to a request. Raises `Unreachable` if SQS is throttled or cannot be reached."""
        try:
            return request(QueueUrl=self._url, **parameters)
        except Exception as error:
            if is_passing(error) or error_code(error) in _THROTTLED:
                raise Unreachable(f"{type(error).__name__}: {error}") from error
            raise


def batches_of(bodies: Sequence[str]) -> list[list[str]]:
    """The events in requests of at most 10, and of at most 262,144 bytes."""
    batches: list[list[str]] = []
    size = 0
    for body in bodies:
        size += len(body.encode())
        if not batches or len(batches[-1]) == _BATCH_MAX or size > _BATCH_BYTES_MAX:
            batches.append([])
            size = len(body.encode())
        batches[-1].append(body)
    return batches
