"""What the console adds to Hashrange."""

from __future__ import annotations

from typing import Final

from hashrange.rings import Command, Ring

RING: Final = Ring(
    name="console",
    about="web pages for looking into the data",
    commands={
        "console": Command(
            "Print a link to a running server's web console.", "hashrange_console.command:command"
        )
    },
    serving="hashrange_console.serving:SERVING",
    options=("--console-banner",),
    endpoints="hashrange_console.routes:ENDPOINTS",
    paths=("/console", "/v1/console-link"),
)
