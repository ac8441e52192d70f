"""What access adds to Hashrange."""

from __future__ import annotations

from typing import Final

from hashrange.rings import Command, Ring

RING: Final = Ring(
    name="access",
    about="who may do what: signatures, users, keys, policies, the audit log",
    commands={
        "audit": Command("Find items in the audit log.", "hashrange_access.commands.audit:command"),
        "key": Command(
            "Make and revoke access keys of a running server.", "hashrange_access.commands.key:command"
        ),
        "policy": Command("Examine access policies.", "hashrange_access.commands.policy:command"),
    },
    serving="hashrange_access.commands.serving:PART",
    options=(
        "--auth", "--users", "--key-file", "--root-access-key-id", "--root-secret-access-key", "--audit-log",
        "--audit-log-bytes", "--audit-log-files", "--requests-per-second-max", "--requests-burst",
    ),
    endpoints="hashrange_access.admin:ENDPOINTS",
    pages="hashrange_access.pages:PAGES",
    paths=("/v1/access-keys", "/console/access"),
    parts={"judging": "hashrange_access.judging.judging:Judging"},
    testing={"policy": "hashrange_access.testing:policy"},
    forms="hashrange_access.sts.service:answered",
)  # fmt: skip
