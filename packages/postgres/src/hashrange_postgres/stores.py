"""Stores in PostgreSQL, for `hashrange check` and `hashrange copy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hashrange_postgres import driver

if TYPE_CHECKING:
    from hashrange_postgres.moving import SchemaTarget
    from hashrange_postgres.snapshot import Snapshot


class PostgresStores:
    """The stores of this engine."""

    def snapshot(self, url: str, schema: str) -> Snapshot:
        """A store at one moment. Raises StorageError; click.ClickException without the driver."""
        with driver.needed():
            from hashrange_postgres.snapshot import Snapshot
        return Snapshot(url, schema)

    def target(self, url: str, schema: str) -> SchemaTarget:
        """A new store, to be filled. Raises StorageError; click.ClickException without the driver."""
        with driver.needed():
            from hashrange_postgres.moving import SchemaTarget
        return SchemaTarget(url, schema)


STORES: Final = PostgresStores()
