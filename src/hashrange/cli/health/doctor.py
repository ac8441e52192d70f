"""`hashrange doctor`: check the installation and the server, and name a remedy for each problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click
import orjson

from hashrange.cli.forms import JSON, TEXT, format_option
from hashrange.cli.health import disk, installed, reachable
from hashrange.cli.health.findings import NOTE, OK, PROBLEM, Finding
from hashrange.cli.remote.asking import endpoint_option
from hashrange.cli.serving.serve import DEFAULT_DATA_DIR

_EPILOG: Final = """\b
Exit codes: 0 no problem, 1 a problem was found.

\b
Examples:
  hashrange doctor
  hashrange doctor --data-dir /var/lib/hashrange --endpoint-url http://db.example:8000
  hashrange doctor --format json | jq -r 'select(.state != "ok").text'"""
_STATE_WIDTH: Final = 9
_PART_WIDTH: Final = 19
_WIDTH: Final = 110
_COLORS: Final = {OK: "green", NOTE: "yellow", PROBLEM: "red"}


@click.command("doctor", epilog=_EPILOG)
@click.option(
    "--data-dir",
    envvar="HASHRANGE_DATA_DIR",
    show_envvar=True,
    type=click.Path(path_type=Path),
    default=DEFAULT_DATA_DIR,
    show_default=f"./{DEFAULT_DATA_DIR}",
    help="The data directory to check.",
)
@endpoint_option("URL of the server to check.")
@format_option("How each finding is printed: as text, or as a JSON object on a line.")
def command(data_dir: Path, endpoint_url: str, format_: str) -> None:
    """Check the installation, the data directory and its disk, the environment and the server.

    Nothing is changed. The speed of the disk is measured with a small file, which is removed.
    """
    counts = dict.fromkeys((OK, NOTE, PROBLEM), 0)
    for finding in _findings(data_dir, endpoint_url):
        counts[finding.state] += 1
        if format_ == JSON:
            click.echo(orjson.dumps(asdict(finding)))
        else:
            _show(finding)
    if format_ == TEXT:
        problems, notes = counts[PROBLEM], counts[NOTE]
        click.echo(f"\n{_counted(problems, 'problem')}, {_counted(notes, 'note')}.")
    if counts[PROBLEM]:
        raise click.exceptions.Exit(1)


def _findings(data_dir: Path, endpoint_url: str) -> Iterator[Finding]:
    yield from installed.findings()
    yield from disk.findings(data_dir)
    yield from reachable.findings(endpoint_url, reachable.environment())


def _show(finding: Finding) -> None:
    state = click.style(f"{finding.state:<{_STATE_WIDTH}}", fg=_COLORS[finding.state])
    indent = " " * (_STATE_WIDTH + _PART_WIDTH)
    for number, text in enumerate(filter(None, (finding.text, finding.remedy))):
        shown = click.wrap_text(text, _WIDTH, indent, indent)
        click.echo(shown if number else f"{state}{finding.part:<{_PART_WIDTH}}{shown[len(indent) :]}")


def _counted(number: int, noun: str) -> str:
    return f"{number or 'No'} {noun}" if number == 1 else f"{number or 'no'} {noun}s"
