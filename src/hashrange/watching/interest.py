"""The observers of a database's requests: fault rules, the lab, recorders of what requests cost, onlookers,
the tape on which they are recorded, and the judge of access.

A database has one `Interest`, and only checks whether it has a `watch`. The code of rules and recorders is
loaded when it is first needed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from hashrange.clock import Clock
from hashrange.settings import Settings
from hashrange.storage.api import Engine

if TYPE_CHECKING:
    from hashrange_access.judging import Gate
    from hashrange_access.rates import Limiter
    from hashrange.costs import Costs
    from hashrange.costs.record import Recorder
    from hashrange.faults import Faults
    from hashrange_lab.behaviour import Lab
    from hashrange.watching.sights import Onlooker
    from hashrange_lab.recordings.recording import Tape
    from hashrange.watching.watch import Watch

_log = logging.getLogger(__name__)

_ERROR_CHARS_MAX: Final = 300

_everywhere: list[Recorder] = []


def record_everywhere(recorder: Recorder, begins: bool) -> None:
    """Start or stop recording, with `recorder`, the requests to all databases that are made from now on."""
    if begins:
        _everywhere.append(recorder)
    else:
        _everywhere.remove(recorder)


class Interest:
    """The rules, the lab, the recorders, the onlookers and the tape of one database. Thread-safe.

    `watch` examines each request; it is None while there are none of them. `costs`: whether there are
    recorders or onlookers, or requests are throttled; then all requests get bills. `heads`: whether more is
    read of the heads of requests than names the caller: the attempt number that the SDK sends, for recorders,
    and the signature, for the `gate`; or whether the `limiter` counts them. `clock` returns the database's
    clock. `numbering` is called with whether requests need the number of their connection.

    Whoever only looks on must not change what a request does: `failing` has the latest error of each observer
    that has failed, and `failures` counts these errors.
    """

    def __init__(self, engine: Engine, settings: Settings, clock: Callable[[], Clock]) -> None:
        self._clock = clock
        self.watch: Watch | None = None
        self.costs = False
        self.heads = False
        self.gate: Gate | None = None
        self.limiter: Limiter | None = None
        self.tape: Tape | None = None
        self.last_tape: Tape | None = None
        self.numbering: Callable[[bool], None] = _ignore
        self.failing: dict[str, str] = {}
        self.failures = 0
        self._judges = 0
        self._engine = engine
        self._settings = settings
        self._lock = threading.Lock()
        self._faults: Faults | None = None
        self._lab: Lab | None = None
        self._recorders: tuple[Recorder, ...] = tuple(_everywhere)
        self._onlookers: tuple[Onlooker, ...] = ()
        if settings.is_lab_on:
            self.lab.begin()
        elif self._recorders:
            self._look()

    def failed(self, observer: str, error: Exception) -> None:
        """Note that an observer has failed on a request, which goes on as if nobody had looked. The log gets
        the first error of each observer. Called from any thread; never raises."""
        with self._lock:
            is_first = observer not in self.failing
            self.failing[observer] = repr(error)[:_ERROR_CHARS_MAX]
            self.failures += 1
        if is_first:
            fields = {"observer": observer, "error": self.failing[observer]}
            _log.error("an observer of requests failed", exc_info=error, extra={"fields": fields})

    @property
    def faults(self) -> Faults:
        """The fault rules of the database."""
        if self._faults is None:
            from hashrange.faults import Faults

            self._faults = Faults(self._clock, self._look)
        return self._faults

    @property
    def lab(self) -> Lab:
        """What the database imitates of AWS."""
        if self._lab is None:
            from hashrange_lab.behaviour import Lab

            self._lab = Lab(self._engine, self._settings, self._clock, self._look)
        return self._lab

    def record(self) -> Costs:
        """A recorder, which begins and ends with its block."""
        from hashrange.costs import Costs

        return Costs(self._tell)

    def _tell(self, recorder: Recorder, begins: bool) -> None:
        """Start or stop recording each request with `recorder`."""
        with self._lock:
            recorders = [other for other in self._recorders if other is not recorder]
            self._recorders = (*recorders, recorder) if begins else tuple(recorders)
        self._look()

    def show(self, onlooker: Onlooker, begins: bool) -> None:
        """Begin or end to show each request to `onlooker`, once it has ended."""
        with self._lock:
            others = [other for other in self._onlookers if other is not onlooker]
            self._onlookers = (*others, onlooker) if begins else tuple(others)
        self._look()

    @property
    def onlookers(self) -> tuple[Onlooker, ...]:
        """Who is shown the requests."""
        return self._onlookers

    def put_on(self, tape: Tape | None) -> None:
        """Record each request on `tape`, or end that (None)."""
        with self._lock:
            self.tape = tape
            self.last_tape = tape or self.last_tape
        self.numbering(tape is not None)
        self._look()

    def judge(self, gate: Gate | None = None, *, begins: bool = True) -> None:
        """Begin to judge the requests of identified callers, whom `gate` identifies if there is one; or end
        what another call began."""
        with self._lock:
            self._judges += 1 if begins else -1
            if gate is not None:
                self.gate = gate
        self._look()

    def limit(self, limiter: Limiter | None) -> None:
        """Let `limiter` refuse requests of callers that make too many, before anything is done for them."""
        self.limiter = limiter
        self._look()

    def _look(self) -> None:
        """Set `watch` if anybody observes; otherwise to None."""
        with self._lock:
            recorders = self._recorders
            faults = self._faults if self._faults is not None and len(self._faults) > 0 else None
            onlookers = self._onlookers
            lab = self._lab if self._lab is not None and self._lab.is_on else None
            bills = lab is not None and lab.throttling.is_on
            tape = self.tape
            self.costs = len(recorders) > 0 or len(onlookers) > 0 or tape is not None or bills
            self.heads = self.costs or self.gate is not None or self.limiter is not None
            is_watched = self.costs or self._judges > 0 or faults is not None or lab is not None
            if not is_watched:
                self.watch = None
                return
            from hashrange.watching.watch import Watch

            self.watch = Watch(
                self._engine, self._settings, faults, lab, recorders, onlookers, tape, self.failed
            )


def _ignore(is_numbered: bool) -> None:
    """The `numbering` of a database without a server."""
