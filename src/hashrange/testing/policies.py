"""The user of a block of `hashrange.local` with a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hashrange.access.judging import Identified
from hashrange.access.policies import Principal, parse
from hashrange.access.users import Identity


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
