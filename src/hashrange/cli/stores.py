"""How commands name a store: by a data directory, or by the URL of an engine that a ring adds."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import click

from hashrange.rings import Missing, Stores, needed

_SCHEMES: Final = {"postgresql": "postgres", "postgres": "postgres"}
"""The rings of this project that have stores, by the schemes of their URLs."""


def is_url(store: str) -> bool:
    """Whether this names a store of a ring's engine."""
    return urlsplit(store).scheme in _SCHEMES


def stores_of(url: str) -> Stores:
    """The engine's stores. Raises click.ClickException for one that is not installed."""
    scheme = urlsplit(url).scheme
    try:
        stores: Stores = needed(_SCHEMES[scheme], "stores", scheme)
    except Missing as error:
        raise click.ClickException(str(error)) from error
    return stores
