"""`hashrange serve`: the server, from the command line and the environment.

The options of limits and behaviour are made from the fields of `ServerSettings` and `Settings`, and their
help texts from those classes' docstrings, so that each has one name, one default and one description.
"""

from __future__ import annotations

import errno
import inspect
import logging
import re
import socket
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import click

from hashrange import __version__
from hashrange.cli import logs
from hashrange.database import Caller, Database
from hashrange.server import ServerSettings, serve
from hashrange.settings import Settings
from hashrange.storage.api import Engine, StorageError

DEFAULT_DATA_DIR: Final = Path("hashrange-data")
DEFAULT_PORT: Final = 8000

_log = logging.getLogger(__name__)

_EPILOG: Final = """\b
Examples:
  hashrange serve                                 durable, in ./hashrange-data, on port 8000
  hashrange serve --memory --port 0               nothing kept, on any free port
  hashrange serve --data-dir /var/lib/hashrange --host 0.0.0.0 --log-format json
  HASHRANGE_PORT=8001 hashrange serve

Every option may come from the environment. Any credentials are accepted. SIGTERM and Ctrl-C finish the
requests under way; a second one cuts them off."""

# Shorter names for some of them.
_ALIASES: Final = {"gsi_delay_seconds": "--gsi-delay"}


def _option(name: str, *aliases: str, **attributes: Any) -> Callable[[Any], Any]:
    parameter = name.lstrip("-").replace("-", "_")
    variable = "HASHRANGE_" + parameter.upper()
    return click.option(
        name, *aliases, parameter, envvar=variable, show_envvar=True, show_default=True, **attributes
    )


def field_texts(settings: type) -> dict[str, str]:
    """The description of each field, from docstring lines of the form ``one_field, another: what it is``."""
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in inspect.cleandoc(settings.__doc__ or "").splitlines()[1:]:
        match = re.match(r"([a-z_]+(?:, [a-z_]+)*): (.+)", line)
        if match is not None:
            names = match[1].split(", ")
            texts |= dict.fromkeys(names, match[2][0].upper() + match[2][1:])
        elif line.startswith(" "):
            texts |= {name: f"{texts[name]} {line.strip()}" for name in names}
    return texts


def _settings_options(settings: type) -> Callable[[Any], Any]:
    """An option for each field of a settings class: ``--idle-seconds-max`` for `idle_seconds_max`."""

    texts = field_texts(settings)

    def decorate(function: Any) -> Any:
        for field in reversed(fields(settings)):
            names = ["--" + field.name.replace("_", "-")]
            if field.name in _ALIASES:
                names.append(_ALIASES[field.name])
            text = texts.get(field.name, "")
            if isinstance(field.default, bool):
                option = _option(*names, is_flag=True, default=field.default, help=text)
            elif isinstance(field.default, int):
                option = _option(*names, type=click.IntRange(min=1), default=field.default, help=text)
            else:
                option = _option(*names, type=click.FloatRange(min=0), default=field.default, help=text)
            function = option(function)
        return function

    return decorate


def _matching(pattern: str, what: str) -> Callable[[click.Context, click.Parameter, str], str]:
    def check(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise click.BadParameter(f"{value!r} is not {what}.", ctx, parameter)
        return value

    return check


@click.command("serve", epilog=_EPILOG)
@_option("--host", default="127.0.0.1", help="Address to listen on.")
@_option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    help="Port to listen on; 0 takes a free one.",
)
@_option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help=f"Directory of the data, made where missing.  [default: ./{DEFAULT_DATA_DIR}]",
)
@_option("--memory", is_flag=True, help="Keep everything in memory and nothing on disk.")
@_option(
    "--region",
    default=Caller().region,
    callback=_matching(r"[a-z0-9-]{1,64}", "a region, as us-east-1 is"),
    help="Region of callers whose credentials name none.",
)
@_option(
    "--account-id",
    default=Caller().account_id,
    callback=_matching(r"[0-9]{12}", "an account id: 12 digits"),
    help="Account of callers whose access key is none.",
)
@_option("--log-format", type=click.Choice(logs.FORMATS), default="text", help="How log lines look.")
@_option(
    "--log-level", type=click.Choice(logs.LEVELS), default="info", help="The least level that is logged."
)
@_settings_options(ServerSettings)
@_settings_options(Settings)
def command(
    host: str,
    port: int,
    data_dir: Path | None,
    memory: bool,
    region: str,
    account_id: str,
    log_format: str,
    log_level: str,
    **limits: Any,
) -> None:
    """Serve DynamoDB's API to every AWS SDK, durably, until a signal says stop."""
    if memory and data_dir is not None:
        raise click.UsageError("--memory keeps nothing on disk and --data-dir says where; give one of them.")
    logs.configure(log_format, log_level, sys.stderr)
    where = "memory" if memory else str(data_dir or DEFAULT_DATA_DIR)
    try:
        engine = _open(memory, data_dir or DEFAULT_DATA_DIR)
    except StorageError as error:
        raise click.ClickException(str(error)) from error
    database = Database(engine, settings=_pick(Settings, limits))

    def started(endpoint_url: str) -> None:
        _log.info(
            "started", extra={"fields": {"endpoint": endpoint_url, "data": where, "version": __version__}}
        )
        if log_format == "text":
            click.echo(_welcome(endpoint_url, where, region))

    def stopping(reason: str) -> None:
        _log.info("stopping", extra={"fields": {"reason": reason}})

    try:
        serve(
            database,
            host=host,
            port=port,
            region=region,
            account_id=account_id,
            settings=_pick(ServerSettings, limits),
            started=started,
            stopping=stopping,
        )
    except OSError as error:
        raise click.ClickException(_why_not_listening(host, port, error)) from error
    finally:
        database.close()
    _log.info("stopped", extra={"fields": {"data": where}})


def _pick(settings: Any, values: dict[str, Any]) -> Any:
    return settings(**{field.name: values[field.name] for field in fields(settings)})


def _open(memory: bool, data_dir: Path) -> Engine:
    # Imported here because RocksDB's library takes a while to load, and --memory and --help need none.
    if memory:
        from hashrange.storage.memory import MemoryEngine

        return MemoryEngine()
    from hashrange.storage.embedded import EmbeddedEngine

    return EmbeddedEngine(data_dir)


def _why_not_listening(host: str, port: int, error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return (
            f"The host {host!r} is not known ({error.strerror}); give an address of this machine to --host."
        )
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use; stop what uses it, or choose another --port (0: any free)."
    if error.errno == errno.EACCES:
        return f"Port {port} on {host} is not permitted to this user; choose a --port above 1023."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine; give one that is to --host."
    return f"Listening on {host}, port {port}, failed: {error}"


def _welcome(endpoint_url: str, where: str, region: str) -> str:
    return f"""
Hashrange {__version__} serves {endpoint_url} (data: {where}). Try it:

    import boto3

    dynamodb = boto3.resource(
        "dynamodb", endpoint_url="{endpoint_url}", region_name="{region}",
        aws_access_key_id="any", aws_secret_access_key="any",
    )
    print([table.name for table in dynamodb.tables.all()])

Ctrl-C stops it.
"""
