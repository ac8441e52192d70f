"""SIGHUP lets a server read the users file again, with and without a terminal."""

from __future__ import annotations

import signal
from pathlib import Path

import orjson
import pytest

from serving import serving
from terminals import session

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")

KEY = {"id": "AKIDROOT", "secret": "the-secret-of-root"}


@pytest.mark.parametrize("in_terminal", [False, True])
def test_the_users_file_is_read_again(tmp_path: Path, in_terminal: bool) -> None:
    file = tmp_path / "users.json"
    file.write_bytes(orjson.dumps({"accounts": {"123456789012": {"root": {"keys": [KEY]}}}}))
    options = ("--auth", "soft", "--users", str(file))
    if not in_terminal:
        with serving("--memory", *options) as server:
            server.process.send_signal(signal.SIGHUP)
            server.says("(read the users file again)")
        return
    with session(*options) as server:
        server.process.send_signal(signal.SIGHUP)
        server.until("read the users file again")
