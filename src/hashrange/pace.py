"""How long a piece of work may go on before others get their turn.

Bodies run on the event loop, where they delay everybody else. Most end within tens of microseconds; some
requests within the service's limits take seconds. Nothing tells them apart beforehand, so each body starts
on the loop with a turn of a few milliseconds. Code that may go on for long calls `point()` as it goes.
When the turn is used up, `point` raises `TurnOver` out of the body, which has no effect until it ends, and
the body runs again on a thread of `workers`, where `point` lets other threads run instead.

A thread that asked for no turn (a test, a program that uses the database in process) is never stopped.

`point` costs about 50 ns: it compares two times, and does more only once in `LOOK_SECONDS`. Compiled code
keeps the interpreter's lock until it gives it up, so on a worker thread `point` also is what lets the event
loop run.

Refuses to know: what the work is.
"""

from __future__ import annotations

from threading import get_ident
from time import perf_counter, sleep, thread_time
from typing import Any, Final

TURN_SECONDS: Final = 0.008
"""How long a body may keep the event loop. The usual ones take a hundredth of it, batches of 25 a quarter."""
LOOK_SECONDS: Final = 0.0005
LOCK_SECONDS_MAX: Final = 0.01
WITHOUT_END: Final = float("inf")


class TurnOver(BaseException):
    """The body has used up its turn on this thread. It left nothing behind, and is to run elsewhere.

    Like `Abandoned` it is no `Exception`: a body must let it through.
    """


class Abandoned(BaseException):
    """Nobody waits for the outcome of this work any more."""


class Task:
    """A piece of work on a worker thread; whoever gave the work may abandon it."""

    __slots__ = ("abandoned",)

    def __init__(self) -> None:
        self.abandoned = False

    def abandon(self) -> None:
        """End the work at its next `point`, if it has not ended by then."""
        self.abandoned = True


class Turn:
    """What one thread is held to: `left` is CPU time in seconds, since `since`. `task` is a worker's.

    CPU time, because a thread is not to blame for the time in which others ran. It is asked for when `point`
    looks for the first time: asking at the beginning would cost every request more than all its points.
    """

    __slots__ = ("left", "since", "task")

    def __init__(self) -> None:
        self.left: float = WITHOUT_END
        self.since: float = 0.0
        self.task: Task | None = None

    def begin(self, seconds: float) -> None:
        """Stop the work that begins now when it has taken `seconds`."""
        self.left = seconds
        self.since = 0.0

    def end(self) -> None:
        """Stop nothing more."""
        self.left = WITHOUT_END

    def is_limited(self) -> bool:
        """Whether the work of this thread may be stopped."""
        return self.left != WITHOUT_END


class _Watch:
    """When `point` looks next; all threads share it, because only one of them runs at a time."""

    __slots__ = ("due",)

    def __init__(self) -> None:
        self.due: float = 0.0


_watch: Final = _Watch()
_turns: Final[dict[int, Turn]] = {}


def turn() -> Turn:
    """The turn of the calling thread, kept for as long as the process lives."""
    ident = get_ident()
    found = _turns.get(ident)
    if found is None:
        found = _turns[ident] = Turn()
    return found


def point() -> None:
    """Let others have their turn, if it is time to. Raises `TurnOver` or `Abandoned` to end the work."""
    if perf_counter() >= _watch.due:
        _look()


def _look() -> None:
    now = perf_counter()
    _watch.due = now + LOOK_SECONDS
    current = _turns.get(get_ident())
    if current is None:
        return
    if current.left != WITHOUT_END:
        used = thread_time()
        if not current.since:
            current.since = used
        if used - current.since >= current.left:
            raise TurnOver
    task = current.task
    if task is not None:
        if task.abandoned:
            raise Abandoned
        sleep(0)


def is_aside() -> bool:
    """Whether the calling thread is a worker's, at work."""
    current = _turns.get(get_ident())
    return current is not None and current.task is not None


def acquire(lock: Any) -> None:
    """Take a lock (of `threading`). Raises `TurnOver` where the calling thread may not wait that long."""
    if lock.acquire(False):
        return
    current = _turns.get(get_ident())
    if current is None or not current.is_limited():
        lock.acquire()
    elif not lock.acquire(True, LOCK_SECONDS_MAX):
        raise TurnOver
