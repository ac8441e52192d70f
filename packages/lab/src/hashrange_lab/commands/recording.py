"""What --record of the server means."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from hashrange.database import Database

VALUES: Final = ("kept", "hashed")

_log = logging.getLogger("hashrange.lab")


@contextmanager
def recorded(database: Database, options: dict[str, Any], settings: Any) -> Iterator[None]:
    """Record the requests to a database in the block, as the options of the server say."""
    path: Path | None = options["record"]
    hashed = options["record_values"] == "hashed"
    if path is None:
        if hashed and not settings.record_dir:
            raise click.UsageError("--record-values has no effect without --record FILE.")
        yield
        return
    # Imported here, because most servers record nothing.
    from hashrange_lab.recordings.recording import recording

    tape = recording(database, path, hashed=hashed, bytes_max=settings.record_bytes_max)
    try:
        tape.begin()
    except FileExistsError:
        raise click.ClickException(
            f"{path} exists already, and a recording is never overwritten; move the file, or name another "
            "with --record."
        ) from None
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        tape.end()
        writer = tape.writer
        if writer is not None:
            fields = {"file": str(path), "requests": writer.written, "dropped": writer.dropped}
            _log.info("recorded", extra={"fields": fields | {"bytes": writer.written_bytes}})


def record_options(option: Callable[..., Any]) -> Callable[[Any], Any]:
    """The options of the server, made with its own `option`."""

    def decorate(function: Any) -> Any:
        function = option(
            "--record-values",
            type=click.Choice(VALUES),
            default=VALUES[0],
            help="Values in the recording: as they are, or each replaced by a hash of the same size; equal "
            "values have equal hashes.",
        )(function)
        return option(
            "--record",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Record all requests in a new file. `hashrange replay` sends them again; see docs/load.md.  "
            "[default: none]",
        )(function)

    return decorate
