"""How commands name a store: by a data directory, or by a URL of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

_PREFIXES: Final = ("postgresql://", "postgres://")


def is_url(store: str) -> bool:
    """Whether this names a store in PostgreSQL."""
    return store.startswith(_PREFIXES)


@contextmanager
def needs_driver() -> Iterator[None]:
    """Around the import of the engine for PostgreSQL, whose driver is an extra. Raises
    click.ClickException."""
    try:
        yield
    except ImportError as error:
        raise click.ClickException(
            f"PostgreSQL needs a driver that is not installed ({error}). In a checkout of Hashrange: "
            "pip install '.[postgres]'"
        ) from error
