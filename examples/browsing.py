"""What the tests of the examples share: an example that is served, and a real browser that looks at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import ConsoleMessage, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@contextmanager
def served(folder: Path, **environment: str) -> Iterator[str]:
    """Run `app.py` in `folder` on a free port, with a database in memory; the URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ours = {"PORT": str(port), "DATA_DIR": "", "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    process = subprocess.Popen(
        [sys.executable, "app.py"], cwd=folder, env={**os.environ, **ours}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()  # (printed when it is about to listen)
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        process.communicate(timeout=30)
        assert process.returncode in (0, -15)
    finally:
        process.kill()
        process.communicate()


def _wait_for(port: int) -> None:
    for attempt in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            if attempt == 199:
                raise
            threading.Event().wait(0.05)


@contextmanager
def browser_at(url: str) -> Iterator[Page]:
    """A page of a browser at `url`; the test fails if there are errors in its console."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 800})
        errors: list[str] = []

        def note(message: ConsoleMessage) -> None:
            if message.type == "error":
                errors.append(message.text)

        page.on("console", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        yield page
        assert not errors, errors
        browser.close()
