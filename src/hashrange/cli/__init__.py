"""The `hashrange` command: the only reader of argv and the environment; it wires everything.

    serving     `serve`: the server
    backup      back tables up
    check       verify a store
    copying     `copy`: a store to another engine
    importing   `import`: items of files into a table
    exporting   `export`: items of a table into a file
    restore     tables of backups
    as_of       `as-of`: the past of a server's tables
    clock       a running server's clock
    faults      a running server's faults
    completion  shell completion
    health      `doctor` and `healthcheck`: whether the installation and the server are sound
    pulling     `pull`: tables of an account, with some of their items

    forms       the forms of values, and the options that all commands share
    logs        the form of log lines
    admin       the parts of the admin plane
    stores      how stores are named
    remote      what commands share that speak to a running server

Rings add commands of their own (`rings.Ring.commands`). A command's module is imported only when the command
is used, so that `--version` and shell completion do not wait for the database. Exit codes: 0 success, 1
failure (a line on stderr gives the cause and the remedy), 2 wrong command line; `check` has its own.
"""

from __future__ import annotations

import difflib
from typing import Final

import click
from click.shell_completion import CompletionItem

from hashrange import __version__, form
from hashrange.rings import HOMES, Missing, load, rings

_COMMANDS: Final = {
    "as-of": "Read the past of a running server's tables, and restore it.",
    "backup": "Back up tables of a running server.",
    "check": "Verify a store, in a directory or in PostgreSQL.",
    "clock": "Show and change a running server's virtual clock.",
    "completion": "Print the shell's completion script.",
    "config": "Show the settings of the server, and check settings files.",
    "copy": "Copy a store between directories and PostgreSQL.",
    "doctor": "Check the installation, the disk and the server.",
    "export": "Write the items of a table to a file.",
    "faults": "List, add and remove a running server's fault rules.",
    "healthcheck": "Check whether a server is healthy, for containers.",
    "import": "Put the items of files into a table.",
    "pull": "Copy tables of an AWS account, or of another server.",
    "restore": "Restore tables from backups.",
    "serve": "Run the server.",
}


# Modules whose names differ from their commands.
_MODULES: Final = {
    "as-of": "as_of",
    "config": "serving.config",
    "copy": "copying",
    "doctor": "health.doctor",
    "export": "exporting",
    "healthcheck": "health.healthcheck",
    "import": "importing",
    "pull": "pulling.pull",
    "serve": "serving.serve",
}


def _all() -> dict[str, str]:
    """All commands, and what each is about."""
    return _COMMANDS | {name: command.about for name, command in rings().commands().items()}


class _Commands(click.Group):
    """Loads a command from its module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_all())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            reference = f"hashrange.cli.{_MODULES.get(cmd_name, cmd_name)}:command"
            command = load(reference)
        else:
            try:
                command = rings().find("commands", cmd_name)
            except Missing as error:
                raise click.ClickException(str(error)) from error
            if command is None:
                return None
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in _COMMANDS or args[0].startswith("-") or args[0] in rings().commands():
            return super().resolve_command(ctx, args)
        for ring, home in HOMES.items():
            if args[0] in home.commands:
                raise click.UsageError(f"{args[0]} is missing: {rings().why_missing(ring)}.", ctx)
        near = difflib.get_close_matches(args[0], _all(), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = {name: about for name, about in sorted(_all().items()) if name.startswith(incomplete)}
        # Group's own method would import every command to get its help.
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=about) for name, about in names.items()), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_all().items()))


def _show_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    found = rings()
    failed = [f"{name} (cannot be loaded: {why})" for name, why in found.failed.items()]
    click.echo(f"hashrange {__version__} (hot path {form()})")
    click.echo(f"rings: {', '.join([*found.installed, *failed]) or 'none'}")
    ctx.exit()


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `hashrange serve`; `hashrange COMMAND --help` describes a command.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version,
    help="Show the version and the rings, and exit.",
)  # fmt: skip
def main() -> None:
    """A durable, fast, faithful DynamoDB-compatible database."""
