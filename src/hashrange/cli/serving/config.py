"""`hashrange config`: the settings of `hashrange serve`, where each comes from, and checks of a file."""

from __future__ import annotations

import os
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from hashrange.cli.forms import JSON, counted, format_option, print_lines
from hashrange.cli.serving import serve
from hashrange.cli.serving.options import in_sections, shown_value
from hashrange.cli.serving.settings_file import CONFIG, WrongSettings, read
from hashrange.clock import show_moment
from hashrange.server import ServerSettings
from hashrange.settings import Settings

_EPILOG: Final = """\b
Examples:
  hashrange config show                            all settings, and the source of each
  hashrange config show --config hashrange.toml    with the settings of a file
  hashrange config show --format json | jq -c 'select(.source != "default")'
  hashrange config check hashrange.toml

\b
A file for `hashrange serve --config`:
  port = 8001
  cache = "512MiB"
  idle_seconds_max = "10m"
  fault = ["PutItem nth=3 throttle"]

The keys are the options, with underscores; TOML tables may group them. The command line takes
precedence over variables, variables over the file, and the file over the defaults. See docs/settings.md."""
_DEFAULT: Final = "default"
_SECRETS: Final = ("admin_token", "root_secret_access_key")
_PASSWORD: Final = re.compile(r"(://[^:/@\s]*:)[^@\s]*@")


@click.group("config", epilog=_EPILOG)
def command() -> None:
    """Show the settings of `hashrange serve`, and check settings files."""


@command.command("show", short_help="Show all settings, and where each comes from.")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A settings file.  [default: that of HASHRANGE_CONFIG]",
)
@format_option("How each setting is printed: as a line of text, or as a JSON object on a line.")
def show(config: Path | None, format_: str) -> None:
    """Show the settings of a server started here, and the source of each setting that is not the default."""
    arguments = [] if config is None else ["--config", str(config)]
    ctx = serve.command.make_context("serve", arguments)
    sections = {
        section: [_entry(ctx, one) for one in parameters if isinstance(one, click.Option)]
        for section, parameters in in_sections(serve.command.params).items()
    }
    if format_ == JSON:
        print_lines(entry for entries in sections.values() for entry in entries)
        return
    everything = [entry for entries in sections.values() for entry in entries]
    width = max(len(entry["setting"]) for entry in everything)
    for section, entries in sections.items():
        click.echo(f"# {section}")
        for entry in entries:
            click.echo(f"{entry['setting']:{width}}  {entry['value']}{_comes_from(entry['source'])}")


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def check(file: Path) -> None:
    """Check FILE, and report the error of each setting."""
    ctx = click.Context(serve.command, info_name="serve")
    try:
        found = read(file, ctx)
        options = {option.name: option for option in serve.command.params}
        given = {name: options[name].process_value(ctx, value) for name, value in found.items()}
        for settings in (Settings, ServerSettings):
            names = {field.name for field in fields(settings)} & given.keys()
            settings(**{name: given[name] for name in names})
    except WrongSettings as error:
        raise click.ClickException(str(error)) from None
    except ValueError as error:
        raise click.ClickException(f"{file}: {error}") from None
    click.echo(f"{file}: {counted(len(found), 'setting')}, no errors")


def _entry(ctx: click.Context, option: click.Option) -> dict[str, str]:
    """What is shown of a setting."""
    name = option.name or ""
    source = ctx.get_parameter_source(name)
    where = _DEFAULT
    if source is ParameterSource.ENVIRONMENT:
        where = next(variable for variable in _variables(option) if os.environ.get(variable))
    elif source is ParameterSource.DEFAULT_MAP:
        where = str(ctx.params[CONFIG])
    elif source is ParameterSource.COMMANDLINE:
        where = "the command line"
    value = _value(option, ctx.params.get(name))
    return {"setting": name, "value": value or _default(option), "source": where}


def _comes_from(source: str) -> str:
    return "" if source == _DEFAULT else f"  (from {source})"


def _variables(option: click.Option) -> list[str]:
    variables = option.envvar or ()
    return [variables] if isinstance(variables, str) else list(variables)


def _default(option: click.Option) -> str:
    """What holds without the setting, as its text says."""
    return (option.help or "").partition("  [default: ")[2].rstrip("]") or "none"


def _value(option: click.Option, value: Any) -> str:
    """A value for people; no secret."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value in (None, (), ""):
        return ""
    if option.name in _SECRETS:
        return "(secret)"
    if option.name == "virtual_clock_start":
        return show_moment(float(value))
    if option.name == "fault":
        # Imported here, because few servers have faults.
        from hashrange.faults import show as show_rule

        return "; ".join(show_rule(rule) for rules in value for rule in rules)
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return _PASSWORD.sub(r"\1***@", shown_value(option, value))
