"""`hashrange standby`: `hashrange serve --standby`, again and again.

When the store can no longer follow, it renounces its directory and ends; the next run restores it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from hashrange.cli.serving.serve import command as serve
from hashrange.storage.embedded.offline.replay import is_unfinished

_EPILOG: Final = """\b
Examples:
  hashrange standby --copy s3://bucket/orders --data-dir ./standby
  hashrange standby --copy s3://bucket/orders --data-dir ./standby --port 8001 --promote-after 30s
  hashrange replica promote --endpoint-url http://127.0.0.1:8001

All other options are those of `hashrange serve`. They count after a promotion as well, when the server ships
to the same copy. See packages/replication/docs/replication.md."""


@click.command("standby", epilog=_EPILOG, context_settings={"ignore_unknown_options": True})
@click.option("--copy", required=True, metavar="PLACE", help="s3://bucket/prefix or a folder.")
@click.option(
    "--data-dir",
    "directory",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="A new or an empty directory, or that of an earlier run of this standby.",
)
@click.option("--port", help="Port to listen on.  [default: 8000]")
@click.option(
    "--promote-after",
    metavar="DURATION",
    help="Become the primary when the present one has been silent for this long, and has agreed to this "
    "standby.  [default: only on request]",
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF SERVE]...")
def command(
    copy: str, directory: Path, port: str | None, promote_after: str | None, options: tuple[str, ...]
) -> None:
    """Run a server that follows a copy, a second or two behind, and serves eventually consistent reads. The
    server becomes the primary by `hashrange replica promote`, or by itself with --promote-after."""
    arguments = ["--standby", "--copy-to", copy, "--data-dir", str(directory), *options]
    arguments += ["--port", port] if port is not None else []
    arguments += ["--promote-after", promote_after] if promote_after is not None else []
    while True:
        serve.main(arguments, "hashrange standby", standalone_mode=False)
        if not is_unfinished(directory):
            return
