"""`hashrange serve`: the server, from the command line and the environment."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from hashrange import __version__, form
from hashrange.cli import logs
from hashrange.cli.admin import bind_admin
from hashrange.cli.forms import Size
from hashrange.cli.serving.options import (
    FaultRules,
    Number,
    Sectioned,
    matching,
    moment,
    option,
    ring_options,
    settings_options,
)
from hashrange.cli.serving.owners import warn_of_hidden_tables
from hashrange.cli.serving.parts import Parts
from hashrange.cli.serving.settings_file import settings_of_file
from hashrange.cli.serving.tls import certificates_of, tls_options
from hashrange.cli.serving.welcome import Secrets, announce, check_free, is_open
from hashrange.clock import Clock, FastClock, VirtualClock, show_moment
from hashrange.database import Caller, Database
from hashrange.files import descriptors
from hashrange.rings import Starting, rings
from hashrange.server import REQUESTS_LOGGER, Admin, Broken, ServerSettings, allocation, serve
from hashrange.server.admin.port import HOST
from hashrange.settings import LIKE_AWS_FAST, Settings, waves
from hashrange.settings import like_aws as settings_like_aws
from hashrange.storage.api import Engine
from hashrange.storage.capabilities import Local, Remote, clock_of
from hashrange.storage.failures import StorageError

if TYPE_CHECKING:
    from hashrange.faults import Rule

DEFAULT_DATA_DIR: Final = Path("hashrange-data")
DEFAULT_PORT: Final = 8000
ADMIN_PORT_DISTANCE: Final = 100
"""The distance of the admin port above the port. It is large, so that servers may have neighbouring ports."""

_TOKEN_BYTES: Final = 24

_log = logging.getLogger(__name__)

_EPILOG: Final = """\b
Examples:
  hashrange serve                                 durable, in ./hashrange-data, on port 8000
  hashrange serve --memory --port 0               in memory only, on any free port
  hashrange serve --data-dir /var/lib/hashrange --log-format json
  hashrange serve --postgres postgresql://hashrange@db.example/hashrange
  hashrange serve --memory --virtual-clock        then: hashrange clock advance 7d
  hashrange serve --memory --fault 'PutItem table=orders nth=3 throttle'
  hashrange serve --config hashrange.toml         all settings from a file; see hashrange config
  hashrange serve --auth strict --users users.yaml --host 0.0.0.0
  hashrange serve --tls-cert server.pem --tls-key server-key.pem

These are the everyday options. `hashrange config show` lists all settings, and docs/settings.md describes
them. Set each in the --config file, by a variable (--port has HASHRANGE_PORT), or on the command line. After
SIGTERM or Ctrl-C the server finishes the running requests and stops; a second signal ends these requests.
SIGHUP reads --users again, but stops the server if its terminal was closed. Without --auth strict every
client that can reach --host has access, so any but a loopback address needs --auth strict or --insecure. The
admin port answers only this machine, unless --admin-host says otherwise; GET /v1 lists its endpoints."""
_PORT_MAX: Final = 65_535


@click.command("serve", epilog=_EPILOG, cls=Sectioned)
@option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    is_eager=True,
    callback=settings_of_file,
    help="A file of settings in TOML, such as `port = 8001`: every option, with underscores in its name. "
    "The command line and variables take precedence; see `hashrange config`.  [default: none]",
)
@option(
    "--host",
    default="127.0.0.1",
    help="Address to listen on. Any but a loopback address needs --auth strict or --insecure.",
)
@option(
    "--port",
    type=Number(int, 0, _PORT_MAX),
    metavar="PORT",
    default=DEFAULT_PORT,
    help="Port to listen on; 0 takes a free one.",
)
@option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help=f"Directory of the data, created if it is missing.  [default: ./{DEFAULT_DATA_DIR}]",
)
@option("--memory", is_flag=True, help="Keep all data in memory and none on disk.")
@option(
    "--cache",
    type=Size(1 << 20),
    help="The most memory that the cache of data on disk, or of PostgreSQL's records, may use.  "
    "[default: an eighth of the memory, at least 128MiB; 256MiB with --postgres]",
)
@option(
    "--region",
    default=Caller().region,
    callback=matching(r"[a-z0-9-]{1,64}", "a region, as us-east-1 is"),
    help="Region of requests without a signature.",
)
@option(
    "--account-id",
    default=Caller().account_id,
    callback=matching(r"[0-9]{12}", "an account id: 12 digits"),
    help="Account of callers whose access key is not an account id.",
)
@option(
    "--insecure",
    is_flag=True,
    help="Serve other machines without --auth strict; see `--host`.",
)
@tls_options
@option("--log-format", type=click.Choice(logs.FORMATS), default="text", help="How log lines look.")
@option(
    "--log-level", type=click.Choice(logs.LEVELS), default="info", help="The lowest level that is logged."
)
@option(
    "--log-requests",
    is_flag=True,
    help="Log each request: operation, table, status, time and consumed units, never values.",
)
@option(
    "--admin-port",
    type=Number(int, 0, _PORT_MAX),
    metavar="PORT",
    help="Port of the admin plane; 0 for none.  "
    f"[default: {ADMIN_PORT_DISTANCE} above --port, or a free one]",
)
@option(
    "--admin-host",
    default=HOST,
    help="Address of the admin plane; any but a loopback address needs --admin-token or --auth strict.",
)
@option(
    "--admin-token",
    default="",
    metavar="TOKEN",
    help="The token without which the admin plane refuses requests. Clients send it as `Authorization: "
    "Bearer TOKEN`. Prefer the variable, here and for commands such as `hashrange clock`.  [default: none; "
    "with --auth strict one that is made and printed at the start]",
)
@option(
    "--console-read-only",
    is_flag=True,
    help="Refuse every change in the web console, and writes to the admin plane's /v1/data. Other endpoints "
    "of the admin plane go on as before.",
)
@option(
    "--virtual-clock",
    is_flag=True,
    help="Run the database on a clock that `hashrange clock` and the admin plane freeze, set and advance: "
    "expiry, streams, iterators and tokens follow the clock at once.",
)
@option(
    "--virtual-clock-start",
    callback=moment,
    metavar="TIME",
    help="The time that the virtual clock shows at the start, in ISO 8601; implies --virtual-clock.  "
    "[default: now]",
)
@option(
    "--like-aws",
    type=click.Choice(["off", "real", "fast"]),
    metavar="MODE",
    default="off",
    is_flag=False,
    flag_value="real",
    help="Be as slow, eventual and strict as AWS, in all settings that you do not give. With `fast` the "
    f"database's clock runs {LIKE_AWS_FAST:.0f} times as fast; see docs/like-aws.md.",
)
@option(
    "--fault",
    type=FaultRules(),
    multiple=True,
    help="A fault for requests, such as `PutItem table=orders nth=3 throttle`; `@FILE` for a file with one "
    "fault per line. May be given several times; see docs/faults.md.  [default: none]",
)
@option(
    "--older-words",
    is_flag=True,
    hidden=True,
    help=f"An older name of `--words {waves.OLDEST}`, which the next release will not have.",
)
@ring_options
@settings_options(ServerSettings)
@settings_options(Settings)
def command(
    host: str,
    port: int,
    admin_port: int | None,
    admin_host: str,
    admin_token: str,
    console_read_only: bool,
    data_dir: Path | None,
    memory: bool,
    cache: int | None,
    region: str,
    account_id: str,
    log_format: str,
    log_level: str,
    log_requests: bool,
    virtual_clock: bool,
    virtual_clock_start: float | None,
    like_aws: str,
    fault: tuple[list[Rule], ...],
    **given: Any,
) -> None:
    """Run a durable server with DynamoDB's API, for every AWS SDK."""
    parts = Parts(given, click.get_current_context())
    stored = parts.stores()
    _check_stores({"--memory": memory, "--data-dir": bool(data_dir), **stored})
    _configure_logs(log_format, log_level, log_requests)
    server_settings = _pick(ServerSettings, given)
    database_settings = _database_settings(given, like_aws, memory)
    asks_for_keys = parts.ask_for_keys()
    warns = _is_for_everybody(host, port, given["insecure"], asks_for_keys)
    _check_ports(host, port, admin_host, admin_port)
    _prepare_process()
    data_dir = None if memory or any(stored.values()) else data_dir or DEFAULT_DATA_DIR
    engine = _open(data_dir, cache, parts)
    virtual = virtual_clock or virtual_clock_start is not None
    clock = _clock(engine, like_aws == "fast", virtual, virtual_clock_start)
    where = engine.connected_to if isinstance(engine, Remote) else str(data_dir or "memory")
    database = _over(engine, database_settings, clock, data_dir)
    with ExitStack() as stack:
        stack.callback(database.close)
        _arm(database, fault)
        tls = certificates_of(given)
        token = _token(admin_port, admin_token, makes=asks_for_keys and log_format == "text")
        starting = Starting(database, given, stack, data_dir, account_id, tls is not None, token != "")
        parts.begin(starting)
        bind = partial(bind_admin, read_only=console_read_only, certificates=tls)
        admin = _bind_admin(bind, port, admin_port, admin_host, token)
        shown = Secrets(_introduce(admin, parts, stack), "" if admin_token else token)

        def started(endpoint_url: str) -> None:
            _keep(engine)
            fields = _facts(endpoint_url, engine, where, admin, clock if virtual else None, server_settings)
            announce(fields, region, log_format, shown, host if warns else None, asks_for_keys)

        with _errors_of_serving(host, port):
            serve(
                database,
                host=host,
                port=port,
                region=region,
                account_id=account_id,
                settings=server_settings,
                admin=admin,
                started=started,
                stopping=_stopping,
                certificates=tls,
                audit=starting.audit,
                reload=starting.reload,
            )
    _log.info("stopped", extra={"fields": {"data": where}})


def _clock(engine: Engine, is_fast: bool, is_virtual: bool, start: float | None) -> Clock:
    """The clock of the database, on which a virtual one is set to `start`."""
    real = FastClock(clock_of(engine), LIKE_AWS_FAST) if is_fast else clock_of(engine)
    return VirtualClock(start, real=real) if is_virtual else real


def words_of(words: str, *, older: bool) -> str:
    """The words that --words names, or those that --older-words stands for if it is given (`older`)."""
    if not older:
        return words
    if words not in (waves.DEFAULT, waves.OLDEST):
        raise click.UsageError("--older-words and --words both choose error texts; give --words only.")
    _log.warning("--older-words is deprecated", extra={"fields": {"instead": f"--words {waves.OLDEST}"}})
    return waves.OLDEST


def _token(admin_port: int | None, given: str, *, makes: bool) -> str:
    """The token of the admin plane, a new one if the server `makes` one: a user of the plane can make
    keys of the root user."""
    if admin_port == 0:
        return ""
    return given or (secrets.token_urlsafe(_TOKEN_BYTES) if makes else "")


def _stopping(reason: str) -> None:
    _log.info("stopping", extra={"fields": {"reason": reason}})


def _database_settings(given: dict[str, Any], mode: str, memory: bool) -> Settings:
    """The settings of the database; with `mode`, those of the service in place of the ones not given."""
    words = words_of(given["words"], older=given["older_words"])
    settings: Settings = _pick(Settings, given | {"words": words})
    if mode == "fast" and not memory:
        raise click.UsageError(
            "--like-aws=fast needs --memory: its clock runs ahead, and a restart would set the clock back."
        )
    if mode == "off":
        return settings
    ctx = click.get_current_context()
    named = [name for name in ctx.params if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT]
    return settings_like_aws(settings, named)


def _introduce(admin: Admin | None, parts: Parts, stack: ExitStack) -> dict[str, str]:
    """Show the admin plane, if there is one, to the rings. Returns what they say to who starts the server."""
    if admin is None:
        return {}
    stack.callback(admin.close)
    return parts.bound(admin)


def _keep(engine: Engine) -> None:
    if isinstance(engine, Local):
        engine.discard(False)


def _is_for_everybody(host: str, port: int, is_wanted: bool, asks_for_keys: bool) -> bool:
    """Whether everybody who can reach this machine may use the data, which has to be wanted."""
    with _errors_of_serving(host, port):
        is_for_everybody = is_open(host, port) and not asks_for_keys
    if is_for_everybody and not is_wanted:
        raise click.UsageError(
            f"With --host {host} other machines can reach the server, and anyone can read and change "
            "all data. Add --auth strict, which admits only users with a key, or --insecure, if you "
            "trust every machine that can reach it."
        )
    return is_for_everybody


def _prepare_process() -> None:
    descriptors.raise_limit()
    allocation.share_one_arena(os.environ)


def _check_ports(host: str, port: int, admin_host: str, admin_port: int | None) -> None:
    """Refuse ports that cannot be had, while no file is there that the server would leave behind."""
    with _errors_of_serving(host, port):
        check_free(host, port)
    if admin_port:
        with _errors_of_admin(admin_host, admin_port):
            check_free(admin_host, admin_port)


def _facts(
    endpoint: str,
    engine: Engine,
    data: str,
    admin: Admin | None,
    clock: Clock | None,
    settings: ServerSettings,
) -> dict[str, Any]:
    """What a server says of itself when it starts. `clock` is a virtual one."""
    facts: dict[str, Any] = {"endpoint": endpoint, "engine": engine.name, "data": data}
    facts |= {"version": __version__, "hot_path": form()}
    if admin is not None:
        facts["admin"] = admin.url
    if clock is not None:
        facts["clock"] = show_moment(clock.now())
    facts["descriptors_max"] = descriptors.descriptors_max()
    facts["connections_max"] = descriptors.connections_max(settings.connections_max)
    return facts


@contextmanager
def _errors_of_serving(host: str, port: int) -> Iterator[None]:
    """Turn the errors that end a server into lines for its operator."""
    try:
        yield
    except (OSError, Broken) as error:
        raise click.ClickException(_why_not_listening(host, port, error, "--port")) from error


@contextmanager
def _errors_of_admin(host: str, port: int) -> Iterator[None]:
    """The same, for those of the admin plane."""
    try:
        yield
    except OSError as error:
        why = _why_not_listening(host, port, error, "--admin-port", "--admin-host")
        raise click.ClickException(why) from error


def _configure_logs(log_format: str, level: str, requests: bool) -> None:
    logs.configure(log_format, level, sys.stderr)
    if requests:
        logs.show(REQUESTS_LOGGER)
    for ring, why in rings().troubles().items():
        _log.error("a ring cannot be loaded", extra={"fields": {"ring": ring, "error": why}})


def _check_stores(stores: dict[str, bool]) -> None:
    """Refuse more than one of the options that say where the data is."""
    options = [option for option, is_given in stores.items() if is_given]
    if len(options) > 1:
        raise click.UsageError(f"{' and '.join(options)} both name the place of the data; give one of them.")


def _arm(database: Database, faults: tuple[list[Rule], ...]) -> None:
    """Put the fault rules in force."""
    from hashrange.faults import show

    try:
        for rule in [rule for rules in faults for rule in rules]:
            armed = database.faults.add(rule)
            _log.warning("fault in force", extra={"fields": {"rule": show(armed.rule)}})
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _bind_admin(
    bind: Callable[[int, str, str], Admin], port: int, admin_port: int | None, host: str, token: str
) -> Admin | None:
    """The admin plane, on the requested port; without one, on the default port or any free port. `bind` is
    `bind_admin`."""
    if admin_port == 0:
        return None
    requested = admin_port
    if requested is None:
        usual = port + ADMIN_PORT_DISTANCE
        requested = usual if port and usual <= _PORT_MAX else 0
    try:
        return bind(requested, host, token)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except OSError:
        # The operator did not ask for this port, so the server must start even if another program has it.
        if admin_port is None and requested:
            return bind(0, host, token)
        with _errors_of_admin(host, requested):
            raise


def _pick(settings: Any, values: dict[str, Any]) -> Any:
    try:
        return settings(**{field.name: values[field.name] for field in fields(settings)})
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _open(data_dir: Path | None, cache_bytes: int | None, parts: Parts) -> Engine:
    """The store of a ring, if the options name one; else that in a directory, or in memory."""
    if (made := parts.engine(cache_bytes)) is not None:
        return made
    # Imported here because RocksDB's library takes a while to load, and --memory and --help need none.
    if data_dir is None:
        from hashrange.storage.memory import MemoryEngine

        return MemoryEngine()
    from hashrange.storage.embedded import EmbeddedEngine

    os.umask(0o077)  # only the owner may read the files that RocksDB writes
    try:
        engine = EmbeddedEngine(data_dir, cache_bytes=cache_bytes)
    except StorageError as error:
        raise click.ClickException(str(error)) from error
    engine.discard(True)  # until the server has an endpoint: one that fails before leaves nothing behind
    return engine


def _over(engine: Engine, settings: Settings, clock: Clock, data_dir: Path | None) -> Database:
    if data_dir is not None:
        settings = settings.with_data_dir(str(data_dir))
    database = Database(engine, settings=settings, clock=clock)
    try:
        warn_of_hidden_tables(database)
    except StorageError as error:
        database.close()
        raise click.ClickException(str(error)) from error
    return database


def _why_not_listening(
    host: str, port: int, error: OSError | Broken, option: str, host_option: str = "--host"
) -> str:
    if isinstance(error, Broken):
        return str(error)
    if isinstance(error, socket.gaierror):
        return (
            f"The host {host!r} is not known ({error.strerror}); give an address of this machine to "
            f"{host_option}."
        )
    if error.errno == errno.EADDRINUSE:
        free = "any free" if option == "--port" else "none"
        return f"Port {port} on {host} is in use; stop what uses it, or choose another {option} (0: {free})."
    if error.errno == errno.EACCES:
        return f"Port {port} on {host} is not permitted to this user; choose a {option} above 1023."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine; give one that is to {host_option}."
    return f"Listening on {host}, port {port}, failed: {error}"
