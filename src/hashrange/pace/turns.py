"""Turns: how long a body may keep the event loop, and where long work lets other threads run.

Each body starts on the event loop with a turn of a few milliseconds. Code that may go on for long calls
`point()` again and again. When the turn is used up, `point` raises `TurnOver`, which ends the body before it
has any effect. The body then runs again on a thread of `workers`. There `point` does not end it, but sleeps
for a moment now and then: all threads share the interpreter's lock, and a thread that only releases it takes
it back before another one is awake. On a thread without a turn (a test, a program that uses the database in
process) work is never stopped.

For the same reason a commit, which needs the lock several times, could take half a second beside an event
loop that is never idle. So the commit says that it has begun (`begin_commit`), and where it takes long, the
loop sleeps for a moment now and then (`give_way`).

`point` costs about 100 ns, most of it for reading the clock. `step` is for pieces of work of a few
microseconds: it calls `point` once in `STEPS` times, and costs a tenth of it otherwise.

Refuses to know: what the work is.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Final

# Compiled code reads a final name at once, and looks an imported one up.
get_ident: Final = threading.get_ident
perf_counter: Final = time.perf_counter
sleep: Final = time.sleep
thread_time: Final = time.thread_time

TURN_SECONDS: Final = 0.004
"""How long a body may keep the event loop. Most bodies take a hundredth of this, batches of 25 half of it."""
LOOK_SECONDS: Final = 0.001
_HAND_OVER_SECONDS: Final = 0.00005
"""A sleep of this length is long enough for another thread to take the interpreter's lock."""
_COMMIT_SECONDS: Final = 0.004
"""How long a commit may take before the event loop gives way to it; most take a tenth of this."""
_WAY_PAUSE_SECONDS: Final = 0.001
_SLICE_SECONDS: Final = 0.004
LOCK_SECONDS_MAX: Final = 0.01
STEPS: Final = 16
STEPS_TOGETHER: Final = 20_000
"""Work of this many steps that no `point` can divide is not begun on the event loop; it takes about 2 ms."""
BUSY_TURN_SECONDS: Final = 0.002
"""How long a body may keep the event loop while long work of others runs on threads."""
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

    __slots__ = ("_task", "left", "since")

    def __init__(self) -> None:
        self.left: float = WITHOUT_END
        self.since: float = 0.0
        self._task: Task | None = None

    @property
    def task(self) -> Task | None:
        return self._task

    @task.setter
    def task(self, task: Task | None) -> None:
        _watch.working += (task is not None) - (self._task is not None)
        self._task = task

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
    """The time at which `point` looks next, and how many times `step` returns before it calls `point` next;
    since when a commit is under way (0: none is), and when the event loop gives way to it next; the worker
    thread that goes on while the others wait, and until when; how many threads have a task.

    All threads share it, because only one of them runs at a time.
    """

    __slots__ = ("commit_since", "due", "slice_until", "steps", "way_due", "worker", "working")

    def __init__(self) -> None:
        self.due: float = 0.0
        self.steps: int = STEPS
        self.commit_since: float = 0.0
        self.way_due: float = 0.0
        self.worker: int = 0
        self.slice_until: float = 0.0
        self.working: int = 0


_watch: Final = _Watch()
_turns: Final[dict[int, Turn]] = {}


def turn() -> Turn:
    """The turn of the calling thread. It is kept until the process ends."""
    ident = get_ident()
    own_turn = _turns.get(ident)
    if own_turn is None:
        own_turn = _turns[ident] = Turn()
    return own_turn


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


def before(steps: int) -> None:
    """Announce a piece of work of this many steps of about 0.1 us, in which no `point` can be.

    Raises `TurnOver` before a long piece, if the calling thread has a turn; otherwise does what `point` does.
    """
    if steps >= STEPS_TOGETHER:
        current = _turns.get(get_ident())
        if current is not None and current.left != WITHOUT_END:
            raise TurnOver
    point()


def _look() -> None:
    _watch.due = perf_counter() + LOOK_SECONDS
    current = _turns.get(get_ident())
    if current is None:
        return
    if current.left != WITHOUT_END:
        used = thread_time()
        if not current.since:
            current.since = used
        if used - current.since >= current.left:
            raise TurnOver
    if current.task is not None:
        if current.task.abandoned:
            raise Abandoned
        _take_turns()


def _take_turns() -> None:
    """On a worker thread: let the event loop and the commit run, and wait while another worker has its slice
    of time. So they wait for the interpreter's lock behind one worker and not behind all."""
    own = get_ident()
    sleep(_HAND_OVER_SECONDS)
    now = perf_counter()
    if _watch.worker != own:
        if now < _watch.slice_until:
            sleep(_watch.slice_until - now)
            now = perf_counter()
        _watch.worker = own
        _watch.slice_until = now + _SLICE_SECONDS


def begin_commit() -> None:
    """Say that a commit has begun or is about to, on whatever thread."""
    _watch.commit_since = perf_counter()


def end_commit() -> None:
    """Say that the commit has ended."""
    _watch.commit_since = 0.0


def give_way(now: float) -> None:
    """On the event loop: let a commit that has taken long go on. `now` is the time of `perf_counter`."""
    since = _watch.commit_since
    if since and now - since >= _COMMIT_SECONDS and now >= _watch.way_due:
        _watch.way_due = now + _WAY_PAUSE_SECONDS
        sleep(_HAND_OVER_SECONDS)


def is_aside() -> bool:
    """Whether the calling thread is a worker thread that runs a task."""
    if not _watch.working:
        return False
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
