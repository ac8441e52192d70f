"""The options of `hashrange serve` that protect a server on a network, and the parts that they make."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hashrange import __version__
from hashrange.cli.serving.options import Number, option
from hashrange.clock import SystemClock
from hashrange.database import Caller, Database
from hashrange.operations.context import scope_of
from hashrange.storage.failures import StorageError
from hashrange.tables.definitions import catalog

if TYPE_CHECKING:
    from hashrange.server.tls import Certificates
    from hashrange_access.audit import AuditLog

_FILE: Final = click.Path(path_type=Path, dir_okay=False)

_OPTIONS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    (
        "--tls-cert",
        {
            "type": _FILE,
            "metavar": "FILE",
            "help": "Certificate in PEM, with which both ports speak TLS only. Those between it and its "
            "authority follow in the file, which is read again when it changes; see docs/tls.md.  "
            "[default: none]",
        },
    ),
    (
        "--tls-key",
        {"type": _FILE, "metavar": "FILE", "help": "Key of --tls-cert, in PEM.  [default: none]"},
    ),
    (
        "--audit-log",
        {
            "type": _FILE,
            "metavar": "FILE",
            "help": "Log of who did what, in lines of JSON. Keys of items are hashed, other values never "
            "written; see docs/audit.md.  [default: none]",
        },
    ),
    (
        "--audit-log-bytes",
        {
            "type": Number(int, 1),
            "metavar": "BYTES",
            "default": 100 * 1024 * 1024,
            "help": "Size at which the audit log goes on in a new file.",
        },
    ),
    (
        "--audit-log-files",
        {
            "type": Number(int, 1),
            "metavar": "NUMBER",
            "default": 10,
            "help": "How many files of the audit log are kept.",
        },
    ),
    (
        "--requests-per-second-max",
        {
            "type": Number(float, 0),
            "metavar": "NUMBER",
            "help": "The most requests per second of each access key; more are refused with "
            "ThrottlingException.  [default: no limit]",
        },
    ),
    (
        "--requests-burst",
        {
            "type": Number(float, 1),
            "metavar": "NUMBER",
            "help": "How many requests a limited key may make at once.  [default: those of a second]",
        },
    ),
)


def protection_options(function: Any) -> Any:
    """The options of this module, whose values stay together."""
    decorators: list[Callable[[Any], Any]] = [option(name, **more) for name, more in _OPTIONS]
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def certificates_of(given: dict[str, Any]) -> Certificates | None:
    """The certificate of --tls-cert and --tls-key. Raises ClickException."""
    certificate, key = given["tls_cert"], given["tls_key"]
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "--tls-key" if key is None else "--tls-cert"
        raise click.UsageError(f"TLS needs a certificate and its key: give {missing} as well.")
    from hashrange.server.tls import CertificateError, Certificates

    try:
        return Certificates(certificate, key)
    except CertificateError as error:
        raise click.ClickException(str(error)) from error


def watch_over(database: Database, given: dict[str, Any], stack: ExitStack) -> AuditLog | None:
    """Limit the requests to a database, and log who makes them: the log, which `stack` closes, if there is
    one. Raises ClickException."""
    limit(given, database)
    audit = audit_of(given, database)
    if audit is not None:
        stack.callback(audit.close)
    return audit


def limit(given: dict[str, Any], database: Database) -> None:
    """Limit the requests of keys as --requests-per-second-max and the users file say."""
    per_second, burst = given["requests_per_second_max"], given["requests_burst"]
    if per_second == 0:
        raise click.UsageError("--requests-per-second-max is 0; without the option there is no limit.")
    if per_second is None and database.interest.gate is None:
        if burst is not None:
            raise click.UsageError("--requests-burst has no effect without --requests-per-second-max.")
        return
    from hashrange_access.rates import Limiter

    database.interest.limit(Limiter(per_second, burst, time.monotonic))


def audit_of(given: dict[str, Any], database: Database) -> AuditLog | None:
    """The audit log of --audit-log, which is open. Raises ClickException."""
    path = given["audit_log"]
    if path is None:
        return None
    from hashrange_access.audit import AuditError, AuditLog

    def key_names(table: str, caller: Caller) -> tuple[str, ...] | None:
        scope = scope_of(caller.account_id, caller.region, database.settings)
        try:
            described = database.engine.read(lambda reader: catalog.find(reader, table, scope))
        except StorageError:
            return None
        if described is None:
            return None
        return tuple(attribute.name for attribute in (*described.key.partition, *described.key.sort))

    bytes_max, files_max = given["audit_log_bytes"], given["audit_log_files"]
    log = AuditLog(path, SystemClock().now, key_names, bytes_max=bytes_max, files_max=files_max)
    try:
        log.open(__version__)
    except AuditError as error:
        raise click.ClickException(str(error)) from error
    return log
