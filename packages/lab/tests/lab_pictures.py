"""The pictures of the lab's pages in the docs. `make pictures` takes them again, with those of the
console."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import console_pictures
from hashrange.database import Database
from hashrange.prices import published
from hashrange_lab.money import meter

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
PAGES: Final = {
    "heat": "/console/heat",
    "costs": "/console/costs",
    "advice": "/console/costs/advice",
    "capacity": "/console/capacity?table=shop",
    "plans": "/console/costs/plans?place=shop",
    "lab": "/console/lab",
}
"""The pages that have pictures, by the names of the pictures."""


def begin(database: Database) -> None:
    """Count what requests cost, and throttle them."""
    meter.begin(database, published())
    database.part("lab", "lab").throttling.set(True)
    database.part("lab", "recordings").directory = "recordings"


if __name__ == "__main__":
    console_pictures.main(FOLDER, PAGES, frozenset(PAGES) - {"heat"}, begin)
