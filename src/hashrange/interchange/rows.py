"""The outcome of reading a row that holds no item."""

from __future__ import annotations

from typing import NamedTuple


class Bad(NamedTuple):
    """A row that is not an item, and why. `is_end`: the rest of the object cannot be read either."""

    message: str
    is_end: bool = False
