"""docs/settings.md lists every option of `hashrange serve` with its default and its text."""

from __future__ import annotations

import re
from pathlib import Path

import click

from hashrange.cli.serving.options import in_sections, shown_value
from hashrange.cli.serving.serve import command

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


def row(option: click.Option) -> str:
    """The page's row of an option."""
    assert option.help
    text, _, shown_default = option.help.partition("  [default: ")
    default = shown_default.rstrip("]") or ("off" if option.is_flag else "")
    if not default and option.default is not None:
        default = f"`{shown_value(option, option.default)}`"
    names = ", ".join(f"`{name}`" for name in option.opts)
    return f"| {names} | {default.replace('|', '')} | {text} |"


def test_the_page_lists_every_option_in_its_section() -> None:
    wanted = {
        section: [row(one) for one in parameters if isinstance(one, click.Option)]
        for section, parameters in in_sections(command.params).items()
    }
    found: dict[str, list[str]] = {section: [] for section in wanted}
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title = section.splitlines()[0]
        if title in found:
            found[title] = re.findall(r"^\| `--.*$", section, re.MULTILINE)
    assert found == wanted


def test_a_variable_is_named_as_its_option() -> None:
    for option in command.params:
        if isinstance(option, click.Option) and option.name != "help":
            assert option.envvar == "HASHRANGE_" + option.opts[0].removeprefix("--").replace("-", "_").upper()
