"""The forms that values have in all commands and settings, and the options that all commands share.

A duration is `10m`, a size `512MiB`, a key plain JSON or DynamoDB's; "at most N" is `--limit`, and what
programs read is `--format json`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import click
import orjson

from hashrange.cli import logs
from hashrange.clock import parse_duration

TEXT: Final = "text"
JSON: Final = "json"
_SIZES: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB)?", re.ASCII)
_SPANS: Final = (("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60))


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """Seconds, from a text such as `0.5s`, `10m` or `1d12h`; a number alone is seconds."""

    name = "DURATION"

    def __init__(self, least: float = 0.0, most: float = math.inf) -> None:
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            seconds = parse_duration(str(value))
        except ValueError:
            seconds = None
        if seconds is None or not self._least <= seconds <= self._most:
            most = "" if math.isinf(self._most) else f" to {show_duration(self._most)}"
            self.fail(
                f"{value!r} is not a duration from {show_duration(self._least)}{most}; give one such as "
                "0.5s, 10m or 1d12h.",
                param,
                ctx,
            )
        return seconds


class Size(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """Bytes, from a text such as `64KiB` or `512MiB`; a number alone is bytes."""

    name = "SIZE"

    def __init__(self, least: int = 1, most: int | None = None) -> None:
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        match = _SIZE.fullmatch(str(value).strip())
        size = round(float(match[1]) * _SIZES[match[2] or "B"]) if match else None
        if size is None or not self._least <= size <= (size if self._most is None else self._most):
            most = "" if self._most is None else f" to {show_size(self._most)}"
            self.fail(
                f"{value!r} is not a size from {show_size(self._least)}{most}; give one such as 64KiB or "
                "512MiB.",
                param,
                ctx,
            )
        return size


class Key(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """The key of an item, in DynamoDB's JSON, from JSON of either form: `{"pk": "x"}` or
    `{"pk": {"S": "x"}}`."""

    name = "KEY"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return key_of(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def key_of(text: str | dict[str, Any]) -> dict[str, Any]:
    """The key that JSON of either form names. Raises ValueError."""
    # Imported here, because msgspec's decoder of decimals is needed for keys only.
    import msgspec

    from hashrange.interchange.plain_json import DECODER, item_of

    if isinstance(text, dict):
        return text
    try:
        found = DECODER.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(f'{text!r} is not JSON ({error}); write a key as \'{{"pk": "x"}}\'.') from None
    if not isinstance(found, dict) or not found:
        raise ValueError(f'{text!r} is not a key; write one as \'{{"pk": "x"}}\'.')
    return item_of(found)


def show_duration(seconds: float) -> str:
    """A duration as `Duration` reads it: `10m`, `1m30s`, `0.5s`."""
    shown, rest = "", seconds
    for unit, size in _SPANS:
        count, rest = divmod(rest, size)
        shown += f"{count:.0f}{unit}" if count else ""
    return shown + (f"{rest:g}s" if rest or not shown else "")


def show_size(size: int) -> str:
    """A size as `Size` reads it, in its largest unit without a fraction: `512MiB`."""
    unit, scale = max(
        ((unit, scale) for unit, scale in _SIZES.items() if size >= scale and size % scale == 0),
        key=lambda pair: pair[1],
        default=("B", 1),
    )
    return f"{size // scale}{unit}"


def limit_option(text: str, **attributes: Any) -> Callable[[Any], Any]:
    """The option `--limit`: at most N of what `text` names."""
    attributes = {"type": click.IntRange(min=1), "metavar": "N", **attributes}
    return click.option("--limit", help=text, **attributes)


def format_option(text: str) -> Callable[[Any], Any]:
    """The option `--format` of what a command prints: a parameter `format_`."""
    return click.option(
        "--format", "format_", type=click.Choice([TEXT, JSON]), default=TEXT, show_default=True, help=text
    )


def log_format_option(function: Any) -> Any:
    """The option `--log-format` of commands that run until they are stopped."""
    return click.option(
        "--log-format",
        type=click.Choice(logs.FORMATS),
        default=TEXT,
        show_default=True,
        help="How log lines look.",
    )(function)


def yes_option(function: Any) -> Any:
    """The option `--yes` of commands that ask before they do something."""
    return click.option("--yes", is_flag=True, help="Do not ask.")(function)


def counted(number: int, noun: str) -> str:
    """A number of things in words: `1 item`, `2 items`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_json(shown: object) -> None:
    """Print a document for programs, for people to read as well."""
    click.echo(orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode())


def print_lines(entries: Iterable[object]) -> None:
    """Print entries for programs, each in a line of JSON."""
    for entry in entries:
        click.echo(orjson.dumps(entry))
