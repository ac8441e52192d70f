"""What the engine over PostgreSQL adds to Hashrange."""

from __future__ import annotations

from typing import Final

from hashrange.rings import Ring

_STORES: Final = "hashrange_postgres.stores:STORES"

RING: Final = Ring(
    name="postgres",
    about="several servers over one PostgreSQL",
    serving="hashrange_postgres.serving:PART",
    options=("--postgres", "--postgres-schema", "--postgres-answer-seconds"),
    stores={"postgresql": _STORES, "postgres": _STORES},
)
