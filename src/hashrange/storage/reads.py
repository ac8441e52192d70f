"""Reading for an engine whose `read` never waits for anything: what its `submit_read` is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashrange.storage.api import Done, Engine, Reader


def read_at_once(engine: Engine, body: Callable[[Reader], Any], done: Done) -> None:
    """Tell `done` the outcome of `engine.read(body)` before this returns."""
    try:
        result = engine.read(body)
    except Exception as error:
        done(None, error)
    else:
        done(result, None)
