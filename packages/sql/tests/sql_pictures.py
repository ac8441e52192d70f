"""The pictures of the page for SQL in the docs. `make pictures` takes them again, with those of the
console."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote

import console_pictures

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
_SQL: Final = """SELECT c.city, count(*) AS orders, sum(o.total) AS total
FROM shop o JOIN shop c ON o.PK = c.PK WHERE starts_with(o.SK, 'ORDER#') AND c.SK = 'CUSTOMER'
GROUP BY c.city ORDER BY total DESC"""
PAGES: Final = {"sql": "/console/sql?statement=" + quote(_SQL)}
"""The pages that have pictures, by the names of the pictures."""


if __name__ == "__main__":
    console_pictures.main(FOLDER, PAGES, frozenset(), lambda _: None)
