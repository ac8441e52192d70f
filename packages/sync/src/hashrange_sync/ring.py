"""What sync adds to Hashrange."""

from __future__ import annotations

from typing import Final

from hashrange.rings import Command, Ring

RING: Final = Ring(
    name="sync",
    about="two tables kept equal, the cloud's and the one on site",
    commands={
        "sync": Command("Keep tables equal with those of the cloud.", "hashrange_sync.commands.sync:command"),
    },
    endpoints="hashrange_sync.served.admin:ENDPOINTS",
    pages="hashrange_sync.pages:PAGES",
    paths=("/v1/sync", "/console/sync"),
    follow="hashrange_sync.commands.following:follow",
)
