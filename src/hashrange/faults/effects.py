"""The effects: what a rule that fires does to a request.

Each effect is a frozen dataclass. Its fields are its options, under the names that they have in the text of a
rule; `word` is its own name there. `meet` makes the `Fate` of a request.

`operations.throttling` has the texts of throttled requests. Source of the other messages: API reference,
"TransactionCanceledException".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from hashrange.errors import (
    CONDITION_FAILED,
    INTERNAL,
    AnswerLost,
    ExpiredIteratorException,
    InternalServerError,
    LimitExceededException,
    RequestLimitExceeded,
    ServiceError,
    ThrottlingException,
    TransactionCanceledException,
    TransactionConflictException,
    TransactionInProgressException,
    TrimmedDataAccessException,
)
from hashrange.operations import REGISTRY, streams, throttling
from hashrange.operations.context import Caller, Request
from hashrange.operations.targets import Target
from hashrange.operations.throttling import EXCEPTIONS, LIMITS, Reason
from hashrange.tables.writes.holds import CONFLICT
from hashrange.tables.writes.tokens import IN_PROGRESS

BATCHES: Final = frozenset({"BatchGetItem", "BatchWriteItem"})
TRANSACTIONS: Final = frozenset({"ExecuteTransaction", "TransactGetItems", "TransactWriteItems"})
STREAMS: Final = frozenset({"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"})
_CONFLICTING: Final = TRANSACTIONS | {
    "BatchWriteItem", "DeleteItem", "ExecuteStatement", "PutItem", "UpdateItem",
}  # fmt: skip

_CONTROL_RATE: Final = "Rate of requests exceeds the allowed throughput."
_STREAM_RATE: Final = "Rate exceeded"  # [assumed]

_CODES: Final = {
    "ConditionalCheckFailed": CONDITION_FAILED,
    "ItemCollectionSizeLimitExceeded": "Collection size exceeded.",
    "ProvisionedThroughputExceeded": throttling.TABLE_EXCEEDED,
    "ThrottlingError": throttling.TABLE_SCALES,
    "TransactionConflict": CONFLICT,
    "ValidationError": "One or more parameter values were invalid.",
}
CODES: Final = tuple(_CODES)
"""The codes of cancellation reasons."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What happens to one request.

    `error` replaces the answer. If the request is `performed`, it runs first, and the error is delivered when
    its writes are durable. `left` are the members of a batch that stay unprocessed. The outcome is delayed by
    `delay_seconds`; before it, a virtual clock is advanced by `virtual_seconds`.
    """

    error: ServiceError | None = None
    performed: bool = False
    left: frozenset[int] = frozenset()
    delay_seconds: float = 0.0
    virtual_seconds: float = 0.0

    def joined(self, other: Fate) -> Fate:
        """Both fates: the first error counts, the delays add up."""
        first = self if self.error is not None else other
        return Fate(
            first.error,
            first.performed,
            self.left or other.left,
            self.delay_seconds + other.delay_seconds,
            self.virtual_seconds + other.virtual_seconds,
        )


@dataclass(frozen=True, slots=True)
class Met:
    """A request that a rule fires on: its targets, the targets that the rule matches, and the rule's index.

    `chosen`: the rule names a key, and so selects members of a batch. `now` is the time of the database's
    clock.
    """

    operation: str
    request: Request
    caller: Caller
    now: float
    targets: tuple[Target, ...]
    matched: tuple[Target, ...]
    index: str
    chosen: bool

    @property
    def writes(self) -> bool:
        """Whether the request writes."""
        return REGISTRY[self.operation].is_write(self.request)

    def canceled(self, code: str, message: str) -> TransactionCanceledException:
        """The cancellation of a transaction for its first member that the rule matches."""
        size = len(self.request.get("TransactItems") or self.request["TransactStatements"])
        reasons: list[dict[str, Any]] = [{"Code": "None"} for _ in range(size)]
        reasons[self.matched[0].member] = {"Code": code, "Message": message}
        return TransactionCanceledException.of(reasons)

    def members(self) -> frozenset[int]:
        """The positions of the members that the rule matches."""
        return frozenset([target.member for target in self.matched])


class Effect(Protocol):
    """What a rule does to a request. `word` is its name in the text of a rule, and `only` are the operations
    that it can affect; without them, all."""

    __slots__ = ()

    word: ClassVar[str]
    only: ClassVar[frozenset[str]] = frozenset()

    def fits(self, operation: str) -> bool:
        """Whether the effect can affect requests of an operation."""
        return not self.only or operation in self.only

    def meet(self, incident: Met) -> Fate | None:
        """What happens to a request; None: nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Throttle(Effect):
    """The request is refused because of its rate.

    `limit` is the end of its throttling reason, `exception` its exception if it is not the usual one. A
    transaction is cancelled. In a batch only the members that the rule matches are refused: they stay
    unprocessed, unless they are the whole batch.
    """

    limit: str = throttling.PROVISIONED
    exception: str = ""

    word: ClassVar[str] = "throttle"

    def __post_init__(self) -> None:
        choose("limit", self.limit, LIMITS)
        if self.exception:
            choose("exception", self.exception, EXCEPTIONS)

    def meet(self, incident: Met) -> Fate:
        if incident.operation in STREAMS:
            return Fate(LimitExceededException(_STREAM_RATE))
        if not REGISTRY[incident.operation].consumes:
            return Fate(ThrottlingException(_CONTROL_RATE))
        if incident.operation in BATCHES and len(incident.matched) < len(incident.targets):
            return Fate(left=incident.members())
        of_index = bool(incident.index or incident.matched[0].index)
        exception = EXCEPTIONS[self.exception] if self.exception else LIMITS[self.limit]
        message = throttling.message_of(exception, self.limit, of_index=of_index)
        if incident.operation in TRANSACTIONS and exception is not RequestLimitExceeded:
            return Fate(incident.canceled(throttling.cancellation_code(exception), message))
        reasons = [
            Reason(target.table, incident.index or target.index or "", incident.writes, self.limit)
            for target in incident.matched
        ]
        return Fate(throttling.error_of(exception, message, reasons, incident.caller))


@dataclass(frozen=True, slots=True)
class InternalError(Effect):
    """The answer is an InternalServerError, which does not say whether the request was `performed`."""

    performed: bool = False

    word: ClassVar[str] = "internal-error"

    def meet(self, incident: Met) -> Fate:
        return Fate(InternalServerError(INTERNAL), self.performed)


@dataclass(frozen=True, slots=True)
class Conflict(Effect):
    """Another transaction is using an item of the request.

    A transaction is cancelled with the reason TransactionConflict for the first member that the rule matches;
    the matching members of a batch stay unprocessed; any other write fails with TransactionConflictException.
    """

    word: ClassVar[str] = "conflict"
    only: ClassVar[frozenset[str]] = _CONFLICTING

    def meet(self, incident: Met) -> Fate | None:
        if incident.operation in TRANSACTIONS:
            return Fate(incident.canceled("TransactionConflict", CONFLICT))
        if incident.operation in BATCHES:
            return Fate(left=incident.members())
        return Fate(TransactionConflictException(CONFLICT)) if incident.writes else None


@dataclass(frozen=True, slots=True)
class Cancel(Effect):
    """A transaction is cancelled with the reason `code` for the first member that the rule matches."""

    code: str = "ConditionalCheckFailed"

    word: ClassVar[str] = "cancel"
    only: ClassVar[frozenset[str]] = TRANSACTIONS

    def __post_init__(self) -> None:
        choose("code", self.code, _CODES)

    def meet(self, incident: Met) -> Fate:
        return Fate(incident.canceled(self.code, _CODES[self.code]))


@dataclass(frozen=True, slots=True)
class InProgress(Effect):
    """A transaction with this token is still in progress: TransactionInProgressException."""

    word: ClassVar[str] = "in-progress"
    only: ClassVar[frozenset[str]] = frozenset({"ExecuteTransaction", "TransactWriteItems"})

    def meet(self, incident: Met) -> Fate | None:
        if incident.request.get("ClientRequestToken") is None:
            return None
        return Fate(TransactionInProgressException(IN_PROGRESS))


@dataclass(frozen=True, slots=True)
class Latency(Effect):
    """The request is performed at once, and its answer comes `seconds` later.

    If they are `virtual`, nobody waits: the database's virtual clock is advanced instead.
    """

    seconds: float
    virtual: bool = False

    word: ClassVar[str] = "latency"

    def __post_init__(self) -> None:
        if not 0 <= self.seconds < math.inf:
            raise ValueError(f"seconds={self.seconds} is not a number of seconds, as 0.2 is")

    def meet(self, incident: Met) -> Fate:
        return Fate(virtual_seconds=self.seconds) if self.virtual else Fate(delay_seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class LoseAnswer(Effect):
    """The connection is closed before the answer: after the writes are durable, or, if the request is not
    `performed`, before anything is done."""

    performed: bool = True

    word: ClassVar[str] = "lose-answer"

    def meet(self, incident: Met) -> Fate:
        return Fate(AnswerLost("The connection was closed by a fault."), self.performed)


@dataclass(frozen=True, slots=True)
class Unprocessed(Effect):
    """A part of a batch stays unprocessed: a `share` of the members that the rule matches, from the last.

    At least one member is processed. A rule with a key leaves all members that it matches; if they are the
    whole batch, the batch is throttled.
    """

    share: float = 0.5

    word: ClassVar[str] = "unprocessed"
    only: ClassVar[frozenset[str]] = BATCHES

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"share={self.share} is not a share of a batch, as 0.5 and 1 are")

    def meet(self, incident: Met) -> Fate | None:
        if incident.chosen:
            return Throttle().meet(incident)
        members = sorted(incident.members())
        left = members[len(members) - math.ceil(len(members) * self.share) :]
        if len(left) == len(incident.targets):
            left = left[1:]
        return Fate(left=frozenset(left)) if left else None


@dataclass(frozen=True, slots=True)
class ExpireIterator(Effect):
    """The shard iterator of a GetRecords has expired."""

    word: ClassVar[str] = "expire-iterator"
    only: ClassVar[frozenset[str]] = frozenset({"GetRecords"})

    def meet(self, incident: Met) -> Fate:
        try:
            _, position = streams.parse_iterator(incident.request["ShardIterator"], incident.now)
        except ExpiredIteratorException as error:
            return Fate(error)
        return Fate(streams.expired(position, incident.now))


@dataclass(frozen=True, slots=True)
class Trim(Effect):
    """The records that a GetRecords or a GetShardIterator asks for were trimmed."""

    word: ClassVar[str] = "trim"
    only: ClassVar[frozenset[str]] = frozenset({"GetRecords", "GetShardIterator"})

    def meet(self, incident: Met) -> Fate:
        return Fate(TrimmedDataAccessException(streams.TRIMMED))


EFFECTS: Final[dict[str, type[Effect]]] = {
    effect.word: effect
    for effect in (
        Throttle, InternalError, Conflict, Cancel, InProgress, Latency, LoseAnswer, Unprocessed,
        ExpireIterator, Trim,
    )
}  # fmt: skip


def choose(name: str, value: str, among: Any) -> None:
    """Raise ValueError if `value` is not in `among`."""
    if value not in among:
        raise ValueError(f"{name}={value} is not known; it is one of {', '.join(among)}")
