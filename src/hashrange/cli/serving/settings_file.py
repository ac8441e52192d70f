"""The settings file of `hashrange serve --config`: TOML, whose keys are the options with underscores.

Tables of TOML group the settings as their author likes, and mean nothing. The command line takes precedence
over variables, variables over the file, and the file over the defaults.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from hashrange.rings import rings

CONFIG: Final = "config"
_ALL: Final = "`hashrange config show` lists all settings"


class WrongSettings(ValueError):
    """What is wrong in a settings file, in a line for each mistake."""


def settings_of_file(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Take the settings of a file in place of the defaults of a command's options. Raises
    click.UsageError."""
    if path is not None:
        try:
            ctx.default_map = read(path, ctx)
        except WrongSettings as error:
            if not ctx.resilient_parsing:
                raise click.UsageError(str(error), ctx) from None
    return path


def read(path: Path, ctx: click.Context) -> dict[str, Any]:
    """The settings of a file, checked, for the options of the command of `ctx`. Raises WrongSettings."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WrongSettings(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # (TOMLDecodeError and UnicodeDecodeError)
        raise WrongSettings(f"{path} is not TOML: {error}.") from None
    options = {option.name: option for option in ctx.command.params if isinstance(option, click.Option)}
    settings: dict[str, Any] = {}
    problems = []
    for key, value in _entries(document):
        option = options.get(key)
        if option is None or key in (CONFIG, "help"):
            problems.append(f"{path}: {_unknown(key, [name for name in options if name])}")
        elif key in settings:
            problems.append(f"{path}: {key} stands there twice; keep one of them.")
        else:
            settings[key] = value
            if why := _problem(ctx, option, value):
                problems.append(f"{path}: {key} = {_shown(value)}: {why}")
    if problems:
        raise WrongSettings("\n".join(problems))
    return settings


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The settings at the top and in the tables of a document."""
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _entries(value)
        else:
            yield key, value


def _unknown(key: str, names: list[str]) -> str:
    """Why there is no such setting, and what to write."""
    option = f"--{key.replace('_', '-')}"
    if ring := rings().options().get(option):
        return f"{key} is missing: {rings().why_missing(ring)}."
    if key == CONFIG:
        return "config is for the command line and HASHRANGE_CONFIG only; a file names no other."
    near = difflib.get_close_matches(key.replace("-", "_"), names, 1)
    hint = f"write {near[0]}, or remove it" if near else "remove it"
    return f"there is no setting {key!r}; {hint}: {_ALL}."


def _problem(ctx: click.Context, option: click.Option, value: Any) -> str:
    """What is wrong with a value, and the remedy; "" if nothing is."""
    values = value if option.multiple and isinstance(value, list) else [value]
    if option.is_flag:
        return "" if isinstance(value, bool) else "it is on or off; write true or false."
    for one in values:
        if isinstance(one, bool) or not isinstance(one, str | int | float):
            return f"it is not {'a text or a list of texts' if option.multiple else 'a text or a number'}."
    try:
        option.process_value(ctx, values if option.multiple else value)
    except click.BadParameter as error:
        return error.message if error.message.endswith(".") else f"{error.message}."
    return ""


def _shown(value: Any) -> str:
    """A value as the file has it, more or less."""
    return str(value).lower() if isinstance(value, bool) else repr(value)
