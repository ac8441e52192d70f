"""The lab's part of `hashrange serve`: counting what requests cost, and recording the requests."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hashrange.cli.forms import Size
from hashrange.cli.serving.options import option
from hashrange.rings import ServingPart, Starting
from hashrange_lab.recordings import BYTES_MAX
from hashrange_lab.recordings.lines import HASHED, KEPT, VALUES

if TYPE_CHECKING:
    from hashrange.prices import Book
    from hashrange_lab.recordings.recording import Recording

_log = logging.getLogger("hashrange.lab")


class LabServing(ServingPart):
    """What the options of the lab mean. Most servers use none, so the lab's modules are imported here when an
    option asks for them."""

    options = (
        option(
            "--costs",
            is_flag=True,
            help="Count what requests cost; `hashrange costs show` and the console show it. `hashrange "
            "costs start` begins later.",
        ),
        option(
            "--prices",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Prices that the console shows; a file in TOML, in place of the published ones, see "
            "docs/costs.md. Implies --costs.  [default: none]",
        ),
        option(
            "--record",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Record all requests in a new file. `hashrange replay` sends them again.  [default: none]",
        ),
        option(
            "--record-values",
            type=click.Choice(VALUES),
            default=KEPT,
            help="Values in the recording: as they are, or each replaced by a hash of the same size; equal "
            "values have equal hashes.",
        ),
        option(
            "--record-dir",
            default="",
            metavar="DIR",
            help="The directory for the recordings of `hashrange record start`.  [default: none]",
        ),
        option(
            "--record-bytes-max",
            type=Size(),
            default=BYTES_MAX,
            help="The size at which a recording ends.",
        ),
    )

    def begin(self, starting: Starting) -> None:
        given = starting.given
        hashed = given["record_values"] == HASHED
        if hashed and given["record"] is None and not given["record_dir"]:
            raise click.UsageError("--record-values has no effect without --record FILE.")
        if given["costs"] or given["prices"] is not None:
            from hashrange_lab.money import meter

            # A server with prices of its own counts: the prices would be of no use otherwise.
            meter.begin(starting.database, book_of(given["prices"]))
        if given["record_dir"]:
            recordings = starting.database.part("lab", "recordings")
            recordings.directory, recordings.bytes_max = given["record_dir"], given["record_bytes_max"]
        if given["record"] is not None:
            from hashrange_lab.recordings.recording import Recording

            path, bytes_max = given["record"], given["record_bytes_max"]
            _begin(Recording(starting.database, path, hashed=hashed, bytes_max=bytes_max), starting)


def book_of(prices: Path | None) -> Book:
    """The prices of a file, or of the package. Raises click.UsageError."""
    from hashrange.prices import WrongPrices, load, published

    try:
        return published() if prices is None else load(prices)
    except WrongPrices as error:
        raise click.UsageError(str(error)) from None


def _begin(recording: Recording, starting: Starting) -> None:
    """Record until the server stops."""
    path = recording.path
    try:
        recording.begin()
    except FileExistsError:
        raise click.ClickException(
            f"{path} exists already, and a recording is never overwritten; move the file, or name another "
            "with --record."
        ) from None
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from error

    def end() -> None:
        recording.end()
        assert recording.writer is not None
        fields = {"requests": recording.writer.written, "dropped": recording.writer.dropped}
        fields |= {"bytes": recording.writer.written_bytes}
        _log.info("recorded", extra={"fields": {"file": str(path), **fields}})

    starting.stack.callback(end)


PART: Final = LabServing()
