"""The options of `hashrange serve` that ship its data directory, or follow a copy; `/health`, the metrics."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from hashrange.cli.forms import Duration, Size
from hashrange.cli.serving.options import option
from hashrange.clock import SystemClock
from hashrange.database import Database
from hashrange.rings import ServingPart, Starting
from hashrange.server.admin.port import Subject
from hashrange.server.metrics import Family
from hashrange.storage.api import Engine
from hashrange.storage.capabilities import Followed
from hashrange_replication.failures import ERRORS
from hashrange_replication.format.sealing import Key, read_key
from hashrange_replication.guard import Guard
from hashrange_replication.place import Place, place_of
from hashrange_replication.progress import restoring, told
from hashrange_replication.restore import Progress
from hashrange_replication.running import Copying, Options, Setup
from hashrange_replication.standby.following import Standby
from hashrange_replication.standby.opening import make_ready, restore_beside
from hashrange_replication.standby.refusing import Refusing

_DAY_SECONDS: Final = 24 * 3600.0

_Single = tuple[str, str, str, int | float]
"""A metric with one value: the end of its name, its kind, its text, the value."""

_OPTIONS: Final = (
    option(
        "--copy-to",
        metavar="PLACE",
        help="Ship every committed batch of the data directory to s3://bucket/prefix or a folder, within a "
        "second; see `hashrange replica`.  [default: none]",
    ),
    option(
        "--copy-ack",
        is_flag=True,
        help="Acknowledge a write only when the copy has it, so that no acknowledged write is lost. Each "
        "write then takes a request to the bucket longer.",
    ),
    option(
        "--copy-key-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Encrypt the copy by the key in a file: 32 bytes in Base64, from `openssl rand -base64 32`. "
        "Without the key nobody can restore the copy.  [default: none]",
    ),
    option(
        "--copy-spool-bytes",
        type=Size(1 << 20),
        default=1 << 30,
        help="How much may wait on disk while the bucket is away; with more, the copy begins again.",
    ),
    option(
        "--copy-retention",
        type=Duration(60),
        default=7 * _DAY_SECONDS,
        help="How long the past can be restored from the copy; older objects are deleted.",
    ),
    option(
        "--standby",
        is_flag=True,
        help="Follow the copy at --copy-to, and serve eventually consistent reads, until `hashrange replica "
        "promote`; see `hashrange standby`.",
    ),
    option(
        "--promote-after",
        type=Duration(1),
        default=None,
        help="With --standby: promote this server when the primary has been silent for this long, and has "
        "agreed to this standby.  [default: only on request]",
    ),
)


class Copied:
    """The copying of a database, if it is copied; and its following, if it is a standby."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.copying: Copying | None = None
        self.standby: Standby | None = None


class ReplicationPart(ServingPart):
    """Ships the data directory of a server, or follows a copy."""

    options = _OPTIONS

    def engine(self, given: Mapping[str, Any], cache_bytes: int | None) -> Engine | None:
        """The store of a standby, which is restored first if its directory is new. Raises
        click.ClickException."""
        if not given["standby"]:
            if given["promote_after"] is not None:
                raise click.UsageError("--promote-after is for a standby; give --standby as well.")
            return None
        directory = click.get_current_context().params["data_dir"]
        if directory is None or given["copy_to"] is None:
            raise click.UsageError("A standby needs the copy, and a directory: --copy-to and --data-dir.")
        # Imported here because RocksDB's library takes a while to load.
        from hashrange.storage.embedded import EmbeddedEngine

        os.umask(0o077)  # only the owner may read the files that RocksDB writes
        with _errors():
            place, key = _place_and_key(given)
            restored = make_ready(place, directory, key, os.urandom, restoring())
            if restored is not None:
                click.echo(f"{directory}: {told(restored)}", err=True)
            engine = EmbeddedEngine(directory, cache_bytes=cache_bytes)
            engine.stand_by(lambda: "This server is a standby, and has not begun to follow the copy yet.")
            return engine

    def begin(self, starting: Starting) -> None:
        """Begin to ship to --copy-to, or to follow it. Raises click.ClickException."""
        given = starting.given
        if given["copy_to"] is None:
            return
        engine = starting.database.engine
        if starting.data_dir is None or not isinstance(engine, Followed):
            raise click.UsageError("--copy-to ships a data directory; use it with --data-dir only.")
        with _errors():
            if given["standby"]:
                _follow(starting)
            else:
                copying = Copying(engine, _setup(given, starting.data_dir))
                _guard(starting.database, copying)
                copying.begin()
                _ship(starting, copying)


def _guard(database: Database, copying: Copying) -> None:
    """Have strongly consistent reads ask for the lease as soon as there is a standby."""
    copying.guard = lambda: database.observers.observe(Guard(copying.lease.refusing))


def _ship(starting: Starting, copying: Copying) -> None:
    copied: Copied = starting.database.part("replication", "copying")
    copying.start()
    starting.stack.callback(copying.close)
    copied.copying, copied.standby = copying, None


def _follow(starting: Starting) -> None:
    """Begin to follow; also prepare for what ends that."""
    from hashrange.storage.embedded import EmbeddedEngine

    database, directory = starting.database, starting.data_dir
    engine = database.engine
    assert directory is not None
    assert isinstance(engine, EmbeddedEngine)
    setup = _setup(starting.given, directory)
    standby = Standby(engine, setup, promote_after=starting.given["promote_after"])
    standby.begin()
    refusing = Refusing(standby.refusal)
    database.observers.observe(refusing)
    database.background.paused = True

    def promoted(copying: Copying) -> None:
        _ship(starting, copying)
        database.background.forget()
        database.background.paused = False
        database.observers.observe(refusing, False)

    def again(why: str, progress: Progress) -> None:
        restore_beside(setup.place, directory, setup.key, why, progress)
        signal.raise_signal(signal.SIGTERM)  # `hashrange standby` starts again then

    standby.succeeding, standby.promoted, standby.again = partial(_guard, database), promoted, again
    standby.start()
    starting.stack.callback(standby.close)
    copied: Copied = database.part("replication", "copying")
    copied.standby = standby


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except ERRORS as error:
        raise click.ClickException(f"--copy-to: {error}") from error


def _place_and_key(given: Mapping[str, Any]) -> tuple[Place, Key | None]:
    key_file = given["copy_key_file"]
    place = place_of(given["copy_to"], given["s3_endpoint"], make=not given["standby"])
    return place, read_key(key_file, os.urandom) if key_file is not None else None


def _setup(given: Mapping[str, Any], directory: Path) -> Setup:
    """What a server that ships or follows is made of."""
    place, key = _place_and_key(given)
    options = Options(
        acks=given["copy_ack"],
        spool_bytes=given["copy_spool_bytes"],
        keep_seconds=given["copy_retention"],
    )
    return Setup(
        directory=directory,
        place=place,
        key=key,
        options=options,
        where=f"{socket.gethostname()}, {directory.absolute()}, process {os.getpid()}",
        clock=SystemClock().now,
        now=time.monotonic,
        random=os.urandom,
    )


PART: Final = ReplicationPart()


def health(subject: Subject) -> Mapping[str, Any] | None:
    """What `/health` shows of the copy; None without one."""
    copied: Copied = subject.database.part("replication", "copying")
    if copied.standby is not None:
        return copied.standby.shown()
    return copied.copying.shown() if copied.copying is not None else None


def families(subject: Subject) -> list[Family]:
    """The metrics of the copy."""
    copied: Copied = subject.database.part("replication", "copying")
    if copied.standby is not None:
        return _families_of(copied.standby)
    if (copying := copied.copying) is None:
        return []
    seconds, bytes_ = copying.shipper.lag()
    single: list[_Single] = [
        ("lag_seconds", "gauge", "The age of the oldest commit that the copy lacks.", seconds),
        ("lag_bytes", "gauge", "What waits for the copy's bucket.", bytes_),
        ("segments_total", "counter", "Segments that were shipped.", copying.shipper.segments),
        ("segment_bytes_total", "counter", "Bytes of these segments.", copying.shipper.shipped_bytes),
        ("requests_total", "counter", "Requests to the copy's bucket, about.", copying.place.requests),
        ("epoch", "gauge", "The epoch of the lease.", copying.lease.epoch),
        ("has_base", "gauge", "1 while a restore finds what was shipped.", int(copying.shipper.has_base)),
        ("failing", "gauge", "1 while shipping fails.", int(bool(copying.problem()))),
    ]
    return _made("copy", single)


def _families_of(standby: Standby) -> list[Family]:
    """The metrics of a standby."""
    agreed, failing = int(standby.is_agreed), int(bool(standby.problem))
    single: list[_Single] = [
        ("lag_seconds", "gauge", "How long ago the standby had all of the copy.", standby.lag_seconds),
        ("batch", "gauge", "The last batch that the standby has.", standby.batch),
        ("may_be_promoted", "gauge", "1 while the primary has agreed to the standby.", agreed),
        ("failing", "gauge", "1 while following fails.", failing),
    ]
    return _made("standby", single)


def _made(prefix: str, single: list[_Single]) -> list[Family]:
    return [
        (f"hashrange_{prefix}_{name}", kind, text, [("", {}, value)]) for name, kind, text, value in single
    ]
