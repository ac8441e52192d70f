"""What users are told where the driver cannot be loaded: psycopg, which needs PostgreSQL's library libpq."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def needed() -> Iterator[None]:
    """A block that imports modules which need the driver. Raises click.ClickException without it."""
    try:
        yield
    except ImportError as error:
        raise click.ClickException(
            f"PostgreSQL's driver cannot be loaded ({error}); install it again: "
            "pip install --force-reinstall 'psycopg[binary]'"
        ) from error
