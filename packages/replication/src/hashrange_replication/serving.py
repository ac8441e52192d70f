"""The options of `hashrange serve` that ship its data directory, `/health`, and the metrics."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from hashrange.buckets import BucketError
from hashrange.cli.forms import Duration, Size
from hashrange.cli.serving.options import option
from hashrange.clock import SystemClock
from hashrange.database import Database
from hashrange.rings import ServingPart, Starting
from hashrange.server.admin.port import Subject
from hashrange.server.metrics import Family
from hashrange.storage.capabilities import Followed
from hashrange.storage.failures import StorageError
from hashrange_replication.failures import CopyError
from hashrange_replication.format.sealing import read_key
from hashrange_replication.guard import Guard
from hashrange_replication.place import place_of
from hashrange_replication.running import Copying, Options

_DAY_SECONDS: Final = 24 * 3600.0

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
        help="Acknowledge a write only when the copy has it: nothing acknowledged is ever lost, and each "
        "write takes a request to the bucket longer.",
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
        help="How much may wait on disk while the bucket is away; then the copy begins again.",
    ),
    option(
        "--copy-retention",
        type=Duration(60),
        default=7 * _DAY_SECONDS,
        help="How long the past can be restored from the copy; older objects are deleted.",
    ),
)


class Copied:
    """The copying of a database, if it is copied."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.copying: Copying | None = None


class ReplicationPart(ServingPart):
    """Ships the data directory of a server."""

    options = _OPTIONS

    def begin(self, starting: Starting) -> None:
        """Begin to ship to --copy-to. Raises click.ClickException."""
        given = starting.given
        if given["copy_to"] is None:
            return
        engine = starting.database.engine
        if starting.data_dir is None or not isinstance(engine, Followed):
            raise click.UsageError("--copy-to ships a data directory; use it with --data-dir only.")
        copied: Copied = starting.database.part("replication", "copying")
        try:
            key_file = given["copy_key_file"]
            copying = Copying(
                engine,
                starting.data_dir,
                place_of(given["copy_to"], given["s3_endpoint"], make=True),
                read_key(key_file, os.urandom) if key_file is not None else None,
                Options(
                    acks=given["copy_ack"],
                    spool_bytes=given["copy_spool_bytes"],
                    keep_seconds=given["copy_retention"],
                ),
                where=f"{socket.gethostname()}, {starting.data_dir.absolute()}, process {os.getpid()}",
                clock=SystemClock().now,
                now=time.monotonic,
                random=os.urandom,
            )
            copying.guard = lambda: starting.database.observers.observe(Guard(copying.lease.refusing))
            copying.begin()
        except (CopyError, BucketError, StorageError, OSError) as error:
            raise click.ClickException(f"--copy-to: {error}") from error
        copying.start()
        starting.stack.callback(copying.close)
        copied.copying = copying


PART: Final = ReplicationPart()


def health(subject: Subject) -> Mapping[str, Any] | None:
    """What `/health` shows of the copy; None without one."""
    copied: Copied = subject.database.part("replication", "copying")
    return copied.copying.shown() if copied.copying is not None else None


def families(subject: Subject) -> list[Family]:
    """The metrics of the copy."""
    copied: Copied = subject.database.part("replication", "copying")
    if (copying := copied.copying) is None:
        return []
    seconds, bytes_ = copying.shipper.lag()
    single: list[tuple[str, str, str, int | float]] = [
        ("lag_seconds", "gauge", "The age of the oldest commit that the copy lacks.", seconds),
        ("lag_bytes", "gauge", "What waits for the copy's bucket.", bytes_),
        ("segments_total", "counter", "Segments that were shipped.", copying.shipper.segments),
        ("segment_bytes_total", "counter", "Bytes of these segments.", copying.shipper.shipped_bytes),
        ("requests_total", "counter", "Requests to the copy's bucket, about.", copying.place.requests),
        ("epoch", "gauge", "The epoch of the lease.", copying.lease.epoch),
        ("has_base", "gauge", "1 while a restore finds what was shipped.", int(copying.shipper.has_base)),
        ("failing", "gauge", "1 while shipping fails.", int(bool(copying.problem()))),
    ]
    return [(f"hashrange_copy_{name}", kind, text, [("", {}, value)]) for name, kind, text, value in single]
