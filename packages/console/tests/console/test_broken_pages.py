"""Pages of another ring that cannot be used: the console goes on without them, and their paths say why."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from consoles import Browser
from ring_files import put_parts
from serving import serving


def test_broken_pages_cost_these_pages_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = "pages='{parts}:PAGES', paths=('/console/{name}',)"
    put_parts(tmp_path, "broken", members, "raise OSError('no such device')")
    put_parts(tmp_path, "mistaken", members, "PAGES = 1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # (the console makes its routes once in a process, so the server is a process of its own)
    with serving("--memory") as server:
        browser = Browser(server.admin)
        link = browser.post("/v1/console-link", {})[1]["link"]
        assert browser.ask(link)[0] == 303
        for path in ("/console", "/console/requests", "/console/heat"):
            status, text = browser.ask(path)
            assert status == 200
            assert "broken" not in text
        for ring, why in (("broken", "OSError: no such device"), ("mistaken", "TypeError: 1 is not Pages")):
            status, text = browser.ask(f"/console/{ring}")
            assert status == 503
            assert f"the ring {ring} cannot be loaded (pages: {why}); " in text
        health = orjson.loads(browser.ask("/health")[1])
        assert [ring["ring"] for ring in health["rings"]] == ["broken", "mistaken"]
