"""The names of a copy's objects in its bucket. All numbers have leading zeros, so names sort as numbers do.

lease                            who ships to the copy (`lease`)
bases/EPOCH/BATCH                the manifest of a base
files/SHA256[-KEY]               a file of bases, by its content and by the key that sealed it
segments/EPOCH/INDEX             a segment; INDEX grows across epochs
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

LEASE: Final = "lease"
BASES: Final = "bases/"
FILES: Final = "files/"
SEGMENTS: Final = "segments/"

_BASE: Final = re.compile(r"bases/(\d{10})/(\d{20})")
_SEGMENT: Final = re.compile(r"segments/(\d{10})/(\d{12})")


class BaseName(NamedTuple):
    """The place of a base: the epoch in which it was made, and the number of its last batch."""

    epoch: int
    batch: int

    @property
    def name(self) -> str:
        return f"{BASES}{self.epoch:010}/{self.batch:020}"


@dataclass(frozen=True, slots=True, order=True)
class SegmentName:
    """The place of a segment."""

    epoch: int
    index: int

    @property
    def name(self) -> str:
        return f"{SEGMENTS}{self.epoch:010}/{self.index:012}"


def file_name(sha256: str, key_id: str) -> str:
    """The name of a file of bases; `key_id` is "" for one that is not sealed."""
    return f"{FILES}{sha256}-{key_id}" if key_id else f"{FILES}{sha256}"


def base_of(name: str) -> BaseName | None:
    """The base that a name stands for; None for another name."""
    match = _BASE.fullmatch(name)
    return BaseName(int(match[1]), int(match[2])) if match else None


def segment_of(name: str) -> SegmentName | None:
    """The segment that a name stands for; None for another name."""
    match = _SEGMENT.fullmatch(name)
    return SegmentName(int(match[1]), int(match[2])) if match else None
