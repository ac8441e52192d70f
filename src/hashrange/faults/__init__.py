"""Faults by rules: errors and delays between a program and DynamoDB that a test asks for.

    from hashrange.faults import throttle

    with database.faults(throttle("PutItem", table="orders").on_call(3)):
        ...

A function of this module makes a rule; `table`, `index` and `key` say which requests it matches, and the
methods of `Rule` which of these get the fault. docs/faults.md describes all of them.

    rules    which requests get a fault
    effects  what the fault does to them, and what then happens to a request
    text     rules as text
    armed    the rules in force on a database; decides what happens to a request

These faults happen before or after the engine's work. For commits that fail inside the engine see
`hashrange_engine_tests.faults`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from hashrange.errors import AnswerLost
from hashrange.faults import effects
from hashrange.faults.armed import Armed, Faults
from hashrange.faults.effects import Effect, Fate
from hashrange.faults.rules import Rule
from hashrange.faults.text import WrongRule, parse, parse_lines, show

__all__ = [
    "AnswerLost",
    "Armed",
    "Fate",
    "Faults",
    "Rule",
    "WrongRule",
    "cancel",
    "conflict",
    "expire_iterator",
    "in_progress",
    "internal_error",
    "latency",
    "lose_answer",
    "parse",
    "parse_lines",
    "show",
    "throttle",
    "trim",
    "unprocessed",
]

Key = Mapping[str, Any]
"""Attributes of a key with their values, as boto3's resource takes them or in DynamoDB's JSON."""


def throttle(
    *operations: str,
    table: str = "",
    index: str = "",
    key: Key | None = None,
    limit: str = "ProvisionedThroughputExceeded",
    exception: str = "",
) -> Rule:
    """Refuse requests because of their rate.

    `limit` is the end of the throttling reason: ``ProvisionedThroughputExceeded``,
    ``KeyRangeThroughputExceeded``, ``MaxOnDemandThroughputExceeded`` or ``AccountLimitExceeded``. It also
    decides which exception the client gets, unless `exception` names one.
    """
    return _rule(effects.Throttle(limit, exception), operations, table, index, key)


def internal_error(
    *operations: str, table: str = "", index: str = "", key: Key | None = None, performed: bool = False
) -> Rule:
    """Answer with an InternalServerError, after the request was `performed` or without it."""
    return _rule(effects.InternalError(performed), operations, table, index, key)


def conflict(*operations: str, table: str = "", key: Key | None = None) -> Rule:
    """Refuse writes and transactions because another transaction is using an item."""
    return _rule(effects.Conflict(), operations, table, "", key)


def cancel(
    *operations: str, table: str = "", key: Key | None = None, code: str = "ConditionalCheckFailed"
) -> Rule:
    """Cancel transactions with a reason for their first member that the rule matches."""
    return _rule(effects.Cancel(code), operations, table, "", key)


def in_progress(*operations: str, table: str = "", key: Key | None = None) -> Rule:
    """Answer transactions with a ClientRequestToken that they are still in progress."""
    return _rule(effects.InProgress(), operations, table, "", key)


def latency(
    *operations: str,
    seconds: float,
    virtual: bool = False,
    table: str = "",
    index: str = "",
    key: Key | None = None,
) -> Rule:
    """Perform requests at once, but delay their answers; with `virtual` on the database's clock."""
    return _rule(effects.Latency(seconds, virtual), operations, table, index, key)


def lose_answer(
    *operations: str, table: str = "", index: str = "", key: Key | None = None, performed: bool = True
) -> Rule:
    """Close the connection before the answer, after the request was `performed` or without it."""
    return _rule(effects.LoseAnswer(performed), operations, table, index, key)


def unprocessed(*operations: str, table: str = "", key: Key | None = None, share: float = 0.5) -> Rule:
    """Leave a share of a batch unprocessed, but never all of it; or, with a `key`, the items with this
    key."""
    return _rule(effects.Unprocessed(share), operations, table, "", key)


def expire_iterator(*, table: str = "") -> Rule:
    """Refuse the shard iterators of GetRecords as expired."""
    return _rule(effects.ExpireIterator(), (), table, "", None)


def trim(*operations: str, table: str = "") -> Rule:
    """Answer GetRecords and GetShardIterator that the records were trimmed."""
    return _rule(effects.Trim(), operations, table, "", None)


def _rule(effect: Effect, operations: tuple[str, ...], table: str, index: str, key: Key | None) -> Rule:
    pairs = [(name, _text(value)) for name, value in (key or {}).items()]
    return Rule(effect, operations, table, index, tuple(pairs))


def _text(value: Any) -> str:
    """The text of a key's value: a string, a number, bytes, or one of these in DynamoDB's JSON."""
    if isinstance(value, Mapping):
        [value] = value.values()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
