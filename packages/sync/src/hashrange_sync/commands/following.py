"""`hashrange pull --follow`, and what it shares with `hashrange sync`."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

import click

from hashrange.cli import logs
from hashrange.cli.remote.clients import SERVICE_ERRORS, Clients, explain
from hashrange_sync.errors import SyncError
from hashrange_sync.settings import Pair, Settings
from hashrange_sync.sync import Sync

_YOUNG_OBJECTS: Final = 20_000


def follow(source: Clients, target: Clients, tables: Mapping[str, str]) -> None:
    """See `rings.Follow`."""
    logs.configure("text", "info", sys.stderr)
    pairs = [Pair(cloud_table=one, edge_table=name, direction="down") for one, name in tables.items()]
    with (
        explained(),
        young_objects_only(),
        Sync(Settings(pairs=pairs), cloud=source, edge=target) as sync,
    ):
        for pair in sync.pairs:
            pair.tables()  # (what cannot be followed is told at once)
        tell_first_copies(sync)
        run_until_signal(sync)


@contextmanager
def explained() -> Iterator[None]:
    """Errors become a line. Raises click.ClickException."""
    try:
        yield
    except SyncError as error:
        raise click.ClickException(str(error)) from error
    except SERVICE_ERRORS as error:
        raise click.ClickException(explain(error)) from error


@contextmanager
def young_objects_only() -> Iterator[None]:
    """Within the block the garbage collector leaves out what was imported before: each page of items makes
    thousands of objects, and to look at all others for that takes longer than to read the page."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def tell_first_copies(sync: Sync) -> None:
    """Say what the first copies will take."""
    for pair in sync.pairs:
        if not pair.has_begun():
            click.echo(f"{pair.settings.title}: first copy: {pair.estimate()}", err=True)


def run_until_signal(sync: Sync) -> None:
    """Keep all pairs equal until SIGINT or SIGTERM; a second signal ends the process."""

    def stopping(number: int, frame: FrameType | None) -> None:
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_DFL)
        sync.stop()

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, stopping)
    sync.run()
