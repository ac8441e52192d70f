"""All keys that a server knows at the moment: those of the users file, and those of the store.

Both change while the server runs. Each change replaces the `State` as a whole, so a request sees the keys
either before the change or after it. Refuses to know where users and keys come from.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hashrange_access.roles import Role
from hashrange_access.signatures import Key
from hashrange_access.users import Users


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The users, and the keys of the store by their ids, each with its owner."""

    users: Users
    stored: Mapping[str, Key] = field(default_factory=dict)


class Directory:
    """Looks up keys and roles. Thread-safe."""

    def __init__(self, users: Users) -> None:
        self.state = State(users)
        self._lock = threading.Lock()

    def get(self, key_id: str, /) -> Key | None:
        """The key with this id. A key of the users file comes first."""
        state = self.state
        return state.users.keys.get(key_id) or state.stored.get(key_id)

    def role(self, arn: str) -> Role | None:
        """The role with this ARN."""
        return self.state.users.roles.get(arn)

    def set_users(self, users: Users) -> None:
        """Replace the users and the keys of the users file."""
        with self._lock:
            self.state = replace(self.state, users=users)

    def set_stored(self, stored: Mapping[str, Key]) -> None:
        """Replace the keys of the store."""
        with self._lock:
            self.state = replace(self.state, stored=stored)
