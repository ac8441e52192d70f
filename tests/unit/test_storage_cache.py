"""How much memory the cache of the embedded engine may take."""

from __future__ import annotations

from pathlib import Path

import pytest

from hashrange.storage.embedded import cache

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("memory", "taken"),
    [(None, 128 * MIB), (512 * MIB, 128 * MIB), (8 * 1024 * MIB, 1024 * MIB), (24 * 1024 * MIB, 3072 * MIB)],
)
def test_the_cache_takes_an_eighth_of_the_memory(memory: int | None, taken: int) -> None:
    assert cache.cache_bytes(memory) == taken


def test_a_container_has_the_memory_that_it_may_take(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    machine = cache.memory_bytes([limit])
    assert machine is None or machine > 0
    limit.write_text("max\n")
    assert cache.memory_bytes([limit]) == machine
    limit.write_text(f"{64 * MIB}\n")
    assert cache.memory_bytes([limit]) == 64 * MIB
