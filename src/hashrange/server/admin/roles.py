"""The roles on the admin plane, each of which may do what the one before it may."""

from __future__ import annotations

from typing import Final

SERVICE: Final = "hashrange"
"""The service for which requests to the admin plane are signed: a signature for DynamoDB is none for it."""

NOBODY: Final = "none"
"""The role of a stranger, where everybody needs one."""
READ: Final = "read"
WRITE: Final = "write"
ADMIN: Final = "admin"
OPERATOR_ROLES: Final = (READ, WRITE, ADMIN)
