"""Warns of tables that no caller can see.

A table belongs to all callers, or to an account, a region or both, depending on `--separate-accounts` and
`--separate-regions` when it was created (docs/decisions/0009-accounts.md). With other settings no caller can
see it.
"""

from __future__ import annotations

import logging
from typing import Final

from hashrange.database import Database
from hashrange.operations.context import separations_of
from hashrange.tables.definitions import catalog

_OWNERS_SHOWN_MAX: Final = 5
_ALL: Final = "all callers"

_log = logging.getLogger(__name__)


def warn_of_hidden_tables(database: Database) -> None:
    """Log a warning for each other pair of settings under which tables of the store were created: their
    number, their owners, and the options that show them."""
    settings = database.settings
    hidden: dict[tuple[bool, bool], dict[str, int]] = {}
    for scope, tables in database.engine.read(catalog.owners).items():
        hidden.setdefault(separations_of(scope), {})[scope] = tables
    hidden.pop((settings.separate_accounts, settings.separate_regions), None)
    for (accounts, regions), owners in sorted(hidden.items()):
        fields = {
            "tables": sum(owners.values()),
            "owners": _shown(sorted(owners)),
            "remedy": f"start the server {_with(accounts)} --separate-accounts "
            f"and {_with(regions)} --separate-regions to find them",
        }
        _log.warning("the store holds tables that no caller finds", extra={"fields": fields})


def _shown(owners: list[str]) -> str:
    shown = [owner or _ALL for owner in owners[:_OWNERS_SHOWN_MAX]]
    more = len(owners) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _with(is_set: bool) -> str:
    return "with" if is_set else "without"
