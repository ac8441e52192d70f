"""Health and metrics of a server, on the admin plane. Their addresses have no version, because load balancers
and Prometheus are set to them.

    GET  /health    whether the server serves, and takes writes; which background work fails or waits
    GET  /metrics   for Prometheus
"""

from __future__ import annotations

from itertools import chain
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from hashrange import __version__, form, replaced
from hashrange.rings import rings
from hashrange.server.admin.application import Endpoint, answered, audit_of, role_of, subject_of
from hashrange.server.admin.port import Subject
from hashrange.server.admin.roles import NOBODY
from hashrange.server.admin.tables import pages
from hashrange.server.metrics import (
    CONTENT_TYPE,
    TableSamples,
    audit_samples,
    contributors,
    deliveries,
    exposition,
    lines_of,
    observer_family,
)
from hashrange.storage.capabilities import Local, Remote
from hashrange.tables.background.leaps import LEAPT

CONTRIBUTORS_IN_METRICS: Final = 10
"""How many keys of each ranking are in the metrics: each is a series in Prometheus."""


class FailingUnit(msgspec.Struct):
    """A unit of background work that fails, and is tried again.

    unit: its name.
    error: the latest error.
    """

    unit: str
    error: str


class WaitingUnit(msgspec.Struct):
    """A unit of background work that waits for a bucket or for Kinesis.

    unit: its name.
    seconds: for how long it has waited.
    """

    unit: str
    seconds: int


class FailingObserver(msgspec.Struct):
    """What looks at requests and has failed. The requests went on.

    observer: its name.
    error: the latest error.
    """

    observer: str
    error: str


class FailingRing(msgspec.Struct):
    """A ring that cannot be loaded, or of which a part cannot.

    ring: its name.
    error: why.
    """

    ring: str
    error: str


class AuditState(msgspec.Struct):
    """What the audit log lacks.

    problem: why it cannot be written; null if it can.
    lost_entries: how many entries are not written.
    incomplete_entries: of how many only a part is written.
    """

    problem: str | None
    lost_entries: int
    incomplete_entries: int


class ClockProblem(msgspec.Struct):
    """A leap of the machine's clock, for which work that is due by time waits.

    problem: what happened.
    held_seconds: how long the work waits still.
    """

    problem: str
    held_seconds: int


class Health(msgspec.Struct):
    """The state of the server. Whoever has no role gets `status` only. Members about troubles are absent
    where there are none.

    status: ok; degraded, with the troubles below; with HTTP status 503 draining, refuses writes or files
        missing.
    version: the version of the server.
    engine: the name of the storage engine.
    hot_path: compiled or interpreted.
    connected_to: the database server of an engine that has one.
    uptime_seconds: how long the server has run.
    servers: how many servers share the store.
    cause: why it has this status, and the remedy.
    problems: what the storage engine reports.
    audit: the state of the audit log.
    observers: what looks at requests and has failed.
    rings: the rings that cannot be loaded.
    clock: a leap of the machine's clock.
    failing: the background work that fails.
    damaged_records: how many records the background work could not read.
    waiting: the background work that waits.
    of_rings: what rings show of themselves, by their names; with a member `problem` the status is degraded.
    """

    status: Literal["ok", "degraded", "draining", "refuses writes", "files missing"]
    version: str | UnsetType = UNSET
    engine: str | UnsetType = UNSET
    hot_path: str | UnsetType = UNSET
    connected_to: str | UnsetType = UNSET
    uptime_seconds: float | UnsetType = UNSET
    servers: int | UnsetType = UNSET
    cause: str | UnsetType = UNSET
    problems: list[str] | UnsetType = UNSET
    audit: AuditState | UnsetType = UNSET
    observers: list[FailingObserver] | UnsetType = UNSET
    rings: list[FailingRing] | UnsetType = UNSET
    clock: ClockProblem | UnsetType = UNSET
    failing: list[FailingUnit] | UnsetType = UNSET
    damaged_records: int | UnsetType = UNSET
    waiting: list[WaitingUnit] | UnsetType = UNSET
    of_rings: dict[str, dict[str, Any]] | UnsetType = UNSET


async def _health(request: Request) -> Annotated[Response, Health]:
    subject = subject_of(request)
    engine = subject.database.engine
    of_rings = _of_rings(subject)
    health = _troubles(subject)
    if any(one.get("problem") for one in of_rings.values()):
        health.status = "degraded"
    refusing = engine.refusing()
    missing = engine.missing_files() if isinstance(engine, Local) else None
    if missing is not None:
        health.status = "files missing"
        health.cause = f"{missing}: the store's contents are lost when this server ends, so copy them now"
    if subject.plane.draining or refusing is not None:
        health.status = "draining" if subject.plane.draining else "refuses writes"
        health.cause = health.cause if refusing is None else refusing
    code = 200 if health.status in ("ok", "degraded") else 503
    if role_of(request) == NOBODY:
        return answered(Health(health.status), code)
    health.version = __version__
    health.engine = engine.name
    health.hot_path = form()
    health.uptime_seconds = round(subject.plane.metrics.uptime_seconds, 3)
    if isinstance(engine, Remote):
        health.connected_to = engine.connected_to
    if (sharing := subject.database.background.sharing) is not None:
        health.servers = sharing.servers
    if of_rings:
        health.of_rings = of_rings
    return answered(health, code)


def _of_rings(subject: Subject) -> dict[str, dict[str, Any]]:
    """What rings show of themselves."""
    shown = rings().each("health", lambda made: made(subject))
    return {ring: one for ring, one in shown.items() if one is not None}


def _troubles(subject: Subject) -> Health:
    """The members about troubles; with one of them the status is degraded."""
    engine, background = subject.database.engine, subject.database.background
    health = Health("ok")
    if other := replaced():
        health.cause = other
    if isinstance(engine, Remote | Local) and (problems := engine.problems()):
        health.problems = problems
    if failing := subject.database.observers.failing:
        health.observers = [FailingObserver(name, error) for name, error in sorted(failing.items())]
    if broken := rings().troubles():
        health.rings = [FailingRing(ring, error) for ring, error in sorted(broken.items())]
    if (leaps := background.leaps) is not None and (held := leaps.remaining_seconds) is not None:
        health.clock = ClockProblem(LEAPT, round(held))
    if background.failing or background.damages:
        health.failing = [FailingUnit(unit, error) for unit, error in sorted(background.failing.items())]
        health.damaged_records = background.damages
    if waiting := background.waiting:
        health.waiting = [WaitingUnit(unit, round(seconds)) for unit, seconds in waiting.items()]
    audit = audit_of(subject)
    if health != Health("ok") or (audit is not None and (audit.problem or audit.incomplete)):
        health.status = "degraded"
    if audit is not None and (audit.problem or audit.lost or audit.incomplete):
        health.audit = AuditState(audit.problem or None, audit.lost, audit.incomplete)
    return health


async def _metrics(request: Request) -> Annotated[Response, "text/plain"]:
    subject = subject_of(request)
    tables = TableSamples(subject.plane.settings.metrics_tables_max)
    async for page in pages(subject):
        tables.add(page)
    of_rings = chain.from_iterable(rings().each("metrics", lambda made: lines_of(made(subject))).values())
    text = exposition(
        subject.plane.metrics,
        connections=len(subject.plane.connections),
        clock_seconds=subject.database.clock.now(),
        refuses_writes=subject.database.engine.refusing() is not None,
        tables=tables,
        background=subject.database.background,
        engine=subject.database.engine,
        further=[*of_rings, *lines_of([observer_family(subject.database.observers.failures)])],
    )
    rankings = subject.database.insights.rankings(CONTRIBUTORS_IN_METRICS)
    if (audit := audit_of(subject)) is not None:
        text += audit_samples(audit.written, audit.lost, failing=bool(audit.problem))
    sender = subject.database.jobs.deliveries.made
    lines = [] if sender is None else deliveries(sender.delivered, sender.dropped)
    lines += contributors(rankings)
    text += "".join(f"{line}\n" for line in lines)
    return Response(text, media_type=CONTENT_TYPE)


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/health",
        "The state of the server: 200, or 503 while it drains, its disk takes no writes or files of its "
        "store are missing. Everybody may ask.",
        _health,
        role=NOBODY,
    ),
    Endpoint("GET", "/metrics", "Metrics in Prometheus' text format.", _metrics),
)
