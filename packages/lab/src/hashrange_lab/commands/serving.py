"""The part of the lab in `hashrange serve`: its options, counting what requests cost, and recording them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hashrange.cli.serving.options import Number, option
from hashrange.rings import ServingPart, Starting

if TYPE_CHECKING:
    from hashrange.prices import Book
    from hashrange_lab.recordings.recording import Recording

VALUES: Final = ("kept", "hashed")
_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_RECORDING_BYTES_MAX: Final = 1024 * 1024 * 1024

_log = logging.getLogger("hashrange.lab")

_OPTIONS: Final = (
    option(
        "--costs",
        is_flag=True,
        help="Count what requests cost; `hashrange costs` and the console show it. `hashrange costs start` "
        "begins later; without either, requests pay nothing for it.",
    ),
    option(
        "--prices",
        type=_FILE,
        metavar="FILE",
        help="Prices that the console shows; a file in TOML, in place of the published ones, see "
        "docs/costs.md. Implies --costs.  [default: none]",
    ),
    option(
        "--record",
        type=_FILE,
        metavar="FILE",
        help="Record all requests in a new file. `hashrange replay` sends them again; see docs/load.md.  "
        "[default: none]",
    ),
    option(
        "--record-values",
        type=click.Choice(VALUES),
        default=VALUES[0],
        help="Values in the recording: as they are, or each replaced by a hash of the same size; equal "
        "values have equal hashes.",
    ),
    option(
        "--record-dir",
        default="",
        metavar="DIR",
        help="The directory of recordings that `hashrange record start` makes.  [default: none]",
    ),
    option(
        "--record-bytes-max",
        type=Number(int, 1),
        default=_RECORDING_BYTES_MAX,
        metavar="BYTES",
        help="The most bytes of a recording, which then ends.",
    ),
)


class LabPart(ServingPart):
    """The lab, in a server."""

    options = _OPTIONS

    def begin(self, starting: Starting) -> None:
        """Count what requests cost, and record them, if the options say so. Raises ClickException."""
        given = starting.given
        if given["costs"] or given["prices"] is not None:
            from hashrange_lab.money import meter

            # A server with prices of its own counts: the prices would be of no use otherwise.
            meter.begin(starting.database, book_of(given["prices"]))
        _prepare(starting, given)
        if given["record"] is not None:
            _record(starting, given["record"], hashed=given["record_values"] == "hashed")
        elif given["record_values"] == "hashed" and not given["record_dir"]:
            raise click.UsageError("--record-values has no effect without --record FILE.")


PART: Final = LabPart()


def book_of(prices: Path | None) -> Book:
    """The prices of a file, or of the package. Raises click.UsageError."""
    from hashrange.prices import WrongPrices, load, published

    try:
        return published() if prices is None else load(prices)
    except WrongPrices as error:
        raise click.UsageError(str(error)) from None


def _prepare(starting: Starting, given: Mapping[str, Any]) -> None:
    """Say where the admin plane may make recordings."""
    if given["record_dir"] or given["record_bytes_max"] != _RECORDING_BYTES_MAX:
        recordings = starting.database.part("lab", "recordings")
        recordings.directory, recordings.bytes_max = given["record_dir"], given["record_bytes_max"]


def _record(starting: Starting, path: Path, *, hashed: bool) -> None:
    """Record the requests to a database until the server ends."""
    from hashrange_lab.recordings.recording import recording

    bytes_max = starting.given["record_bytes_max"]
    made = recording(starting.database, path, hashed=hashed, bytes_max=bytes_max)
    try:
        made.begin()
    except FileExistsError:
        raise click.ClickException(
            f"{path} exists already, and a recording is never overwritten; move the file, or name another "
            "with --record."
        ) from None
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from error
    starting.stack.callback(_end, made)


def _end(made: Recording) -> None:
    made.end()
    writer = made.writer
    if writer is not None:
        fields = {"file": str(made.path), "requests": writer.written, "dropped": writer.dropped}
        _log.info("recorded", extra={"fields": fields | {"bytes": writer.written_bytes}})
