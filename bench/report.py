"""Results to markdown: requests a second, ratios to the fastest peers, latency and CPU; and to JSON.

A cell with a problem is in no ratio and never counts as the fastest. All peers that keep data in files count
as "durable" ("file" or "fsync"), whether they sync each write or not. So Hashrange is also compared with
peers that promise less.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median

from bench.servers import Server
from bench.suite import Cell
from bench.workloads import WORKLOADS

OWN = "hashrange"


def merge_rounds(cells: Iterable[Cell]) -> list[Cell]:
    """One cell for each (server, workload, connections): the medians over the rounds, any problem kept."""
    groups: dict[tuple[str, str, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.title, cell.workload, cell.connections), []).append(cell)
    return [_merge(group) for group in groups.values()]


def _merge(group: Sequence[Cell]) -> Cell:
    problems = [cell.problem for cell in group if cell.problem is not None]
    return replace(
        group[0],
        requests_per_second=median(cell.requests_per_second for cell in group),
        p50_us=median(cell.p50_us for cell in group),
        p99_us=median(cell.p99_us for cell in group),
        p999_us=median(cell.p999_us for cell in group),
        server_cpu_us=median(cell.server_cpu_us for cell in group),
        generator_cpu_us=median(cell.generator_cpu_us for cell in group),
        others_share=median(cell.others_share for cell in group),
        slowest_share=median(cell.slowest_share for cell in group),
        requests=sum(cell.requests for cell in group),
        problem=problems[0] if problems else None,
    )


def machine() -> str:
    """A line about the machine and its load, because other programs make every figure worse."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), model)
    load = os.getloadavg()[0]
    system = f"{platform.system()} {platform.release()}"
    disk = f"fdatasync of 4 KB {sync_us():.0f} us"
    return f"{os.cpu_count()} cores ({model}), {system}, {disk}, load {load:.1f} at start"


def sync_us() -> float:
    """The median time to append 4 KB to a file and sync it, on the disk that holds the servers' files."""
    times = []
    with tempfile.TemporaryFile() as file:
        for _ in range(50):
            file.write(bytes(4096))
            file.flush()
            before = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - before)
    return median(times) * 1e6


def render(cells: Sequence[Cell], servers: Sequence[Server], where: str) -> str:
    """The whole report in markdown."""
    parts = [f"Machine: {where}. The generator shares the cores with the server.", ""]
    parts += [f"- {server.title}: {server.version()}" for server in servers]
    for connections in sorted({cell.connections for cell in cells}):
        chosen = [cell for cell in cells if cell.connections == connections]
        parts += ["", f"### {connections} connection{'s' if connections > 1 else ''}", ""]
        parts += _throughput(chosen)
        ratios = _ratios(chosen)
        if ratios:
            parts += ["", *ratios]
        derived = _derived(chosen)
        if derived:
            parts += ["", *derived]
        parts += ["", *_details(chosen)]
    problems = [
        f"- {cell.title}, {cell.workload}, {cell.connections}: {cell.problem}"
        for cell in cells
        if cell.problem
    ]
    if problems:
        parts += ["", "### Cells that do not count", "", *problems]
    return "\n".join(parts) + "\n"


def _throughput(cells: Sequence[Cell]) -> list[str]:
    titles = list(dict.fromkeys(cell.title for cell in cells))
    rows = []
    for workload in dict.fromkeys(cell.workload for cell in cells):
        by_title = {cell.title: cell for cell in cells if cell.workload == workload}
        rows.append([workload, *(_rate(by_title.get(title)) for title in titles)])
    return table(["requests/s", *titles], rows)


def _rate(cell: Cell | None) -> str:
    if cell is None or not cell.requests:
        return "n/a"
    return f"{cell.requests_per_second:,.0f}" + (" !" if cell.problem else "")


def fastest(cells: Iterable[Cell], *, durable_only: bool) -> Cell | None:
    """The fastest peer's cell that counts, or None."""
    peers = [
        cell
        for cell in cells
        if cell.server != OWN and cell.problem is None and not (durable_only and cell.durability == "memory")
    ]
    return max(peers, key=lambda cell: cell.requests_per_second, default=None)


def _ratios(cells: Sequence[Cell]) -> list[str]:
    rows = []
    for workload in dict.fromkeys(cell.workload for cell in cells):
        chosen = [cell for cell in cells if cell.workload == workload]
        own = {cell.durability: cell for cell in chosen if cell.server == OWN and cell.problem is None}
        if not own or all(cell.server == OWN for cell in chosen):
            continue
        row = [workload]
        for durable_only in (False, True):
            best = fastest(chosen, durable_only=durable_only)
            row += [_versus(own.get("fsync"), best), _versus(own.get("memory"), best)]
            row.append("none" if best is None else f"{best.title} {best.requests_per_second:,.0f}")
        rows.append(row)
    heads = ["workload", "fsync / fastest", "memory / fastest", "fastest peer"]
    heads += ["fsync / durable", "memory / durable", "fastest durable peer"]
    return table(heads, rows) if rows else []


def _versus(own: Cell | None, peer: Cell | None) -> str:
    if own is None or peer is None or not peer.requests_per_second:
        return "-"
    return f"{own.requests_per_second / peer.requests_per_second:.1f}x"


def _derived(cells: Sequence[Cell]) -> list[str]:
    """The cost of a workload relative to its baseline on one server, and the records it reads a second."""
    good = {(cell.title, cell.workload): cell for cell in cells if cell.problem is None}
    titles = list(dict.fromkeys(cell.title for cell in cells))
    rows = []
    for name in dict.fromkeys(cell.workload for cell in cells):
        workload = WORKLOADS[name]
        if workload.baseline is not None:
            pairs = ((good.get((title, name)), good.get((title, workload.baseline))) for title in titles)
            ratios = (_share(cell, baseline) for cell, baseline in pairs)
            rows.append([f"{name} / {workload.baseline}", *ratios])
        if workload.records:
            found = (good.get((title, name)) for title in titles)
            rates = (cell and f"{cell.requests_per_second * workload.records:,.0f}" for cell in found)
            rows.append([f"{name}, records/s", *(rate or "-" for rate in rates)])
    rows = [row for row in rows if any(cell != "-" for cell in row[1:])]
    return table(["same server", *titles], rows) if rows else []


def _share(cell: Cell | None, baseline: Cell | None) -> str:
    if cell is None or baseline is None or not baseline.requests_per_second:
        return "-"
    return f"{cell.requests_per_second / baseline.requests_per_second:.2f}"


def _details(cells: Sequence[Cell]) -> list[str]:
    rows = [
        [
            cell.workload,
            cell.title,
            f"{cell.requests_per_second:,.0f}",
            f"{cell.p50_us / 1000:.2f}",
            f"{cell.p99_us / 1000:.2f}",
            f"{cell.p999_us / 1000:.2f}",
            f"{cell.slowest_share:.0%}",
            f"{cell.server_cpu_us:,.0f}",
            f"{cell.generator_cpu_us:,.0f}",
            f"{cell.others_share:.0%}",
        ]
        for cell in sorted(cells, key=lambda cell: cell.workload)
        if cell.requests
    ]
    heads = ["workload", "server", "requests/s", "p50 ms", "p99 ms", "p99.9 ms", "slowest connection"]
    return table([*heads, "server CPU us/request", "generator CPU us", "other programs"], rows)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A markdown table with aligned columns, numbers to the right."""
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]

    def line(row: Sequence[str]) -> str:
        cells = [
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "| " + " | ".join(cells) + " |"

    rule = ["-" * width if column == 0 else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    return [line(heads), line(rule), *(line(row) for row in rows)]


def to_json(cells: Sequence[Cell], servers: Sequence[Server], where: str) -> str:
    """The same results for programs."""
    document = {
        "machine": where,
        "servers": {server.title: server.version() for server in servers},
        "cells": [asdict(cell) for cell in cells],
    }
    return json.dumps(document, indent=1)
