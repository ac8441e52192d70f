"""What replication adds to Hashrange."""

from __future__ import annotations

from typing import Final

from hashrange.rings import Command, Ring

RING: Final = Ring(
    name="replication",
    about="a copy of a data directory in a bucket, restores from it, and standbys that follow it",
    commands={
        "replica": Command(
            "Restore, verify and show copies of data directories in buckets.",
            "hashrange_replication.commands:command",
        ),
        "standby": Command(
            "Run a server that follows a copy, and can become the primary.",
            "hashrange_replication.standby.command:command",
        ),
    },
    serving="hashrange_replication.serving:PART",
    options=(
        "--copy-to",
        "--copy-ack",
        "--copy-key-file",
        "--copy-spool-bytes",
        "--copy-retention",
        "--standby",
        "--promote-after",
    ),
    endpoints="hashrange_replication.standby.admin:ENDPOINTS",
    paths=("/v1/promote",),
    metrics="hashrange_replication.serving:families",
    health="hashrange_replication.serving:health",
    parts={"copying": "hashrange_replication.serving:Copied"},
)
