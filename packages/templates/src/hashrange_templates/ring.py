"""What templates add to Hashrange."""

from __future__ import annotations

from typing import Final

from hashrange.rings import Ring

RING: Final = Ring(
    name="templates",
    about="tables for tests from CloudFormation, Terraform and NoSQL Workbench",
    testing={
        "tables": "hashrange_templates.reading:read",
        "text": "hashrange_templates.reading:read_text",
    },
)
