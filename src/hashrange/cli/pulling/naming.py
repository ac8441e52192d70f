"""Which tables the arguments of `hashrange pull` mean: names, patterns such as ``orders-*``, and ARNs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import click

_ARN: Final = re.compile(r"arn:[a-z-]+:dynamodb:([a-z0-9-]+):[^:]*:table/([^/]+)")
_WILD: Final = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class TablePattern:
    """An argument: a name, a pattern or an ARN. `region` is that of an ARN, else None."""

    argument: str
    region: str | None = None

    @property
    def is_pattern(self) -> bool:
        """Whether this stands for all tables whose names match."""
        return self.region is None and _WILD.search(self.argument) is not None


def table_pattern(argument: str) -> TablePattern:
    """What an argument means. Raises click.UsageError for an ARN that is not that of a table."""
    if not argument.startswith("arn:"):
        return TablePattern(argument)
    match = _ARN.fullmatch(argument)
    if match is None:
        raise click.UsageError(
            f"{argument!r} is not the ARN of a table, such as "
            "arn:aws:dynamodb:us-east-1:123456789012:table/orders."
        )
    return TablePattern(argument, match[1])


def names(client: Any, patterns: Iterable[TablePattern]) -> list[str]:
    """The tables of a server, by name or ARN, in the order of the arguments and without repetitions. A
    pattern stands for the tables whose names match it.

    Raises click.ClickException if no table matches a pattern, and the errors of boto3.
    """
    found: dict[str, None] = {}
    listed: list[str] | None = None
    for pattern in patterns:
        if not pattern.is_pattern:
            found[pattern.argument] = None
            continue
        if listed is None:
            pages = client.get_paginator("list_tables").paginate()
            listed = [name for page in pages for name in page["TableNames"]]
        matching = [name for name in listed if fnmatchcase(name, pattern.argument)]
        if not matching:
            raise click.ClickException(f"None of the {len(listed)} tables matches {pattern.argument!r}.")
        found |= dict.fromkeys(matching)
    return list(found)
