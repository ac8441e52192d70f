"""What an onlooker sees of a request: what was asked, by whom, and how it ended.

The console looks on while a page shows the requests. Unlike a record of costs (`costs.record`) a sight has
the request itself, so an onlooker must copy what it keeps, and not keep much.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from hashrange.costs.noting import Items
from hashrange.operations.context import NONE_LEFT, Caller, Request
from hashrange.tables.data.capacity import Bill


class Sight(NamedTuple):
    """A request that has ended. It may have any form, because wrong requests are seen as well.

    `seconds` are those from its preparation to its outcome, with the delay of fault rules. `error` is that of
    the answer, None if it succeeded; `bill` is what it consumed, and `counted` the items that it read and
    returned. `answer_bytes` is 0 where the answer was not encoded. `by_rule`: a fault rule fired on it;
    `left` are the members of a batch that it left unprocessed.
    """

    operation: str
    request: Request
    caller: Caller
    seconds: float
    error: Exception | None
    bill: Bill
    counted: Items
    answer_bytes: int
    by_rule: bool
    left: frozenset[int] = NONE_LEFT


class Onlooker(Protocol):
    """Is shown each request. Implementations: the console's `live.feed`, `insights.heat` and
    `insights.contributors`."""

    def see(self, sight: Sight) -> None:
        """Take a request; called from any thread. Must be quick, and must not raise."""
        ...
