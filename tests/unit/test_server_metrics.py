"""What the server counts, and its text for Prometheus."""

from __future__ import annotations

import math
import re

from hashrange.database import Background
from hashrange.errors import ConditionalCheckFailedException, RequestViolation, TopLevelError
from hashrange.server.metrics import BOUNDS_SECONDS, Metrics, TableSamples, exposition
from hashrange.storage.memory import MemoryEngine

SAMPLE = re.compile(r'[a-z_]+(\{([a-z_]+="([^"\\\n]|\\.)*",?)*\})? [-+0-9.e]+')


def shown(metrics: Metrics, tables: list[dict[str, object]] | None = None) -> list[str]:
    samples = TableSamples(tables_max=2)
    for table in tables or []:
        samples.add([table])
    text = exposition(
        metrics,
        connections=3,
        clock_seconds=1.5,
        refuses_writes=False,
        tables=samples,
        background=Background(),
        engine=MemoryEngine(),
    )
    assert text.endswith("\n")
    return text.splitlines()


def test_requests_by_outcome() -> None:
    metrics = Metrics()
    for error in (None, None, ConditionalCheckFailedException("x"), ValueError("ours")):
        metrics.answered("PutItem", 0.0007, error)
    metrics.responded(404, "UnknownOperationException")
    metrics.answered("GetItem", 0.0, TopLevelError("x"))
    metrics.answered("GetItem", 0.0, RequestViolation("x"))
    lines = shown(metrics)
    for labels, count in (
        ('status="200",error=""', 2),
        ('status="400",error="ConditionalCheckFailedException"', 1),
        ('status="500",error="InternalServerError"', 1),
    ):
        assert f'hashrange_requests_total{{operation="PutItem",{labels}}} {count}' in lines
    # The wire's name, whatever the class is called.
    labels = 'operation="GetItem",status="400",error="ValidationException"'
    assert f"hashrange_requests_total{{{labels}}} 2" in lines
    assert 'hashrange_other_responses_total{status="404",error="UnknownOperationException"} 1' in lines


def test_latencies_are_cumulative() -> None:
    metrics = Metrics()
    for seconds in (0.0, 0.00005, 0.0002, 0.9, 60.0):
        metrics.answered("GetItem", seconds, None)
    lines = shown(metrics)
    buckets = [line for line in lines if line.startswith("hashrange_request_seconds_bucket")]
    bounds = [float(found) for line in buckets for found in re.findall(r'le="([^"]+)"', line)]
    assert bounds == [*BOUNDS_SECONDS, math.inf]
    counts = [int(line.rpartition(" ")[2]) for line in buckets]
    assert counts == [2, 2, *[3] * 11, 4, 4, 4, 5]
    assert 'hashrange_request_seconds_count{operation="GetItem"} 5' in lines
    total = next(line for line in lines if line.startswith("hashrange_request_seconds_sum"))
    assert float(total.rpartition(" ")[2]) == 60.90025


def test_every_line_is_a_comment_or_a_sample() -> None:
    metrics = Metrics()
    metrics.answered("GetItem", 1e-7, None)
    metrics.responded(503)
    lines = shown(metrics, [{"name": 'odd"name\\', "items": 7, "bytes": 70}])
    assert 'hashrange_table_items{table="odd\\"name\\\\"} 7' in lines
    described: set[str] = set()
    for line in lines:
        if line.startswith("# HELP "):
            assert line.split()[2] not in described
            described.add(line.split()[2])
        elif not line.startswith("# TYPE "):
            assert SAMPLE.fullmatch(line), line
            name = re.split(r"[{ ]", line)[0]
            assert name in described or re.sub("_(bucket|sum|count)$", "", name) in described


def test_totals_count_the_tables_that_have_no_series_of_their_own() -> None:
    tables: list[dict[str, object]] = [{"name": f"table{n}", "items": n, "bytes": 10 * n} for n in range(5)]
    lines = shown(Metrics(), tables)
    for name, value in (("tables", 5), ("items", 10), ("bytes", 100)):
        assert f"hashrange_{name} {value}" in lines
    of_tables = [line for line in lines if line.startswith("hashrange_table_")]
    assert len(of_tables) == 2 * 2
    assert 'hashrange_table_bytes{table="table1"} 10' in of_tables
