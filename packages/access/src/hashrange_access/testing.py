"""The user of a block of `hashrange.local` with a policy, or whose requests are recorded for a policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from hashrange.database import Database
from hashrange_access.judging.judge import Identified
from hashrange_access.policies.documents import parse
from hashrange_access.policies.requests import Principal, root_arn
from hashrange_access.policies.suggesting import Uses
from hashrange_access.roles import Identity


class Policy:
    """The policy of a block: the identity of its user, and the judging of the requests to its database."""

    def __init__(self, identified: Callable[[str], Identified], uses: Uses | None, path: Any) -> None:
        self.identified = identified
        self._uses = uses
        self._path = path

    def begin(self, database: Database) -> None:
        """Begin to judge."""
        database.part("access", "judging").begin()

    def end(self, database: Database) -> None:
        """End it, and write what was recorded."""
        database.part("access", "judging").end()
        if self._uses is not None:
            write(self._uses, self._path)


def policy(
    documents: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None,
    user: str,
    record: str | os.PathLike[str] | None,
) -> Policy:
    """The policy of `documents`, for a user; or the recording of one into the file `record`.

    Raises ValueError for a document that is not a policy.
    """
    if documents is not None:
        return Policy(user_with(documents, user), None, None)
    uses = Uses()
    return Policy(user_recorded(uses), uses, record)


def user_with(
    documents: Mapping[str, Any] | Sequence[Mapping[str, Any]], name: str
) -> Callable[[str], Identified]:
    """Makes the identity of the user `name` of an account, with these policies.

    Raises ValueError for a document that is not a policy.
    """
    listed = [documents] if isinstance(documents, Mapping) else list(documents)
    policies = tuple(
        parse(dict(document), name="policy" if len(listed) == 1 else f"policy {number}")
        for number, document in enumerate(listed, 1)
    )

    def identified(account: str) -> Identified:
        principal = Principal(f"arn:aws:iam::{account}:user/{name}", account, name=name, user_id=name)
        return Identified(Identity(principal, policies), {})

    return identified


def user_recorded(uses: Uses) -> Callable[[str], Identified]:
    """Makes the identity of a user of an account who may do everything, and whose requests `uses` gets."""

    def identified(account: str) -> Identified:
        return Identified(Identity(Principal(root_arn(account), account, "Account")), {}, uses=uses)

    return identified


def write(uses: Uses, path: str | os.PathLike[str]) -> None:
    """Write the smallest policy for what was recorded. Without a request nothing is written."""
    if len(uses):
        Path(path).write_bytes(orjson.dumps(uses.policy(), option=orjson.OPT_INDENT_2) + b"\n")
