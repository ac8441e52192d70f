"""Pages of the jobs of the last 90 days, newest first: exports, imports, bulk operations.

A page's NextToken is the id of its last job in hex.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

from hashrange.errors import ValidationException
from hashrange.operations.context import Answer
from hashrange.tables.jobs.job_records import Job

_TOKEN: Final = re.compile("(?:[0-9a-f]{2})+").fullmatch
_IS_ID: Final = re.compile("[0-9]{14,}-[0-9a-f]{8}").fullmatch

J = TypeVar("J", bound=Job)


def id_in(token: str | None) -> str | None:
    """The id of the last job of the page before, if there was one. Raises ValidationException."""
    if token is None:
        return None
    id_ = bytes.fromhex(token).rstrip(b"\0").decode("ascii", "replace") if _TOKEN(token) else ""
    if not _IS_ID(id_):
        # [report] ack-api-quirks DDB-EXPORT-006, for exports
        raise ValidationException(f"Invalid Request: Provided nextToken is invalid: {token}")
    return id_


def page(
    member: str, jobs: Iterator[J], size: int, summary: Callable[[J], dict[str, Any]], token_bytes: int = 0
) -> Answer:
    """The answer whose `member` has the summaries of up to `size` jobs. Zeros fill its token up to
    `token_bytes`."""
    found = list(islice(jobs, size + 1))
    answer: Answer = {member: [summary(job) for job in found[:size]]}
    if len(found) > size:
        answer["NextToken"] = found[size - 1].id.encode().ljust(token_bytes, b"\0").hex()
    return answer
