"""The `hashrange` command: the only reader of argv and the environment; it wires everything.

    serving     `serve`: the server
    backup      back tables up
    check       verify a store
    copying     `copy`: a store to another engine
    importing   `import`: items of files into a table
    restore     tables of backups
    as_of       `as-of`: the past of a server's tables
    clock       a running server's clock
    console     a link to a running server's console
    faults      a running server's faults
    stream      follow a table's changes
    trigger     functions on a table's changes
    completion  shell completion
    health      `doctor` and `healthcheck`: whether all is well
    costs       what the requests to a running server cost
    loads       `record`, `replay`, `load`, `top`: loads on a server, and what they do to it
    pulling     `pull`: tables of an account, with some of their items

    logs        the form of log lines
    admin       the parts of the admin plane
    stores      how stores are named
    access      `audit`, `key`, `policy`, and what the server's options of access mean
    remote      what commands share that speak to a running server

A command's module is imported only when the command is used, so that `--version` and shell completion do not
wait for the database. Exit codes: 0 success, 1 failure (a line on stderr gives the cause and the remedy), 2
wrong command line; `check` has its own.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Final

import click
from click.shell_completion import CompletionItem

from hashrange import __version__, form

_COMMANDS: Final = {
    "as-of": "Read the past of a running server's tables, and bring it back.",
    "audit": "Check the log of who did what.",
    "backup": "Back up tables of a running server.",
    "check": "Verify a store, in a directory or in PostgreSQL.",
    "clock": "Show and change a running server's virtual clock.",
    "completion": "Print the shell's completion script.",
    "console": "Print a link to a running server's web console.",
    "copy": "Copy a store between directories and PostgreSQL.",
    "costs": "Show what the requests of a running server cost on AWS, and what would save money.",
    "doctor": "Check the installation, the disk and the server, and say what to do.",
    "faults": "List, add and remove a running server's fault rules.",
    "healthcheck": "Ask whether a server serves, for containers.",
    "import": "Put the items of files into a table.",
    "key": "Make and revoke access keys of a running server.",
    "load": "Put the load of a named mix on an endpoint, and measure it.",
    "policy": "Examine access policies.",
    "pull": "Make the tables of an AWS account, or of another server, here.",
    "record": "Record the requests to a running server.",
    "replay": "Send a recorded load again, and compare the answers.",
    "restore": "Make tables from backups.",
    "serve": "Run the server.",
    "stream": "Watch the changes of a table.",
    "top": "Show the busiest keys of a running server, live.",
    "trigger": "Run functions on the changes of a table.",
}


# Modules whose names differ from their commands.
_MODULES: Final = {
    "as-of": "as_of",
    "audit": "access.audit",
    "copy": "copying",
    "costs": "costs.costs",
    "doctor": "health.doctor",
    "healthcheck": "health.healthcheck",
    "import": "importing",
    "key": "access.key",
    "load": "loads.load",
    "policy": "access.policy",
    "pull": "pulling.pull",
    "record": "loads.record",
    "replay": "loads.replay",
    "serve": "serving.serve",
    "top": "loads.top",
}


class _Commands(click.Group):
    """Loads a command from its module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = _MODULES.get(cmd_name, cmd_name)
        command = importlib.import_module(f"hashrange.cli.{module}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in _COMMANDS or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        near = difflib.get_close_matches(args[0], _COMMANDS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in sorted(_COMMANDS) if name.startswith(incomplete)]
        # Group's own method would import every command to get its help.
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=_COMMANDS[name]) for name in names), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `hashrange serve`; `hashrange COMMAND --help` describes a command.",
)
@click.version_option(__version__, message=f"hashrange %(version)s (hot path {form()})")
def main() -> None:
    """A durable, fast, faithful DynamoDB-compatible database."""
