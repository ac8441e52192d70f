"""`python -m bench.console`: how fast the web console is, and what it costs the data plane.

It fills a durable store over HTTP, stops its server and starts it again. It prints

    first row    the time from the command to the first page of a table's items
    first page   its bytes with style sheets and scripts, as they are and compressed by gzip
    page times   of Scan and Query pages at random places, and of an item: median, p95 and worst
    frames       the time between frames while Chromium scrolls the grid: median, p95 and worst; and of an
                 empty page, which shows what the machine allows
    seen         the time from a write to the frame of an open stream's page that shows it
    data plane   the rate of GetItem while a browser has live pages open (`--streams`), divided by the rate
                 while none has, measured in turn and several times

The goals: 2 s, 80 kB compressed, p95 at most 300 ms, 33 ms and 250 ms, and 1 % for pages that are open and
idle. Frames and what is seen are left out, with a note, where playwright or Chromium is not installed.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import quote

import orjson

from bench import in_browser, report
from bench.large import TABLE, Store, fill, key_of
from bench.load import SCRIPT, find_wrk, run_wrk, write_requests
from bench.servers import Running, ServerError, hashrange, running
from bench.wire import HOST, Request, call, render

FIRST_ROW_SECONDS = 2.0
FIRST_PAGE_BYTES = 80_000
PAGE_MS = 300.0
FRAME_MS = 33.0
SEEN_MS = 250.0
IDLE_LOSS = 0.01
ADMIN_PORT_DISTANCE = 100
_ITEM_BYTES = 500
_CONNECTIONS = 16


class PageError(Exception):
    """The console did not answer as it should."""


class Browser:
    """A client that keeps the console's cookie. It compresses nothing and runs no scripts."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=60)
        self._cookie = ""
        answer, _ = self._ask("GET", self.link())
        self._cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[HTTPResponse, bytes]:
        headers = {"Content-Type": "application/json"} if body else {}
        self._connection.request(method, path, body, headers | {"Cookie": self._cookie})
        answer = self._connection.getresponse()
        return answer, answer.read()

    def link(self) -> str:
        """A link that opens the console in another browser."""
        return str(orjson.loads(self._ask("POST", "/v1/console-link", b"{}")[1])["link"])

    def page(self, path: str) -> bytes:
        """A page. Raises PageError if it is not one."""
        answer, text = self._ask("GET", path)
        if answer.status != 200:
            raise PageError(f"{path}: {answer.status} {text[:200]!r}")
        return text

    @contextmanager
    def open(self, path: str) -> Iterator[None]:
        """Keep a stream of events open, as the page that shows it does."""
        self._connection.request("GET", path, headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        if answer.status != 200:
            raise PageError(f"{path}: {answer.status}")
        try:
            yield
        finally:
            self._connection.close()


@dataclass(slots=True)
class Measured:
    """What was measured; the times of pages in milliseconds, rates in requests a second."""

    items: int
    first_row_seconds: float = 0.0
    first_page_bytes: int = 0
    compressed_bytes: int = 0
    pages: dict[str, list[float]] = field(default_factory=dict)
    still: list[float] = field(default_factory=list)
    frames: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)
    rates: dict[str, list[float]] = field(default_factory=dict)


def _paths(items: int, count: int) -> Iterator[tuple[str, str]]:
    """Kinds of pages, and addresses at random places of the table."""
    noise = random.Random(items)
    table = f"/console/t/{TABLE}"
    for _ in range(count):
        key = key_of(noise.randrange(items))
        text = quote(orjson.dumps(key))
        yield "Scan", f"{table}?start={text}&back=-"
        yield "Query", f"{table}?pk={quote(key['pk']['S'])}"
        yield "item", f"{table}/item?key={text}"


def _measure_pages(browser: Browser, measured: Measured, count: int) -> None:
    for kind, path in _paths(measured.items, count):
        began = time.perf_counter()
        browser.page(path)
        measured.pages.setdefault(kind, []).append((time.perf_counter() - began) * 1e3)


def _measure_first_page(browser: Browser, measured: Measured) -> None:
    parts = [browser.page(f"/console/t/{TABLE}")]
    assets = set(re.findall(rb'"(/console/static/[^"]+)"', parts[0]))
    while assets:
        path = assets.pop().decode()
        text = browser.page(path)
        parts.append(text)
        folder = path.rpartition("/")[0]
        assets |= {f"{folder}/{name.decode()}".encode() for name in re.findall(rb'from "\./([^"]+)"', text)}
    measured.first_page_bytes = sum(map(len, parts))
    measured.compressed_bytes = sum(len(gzip.compress(part)) for part in parts)


def _measure_browser(
    started: Running, browser: Browser, measured: Measured, options: argparse.Namespace
) -> None:
    """The grid in a browser, and the page of the stream while one program writes."""
    base = f"http://{HOST}:{started.port + ADMIN_PORT_DISTANCE}"
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    call(started.port, Request("UpdateTable", {"TableName": TABLE, "StreamSpecification": stream}))

    def write(name: str) -> None:
        item = {"pk": {"S": name}, "sk": {"N": "1"}, "note": {"S": "x" * _ITEM_BYTES}}
        call(started.port, Request("PutItem", {"TableName": TABLE, "Item": item}))

    with in_browser.opened(base + browser.link()) as page:
        table = f"{base}/console/t/{TABLE}"
        measured.still = in_browser.still(page, options.scroll)
        measured.frames = in_browser.frames(page, table, options.scroll)
        measured.seen = in_browser.seen(page, f"{table}/stream", write, options.writes)


def _measure_rates(started: Running, measured: Measured, options: argparse.Namespace) -> None:
    """GetItem at random, while no page is open and while the streams of live pages are."""
    directory = started.directory
    (directory / "send.lua").write_text(SCRIPT)
    noise = random.Random(1)
    keys = (key_of(noise.randrange(measured.items)) for _ in range(20_000))
    requests = (Request("GetItem", {"TableName": TABLE, "Key": key}) for key in keys)
    write_requests(directory / "get.requests", (render(request, started.port) for request in requests))
    load = (f"http://{HOST}:{started.port}/", directory / "get.requests", directory / "send.lua")
    run_wrk(*load, _CONNECTIONS, options.seconds)
    for _ in range(options.rounds):
        for name, paths in (("closed", []), ("open", options.streams)):
            with ExitStack() as stack:
                for path in paths:
                    stack.enter_context(Browser(started.port + ADMIN_PORT_DISTANCE).open(path))
                rate = run_wrk(*load, _CONNECTIONS, options.seconds).requests_per_second
            measured.rates.setdefault(name, []).append(rate)


def measure(options: argparse.Namespace, note: Callable[[str], None]) -> Measured:
    """Fill a store, start its server again, and measure the console."""
    server = hashrange("fsync", interpreted=options.interpreted)
    measured = Measured(options.items)
    with tempfile.TemporaryDirectory(prefix="hashrange-console-") as name:
        directory = Path(name)
        with running(server, directory) as started:
            fill(started, Store(options.items), _ITEM_BYTES, note)
        began = time.perf_counter()
        with running(server, directory) as started:
            browser = Browser(started.port + ADMIN_PORT_DISTANCE)
            browser.page(f"/console/t/{TABLE}")
            measured.first_row_seconds = time.perf_counter() - began
            _measure_first_page(browser, measured)
            _measure_pages(browser, measured, options.pages)
            if missing := in_browser.missing():
                note(f"no frames, and nothing seen in a stream: {missing}")
            else:
                _measure_browser(started, browser, measured, options)
            _measure_rates(started, measured, options)
    return measured


def render_measured(measured: Measured) -> str:
    """The measurements and the verdicts."""
    lines = [
        _verdict("first row", measured.first_row_seconds, FIRST_ROW_SECONDS, "s"),
        _verdict("first page, compressed", measured.compressed_bytes / 1e3, FIRST_PAGE_BYTES / 1e3, "kB"),
        f"    (as it is: {measured.first_page_bytes / 1e3:.1f} kB)",
    ]
    for kind, times in measured.pages.items():
        lines += _of_times(f"{kind} page of {measured.items:,} items, p95", times, PAGE_MS)
    if measured.frames:
        grid = f"frames while the grid of {measured.items:,} items is scrolled, p95"
        lines += _of_times(grid, measured.frames, FRAME_MS)
        lines.append(f"    (an empty page: p95 {quantiles(measured.still, n=20)[-1]:.1f} ms)")
        lines += _of_times("write seen in a stream, p95", measured.seen, SEEN_MS)
    if "open" in measured.rates:
        ratios = [
            opened / closed
            for opened, closed in zip(measured.rates["open"], measured.rates["closed"], strict=True)
        ]
        lines.append(_verdict("lost while open", (1 - median(ratios)) * 100, IDLE_LOSS * 100, "%"))
        lines.append(f"    (ratios {', '.join(f'{ratio:.3f}' for ratio in ratios)})")
    return "\n".join(lines)


def _of_times(name: str, times: list[float], goal: float) -> list[str]:
    return [
        _verdict(name, quantiles(times, n=20)[-1], goal, "ms"),
        f"    ({len(times):,} times: median {median(times):.1f} ms, worst {max(times):.1f} ms)",
    ]


def _verdict(name: str, value: float, goal: float, unit: str) -> str:
    return f"{'MET   ' if value <= goal else 'MISSED'}  {name}: {value:.1f} {unit} (goal {goal:.0f} {unit})"


def main() -> int:
    """Measure and print. Returns 2 if the server or the console failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.console", description="Measure the web console.")
    parser.add_argument("--items", type=int, default=1_000_000, metavar="N", help="of the table")
    parser.add_argument("--pages", type=int, default=100, metavar="N", help="of each kind")
    parser.add_argument("--scroll", type=float, default=10, metavar="S", help="seconds of scrolling")
    parser.add_argument("--writes", type=int, default=50, metavar="N", help="that are seen in a stream")
    parser.add_argument("--seconds", type=float, default=3, metavar="S", help="of each run of the load")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of runs of the load")
    parser.add_argument(
        "--streams", nargs="*", default=[], metavar="PATH", help="streams of events that are kept open"
    )
    parser.add_argument("--interpreted", action="store_true", help="not the compiled hot path")
    options = parser.parse_args()
    find_wrk()
    try:
        measured = measure(options, lambda text: print(text, file=sys.stderr, flush=True))
    except (ServerError, PageError) as error:
        print(error, file=sys.stderr)
        return 2
    print(report.machine())
    print(render_measured(measured))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
