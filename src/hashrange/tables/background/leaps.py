"""Whether the clock can be trusted with what time destroys: `Leaps`.

A machine's clock may leap for seconds, by years. Nothing can bring back what is deleted for its age
meanwhile: expired items, the records of streams, the past of tables. So this work waits when the clock has
gone ahead of the machine's steady clock by more than LEAP_SECONDS, until the clock has gone on steadily for
AGREE_SECONDS.

A steady clock knows nothing of the time before the start. So a note in the store, at most NOTE_SECONDS old,
says when the clock was last trusted. If it says at the start that more than GAP_SECONDS have passed, the same
wait begins: the machine may have been off, or its clock may be wrong.

    (SERVER_SPACE, "clock", "") → the time of the note, in epoch seconds, as a decimal number

A virtual clock is not judged, because its leaps are meant.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from threading import Lock
from typing import Final

from hashrange.clock import show_moment
from hashrange.storage.api import Engine, Reader
from hashrange.tables.spaces import SERVER_SPACE

LEAP_SECONDS: Final = 3_600.0
GAP_SECONDS: Final = 86_400.0
AGREE_SECONDS: Final = 600.0
NOTE_SECONDS: Final = 3_600.0

LEAPT: Final = (
    "the clock has gone far ahead: expiry, trimming and other removals by time wait until it has gone on "
    f"steadily for {AGREE_SECONDS / 60:.0f} minutes"
)
"""What operators read while the work waits."""

_CLOCK: Final = b"clock"

_log = logging.getLogger("hashrange")


def noted(reader: Reader) -> float | None:
    """The time of the note, None if there is none."""
    stored = reader.get(SERVER_SPACE, _CLOCK, b"")
    return None if stored is None else float(stored)


class Leaps:
    """Compares a clock with `steady`, a clock that nobody sets. Thread-safe.

    `since` is when the note was made that the store had at the start, None if there was none.
    """

    def __init__(self, steady: Callable[[], float], since: float | None) -> None:
        self._steady = steady
        # What the clock may show at most to be trusted, less the steady clock.
        self._ahead_max = math.inf if since is None else since + GAP_SECONDS - steady()
        self._noted = -math.inf if since is None else since
        # How far the clock that is not trusted is ahead of the steady clock, and since when.
        self._leapt: tuple[float, float] | None = None
        self._lock = Lock()

    @property
    def remaining_seconds(self) -> float | None:
        """How long the work waits that destroys; None if it does not wait."""
        leapt = self._leapt
        return None if leapt is None else max(leapt[1] + AGREE_SECONDS - self._steady(), 0.0)

    def is_held(self, now: float) -> bool:
        """Whether what time destroys must wait, when the clock shows `now` (epoch seconds)."""
        with self._lock:
            steady = self._steady()
            ahead = now - steady
            if ahead > self._ahead_max:
                if self._leapt is None or abs(ahead - self._leapt[0]) > LEAP_SECONDS:
                    self._leapt = ahead, steady
                    _log.warning(
                        LEAPT,
                        extra={"fields": {"time": show_moment(now)}},
                    )
                if steady - self._leapt[1] < AGREE_SECONDS:
                    return True
            if self._leapt is not None:
                self._leapt = None
                _log.warning("the clock is trusted again", extra={"fields": {"time": show_moment(now)}})
            self._ahead_max = ahead + LEAP_SECONDS
            return False

    def note(self, engine: Engine, now: float) -> bool:
        """Note in the store that the clock is trusted at the time `now`, unless the last note is new enough.
        Returns that nothing more is due. Raises what the engine raises."""
        if abs(now - self._noted) >= NOTE_SECONDS:
            engine.write(lambda txn: txn.put(SERVER_SPACE, _CLOCK, b"", f"{now:.3f}".encode()))
            self._noted = now
        return False
