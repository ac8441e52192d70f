"""The options of `hashrange serve` for PostgreSQL, and the engine that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from hashrange.cli.forms import Duration
from hashrange.cli.serving.options import option
from hashrange.rings import ServingPart
from hashrange.storage.api import Engine
from hashrange.storage.failures import StorageError
from hashrange_postgres import driver

_OPTIONS: Final = (
    option(
        "--postgres",
        metavar="URL",
        help="Keep everything in a PostgreSQL database, as postgresql://user@host/database, which any number "
        "of servers may share.  [default: none]",
    ),
    option(
        "--postgres-schema",
        default="hashrange",
        metavar="NAME",
        help="Schema in that database for the tables, created if it is missing.",
    ),
    option(
        "--postgres-answer-seconds",
        type=Duration(1),
        default=20.0,
        help="How long PostgreSQL may take to confirm a write or to answer a read. Then, at most four "
        "seconds later, the request ends with InternalServerError; the write was made once or not at all.",
    ),
)


class PostgresPart(ServingPart):
    """The engine, in a server."""

    options = _OPTIONS
    store = "--postgres"

    def engine(self, given: Mapping[str, Any], cache_bytes: int | None) -> Engine | None:
        """The engine of --postgres. Raises click.ClickException."""
        if given["postgres"] is None:
            return None
        # Imported here, because the driver loads slowly, and most servers keep their data on disk.
        with driver.needed():
            from hashrange_postgres.engine import CACHE_BYTES, PostgresEngine
        try:
            return PostgresEngine(
                given["postgres"],
                schema=given["postgres_schema"],
                cache_bytes=cache_bytes or CACHE_BYTES,
                answer_seconds=given["postgres_answer_seconds"],
            )
        except StorageError as error:
            raise click.ClickException(str(error)) from error


PART: Final = PostgresPart()
