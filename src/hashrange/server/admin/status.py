"""Health, tables and metrics of a server, on the admin plane.

    GET  /health    whether the server serves, and takes writes; which background work fails or waits
    GET  /tables    state and size of each table, and the progress of builds
    GET  /metrics   for Prometheus
    GET  /imports/{id}/errors  the items that an import left out

Work that grows with the number of tables is done in pages, because it runs on the data plane's event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import chain
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from hashrange import __version__, form, pace, replaced
from hashrange.rings import rings
from hashrange.server.admin.application import Endpoint, audit_of, json, role_of, subject_of
from hashrange.server.admin.port import Subject
from hashrange.server.admin.roles import NOBODY
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

TABLES_PER_PAGE: Final = 20
"""A page of this size takes a fraction of a millisecond."""

ERRORS_PER_PAGE: Final = 500

CONTRIBUTORS_IN_METRICS: Final = 10
"""How many keys of each ranking are in the metrics: each is a series in Prometheus."""


async def _health(request: Request) -> Response:
    subject = subject_of(request)
    draining = subject.plane.draining
    engine = subject.database.engine
    refusing = engine.refusing()
    background = subject.database.background
    failing, waiting = background.failing, background.waiting
    problems = engine.problems() if isinstance(engine, Remote | Local) else []
    audit = audit_of(subject)
    silent = audit is not None and (audit.problem or audit.incomplete)
    observers = _failing_observers(subject)
    broken = rings().troubles()
    other = replaced()
    leaps = background.leaps
    held_seconds = None if leaps is None else leaps.remaining_seconds
    troubles = (failing, waiting, background.damages, problems, silent, observers, broken, other)
    is_degraded = any(troubles) or held_seconds is not None
    status = "degraded" if is_degraded else "ok"
    missing = engine.missing_files() if isinstance(engine, Local) else None
    if missing is not None:
        status = "files missing"
    if draining or refusing is not None:
        status = "draining" if draining else "refuses writes"
    code = 503 if draining or refusing is not None or missing is not None else 200
    if role_of(request) == NOBODY:
        return json({"status": status}, code)
    shown: dict[str, Any] = {
        "status": status,
        "version": __version__,
        "engine": engine.name,
        "hot_path": form(),
        **({"connected_to": engine.connected_to} if isinstance(engine, Remote) else {}),
        "uptime_seconds": round(subject.plane.metrics.uptime_seconds, 3),
    }
    if background.sharing is not None:
        shown["servers"] = background.sharing.servers
    if refusing is not None:
        shown["cause"] = refusing
    elif missing is not None:
        shown["cause"] = f"{missing}: the store's contents are lost when this server ends, so copy them now"
    elif other:
        shown["cause"] = other
    if problems:
        shown["problems"] = problems
    if audit is not None and (audit.problem or audit.lost or audit.incomplete):
        shown["audit"] = {
            "problem": audit.problem or None,
            "lost_entries": audit.lost,
            "incomplete_entries": audit.incomplete,
        }
    if observers:
        shown["observers"] = observers
    if broken:
        shown["rings"] = [{"ring": ring, "error": error} for ring, error in sorted(broken.items())]
    if held_seconds is not None:
        shown["clock"] = {"problem": LEAPT, "held_seconds": round(held_seconds)}
    if failing or background.damages:
        shown["failing"] = [{"unit": unit, "error": error} for unit, error in sorted(failing.items())]
        shown["damaged_records"] = background.damages
    if waiting:
        shown["waiting"] = [{"unit": unit, "seconds": round(waiting[unit])} for unit in waiting]
    return json(shown, code)


def _failing_observers(subject: Subject) -> list[dict[str, str]]:
    """What looks at requests and has failed, with its latest error. The requests went on."""
    failing = subject.database.observers.failing
    return [{"observer": name, "error": error} for name, error in sorted(failing.items())]


async def _tables(request: Request) -> Response:
    pages = [orjson.dumps(page)[1:-1] async for page in _pages(subject_of(request))]
    return Response(b'{"tables":[%b]}' % b",".join(pages), media_type="application/json")


async def _pages(subject: Subject) -> AsyncIterator[list[dict[str, Any]]]:
    """All tables, in pages; between pages the event loop runs requests of the data plane."""
    after = ""
    while page := subject.database.overview(after, TABLES_PER_PAGE):
        yield page
        after = page[-1]["name"]
        pace.give_way(time.perf_counter())
        await asyncio.sleep(0)


async def _import_errors(request: Request) -> Response:
    after = request.query_params.get("after", "0")
    first = int(after) if after.isdecimal() and len(after) < 10 else 0
    errors = subject_of(request).database.import_errors(request.path_params["id"], first, ERRORS_PER_PAGE)
    shown: dict[str, Any] = {"errors": errors}
    if len(errors) == ERRORS_PER_PAGE:
        shown["after"] = first + ERRORS_PER_PAGE
    return json(shown)


async def _metrics(request: Request) -> Response:
    subject = subject_of(request)
    tables = TableSamples(subject.plane.settings.metrics_tables_max)
    async for page in _pages(subject):
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
        "Whether the server serves: 200, or 503 while it drains, its disk takes no writes or files of its "
        "store are missing; and which background work fails, or waits for a bucket or for Kinesis. Whoever "
        "has no role gets the status only.",
        _health,
        role=NOBODY,
    ),
    Endpoint(
        "GET", "/tables", "State and size of each table, and the progress of builds.", _tables
    ),
    Endpoint(
        "GET",
        "/imports/{id}/errors",
        "The items that the import with this id left out, and why: 500 to a page, `?after=` gives the next.",
        _import_errors,
    ),
    Endpoint("GET", "/metrics", "Metrics in Prometheus' text format.", _metrics),
)
