"""The forms that values have in all commands: durations, sizes, keys, and the options that commands share."""

from __future__ import annotations

from typing import Any

import click
import pytest

from hashrange.cli import _all, main
from hashrange.cli.forms import Duration, Key, Size, show_duration, show_size


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("0.5s", 0.5), ("10m", 600.0), ("1d12h", 129_600.0), ("1m30s", 90.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds
    assert Duration().convert(show_duration(seconds), None, None) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("100", 100), ("400B", 400), ("64KiB", 65_536), ("512MiB", 512 << 20), ("1.5GiB", 3 << 29)],
)
def test_sizes(text: str, size: int) -> None:
    assert Size().convert(text, None, None) == size
    assert Size().convert(show_size(size), None, None) == size


def test_values_are_shown_in_their_largest_unit() -> None:
    assert [show_size(size) for size in (0, 1, 1000, 1024, 1 << 20, 3 << 29)] == [
        "0B", "1B", "1000B", "1KiB", "1MiB", "1536MiB",
    ]  # fmt: skip
    assert [show_duration(seconds) for seconds in (0, 0.25, 60, 3_661, 604_800)] == [
        "0s", "0.25s", "1m", "1h1m1s", "1w",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (Duration(), "soon", "'soon' is not a duration from 0s; give one such as 0.5s, 10m or 1d12h."),
        (Duration(), "nan", "'nan' is not a duration from 0s;"),
        (Duration(0.1, 60), "2m", "'2m' is not a duration from 0.1s to 1m;"),
        (Size(), "512 MB", "'512 MB' is not a size from 1B; give one such as 64KiB or 512MiB."),
        (Size(), "0", "'0' is not a size from 1B;"),
        (Size(0, 1024), "2KiB", "'2KiB' is not a size from 0B to 1KiB;"),
        (Key(), "x", "'x' is not JSON"),
        (Key(), "[1]", "'[1]' is not a key; write one as '{\"pk\": \"x\"}'."),
    ],
)
def test_a_wrong_value_is_named_with_the_remedy(kind: Any, text: str, message: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        kind.convert(text, None, None)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"pk": "x"}', {"pk": {"S": "x"}}),
        ('{"pk": {"S": "x"}}', {"pk": {"S": "x"}}),
        ('{"pk": "x", "sk": 7}', {"pk": {"S": "x"}, "sk": {"N": "7"}}),
        ('{"pk": 12345678901234567890.5}', {"pk": {"N": "12345678901234567890.5"}}),
        ('{"pk": {"B": "AAE="}}', {"pk": {"B": "AAE="}}),
    ],
)
def test_keys_are_plain_or_typed(text: str, key: dict[str, Any]) -> None:
    assert Key().convert(text, None, None) == key


def options() -> list[tuple[str, click.Option]]:
    """All options of all commands but `serve`, whose tests are elsewhere."""
    found = []
    context = click.Context(main)
    commands = [(name, main.get_command(context, name)) for name in _all() if name != "serve"]
    while commands:
        name, command = commands.pop()
        if isinstance(command, click.Group):
            commands += [(f"{name} {inner}", part) for inner, part in command.commands.items()]
        elif command is not None:
            found += [(name, one) for one in command.params if isinstance(one, click.Option)]
    return found


def test_each_thing_has_one_option() -> None:
    for name, option in options():
        where = f"{name} {option.opts[0]}"
        assert len(option.opts) == 1, where
        assert option.opts[0] not in ("--json", "--max", "--to-url", "--seconds", "--bytes"), where
        if isinstance(option.type, click.types.FloatParamType):
            assert "second" not in (option.help or "").lower() or option.opts[0] == "--rate", where
        if "at most" in (option.help or "").lower():
            assert option.opts[0] in ("--limit", "--in-flight"), where
        if option.opts[0] == "--format" and name not in ("import", "export", "sql"):
            assert isinstance(option.type, click.Choice), where
            assert list(option.type.choices) == ["text", "json"], where
        if option.opts[0] == "--endpoint-url":
            assert "URL of the server" in (option.help or ""), where
