"""The virtual clock of a server, on the admin plane.

GET  /v1/clock     the time of the database's clock
POST /v1/clock     set, advance, freeze or resume a virtual clock; answers when all work that is due is done
"""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from hashrange.clock import (
    REAL_CLOCKS,
    StoreClock,
    VirtualClock,
    parse_duration,
    parse_moment,
    show_moment,
)
from hashrange.server.admin.application import Endpoint, read_json, subject_of
from hashrange.server.admin.port import Subject

_NOT_VIRTUAL: Final = "the server runs on {}, which cannot be changed here; start it with --virtual-clock"


class ClockChange(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A change of the clock in one step: it is set, then advanced, then frozen or resumed.

    set: an ISO 8601 time (UTC if it names no zone), or epoch seconds.
    advance: seconds, or a duration such as `15m`, `24h`, `7d` or `1d12h`.
    frozen: freezes or resumes the clock; without it a frozen clock stays frozen.
    """

    set: str | float | None = None
    advance: str | float | None = None
    frozen: bool | None = None


class ClockState(msgspec.Struct):
    """The clock of the database.

    source: `virtual`, `machine`, or the name of the engine whose store has the clock.
    virtual: whether the clock can be changed.
    frozen: whether it stands still.
    time: the time in ISO 8601.
    epoch_seconds: the time in seconds since 1970.
    ahead_seconds: how far a virtual clock is ahead of the machine's.
    """

    source: str
    virtual: bool
    frozen: bool
    time: str
    epoch_seconds: float
    ahead_seconds: float


async def _show(request: Request) -> ClockState:
    return clock_of(subject_of(request))


async def _change(request: Request) -> ClockState:
    await change_clock(subject_of(request), await read_json(request, ClockChange))
    return clock_of(subject_of(request))


def clock_of(subject: Subject) -> ClockState:
    """The clock of a server."""
    clock = subject.database.clock
    virtual = clock if isinstance(clock, VirtualClock) else None
    now = clock.now()
    return ClockState(
        source=_source(subject),
        virtual=virtual is not None,
        frozen=virtual is not None and virtual.frozen,
        time=show_moment(now),
        epoch_seconds=now,
        ahead_seconds=round(virtual.offset, 3) if virtual is not None else 0.0,
    )


def _source(subject: Subject) -> str:
    """The source of the time: "virtual", "machine", or the name of the engine whose store has the clock."""
    match subject.database.clock:
        case VirtualClock():
            return "virtual"
        case StoreClock():
            return subject.database.engine.name
        case _:
            return "machine"


async def change_clock(subject: Subject, change: ClockChange) -> None:
    """Change a virtual clock, and do the work that is then due. Raises HTTPException."""
    clock = subject.database.clock
    if not isinstance(clock, VirtualClock):
        raise HTTPException(409, _NOT_VIRTUAL.format(REAL_CLOCKS[_source(subject)]))
    try:
        moment = parse_moment(change.set, clock.now()) if isinstance(change.set, str) else change.set
        advance = parse_duration(change.advance) if isinstance(change.advance, str) else change.advance
        clock.change(moment, advance=advance or 0.0, frozen=change.frozen)
    except ValueError as error:
        raise HTTPException(400, str(error)) from None
    # Do the work that is due at the new time before answering, so that the client need not wait for a sweep.
    await subject.settle()
    if subject.plane.draining:
        raise HTTPException(503, "the server is stopping; what is due then is done when it runs again")


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/clock", "The time of the database's clock.", _show),
    Endpoint(
        "POST",
        "/v1/clock",
        "Change a virtual clock; answers with its new state when all work that is then due is done.",
        _change,
        takes=ClockChange,
    ),
)
