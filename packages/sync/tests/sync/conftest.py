"""Fixtures of the tests of `hashrange_sync`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sync.world import Places


@pytest.fixture(scope="session")
def places() -> Iterator[Places]:
    """Both sides, whose clock stands still."""
    places = Places()
    yield places
    places.close()
