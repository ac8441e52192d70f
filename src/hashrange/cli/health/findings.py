"""What a check of `hashrange doctor` found: a part, a state, a text and a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

State = Literal["ok", "note", "problem"]

OK: Final = "ok"
NOTE: Final = "note"
"""It works, but differs from what most users want."""
PROBLEM: Final = "problem"
"""Something does not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`part` is the thing that was looked at, `text` what it is like, `remedy` what to do, or ""."""

    part: str
    state: State
    text: str
    remedy: str = ""
