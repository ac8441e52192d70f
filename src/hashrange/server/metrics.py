"""The server's counters, and their text for Prometheus.

Every request is counted, so counting is only a search and two additions; everything else is derived when
the metrics are read. A request's latency is the time from its start until its answer is encoded, which for a
write includes its commit.

    hashrange_requests_total{operation,status,error}    how requests ended; `error` is the code on the wire
    hashrange_request_seconds{operation}                histogram of their latency
    hashrange_other_responses_total{status,error}       answers to requests that reached no operation
    hashrange_commit_deliveries_total                   batches of outcomes that the engine delivered
    hashrange_internal_errors_total, hashrange_background_failures_total,
    hashrange_background_damaged_records_total, hashrange_background_failing{unit}   faults
    hashrange_observer_failures_total                   errors of what looks at requests, which went on
    hashrange_kinesis_records_total, hashrange_kinesis_dropped_total    changes for Kinesis data streams
    hashrange_contributor_units{table,index,keys,key}, hashrange_contributor_throttles    contributor insights
    hashrange_connections, hashrange_clock_seconds, hashrange_table_items{table}, …

Only the event loop writes the counters, except for the deliveries, which only the engine's commit thread
writes. This module writes the text format (version 0.0.4) itself, because the counters of a client library
would cost several times the budget of a request. Refuses to know what an operation does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, chain, starmap
from typing import Any, Final

from hashrange.database import Background
from hashrange.errors import InternalServerError, ServiceError
from hashrange.insights.contributors import Ranking
from hashrange.storage.api import Engine
from hashrange.storage.capabilities import Remote

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

# Upper bounds of the histogram's buckets. In-process reads take tens of microseconds, a commit on a slow disk
# tens of milliseconds.
BOUNDS_SECONDS: Final[tuple[float, ...]] = (
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
)  # fmt: skip

_OK: Final = 200

_Sample = tuple[str, dict[str, str], int | float]
Family = tuple[str, str, str, list[_Sample]]
"""A metric: its name, its kind, its description, and its samples."""

now = time.perf_counter
"""The clock for latencies."""


class Tally:
    """The requests of an operation: latencies by bucket, their sum, and the errors."""

    __slots__ = ("buckets", "errors", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_SECONDS) + 1)
        self.seconds = 0.0
        self.errors: dict[tuple[int, str], int] = {}


class Metrics:
    """The counters of one server."""

    __slots__ = ("deliveries", "internal_errors", "responses", "started", "tallies")

    def __init__(self) -> None:
        self.tallies: dict[str, Tally] = {}
        self.responses: dict[tuple[int, str], int] = {}
        self.deliveries = 0
        self.internal_errors = 0  # of the server's own periodic work
        self.started = now()

    def answered(self, operation: str, seconds: float, error: Exception | None) -> None:
        """Count a request of an operation that took `seconds`, and failed with `error` or succeeded
        (None)."""
        tally = self.tallies.get(operation)
        if tally is None:
            tally = self.tallies[operation] = Tally()
        place = 0
        for bound in BOUNDS_SECONDS:
            if seconds <= bound:
                break
            place += 1
        tally.buckets[place] += 1
        tally.seconds += seconds
        if error is not None:
            answered_error = error if isinstance(error, ServiceError) else InternalServerError("")
            key = (answered_error.status, answered_error.code)
            tally.errors[key] = tally.errors.get(key, 0) + 1

    def responded(self, status: int, error: str = "") -> None:
        """Count an answer to a request that reached no operation: a refusal, or the data plane's health
        check.

        `error` is the code of its error, "" for none.
        """
        key = (status, error)
        self.responses[key] = self.responses.get(key, 0) + 1

    @property
    def uptime_seconds(self) -> float:
        """The seconds since the server started."""
        return now() - self.started


class TableSamples:
    """The samples of tables, and the totals of all tables; filled page by page.

    Only the first `tables_max` tables in the order of their names have their own samples, because each series
    takes storage in Prometheus. The totals count all tables.
    """

    __slots__ = ("_tables_max", "bytes", "bytes_lines", "count", "items", "items_lines")

    def __init__(self, tables_max: int) -> None:
        self._tables_max = tables_max
        self.count = 0
        self.items = 0
        self.bytes = 0
        self.items_lines: list[str] = []
        self.bytes_lines: list[str] = []

    def add(self, page: Iterable[Mapping[str, Any]]) -> None:
        """Add tables as `Database.overview` gives them."""
        for row in page:
            self.items += row["items"]
            self.bytes += row["bytes"]
            if self.count < self._tables_max:
                name = _escaped(row["name"])
                self.items_lines.append(f'hashrange_table_items{{table="{name}"}} {row["items"]}')
                self.bytes_lines.append(f'hashrange_table_bytes{{table="{name}"}} {row["bytes"]}')
            self.count += 1


_COUNTED: Final = {
    "fetches": "Statements that fetched records.",
    "direct_reads": "Reads in their own transaction: of many records, or in several rounds.",
    "commits": "Statements that committed or verified a group of requests.",
    "lost_commits": "Groups of writes that ran again, because another server had changed what they read.",
    "bodies_alone": "Requests and background work that ran under the exclusive lock of the store.",
    "reconnections": "How often the connection that writes was made again.",
}


def lines_of(families: Iterable[Family]) -> list[str]:
    """The lines of metrics in Prometheus' text format."""
    return [*chain.from_iterable(starmap(_family, families))]


def observer_family(failures: int) -> Family:
    """The metric of what looks at requests and has failed."""
    text = "Errors of what looks at requests: recorders, onlookers, rules. The requests went on."
    return "hashrange_observer_failures_total", "counter", text, [("", {}, failures)]


def audit_samples(written: int, lost: int, *, failing: bool) -> str:
    """The metrics of the audit log, in Prometheus' text format."""
    families = [
        ("hashrange_audit_entries_total", "counter", "Entries of the audit log.", written),
        ("hashrange_audit_lost_total", "counter", "Entries that the audit log had no room for.", lost),
        ("hashrange_audit_failing", "gauge", "1 while the audit log cannot be written.", int(failing)),
    ]
    lines: list[str] = []
    for name, kind, text, value in families:
        lines += _family(name, kind, text, [("", {}, value)])
    return "".join([f"{line}\n" for line in lines])


def exposition(
    metrics: Metrics,
    *,
    connections: int,
    clock_seconds: float,
    refuses_writes: bool,
    tables: TableSamples,
    background: Background,
    engine: Engine,
    further: Iterable[str] = (),
) -> str:
    """All metrics in Prometheus' text format. `further` are the lines of other metrics (`lines_of`)."""
    lines: list[str] = []
    tallies = sorted(metrics.tallies.items())
    lines += _family(
        "hashrange_requests_total", "counter", "Requests by operation and outcome.", _requests(tallies)
    )
    lines += _family(
        "hashrange_request_seconds",
        "histogram",
        "From the start of a request until its answer is encoded.",
        _latencies(tallies),
    )
    responses = [
        ("", {"status": str(status), "error": error}, count)
        for (status, error), count in sorted(metrics.responses.items())
    ]
    lines += _family(
        "hashrange_other_responses_total", "counter", "Answers to what reached no operation.", responses
    )
    # Declared as `int | float`: otherwise compiled code would turn all numbers in a list of both into floats.
    single: list[tuple[str, str, str, int | float]] = [
        ("commit_deliveries_total", "counter", "Batches of outcomes from the engine.", metrics.deliveries),
        (
            "internal_errors_total",
            "counter",
            "Errors in the server's own periodic checks.",
            metrics.internal_errors,
        ),
        (
            "background_failures_total",
            "counter",
            "Errors that ended a bite of background work.",
            background.failures,
        ),
        (
            "background_damaged_records_total",
            "counter",
            "Damaged records that background work skipped.",
            background.damages,
        ),
        ("connections", "gauge", "Open connections of the data plane.", connections),
        ("clock_seconds", "gauge", "The time of the database's clock, in epoch seconds.", clock_seconds),
        ("uptime_seconds", "gauge", "The time since the server started.", metrics.uptime_seconds),
        ("refuses_writes", "gauge", "1 while the store takes no writes.", int(refuses_writes)),
        ("tables", "gauge", "Tables.", tables.count),
        ("items", "gauge", "Items of all tables.", tables.items),
        ("bytes", "gauge", "Size of the items of all tables.", tables.bytes),
    ]
    for name, kind, text, value in single:
        lines += _family(f"hashrange_{name}", kind, text, [("", {}, value)])
    lines += _store(engine)
    failing: list[_Sample] = [("", {"unit": name}, 1) for name in sorted(background.failing)]
    lines += _family("hashrange_background_failing", "gauge", "Background work that fails.", failing)
    lines += [*_family("hashrange_table_items", "gauge", "Items of a table.", ()), *tables.items_lines]
    lines += [*_family("hashrange_table_bytes", "gauge", "Size of a table's items.", ()), *tables.bytes_lines]
    lines += further
    cpu_seconds: _Sample = ("", {}, time.process_time())
    lines += _family("process_cpu_seconds_total", "counter", "CPU time of the process.", [cpu_seconds])
    return "\n".join(lines) + "\n"


def deliveries(delivered: int, dropped: int) -> list[str]:
    """The lines of the changes that were sent to Kinesis, once there is anything to tell."""
    if not delivered and not dropped:
        return []
    sent: list[_Sample] = [("", {}, delivered)]
    lost: list[_Sample] = [("", {}, dropped)]
    return [
        *_family("hashrange_kinesis_records_total", "counter", "Changes that Kinesis has taken.", sent),
        *_family("hashrange_kinesis_dropped_total", "counter", "Changes that were given up.", lost),
    ]


def contributors(rankings: list[Ranking]) -> list[str]:
    """The lines of the keys that are used and throttled most in the current hour."""
    used: list[_Sample] = []
    throttled: list[_Sample] = []
    current: set[tuple[str, str]] = set()
    for place, kind, _, highest in rankings:
        if (str(place), kind) in current:
            continue  # the hour before
        current.add((str(place), kind))
        keys = "partition and sort key" if kind.startswith("SK") else "partition key"
        for contributor in highest:
            labels = {
                "table": place.table, "index": place.index_name, "keys": keys, "key": contributor.key.decode()
            }  # fmt: skip
            (used if kind.endswith("C") else throttled).append(("", labels, contributor.amount))
    lines: list[str] = []
    if used:
        text = "What the busiest keys consumed in this hour: read units, and three times write units."
        lines += _family("hashrange_contributor_units", "gauge", text, used)
    if throttled:
        text = "How often requests of the most throttled keys were throttled in this hour."
        lines += _family("hashrange_contributor_throttles", "gauge", text, throttled)
    return lines


def _store(engine: Engine) -> list[str]:
    """Where the tables are stored, and the counters of an engine whose records another program stores."""
    lines: list[str] = []
    labels = {"engine": engine.name}
    if isinstance(engine, Remote):
        labels["connected_to"] = engine.connected_to
        for counted, number in engine.counts().items():
            name = f"hashrange_store_{counted}_total"
            lines += _family(name, "counter", _COUNTED.get(counted, counted), [("", {}, number)])
        age = engine.commit_seconds()
        text = "How long the commit under way has been under way; 0 if there is none."
        lines += _family("hashrange_store_commit_seconds", "gauge", text, [("", {}, age)])
    lines += _family("hashrange_store_info", "gauge", "Where the tables are stored.", [("", labels, 1)])
    return lines


def _requests(tallies: Iterable[tuple[str, Tally]]) -> Iterator[_Sample]:
    for operation, tally in tallies:
        well = sum(tally.buckets) - sum(tally.errors.values())
        yield "", {"operation": operation, "status": str(_OK), "error": ""}, well
        for (status, error), count in sorted(tally.errors.items()):
            yield "", {"operation": operation, "status": str(status), "error": error}, count


def _latencies(tallies: Iterable[tuple[str, Tally]]) -> Iterator[_Sample]:
    for operation, tally in tallies:
        bounds = [*map(str, BOUNDS_SECONDS), "+Inf"]
        for bound, count in zip(bounds, accumulate(tally.buckets), strict=True):
            yield "_bucket", {"operation": operation, "le": bound}, count
        yield "_sum", {"operation": operation}, tally.seconds
        yield "_count", {"operation": operation}, sum(tally.buckets)


def _family(name: str, kind: str, text: str, samples: Iterable[_Sample]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for suffix, labels, value in samples:
        inside = ",".join(f'{label}="{_escaped(shown)}"' for label, shown in labels.items())
        yield f"{name}{suffix}{{{inside}}} {value}" if inside else f"{name}{suffix} {value}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
