"""The picture of the page about access in the docs. `make pictures` takes it again."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any, Final

import console_pictures
from hashrange.database import Database
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.keys import sealing
from hashrange_access.keys.keyring import Keyring
from hashrange_access.users import read

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
PAGES: Final = {"access": "/console/access"}
"""The pages that have pictures, by the names of the pictures."""


def begin(database: Database) -> None:
    """Check signatures, with keys of three users, of which one is disabled."""
    people: dict[str, dict[str, Any]] = {name: {"keys": []} for name in ("alice", "reports", "worker")}
    gate = Gate(read({"accounts": {"123456789012": {"users": people}}}), database.clock.now, strict=False)
    numbers = itertools.count()

    def random(size: int) -> bytes:
        """The same bytes in each run, so that the pictures differ only where pages do."""
        return hashlib.shake_128(next(numbers).to_bytes(4, "big")).digest(size)

    gate.keyring = Keyring(database.engine, sealing.in_memory(random), gate.directory, database.clock.now)
    guard(database, gate)
    for name in people:
        key, _ = gate.keyring.create(name, None)
    gate.keyring.set_enabled(key.id, False)


if __name__ == "__main__":
    console_pictures.main(FOLDER, PAGES, frozenset(PAGES), begin)
