"""`submit_read` for engines whose `read` never waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashrange.storage.api import Engine, Reader
from hashrange.storage.loops import Done


def read_at_once(engine: Engine, body: Callable[[Reader], Any], done: Done) -> None:
    """Call `engine.read(body)`, and call `done` with the outcome before returning."""
    try:
        result = engine.read(body)
    except Exception as error:
        done(None, error)
    else:
        done(result, None)
