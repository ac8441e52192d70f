"""How commands name a store: by a data directory, or by the URL of an engine that a ring adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import click

from hashrange.rings import Missing, Stores, needed, rings

_POSTGRES: Final = ("postgresql", "postgres")
"""The schemes of the ring of this project that has stores."""


def schema_option(name: str, text: str) -> Callable[[Any], Any]:
    """The option that names a schema of PostgreSQL."""
    return click.option(name, default="hashrange", show_default=True, metavar="NAME", help=text)


def is_url(store: str) -> bool:
    """Whether this names a store of a ring's engine."""
    return "://" in store


def stores_of(url: str) -> Stores:
    """The engine's stores. Raises click.ClickException for one that is not installed."""
    scheme = urlsplit(url).scheme
    try:
        found: Stores | None = (
            needed("postgres", "stores", scheme) if scheme in _POSTGRES else rings().find("stores", scheme)
        )
    except Missing as error:
        raise click.ClickException(str(error)) from error
    if found is None:
        raise click.ClickException(f"{url} is not a URL of PostgreSQL, which begins with postgresql://")
    return found
