"""SIGHUP: it lets a server read its files again, and a closed terminal ends its server in good order."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from serving import STOP_SECONDS_MAX, serving
from terminals import session

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")

def test_a_server_without_a_users_file_goes_on(tmp_path: Path) -> None:
    with serving("--memory") as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.says("SIGHUP: there is (no) users file to read again") == "no"


def test_a_closed_terminal_ends_the_server_as_sigterm_does() -> None:
    with session() as server:
        server.close_terminal()
        assert server.until("stopping")["reason"] == "SIGHUP"
        assert server.process.wait(STOP_SECONDS_MAX) == 0


def test_nohup_keeps_the_server_beyond_its_terminal() -> None:
    with session(nohup=True) as server:
        server.close_terminal()
        server.until("there is no users file to read again")
        server.process.send_signal(signal.SIGTERM)
        assert server.until("stopping")["reason"] == "SIGTERM"
