"""docs/commands.md lists every command with its options; docs/settings.md has those of `serve`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from tools import commands

from hashrange.cli import _all, main


def every_command() -> Iterator[tuple[str, click.Command]]:
    """All commands by their paths."""
    context = click.Context(main)
    waiting = [(f"hashrange {name}", main.get_command(context, name)) for name in _all()]
    while waiting:
        path, command = waiting.pop()
        assert command is not None
        yield path, command
        if isinstance(command, click.Group):
            waiting += [(f"{path} {name}", inner) for name, inner in command.commands.items()]


def test_the_page_is_what_the_program_says() -> None:
    text = commands.PAGE.read_text(encoding="utf-8")
    assert text == commands.page(), "docs/commands.md is old: run python -m tools.commands"


def test_no_command_and_no_option_is_missing() -> None:
    parts = re.split(r"^#+ `(.*)`$", commands.PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {
        re.split(r" (?=[A-Z\[{])", head)[0]: body for head, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    wanted = dict(every_command())
    assert set(found) == set(wanted)
    for path, command in wanted.items():
        listed = set(re.findall(r"^\| `(--[a-z0-9-]+)", found[path], re.MULTILINE))
        options = {one.opts[0] for one in command.params if isinstance(one, click.Option)}
        if path == "hashrange serve":
            options = set()
        common = {f"--{name.replace('_', '-')}" for name in commands.COMMON}
        # (healthcheck has an --endpoint-url of its own, with the same meaning)
        assert listed == options - common, path
