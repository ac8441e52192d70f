"""What a person sees of the console in Chromium: frames while the grid is scrolled, and how soon a write
appears in an open stream.

The browser is Debian's `chromium` without a window, driven by playwright. The figures are taken inside the
page:

    still   the time between the frames of an empty page: what the machine allows
    frames  the time between the frames of a page of items, while a gesture scrolls its grid up and down
    seen    the time from the start of a PutItem to the frame that shows its row on the page of the stream

Refuses to know what the figures ought to be.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

_SIZE = {"width": 1280, "height": 800}
# Pixels a second; a quick turn of the wheel.
_SPEED = 1_500
_SEEN_TIMEOUT_MS = 10_000.0

_WATCH_FRAMES = """() => {
  window.frames_ms = [];
  let last = null;
  const note = (now) => {
    if (last !== null) window.frames_ms.push(now - last);
    last = now;
    requestAnimationFrame(note);
  };
  requestAnimationFrame(note);
}"""
_WATCH_ROWS = """() => {
  window.seen_ms = {};
  new MutationObserver(() => requestAnimationFrame(() => {
    for (const row of document.querySelectorAll("[data-live] tr")) {
      const name = row.textContent.match(/seen-[0-9]+/)?.[0];
      if (name && !(name in window.seen_ms)) window.seen_ms[name] = Date.now();
    }
  })).observe(document.querySelector("[data-live]"), { childList: true });
}"""


def missing() -> str:
    """What is missing for these measurements, "" if nothing is."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return "" if _chromium() else "there is no chromium (Debian: apt-get install chromium)"


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("google-chrome")


@contextmanager
def opened(link: str) -> Iterator[Page]:
    """A page of a browser that has opened the console by its link."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        try:
            page = browser.new_context(viewport=_SIZE).new_page()  # type: ignore[arg-type]
            page.goto(link)
            yield page
        finally:
            browser.close()


def still(page: Page, seconds: float) -> list[float]:
    """The milliseconds between frames of an empty page, for so many seconds."""
    page.goto("about:blank")
    page.evaluate(_WATCH_FRAMES)
    page.wait_for_timeout(seconds * 1e3)
    return _watched(page)


def frames(page: Page, address: str, seconds: float) -> list[float]:
    """The milliseconds between frames while the grid of a page is scrolled for so many seconds."""
    page.goto(address)
    grid = page.locator("[data-grid]")
    box = grid.bounding_box()
    if box is None:
        raise LookupError(f"{address} shows no grid")
    height = grid.evaluate("grid => grid.scrollHeight - grid.clientHeight")
    # A gesture scrolls down and up again; it begins inside the grid.
    gesture = {
        "x": box["x"] + box["width"] / 2,
        "y": min(box["y"] + 100, _SIZE["height"] - 20),
        "yDistance": -height,
        "speed": _SPEED,
        "gestureSourceType": "mouse",
    }
    session = page.context.new_cdp_session(page)
    page.evaluate(_WATCH_FRAMES)
    end = time.monotonic() + seconds
    places = set()
    while time.monotonic() < end:
        session.send("Input.synthesizeScrollGesture", gesture)
        places.add(grid.evaluate("grid => Math.round(grid.scrollTop)"))
        gesture["yDistance"] = -gesture["yDistance"]
    if len(places) < 2:
        raise LookupError(f"the grid of {address} did not scroll")
    return _watched(page)


def _watched(page: Page) -> list[float]:
    found: list[float] = page.evaluate("window.frames_ms")
    return found


def seen(page: Page, address: str, write: Any, number: int) -> list[float]:
    """The milliseconds from a write to the frame that shows it, for so many writes. `write` puts an item
    whose partition key has the text that it is given."""
    page.goto(address)
    page.evaluate(_WATCH_ROWS)
    times = []
    for place in range(number):
        name = f"seen-{place}"
        # The server looks ten times a second, so writes come at all places between two looks.
        time.sleep(0.2 + place % 10 / 100)
        began = time.time()
        write(name)
        page.wait_for_function("name => name in window.seen_ms", arg=name, timeout=_SEEN_TIMEOUT_MS)
        times.append(page.evaluate("name => window.seen_ms[name]", name) - began * 1e3)
    return times
