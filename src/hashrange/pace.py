"""Limits how long one piece of work may keep others waiting.

Bodies run on the event loop, where all other requests wait for them. Most bodies end within tens of
microseconds, but some requests within the service's limits take seconds, and nothing tells the two apart
beforehand. So each body starts on the loop with a turn of a few milliseconds. Code that may go on for long
calls `point()` again and again. When the turn is used up, `point` raises `TurnOver`, which ends the body
before it has any effect. The body then runs again on a thread of `workers`, where `point` does not end it,
but lets other threads run.

All threads share the interpreter's lock. A worker thread releases it at its points, and if it had to wait to
get it back, other threads have much to do: it then stays away for a while.

On a thread without a turn (a test, a program that uses the database in process) work is never stopped.

A thread that commits needs the lock several times for a commit, and a busy event loop takes it back each
time before that thread is awake: so could a commit take half a second. The thread tells that a commit is due
(`ask_for_way`), and when it has taken long, the event loop and the worker threads sleep for a moment now and
then (`give_way`), until the commit has ended (`end_way`).

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

TURN_SECONDS: Final = 0.006
"""How long a body may keep the event loop. Most bodies take a hundredth of this, batches of 25 a third."""
YIELD_SECONDS_MAX: Final = 0.002
"""How long a worker thread stays away if others need the interpreter's lock; it runs a quarter of it then."""
_YIELD_PAUSE_SECONDS: Final = 0.0002
_WAITED_SECONDS: Final = 0.0001
_HAND_OVER_SECONDS: Final = 0.0001
WAY_SECONDS: Final = 0.008
"""How long a commit may take before the event loop gives way to it; most take a tenth of this."""
WORKERS_WAY_SECONDS: Final = 0.002
"""The same for worker threads."""
_WAY_PAUSE_SECONDS: Final = 0.002
LOOK_SECONDS: Final = 0.0005
LOCK_SECONDS_MAX: Final = 0.01
STEPS: Final = 16
WITHOUT_END: Final = float("inf")


class TurnOver(BaseException):
    """The body has used up its turn on this thread. It has written nothing, and is to run on a worker thread.

    Like `Abandoned` it is no `Exception`, because a body must not catch it. `reached` is the part of its work
    that a read has done: it passes this exception on, and takes the part from `reached` when it runs again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reached: Any = None


class Abandoned(BaseException):
    """The work is to end, because no client waits for its outcome any more."""


class Task:
    """A piece of work on a worker thread. The code that started the work may abandon it.

    `reached` is the part of the work that was done on the event loop.
    """

    __slots__ = ("abandoned", "reached")

    def __init__(self, reached: Any = None) -> None:
        self.abandoned = False
        self.reached = reached

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
    """The time at which `point` looks next, and how many times `step` returns before it calls `point` next;
    since when a commit is due (0: none is), and when other threads give way to it next.

    All threads share it, because only one of them runs at a time.
    """

    __slots__ = ("due", "steps", "way_due", "way_since")

    def __init__(self) -> None:
        self.due: float = 0.0
        self.steps: int = STEPS
        self.way_since: float = 0.0
        self.way_due: float = 0.0


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
        if _watch.way_since:
            _give_way(now, WORKERS_WAY_SECONDS)
        _let_others_run()


def _let_others_run() -> None:
    """Release the interpreter's lock, and stay away while other threads keep it."""
    began = before = perf_counter()
    sleep(0)
    now = perf_counter()
    while now - before > _WAITED_SECONDS and now - began < YIELD_SECONDS_MAX:
        sleep(_YIELD_PAUSE_SECONDS)
        before = perf_counter()
        sleep(0)
        now = perf_counter()


def ask_for_way() -> None:
    """Tell that a commit is due, on whatever thread."""
    _watch.way_since = perf_counter()


def end_way() -> None:
    """Tell that the commit has ended."""
    _watch.way_since = 0.0


def give_way(now: float) -> None:
    """On the event loop: let a commit that has taken long go on. `now` is the time of `perf_counter`."""
    if _watch.way_since:
        _give_way(now, WAY_SECONDS)


def _give_way(now: float, seconds: float) -> None:
    if now - _watch.way_since >= seconds and now >= _watch.way_due:
        _watch.way_due = now + _WAY_PAUSE_SECONDS
        sleep(_HAND_OVER_SECONDS)


def begin_task(task: Task) -> None:
    """Begin a task on this worker thread."""
    turn().task = task


def reached() -> Any:
    """On a worker thread: the part of the work that was done on the event loop, once; else None."""
    current = _turns.get(get_ident())
    if current is None or current.task is None:
        return None
    found, current.task.reached = current.task.reached, None
    return found


def end_task() -> None:
    """End the task of this worker thread."""
    turn().task = None


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
