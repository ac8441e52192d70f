"""Makes commits fail, for tests, through `Engine.commit_fault`.

    with failing(engine):                         commits fail when all writes have reached the store
    with failing(engine, "before"):               commits fail before any write has reached it
    with failing(engine, "after", unknown=True):  the outcome is unknown; the writes stand
    with failing(engine, "before", unknown=True): the outcome is unknown; nothing was written

They work on every engine; `contract.CHECKS` tests that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hashrange.storage.api import Engine
from hashrange.storage.failures import CommitFault, CommitUnknown, Moment

CAUSE = "no space left on the test"


@contextmanager
def failing(
    engine: Engine,
    moment: Moment = "after",
    *,
    unknown: bool = False,
    cause: str = CAUSE,
    commits_max: int | None = None,
) -> Iterator[None]:
    """Fail the commits of `engine` while the block runs, or the first `commits_max` of them."""
    left = commits_max

    def fail() -> None:
        nonlocal left
        if left == 0:
            return
        if left is not None:
            left -= 1
        raise CommitUnknown(cause) if unknown else OSError(cause)

    with at(engine, moment, fail):
        yield


@contextmanager
def at(engine: Engine, moment: Moment, function: Callable[[], object]) -> Iterator[None]:
    """Have `function` called at this moment of each commit while the block runs."""
    before = engine.commit_fault
    engine.commit_fault = only(moment, function)
    try:
        yield
    finally:
        engine.commit_fault = before


def only(wanted: Moment, function: Callable[[], object]) -> CommitFault:
    """The fault that calls `function` at one of the two moments."""

    def fault(moment: Moment) -> None:
        if moment == wanted:
            function()

    return fault
