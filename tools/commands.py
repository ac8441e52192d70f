"""Write docs/commands.md, the reference of all commands, from the program:

    python -m tools.commands

A test compares the page with what this module makes, so run it after a change of a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Final

import click

from hashrange.cli import _all, main
from hashrange.cli.serving.options import shown_value

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
COMMON: Final = ("endpoint_url", "admin_url", "help")
"""The options that many commands have, which the page describes once."""
_HEAD: Final = """\
# Commands

After this page you know every command and every option, as `hashrange COMMAND --help` shows them.

| in all commands | form |
|---|---|
| at most N | `--limit 10` |
| output for programs | `--format json` |
| a duration | `0.5s`, `10m`, `1d12h`; a number alone is seconds |
| a size | `400B`, `64KiB`, `512MiB`; a number alone is bytes |
| a moment | `2026-01-31T12:00:00Z`, epoch seconds; of the past also `10m` (ago) and `now` |
| a key | plain JSON, `{"pk": "x"}`, or DynamoDB's, `{"pk": {"S": "x"}}` |
| the server | `--endpoint-url`, else `AWS_ENDPOINT_URL_DYNAMODB`, else `AWS_ENDPOINT_URL`, else \
`http://127.0.0.1:8000`; `aws` is \
Amazon DynamoDB, where a command says so |
| its admin plane, if the server does not tell where it is | `--admin-url`, or `HASHRANGE_ADMIN_URL` |
| the token of the admin plane | `HASHRANGE_ADMIN_TOKEN` |
| what exists, and its state | `list`, `show` |
| to begin and to end something | `start`, `stop` |
| no question before a change | `--yes` |

Exit codes: 0 success, 1 failure, with a line that says the cause and the remedy, 2 a wrong command line.
"""


def page() -> str:
    """The text of the page."""
    context = click.Context(main, info_name="hashrange")
    parts = [_HEAD]
    for name in sorted(_all()):
        command = main.get_command(context, name)
        assert command is not None
        parts += _described(command, f"hashrange {name}", context, 2)
    return "\n".join(parts)


def _described(command: click.Command, path: str, parent: click.Context, level: int) -> Iterator[str]:
    """The parts of the page about a command and those below it."""
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    arguments = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    if isinstance(command, click.Group):
        arguments = []
    yield f"{'#' * level} `{' '.join([path, *arguments])}`\n"
    yield _paragraphs(command.help or "")
    rows = [_row(option, context) for option in shown_options(command)]
    if rows:
        yield "\n".join(["| option | default | what it is |", "|---|---|---|", *rows]) + "\n"
    if path == "hashrange serve":
        yield "[Settings](settings.md) lists all options.\n"
    if command.epilog:
        yield _paragraphs(command.epilog)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _described(inner, f"{path} {name}", context, level + 1)


def shown_options(command: click.Command) -> list[click.Option]:
    """The options of a command that its part of the page lists."""
    options = [one for one in command.params if isinstance(one, click.Option) and one.name not in COMMON]
    return [] if command.name == "serve" else [one for one in options if not one.hidden]


def _row(option: click.Option, context: click.Context) -> str:
    text, _, default = (option.help or "").partition("  [default: ")
    default = default.rstrip("]")
    if not default and not option.is_flag and option.show_default and option.default is not None:
        default = f"`{shown_value(option, option.default)}`"
    if option.required:
        text += " Required."
    name = option.opts[0] if option.is_flag else f"{option.opts[0]} {option.make_metavar(context)}"
    return "| " + " | ".join(_cell(cell) for cell in (f"`{name}`", default, text)) + " |"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _paragraphs(text: str) -> str:
    """A text of click in Markdown: its paragraphs, those with line breaks of their own as blocks of code."""
    made = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = paragraph.strip("\n").splitlines()
        if lines[0].strip() == "\b":
            head, *rest = lines[1:]
            made.append(head.strip())
            if rest:
                made.append("```\n" + dedent("\n".join(rest)) + "\n```")
        else:
            made.append(" ".join(line.strip() for line in lines))
    return "\n\n".join(made) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
