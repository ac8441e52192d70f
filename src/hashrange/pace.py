"""Limits how long one piece of work may keep others waiting.

Bodies run on the event loop, where all other requests wait for them. Most bodies end within tens of
microseconds, but some requests within the service's limits take seconds, and nothing tells the two apart
beforehand. So each body starts on the loop with a turn of a few milliseconds. Code that may go on for long
calls `point()` again and again. When the turn is used up, `point` raises `TurnOver`, which ends the body
before it has any effect. The body then runs again on a thread of `workers`, where `point` does not end it,
but lets other threads run.

On a thread without a turn (a test, a program that uses the database in process) work is never stopped.

`point` costs about 100 ns, most of it for reading the clock, and does more only once in `LOOK_SECONDS`.
`step` is for pieces of work of a few microseconds: it calls `point` once in `STEPS` times, and costs a tenth
of it otherwise. Compiled code keeps the interpreter's lock until it releases the lock itself, so on a worker
thread the event loop can run only because `point` releases the lock.

Refuses to know: what the work is.
"""

from __future__ import annotations

from threading import get_ident
from time import perf_counter, sleep, thread_time
from typing import Any, Final

TURN_SECONDS: Final = 0.008
"""How long a body may keep the event loop. Most bodies take a hundredth of this, batches of 25 a quarter."""
LOOK_SECONDS: Final = 0.0005
LOCK_SECONDS_MAX: Final = 0.01
STEPS: Final = 16
WITHOUT_END: Final = float("inf")


class TurnOver(BaseException):
    """The body has used up its turn on this thread. It has written nothing, and is to run on a worker thread.

    Like `Abandoned` it is no `Exception`, because a body must not catch it.
    """


class Abandoned(BaseException):
    """The work is to end, because no client waits for its outcome any more."""


class Task:
    """A piece of work on a worker thread. The code that started the work may abandon it."""

    __slots__ = ("abandoned",)

    def __init__(self) -> None:
        self.abandoned = False

    def abandon(self) -> None:
        """End the work at its next `point`, if it has not ended by then."""
        self.abandoned = True


class Turn:
    """The turn of one thread: `left` is the CPU time in seconds that it has left since `since`. `task` is
    the task of a worker thread.

    It counts CPU time, so that the time in which other threads ran does not count. The thread's CPU clock is
    read when `point` looks for the first time; reading it at the beginning would cost every request more
    than all its points together.
    """

    __slots__ = ("left", "since", "task")

    def __init__(self) -> None:
        self.left: float = WITHOUT_END
        self.since: float = 0.0
        self.task: Task | None = None

    def begin(self, seconds: float) -> None:
        """Begin a turn: the work that follows is stopped when it has taken `seconds`."""
        self.left = seconds
        self.since = 0.0

    def end(self) -> None:
        """End the turn: work that follows is not stopped."""
        self.left = WITHOUT_END

    def is_limited(self) -> bool:
        """Whether the work of this thread may be stopped."""
        return self.left != WITHOUT_END


class _Watch:
    """The time at which `point` looks next, and how many times `step` returns before it calls `point` next.

    All threads share it, because only one of them runs at a time.
    """

    __slots__ = ("due", "steps")

    def __init__(self) -> None:
        self.due: float = 0.0
        self.steps: int = STEPS


_watch: Final = _Watch()
_turns: Final[dict[int, Turn]] = {}


def turn() -> Turn:
    """The turn of the calling thread. It is kept until the process ends."""
    ident = get_ident()
    found = _turns.get(ident)
    if found is None:
        found = _turns[ident] = Turn()
    return found


def point() -> None:
    """Let other threads run, if it is time to. Raises `TurnOver` or `Abandoned` to end the work."""
    if perf_counter() >= _watch.due:
        _look()


def step() -> None:
    """As `point`, for a short piece of work. Raises `TurnOver` or `Abandoned` to end the work."""
    _watch.steps -= 1
    if _watch.steps < 0:
        _watch.steps = STEPS
        point()


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


def in_pieces() -> bool:
    """Whether work that keeps the interpreter's lock for long, if it is done at once, has to be done in
    pieces: on a worker thread. Raises `TurnOver` if the turn of the calling thread is limited."""
    current = _turns.get(get_ident())
    if current is None:
        return False
    if current.left != WITHOUT_END:
        raise TurnOver
    return current.task is not None


def is_aside() -> bool:
    """Whether the calling thread is a worker thread that runs a task."""
    current = _turns.get(get_ident())
    return current is not None and current.task is not None


def acquire(lock: Any) -> None:
    """Take a lock (of `threading`). Raises `TurnOver` if the calling thread's turn ends while it waits."""
    if lock.acquire(False):
        return
    current = _turns.get(get_ident())
    if current is None or not current.is_limited():
        lock.acquire()
    elif not lock.acquire(True, LOCK_SECONDS_MAX):
        raise TurnOver
