"""A run of migrations in a process of its own, until it is killed or done.

Started as `python -m patterns.migration_worker ENDPOINT TABLE FOLDER`. It prints a line when it begins, and
one for each change of an item.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, cast

import boto3

from endpoints import connection
from hashrange_patterns.flows import Client
from hashrange_patterns.migrations import Migrations
from patterns.faults import Intercepted

LEASE_SECONDS = 1.0


class Telling(Intercepted):
    """Prints a line for each change of an item."""

    def perform(self, operation: str, parameters: dict[str, Any]) -> Mapping[str, Any]:
        answer = super().perform(operation, parameters)
        if operation == "update_item" and parameters["Key"]["PK"]["S"].startswith("USER#"):
            print("changed", flush=True)
        return answer


def main(endpoint: str, table: str, folder: str) -> None:
    """Apply what is pending."""
    client = cast(Client, Telling(boto3.client("dynamodb", **connection(endpoint))))
    print("ready", flush=True)
    Migrations(client, table, folder, segments=2, lease_seconds=LEASE_SECONDS).up()


if __name__ == "__main__":
    main(*sys.argv[1:])
