"""Faults by rules: what goes wrong between a program and DynamoDB, when a test wants it to.

    from hashrange.faults import throttle

    with database.faults(throttle("PutItem", table="orders").on_call(3)):
        ...

A function of this module makes a rule; `table`, `index` and `key` say which requests it matches, and the
methods of `Rule` which of these meet the fault. docs/faults.md has all of them.

    rules     which requests meet a fault
    effects   what it does to them
    text      rules as text
    armed     the rules in force on a database; decides what happens to a request
    fates     what that is

Here a request meets the fault before or after the engine. Commits that fail inside the engine are another
matter: `storage.contract.faults`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from hashrange.errors import AnswerLost
from hashrange.faults import effects
from hashrange.faults.armed import Armed, Faults
from hashrange.faults.effects import Effect
from hashrange.faults.fates import Fate
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
    says which exception the client gets, unless `exception` does.
    """
    return _rule(effects.Throttle(limit, exception), operations, table, index, key)


def internal_error(
    *operations: str, table: str = "", index: str = "", key: Key | None = None, performed: bool = False
) -> Rule:
    """Answer with an InternalServerError, after the request was `performed` or without it."""
    return _rule(effects.InternalError(performed), operations, table, index, key)


def conflict(*operations: str, table: str = "", key: Key | None = None) -> Rule:
    """Let another transaction be at an item of a write or of a transaction."""
    return _rule(effects.Conflict(), operations, table, "", key)


def cancel(
    *operations: str, table: str = "", key: Key | None = None, code: str = "ConditionalCheckFailed"
) -> Rule:
    """Cancel transactions with a reason for their first member that the rule matches."""
    return _rule(effects.Cancel(code), operations, table, "", key)


def in_progress(*operations: str, table: str = "", key: Key | None = None) -> Rule:
    """Tell transactions with a ClientRequestToken that they are still in progress."""
    return _rule(effects.InProgress(), operations, table, "", key)


def latency(
    *operations: str,
    seconds: float,
    virtual: bool = False,
    table: str = "",
    index: str = "",
    key: Key | None = None,
) -> Rule:
    """Perform requests at once, and hold their answers back; with `virtual` on the database's clock."""
    return _rule(effects.Latency(seconds, virtual), operations, table, index, key)


def lose_answer(
    *operations: str, table: str = "", index: str = "", key: Key | None = None, performed: bool = True
) -> Rule:
    """Close the connection before the answer, after the request was `performed` or without it."""
    return _rule(effects.LoseAnswer(performed), operations, table, index, key)


def unprocessed(*operations: str, table: str = "", key: Key | None = None, share: float = 0.5) -> Rule:
    """Leave a share of a batch unprocessed, but never all of it; or, with a `key`, the items that have it."""
    return _rule(effects.Unprocessed(share), operations, table, "", key)


def expire_iterator(*, table: str = "") -> Rule:
    """Let the shard iterators of GetRecords be expired."""
    return _rule(effects.ExpireIterator(), (), table, "", None)


def trim(*operations: str, table: str = "") -> Rule:
    """Let the records that GetRecords and GetShardIterator ask for be trimmed."""
    return _rule(effects.Trim(), operations, table, "", None)


def _rule(effect: Effect, operations: tuple[str, ...], table: str, index: str, key: Key | None) -> Rule:
    pairs = [(name, _text(value)) for name, value in (key or {}).items()]
    return Rule(effect, operations, table, index, tuple(pairs))


def _text(value: Any) -> str:
    """The text of a key's value: a string, a number, bytes, or one of these as DynamoDB's JSON has it."""
    if isinstance(value, Mapping):
        [value] = value.values()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
