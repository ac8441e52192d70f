"""Makes what a declaration says: the table, what operations after CreateTable set, replicas, and items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hashrange.testing.tables.declaration import Declaration, Item

if TYPE_CHECKING:
    from hashrange.database import Database

Execute = Callable[[str, dict[str, Any]], dict[str, Any]]


class DeclarationWarning(UserWarning):
    """A part of a declaration has no effect in this database; the text says which, and why."""


def make(
    database: Database,
    execute: Execute,
    load: Callable[[str, tuple[Item, ...]], object],
    declared: Declaration,
) -> list[str]:
    """Make a table through `execute`, and put its items with `load`. Returns what has no effect.

    A table that something has to follow is ACTIVE at once, whatever the settings say. Raises
    `hashrange.errors.ServiceError`.
    """
    notes = list(declared.notes)
    follows = bool(declared.ttl or declared.settings or declared.stream_policy or declared.replicas)
    with _at_once(database, follows or bool(declared.items)):
        made = execute("CreateTable", declared.create)["TableDescription"]
        if declared.ttl is not None:
            specification = {"AttributeName": declared.ttl, "Enabled": True}
            execute(
                "UpdateTimeToLive", {"TableName": declared.name, "TimeToLiveSpecification": specification}
            )
        for operation, members in declared.settings:
            execute(operation, {"TableName": declared.name, **members})
        if declared.stream_policy is not None and "LatestStreamArn" in made:
            policy = {"ResourceArn": made["LatestStreamArn"], "Policy": declared.stream_policy}
            execute("PutResourcePolicy", policy)
        hindrance = _hindrance(database, declared) if declared.replicas else ""
        if hindrance:
            notes.append(f"its replicas in {_regions(declared)} are not made: {hindrance}")
        else:
            for members in declared.replicas:
                execute("UpdateTable", {"TableName": declared.name, **members})
    load(declared.name, declared.items)
    return notes


def _hindrance(database: Database, declared: Declaration) -> str:
    """Why a table cannot have replicas here; "" if it can."""
    if database.settings.separate_regions:
        return (
            "each region of this database has its own tables. Give it the setting separate_regions=False, as "
            "hashrange.local(shared_regions=True) does."
        )
    if declared.create["BillingMode"] == "PROVISIONED":
        return "a table with provisioned capacity gets none, because nothing scales it here."
    return ""


def _regions(declared: Declaration) -> str:
    updates = [update["Create"] for members in declared.replicas for update in members["ReplicaUpdates"]]
    return ", ".join(str(create["RegionName"]) for create in updates)


@contextmanager
def _at_once(database: Database, wanted: bool) -> Iterator[None]:
    """Let tables change their states at once meanwhile."""
    settings = database.settings
    if wanted and (settings.create_seconds or settings.update_seconds):
        database.settings = replace(settings, create_seconds=0.0, update_seconds=0.0)
    try:
        yield
    finally:
        database.settings = settings
