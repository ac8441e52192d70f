"""`hashrange trigger run`: call a function with the changes of a table, until a signal stops it."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import click

from hashrange.cli import logs
from hashrange.cli.forms import Duration, log_format_option
from hashrange.cli.remote.connecting import attempt, connect, connection

_log = logging.getLogger("hashrange.triggers")

_EPILOG: Final = """\b
Examples:
  hashrange trigger run --table views totals:count_views
  hashrange trigger run --table orders --starting-position LATEST --batch-size 10 mail:send
  hashrange trigger run --table orders --filter '{"eventName": ["INSERT"]}' \\
      --filter '{"dynamodb": {"NewImage": {"state": {"S": [{"prefix": "paid"}]}}}}' ledger:book
  hashrange trigger run --table orders --retries 3 --bisect-on-error --on-failure failed.jsonl mail:send
  hashrange trigger run --table orders --endpoint-url aws --region eu-central-1 mail:send

\b
In totals.py:
  def count_views(event, context):
      for record in event["Records"]:
          ...

The function gets each change at least once, and the changes of an item in order. Several threads may call
the function at once, one for each shard and lane. Checkpoints are stored in a table, so the trigger continues
where it was. SIGTERM and Ctrl-C finish the current batch; a second signal does not wait for the batch."""


def on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at the first SIGTERM or Ctrl-C; the second signal ends the program at once."""

    def stopping(number: int, frame: FrameType | None) -> None:
        _log.info("stopping", extra={"fields": {"reason": signal.Signals(number).name}})
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, signal.SIG_DFL)
        stop()

    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, stopping)


@click.group("trigger")
def command() -> None:
    """Run functions on the changes of a table."""


@command.command("run", epilog=_EPILOG)
@click.argument("function", metavar="MODULE:FUNCTION")
@click.option("--table", required=True, help="The table whose changes are followed; its stream must be on.")
@connection
@click.option("--name", help="Name of the checkpoints.  [default: MODULE:FUNCTION@TABLE]")
@click.option(
    "--starting-position",
    type=click.Choice(["TRIM_HORIZON", "LATEST"]),
    default="TRIM_HORIZON",
    show_default=True,
    help="Where to start the first time: at the oldest available change, or at the next.",
)
@click.option(
    "--filter",
    "patterns",
    multiple=True,
    metavar="JSON",
    help="A pattern that records must match, as in Lambda's event filtering; of several, any one.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="The maximum number of records per call.",
)
@click.option(
    "--batch-window",
    type=Duration(0, 300),
    default="0s",
    show_default=True,
    help="How long to wait for a batch to fill.",
)
@click.option(
    "--parallelization-factor",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="How many calls may run at once for one shard; the changes of an item stay in order.",
)
@click.option(
    "--poll-interval",
    type=Duration(0.001),
    default="0.25s",
    show_default=True,
    help="The pause between reads of new records.",
)
@click.option(
    "--retries",
    type=click.IntRange(0),
    help="How many retries before a batch is discarded.  [default: no limit]",
)
@click.option(
    "--bisect-on-error",
    is_flag=True,
    help="Split a batch that fails in two, to find the record that causes the failure.",
)
@click.option(
    "--report-batch-item-failures", is_flag=True, help="The function's answer names the records that failed."
)
@click.option(
    "--max-record-age",
    type=Duration(),
    help="The age at which a record is discarded.  [default: never]",
)
@click.option(
    "--on-failure",
    metavar="FILE|table:NAME",
    help="Where to store discarded records: in a file, one per line, or as items of a table.",
)
@click.option(
    "--checkpoint-table",
    default="hashrange-trigger-checkpoints",
    show_default=True,
    help="Table of the checkpoints; created if it is missing.",
)
@log_format_option
def run(
    function: str, table: str, endpoint_url: str, region: str | None, log_format: str, **options_: Any
) -> None:
    """Call MODULE:FUNCTION with the changes of a table.

    The function is called as AWS Lambda calls functions, until a signal stops the command.
    """
    logs.configure(log_format, "info", sys.stderr)
    clients = connect(endpoint_url, region)
    import hashrange_triggers as triggers

    stop = threading.Event()
    errors = triggers.InvalidPattern, triggers.TriggerError

    def start() -> triggers.Worker:
        options = _options(f"{function}@{table}", options_)
        return triggers.Worker(clients, table, triggers.load(function), options)

    worker = attempt(start, endpoint_url, *errors)
    on_signals(stop.set)
    fields = {"function": function, "table": table, "endpoint": endpoint_url}
    _log.info("started", extra={"fields": fields})
    totals = attempt(lambda: worker.run(stop), endpoint_url, *errors)
    ended = {"delivered": totals.delivered, "errors": totals.errors, "given_up": totals.discarded}
    _log.info("stopped", extra={"fields": ended})


def _options(name: str, options: dict[str, Any]) -> Any:
    import hashrange_triggers as triggers
    from hashrange_triggers import filters

    batching = triggers.Batching(
        batch_size=options["batch_size"],
        batch_window=options["batch_window"],
        parallelization_factor=options["parallelization_factor"],
        poll_interval=options["poll_interval"],
    )
    policy = triggers.Policy(
        retries=options["retries"],
        bisect_on_error=options["bisect_on_error"],
        max_record_age=options["max_record_age"],
        report_batch_item_failures=options["report_batch_item_failures"],
    )
    return triggers.Options(
        name=options["name"] or name,
        batching=batching,
        policy=policy,
        starting_position=options["starting_position"],
        matches=filters.parse(options["patterns"]),
        on_failure=options["on_failure"],
        checkpoint_table=options["checkpoint_table"],
    )
