"""`hashrange serve`: the server, from the command line and the environment."""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hashrange import __version__, form
from hashrange.cli import logs
from hashrange.cli.access.serving import STRICT, guard, new_token, refuse_if_open
from hashrange.cli.access.serving import options as access_options
from hashrange.cli.admin import bind_admin
from hashrange.cli.costs.serving import count
from hashrange.cli.costs.serving import options as cost_options
from hashrange.cli.serving.options import (
    FaultRules,
    Number,
    Sectioned,
    matching,
    moment,
    option,
    settings_options,
)
from hashrange.cli.serving.owners import warn_of_hidden_tables
from hashrange.cli.serving.protection import certificates_of, protection_options, watch_over
from hashrange.cli.serving.recording import record_options, recorded
from hashrange.cli.serving.welcome import Secrets, announce, is_open
from hashrange.cli.stores import needs_driver
from hashrange.clock import Clock, VirtualClock, show_moment
from hashrange.database import Caller, Database
from hashrange.files import descriptors
from hashrange.server import REQUESTS_LOGGER, Admin, Broken, ServerSettings, allocation, serve
from hashrange.server.admin.port import HOST
from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.storage.capabilities import Local, Remote, clock_of
from hashrange.storage.failures import StorageError

if TYPE_CHECKING:
    from hashrange.faults import Rule

DEFAULT_DATA_DIR: Final = Path("hashrange-data")
DEFAULT_PORT: Final = 8000
ADMIN_PORT_DISTANCE: Final = 100
"""The distance of the admin port above the port. It is large, so that servers may have neighbouring ports."""

_log = logging.getLogger(__name__)

_EPILOG: Final = """\b
Examples:
  hashrange serve                                 durable, in ./hashrange-data, on port 8000
  hashrange serve --memory --port 0               in memory only, on any free port
  hashrange serve --data-dir /var/lib/hashrange --log-format json
  hashrange serve --postgres postgresql://hashrange@db.example/hashrange
  hashrange serve --memory --virtual-clock        then: hashrange clock advance 7d
  hashrange serve --memory --fault 'PutItem table=orders nth=3 throttle'
  hashrange serve --auth strict --users users.yaml --host 0.0.0.0
  hashrange serve --tls-cert server.pem --tls-key server-key.pem

Every option has a variable: --port has HASHRANGE_PORT. docs/settings.md describes all options. After SIGTERM
or Ctrl-C the server finishes the running requests and stops; a second signal cuts them off. SIGHUP reads
--users again; from a terminal that is closed it stops the server as SIGTERM does. Without --auth
strict everybody who can reach --host has access, so any but a loopback address needs --auth strict or
--insecure. The admin port answers only this machine, unless --admin-host says otherwise; GET / on it lists
its endpoints."""
_PORT_MAX: Final = 65_535


@click.command("serve", epilog=_EPILOG, cls=Sectioned)
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
@option("--memory", is_flag=True, help="Keep everything in memory and nothing on disk.")
@option(
    "--postgres",
    metavar="URL",
    help="Keep everything in a PostgreSQL database, as postgresql://user@host/database, which any number of "
    "servers may share.  [default: none]",
)
@option(
    "--postgres-schema",
    default="hashrange",
    metavar="NAME",
    help="Schema in that database for the tables, created if it is missing.",
)
@option(
    "--postgres-answer-seconds",
    type=Number(float, 1),
    default=20.0,
    metavar="SECONDS",
    help="How long PostgreSQL may take to confirm a write or to answer a read. Then, at most four seconds "
    "later, the request ends with InternalServerError; the write was made once or not at all.",
)
@option(
    "--cache-mib",
    type=Number(int, 1),
    metavar="MIB",
    help="The most memory that the cache of data on disk, or of PostgreSQL's records, may use.  "
    "[default: an eighth of the memory, at least 128; 256 with --postgres]",
)
@option(
    "--region",
    default=Caller().region,
    callback=matching(r"[a-z0-9-]{1,64}", "a region, as us-east-1 is"),
    help="Region of callers whose credentials name none.",
)
@option(
    "--account-id",
    default=Caller().account_id,
    callback=matching(r"[0-9]{12}", "an account id: 12 digits"),
    help="Account of callers whose access key is not an account id.",
)
@access_options
@protection_options
@cost_options
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
    help="Refuse every change in the web console, and writes to the admin plane's /data. Other endpoints of "
    "the admin plane go on as before.",
)
@option(
    "--console-banner",
    default="",
    metavar="TEXT",
    help="A text on every page of the console, such as `production`.  [default: none]",
)
@option(
    "--virtual-clock",
    is_flag=True,
    help="Run the database on a clock that `hashrange clock` and the admin plane freeze, set and advance: "
    "expiry, streams, iterators and tokens follow it at once.",
)
@option(
    "--virtual-clock-start",
    callback=moment,
    metavar="TIME",
    help="The time that the virtual clock shows at the start, in ISO 8601; implies --virtual-clock.  "
    "[default: now]",
)
@option(
    "--fault",
    type=FaultRules(),
    multiple=True,
    help="A fault for requests, such as `PutItem table=orders nth=3 throttle`; `@FILE` for a file with one "
    "fault per line. May be given several times; see docs/faults.md.  [default: none]",
)
@record_options(option)
@settings_options(ServerSettings)
@settings_options(Settings)
def command(
    host: str,
    port: int,
    admin_port: int | None,
    admin_host: str,
    admin_token: str,
    console_read_only: bool,
    console_banner: str,
    data_dir: Path | None,
    memory: bool,
    postgres: str | None,
    postgres_schema: str,
    postgres_answer_seconds: float,
    cache_mib: int | None,
    region: str,
    account_id: str,
    log_format: str,
    log_level: str,
    log_requests: bool,
    virtual_clock: bool,
    virtual_clock_start: float | None,
    fault: tuple[list[Rule], ...],
    **limits: Any,
) -> None:
    """Serve DynamoDB's API to every AWS SDK, durably, until a signal stops it."""
    _check_stores({"--memory": memory, "--data-dir": bool(data_dir), "--postgres": bool(postgres)})
    _configure_logs(log_format, log_level, log_requests)
    server_settings, database_settings = _pick(ServerSettings, limits), _pick(Settings, limits)
    warns = _is_for_everybody(host, port, limits)
    _prepare_process()
    data_dir = None if memory or postgres is not None else data_dir or DEFAULT_DATA_DIR
    engine = _open(data_dir, postgres, postgres_schema, postgres_answer_seconds, cache_mib)
    virtual = virtual_clock or virtual_clock_start is not None
    clock = VirtualClock(virtual_clock_start, real=clock_of(engine)) if virtual else clock_of(engine)
    where = engine.connected_to if isinstance(engine, Remote) else str(data_dir or "memory")
    database = _over(engine, database_settings, clock, data_dir)
    with ExitStack() as stack:
        stack.callback(database.close)
        _arm(database, fault, limits)
        tls = certificates_of(limits)
        token = (admin_token or new_token(limits, log_format)) if admin_port != 0 else ""
        reload = guard(database, limits, data_dir, account_id, stack, can_make=token != "", secure=bool(tls))
        audit = watch_over(database, limits, stack)
        bind = partial(bind_admin, read_only=console_read_only, banner=console_banner, certificates=tls)
        admin = _bind_admin(bind, port, admin_port, admin_host, token)
        if admin is not None:
            stack.callback(admin.close)

        def started(endpoint_url: str) -> None:
            _keep(engine)
            fields = _facts(endpoint_url, engine, where, admin, clock if virtual else None, server_settings)
            secrets = Secrets(admin.console_link(), "" if admin_token else token) if admin else Secrets()
            announce(fields, region, log_format, secrets, host if warns else None, limits)

        with _errors_of_serving(host, port), recorded(database, limits, server_settings):
            serve(
                database,
                host=host,
                port=port,
                region=region,
                account_id=account_id,
                settings=server_settings,
                admin=admin,
                started=started,
                stopping=lambda reason: _log.info("stopping", extra={"fields": {"reason": reason}}),
                certificates=tls,
                audit=audit,
                reload=reload,
            )
    _log.info("stopped", extra={"fields": {"data": where}})


def _prepare_process() -> None:
    descriptors.raise_limit()
    allocation.share_one_arena(os.environ)


def _keep(engine: Engine) -> None:
    if isinstance(engine, Local):
        engine.discard(False)


def _is_for_everybody(host: str, port: int, given: dict[str, Any]) -> bool:
    """Whether everybody who can reach this machine may use the data, which has to be wanted."""
    with _errors_of_serving(host, port):
        reaches_out = is_open(host, port)
    refuse_if_open(host, given, is_open=reaches_out)
    return reaches_out and given["auth"] != STRICT


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


def _configure_logs(log_format: str, level: str, requests: bool) -> None:
    logs.configure(log_format, level, sys.stderr)
    if requests:
        logs.show(REQUESTS_LOGGER)


def _check_stores(stores: dict[str, bool]) -> None:
    """Refuse more than one of the options that say where the data is."""
    options = [option for option, is_given in stores.items() if is_given]
    if len(options) > 1:
        raise click.UsageError(f"{' and '.join(options)} say where the data is; give one of them.")


def _arm(database: Database, faults: tuple[list[Rule], ...], options: dict[str, Any]) -> None:
    """Put the fault rules in force, and count what requests cost, if the options say so."""
    count(database, options["costs"], options["prices"])
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
    except OSError as error:
        # The operator did not ask for this port, so the server must start even if another program has it.
        if admin_port is None and requested:
            return bind(0, host, token)
        why = _why_not_listening(host, requested, error, "--admin-port", "--admin-host")
        raise click.ClickException(why) from error


def _pick(settings: Any, values: dict[str, Any]) -> Any:
    try:
        return settings(**{field.name: values[field.name] for field in fields(settings)})
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _connect(url: str, schema: str, answer_seconds: float, cache_bytes: int | None) -> Engine:
    with needs_driver():
        from hashrange.storage.postgres import CACHE_BYTES, PostgresEngine
    try:
        return PostgresEngine(
            url, schema=schema, cache_bytes=cache_bytes or CACHE_BYTES, answer_seconds=answer_seconds
        )
    except StorageError as error:
        raise click.ClickException(str(error)) from error


def _open(
    data_dir: Path | None, postgres: str | None, schema: str, answer_seconds: float, cache_mib: int | None
) -> Engine:
    """The store in a directory, in PostgreSQL, or in memory where neither is given."""
    cache_bytes = None if cache_mib is None else cache_mib * 1024 * 1024
    if postgres is not None:
        return _connect(postgres, schema, answer_seconds, cache_bytes)
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
