"""The types of the functions that take the outcome of a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashrange.operations.context import Answer

Done = Callable[[Any, Exception | None], None]
"""Called exactly once with `(answer, None)` or `(None, exception)`."""

Encode = Callable[[Answer], Any]

Later = Callable[[float, Callable[[], None]], object]
"""Calls a function after a number of seconds."""
