"""How the options of `hashrange serve` are made and shown.

The options of limits and behaviour are made from the fields of `ServerSettings` and `Settings`, and their
help texts from the docstrings of these classes, so that each option has a single name, default and
description.
"""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import click

from hashrange.cli.forms import Duration, Size, show_duration, show_size
from hashrange.clock import SystemClock, parse_moment
from hashrange.rings import ServingPart, rings
from hashrange.server import ServerSettings
from hashrange.settings import Settings, waves

# The descriptions of some defaults.
_DEFAULTS: Final = {
    "s3_dir": "s3 in the data directory; none without one",
    "s3_endpoint": "none",
    "kinesis_endpoint": "none",
    "eventual_reads": "none",
    "words": waves.DEFAULT,
    "backup_dir": "backups in the data directory; none without one",
}

# Metavars that are not the last word of the option.
_METAVARS: Final = {"words": "NAME"}

EVERYDAY: Final = (
    "config",
    "host",
    "port",
    "data_dir",
    "memory",
    "postgres",
    "cache",
    "backup_dir",
    "region",
    "auth",
    "users",
    "insecure",
    "tls_cert",
    "tls_key",
    "admin_port",
    "log_format",
    "log_requests",
    "virtual_clock",
    "like_aws",
    "fault",
)
"""The options that people set. The help shows no others: they are for the settings file."""
_EVERYDAY: Final = "Everyday options"
_OTHER: Final = "Stores, callers, logs and the clock"
_OF_RINGS: Final = "Access, costs and recordings, PostgreSQL, and other rings"
SECTIONS: Final[dict[str, type | None]] = {
    _EVERYDAY: None,
    _OTHER: None,
    _OF_RINGS: None,
    "Behaviour of the database": Settings,
    "Limits of the server": ServerSettings,
}
"""The sections of the options' help, and the class whose fields are in each."""


def option(name: str, **attributes: Any) -> Callable[[Any], Any]:
    """A click option that has a variable of the environment as well."""
    parameter, variable = name.lstrip("-").replace("-", "_"), _variable(name)
    return click.option(
        name, parameter, envvar=variable, show_envvar=True, show_default=True, **attributes
    )


def _variable(name: str) -> str:
    """The variable of the environment of an option."""
    return "HASHRANGE_" + name.lstrip("-").replace("-", "_").upper()


def field_texts(settings: type) -> dict[str, str]:
    """The description of each field, from docstring lines of the form ``field, other_field: description``."""
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in inspect.cleandoc(settings.__doc__ or "").splitlines()[1:]:
        match = re.match(r"([a-z0-9_]+(?:, [a-z0-9_]+)*): (.+)", line)
        if match is not None:
            names = match[1].split(", ")
            texts |= dict.fromkeys(names, match[2][0].upper() + match[2][1:])
        elif line.startswith(" "):
            texts |= {name: f"{texts[name]} {line.strip()}" for name in names}
    return texts


def settings_options(settings: type) -> Callable[[Any], Any]:
    """An option for each field of a settings class: ``--idle-seconds-max`` for `idle_seconds_max`."""

    texts = field_texts(settings)

    def decorate(function: Any) -> Any:
        attributes: dict[str, Any]
        for field in reversed(fields(settings)):
            name = "--" + field.name.replace("_", "-")
            text = texts.get(field.name, "")
            if isinstance(field.default, bool):
                attributes = {"is_flag": True}
            elif isinstance(field.default, str):
                attributes = {"metavar": _METAVARS.get(field.name) or field.name.rpartition("_")[2].upper()}
                text += f"  [default: {_DEFAULTS[field.name]}]"
            elif isinstance(field.default, tuple):
                attributes = {"multiple": True, "metavar": field.name.rpartition("_")[2].upper()}
                text += "  [default: none]"
            else:
                attributes = {"type": _kind_of(field.name, field.default)}
            function = option(name, default=field.default, help=text, **attributes)(function)
        return function

    return decorate


def _kind_of(name: str, default: float) -> click.ParamType:  # type: ignore[type-arg]  # as above
    """The type of a numeric setting, whose name has its unit."""
    words = name.split("_")
    if "seconds" in words:
        return Duration()
    if "bytes" in words:
        return Size()
    return Number(int, 1) if isinstance(default, int) else Number(float, 0)


def ring_options(function: Any) -> Any:
    """The options that rings add."""
    for part in reversed(list(parts_of_rings().values())):
        function = _decorated(function, part)
    return function


def parts_of_rings() -> dict[str, ServingPart]:
    """The parts that rings have in `serve` and whose options can be made, by the names of the rings."""

    def sound(part: ServingPart) -> ServingPart:
        names_of(part)
        return part

    return rings().each("serving", sound)


def _decorated(function: Any, part: ServingPart) -> Any:
    for decorate in reversed(part.options):
        function = decorate(function)
    return function


def names_of(part: ServingPart) -> set[str]:
    """The parameters of the options of a ring's part."""
    made = click.command()(_decorated(lambda **given: None, part))
    return {parameter.name or "" for parameter in made.params}


def _names_of_rings() -> set[str]:
    """The parameters of the options that rings add."""
    return {name for part in parts_of_rings().values() for name in names_of(part)}


def moment(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    try:
        return parse_moment(value, SystemClock().now()) if value is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, parameter) from None


class FaultRules(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A fault rule, or `@FILE` for the rules in a file."""

    name = "RULE"
    # Rules hold spaces.
    envvar_list_splitter = ";"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # Imported here, because few servers have faults.
        from hashrange.faults import WrongRule, parse, parse_lines

        try:
            if not value.startswith("@"):
                return [parse(value)]
            return parse_lines(Path(value[1:]).read_text(encoding="utf-8").splitlines())
        except (WrongRule, UnicodeDecodeError) as error:
            self.fail(str(error), param, ctx)
        except OSError as error:
            self.fail(f"{value[1:]} cannot be read: {error.strerror}", param, ctx)


class Number(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A number in a range; the error message names the range."""

    def __init__(self, kind: type[int] | type[float], least: int, greatest: int | None = None) -> None:
        self._kind, self._least, self._most = kind, least, greatest
        self.name = "NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = self._kind(value)
        except (ValueError, OverflowError):
            number = None
        if number is None or not self._least <= number <= (math.inf if self._most is None else self._most):
            kind = "whole number" if self._kind is int else "number"
            most = "" if self._most is None else f" to {self._most}"
            self.fail(f"{value!r} is not a {kind} from {self._least}{most}; give such a number.", param, ctx)
        return number


def matching(pattern: str, noun: str) -> Callable[[click.Context, click.Parameter, str], str]:
    def check(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise click.BadParameter(f"{value!r} is not {noun}.", ctx, parameter)
        return value

    return check


class Sectioned(click.Command):
    """A command whose help shows the everyday options, with the first clause of each text: docs/settings.md
    has all options, in the sections of `SECTIONS`, and the full texts."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        for parameter in self.params:
            if isinstance(parameter, click.Option):
                parameter.hidden = parameter.name not in EVERYDAY

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Like click's, and says what brings an option of a ring that is not there. Such an option is not
        ignored in the environment either: a server without --auth would serve everybody."""
        ring_of = rings().options()
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name not in ring_of:
                raise
            missing = error.option_name
        else:
            known = {name for parameter in self.params for name in parameter.opts}
            in_environment = (name for name in ring_of.keys() - known if os.environ.get(_variable(name)))
            missing = min(in_environment, default="")
            if not missing:
                return rest
        why = rings().why_missing(ring_of[missing])
        raise click.UsageError(f"{missing} is missing: {why}.", ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = [
            (record[0], shortened(option))
            for parameters in in_sections(self.get_params(ctx)).values()
            for option in parameters
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)) is not None
        ]
        with formatter.section("Options"):
            formatter.write_dl(records)


def shortened(option: click.Option) -> str:
    """The first clause of an option's text, and its default."""
    text, _, shown_default = (option.help or "").partition("  [default: ")
    clause = re.split(r"(?:[.;:](?:\s|$))", text)[0]
    default = shown_default.rstrip("]")
    if not default and not option.is_flag and option.default not in (None, ()):
        default = shown_value(option, option.default)
    return f"{clause}.  [{default}]" if default else f"{clause}."


def shown_value(option: click.Parameter, value: Any) -> str:
    """A value of an option as a settings file has it."""
    if isinstance(value, str):
        return value
    if isinstance(option.type, Duration):
        return show_duration(float(value))
    if isinstance(option.type, Size):
        return show_size(int(value))
    return str(value)


def in_sections(parameters: Iterable[click.Parameter]) -> dict[str, list[click.Parameter]]:
    """Parameters by the section that shows them."""
    classes = [(name, settings) for name, settings in SECTIONS.items() if settings is not None]
    place = {field_.name: name for name, settings in classes for field_ in fields(settings)}
    place |= dict.fromkeys(_names_of_rings(), _OF_RINGS)
    place |= dict.fromkeys(EVERYDAY, _EVERYDAY)
    shown: dict[str, list[click.Parameter]] = {name: [] for name in SECTIONS}
    for parameter in parameters:
        shown[place.get(parameter.name or "", _OTHER)].append(parameter)
    shown[_EVERYDAY].sort(key=lambda parameter: EVERYDAY.index(parameter.name or ""))
    return shown
