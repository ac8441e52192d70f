"""Counts of RocksDB itself, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hashrange.storage.embedded import disk

Skips = Callable[[], int]


def counting_skips(monkeypatch: pytest.MonkeyPatch) -> Skips:
    """A function that returns the number of dead records that iterators skipped since its last call, in the
    store that is opened next."""
    made: list[Any] = []
    options = disk._options

    def counting(*arguments: int) -> Any:
        made.append(options(*arguments))
        made[-1].enable_statistics()
        return made[-1]

    monkeypatch.setattr(disk, "_options", counting)
    before = 0

    def skipped() -> int:
        nonlocal before
        lines = made[-1].get_statistics().splitlines()
        now = sum(int(line.split()[-1]) for line in lines if line.startswith("rocksdb.number.iter.skip"))
        since, before = now - before, now
        return since

    return skipped
