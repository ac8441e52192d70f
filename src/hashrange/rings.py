"""Rings: all that a package may add to Hashrange, on one page.

A ring is a package around the core: the console, access, the lab, templates, triggers, the engine over
PostgreSQL, or one that you write (docs/rings.md has an example). The core imports no ring. It finds rings by
their entry points, each of which names a `Ring`:

    [project.entry-points."hashrange.rings"]
    console = "hashrange_console.ring:RING"

A `Ring` says what it adds by references such as ``"hashrange_console.routes:ENDPOINTS"``, which are imported
when they are first needed. So a ring costs nothing until it is used, and its module must import nothing but
this one. A ring imports only the modules of the core that `PUBLIC` names.

A ring that is not installed is not an error, and code that asks for a part of it learns what brings it
(`HOMES`). A ring that is installed and cannot be loaded is logged as an error, and shown by `hashrange
doctor`, `--version` and `/health`. If only a member of a ring fails, the ring lacks that member, the others
stay, and the log, doctor and `/health` say so (`Rings.broken`). A server does not start with an option of a
ring whose part of `serve` fails.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    from hashrange.cli.remote.clients import Clients
    from hashrange.database import Database
    from hashrange.operations.context import Caller
    from hashrange.server.admin.port import Admin
    from hashrange.storage.api import Engine
    from hashrange.storage.store_copy import CopyTarget

GROUP: Final = "hashrange.rings"
"""The group of the entry points."""

T = TypeVar("T")

Reference = str
"""``"module:name"``."""

_log = logging.getLogger(__name__)
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the program: `about` in a line, and its click.Command."""

    about: str
    command: Reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """What a ring adds. Each member says the type of what it refers to, and who uses it.

    commands: by name, the commands of the program.
        [console, access, lab, mcp, replication, sql, sync, triggers]
    serving: a `ServingPart`, the options of `hashrange serve` and what they mean.
        [access, console, lab, postgres, replication]
    options: the names of these options, for a server that cannot load them: it does not start with one.
    stores: by URL scheme, the `Stores` of an engine, for `check` and `copy`. [postgres]
    endpoints: a sequence of `server.admin.application.Endpoint`.
        [console, access, lab, replication, sync]
    pages: a `hashrange_console.pages.Pages`, pages that the console shows. [access, lab, sql, sync]
    paths: the paths at and below which these endpoints and pages are, for a plane that cannot load them.
    metrics: a function of a `server.admin.port.Subject` that returns `server.metrics` families.
        [lab, replication]
    health: a function of such a Subject that returns what `/health` shows by the ring's name, None for
        nothing; with a member "problem" the server is degraded. [replication]
    parts: by name, what a database has: a function of it. `Database.part` calls it once.
        [access, lab, replication]
    testing: by name, functions for tests in process: see `hashrange.testing`. [access, templates, triggers]
    forms: a `Forms`, the answers to requests of another service, which are forms. [access]
    follow: a `Follow`, for `hashrange pull --follow`. [sync]
    """

    name: str
    about: str
    commands: Mapping[str, Command] = field(default_factory=lambda: _NONE)
    serving: Reference = ""
    options: tuple[str, ...] = ()
    stores: Mapping[str, Reference] = field(default_factory=lambda: _NONE)
    endpoints: Reference = ""
    pages: Reference = ""
    paths: tuple[str, ...] = ()
    metrics: Reference = ""
    health: Reference = ""
    parts: Mapping[str, Reference] = field(default_factory=lambda: _NONE)
    testing: Mapping[str, Reference] = field(default_factory=lambda: _NONE)
    forms: Reference = ""
    follow: Reference = ""


# -- What the references refer to ---------------------------------------------------------------------------


@dataclass(slots=True)
class Starting:
    """A server that is about to start, as `ServingPart.begin` sees it, and may change it.

    `given` are the values of all options, by their parameters. `data_dir` is None without one. `secure`: the
    server speaks TLS. `has_token`: the admin plane has a token that somebody knows. What `stack` gets ends
    with the server. `reload` is called for a SIGHUP; `audit` gets what the server answers.
    """

    database: Database
    given: Mapping[str, Any]
    stack: ExitStack
    data_dir: Path | None
    account_id: str
    secure: bool
    has_token: bool
    reload: Callable[[], None] | None = None
    audit: Audit | None = None


class ServingPart:
    """A ring's part of `hashrange serve`; what a ring does not override does nothing."""

    options: Sequence[Callable[[Any], Any]] = ()
    """Decorators made by `cli.serving.options.option`."""
    store = ""
    """The option that says where the data is, in place of --data-dir; "" for none."""

    def engine(self, given: Mapping[str, Any], cache_bytes: int | None) -> Engine | None:
        """The engine that the options ask for, if they do. Raises click.ClickException."""
        return None

    def asks_for_keys(self, given: Mapping[str, Any]) -> bool:
        """Whether nobody has access without a key, so that the server may listen to other machines."""
        return False

    def begin(self, starting: Starting) -> None:
        """Do what the options say. Raises click.ClickException."""

    def bound(self, admin: Admin, given: Mapping[str, Any]) -> Mapping[str, str]:
        """The admin plane has its port. Returns what to print, by its titles, for the user who starts the
        server, and for nobody else. [console]"""
        return {}


class Stores(Protocol):
    """An engine's stores as `hashrange check` and `hashrange copy` see them. They raise StorageError, and
    click.ClickException for a driver that is not installed."""

    def snapshot(self, url: str, schema: str) -> Any:
        """The store at one moment: `hashrange_postgres.snapshot.Snapshot` shows the form."""
        ...

    def target(self, url: str, schema: str) -> CopyTarget:
        """A new store, to be filled."""
        ...


class Gate(Protocol):
    """Decides whose requests are served: `Observers.gate`, which a ring sets. Thread-safe.

    `identifies`: senders are identified by their signatures. `strict`: others are refused.
    """

    @property
    def identifies(self) -> bool: ...

    @property
    def strict(self) -> bool: ...

    def admit(
        self,
        caller: Caller,
        method: bytes,
        target: bytes,
        headers: Mapping[bytes, bytes],
        body: bytes | bytearray,
    ) -> Caller:
        """The sender of a request, as it is from now on. Raises ServiceError for one that is refused."""
        ...

    def operator(
        self, method: bytes, target: bytes, headers: Mapping[bytes, bytes], body: bytes | bytearray
    ) -> Operator:
        """Who has signed a request to the admin plane. Raises ServiceError."""
        ...

    def still_operates(self, operator: Operator) -> bool:
        """Whether an operator's key counts at the moment, and gives the same role."""
        ...


class Operator(Protocol):
    """A user of the admin plane, with a role of `server.admin.roles`."""

    @property
    def key_id(self) -> str: ...

    @property
    def arn(self) -> str: ...

    @property
    def role(self) -> str: ...


class Audit(Protocol):
    """The log of who did what, for `server.trace` and the admin plane. Thread-safe. Counts its entries:
    those that are written, those for which there was no room, and those of which only a part is written."""

    problem: str
    """Why nothing can be written; "" if nothing fails."""
    written: int
    lost: int
    incomplete: int

    def note(self, caller: Caller, operation: str, request: Mapping[str, Any], peer: str) -> object:
        """What the log needs to know of a request, which may have any form: a large one is freed before its
        answer."""
        ...

    def ended(self, noted: object, error: Exception | None, request_id: str) -> None:
        """A call has ended."""
        ...

    def refused(self, operation: str, access_key: str, code: str, peer: str, request_id: str) -> None:
        """A request was refused before it was a call."""
        ...

    def operated(
        self, operation: str, by: Mapping[str, Any], peer: str, status: int, *, denied: bool
    ) -> None:
        """A request to the admin plane that may change something was answered."""
        ...


class Forms(Protocol):
    """Answers the form of another service; None for one that it does not know. `caller` is who the request's
    credentials say that he is, and may raise ServiceError. `now` is the machine's time."""

    def __call__(
        self,
        sent: Sent,
        caller: Callable[[], Caller],
        gate: Gate | None,
        now: Callable[[], float],
        request_id: bytes,
    ) -> Formed | None: ...


class Follow(Protocol):
    """Keeps tables equal with those of a source, whose names come first, until a signal. Nothing is written
    to the source. Raises click.ClickException."""

    def __call__(self, source: Clients, target: Clients, tables: Mapping[str, str]) -> None: ...


class Sent(NamedTuple):
    """A request as it was sent. The names of headers are in lower case."""

    method: bytes
    target: bytes
    headers: Mapping[bytes, bytes]
    body: bytes | bytearray


@dataclass(frozen=True, slots=True)
class Formed:
    """The answer to a form; `error` is its error's code, or ""."""

    status: int
    body: bytes
    error: str
    request_id: bytes


class Policy(Protocol):
    """An IAM policy in a block of tests, by which requests are judged, or into which they are recorded:
    made of a document or several, the name of the user, and the path to record to."""

    @property
    def identified(self) -> Callable[[str], Any]:
        """Returns the `Caller.identified` of the user in an account."""
        ...

    def begin(self, database: Database) -> None: ...

    def end(self, database: Database) -> None: ...


class Trigger(Protocol):
    """A function of a test that gets the changes of a table: see `LocalDatabase.trigger`. It counts its calls
    and the records that were delivered, and has those that were given up."""

    @property
    def table(self) -> str: ...

    @property
    def calls(self) -> int: ...

    @property
    def delivered(self) -> int: ...

    @property
    def given_up(self) -> Sequence[Mapping[str, Any]]: ...

    def run(self) -> bool:
        """Deliver the changes so far; whether there were any."""
        ...

    def positions(self) -> Any:
        """Where it is in its stream, for `go_back`."""
        ...

    def go_back(self, positions: Any) -> None: ...


# -- What rings may import ----------------------------------------------------------------------------------

_PUBLIC: Final = (
    "buckets", "buckets.folders", "buckets.s3", "cli.forms", "cli.logs", "cli.remote.asking",
    "cli.remote.batches", "cli.remote.clients", "cli.remote.connecting", "cli.remote.past",
    "cli.remote.progress", "cli.serving.options", "cli.serving.serve", "clock", "costs.table", "credentials",
    "database", "encoding", "errors", "expressions.lexer", "expressions.tree", "faults", "faults.effects",
    "files.durable", "files.regular", "insights.contributors", "insights.sketch", "insights.throttled",
    "interchange.csv_files", "interchange.csv_types", "interchange.descriptions", "interchange.item_texts",
    "interchange.lines", "interchange.plain_json", "interchange.rows", "limits", "observing.observer",
    "observing.patterns", "operations", "operations.backups.recovery", "operations.context",
    "operations.policies.documents", "operations.policies.operators",
    "operations.statements.batch_execute_statement", "operations.tables.throughput", "operations.targets",
    "operations.throttling", "operations.travel", "pace", "pace.workers", "partiql", "partiql.access",
    "partiql.statements", "partiql.tokens", "prices", "prices.money", "prices.rates", "rings", "server",
    "server.admin.application", "server.admin.aside", "server.admin.attention", "server.admin.clock",
    "server.admin.data", "server.admin.destinations", "server.admin.faults", "server.admin.guard",
    "server.admin.port", "server.admin.roles", "server.admin.tables", "server.metrics", "server.run",
    "settings", "shapes", "shapes.streams", "shapes.vocabulary", "storage.api", "storage.capabilities",
    "storage.embedded", "storage.embedded.files.mark", "storage.embedded.offline.replay", "storage.failures",
    "storage.features", "storage.loops", "storage.merging", "storage.store_copy",
    "tables.definitions.catalog", "tables.definitions.table", "tables.inspection.check",
    "tables.items.capacity", "tables.items.indexes", "tables.items.keys", "tables.items.records",
    "tables.items.vectors", "tables.jobs.job_records", "tables.reads.sources", "tables.spaces",
    "tables.streams", "tables.writes.lag", "testing.database", "testing.declarations", "values",
    "values.numbers",
)  # fmt: skip
PUBLIC: Final = frozenset({"hashrange", *[f"hashrange.{name}" for name in _PUBLIC]})
"""The modules of the core that rings may import. Others change without notice. A test compares the list with
what rings import; a ring that needs one more adds the module here."""


# -- Which rings there are ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Home:
    """A ring of this project, whether it is installed or not: what the users miss without it."""

    brings: str
    commands: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


_WITH_THE_SERVER: Final = "install the package hashrange again, which has it"
_MCP: Final = "install the package hashrange-mcp (packages/mcp in a checkout)"
_SQL: Final = "install the package hashrange-sql (packages/sql in a checkout)"
_POSTGRES: Final = "install the package hashrange-postgres (packages/postgres in a checkout)"
_REPLICATION: Final = "install the package hashrange-replication (packages/replication in a checkout)"
_SYNC: Final = "install the package hashrange-sync (packages/sync in a checkout)"
HOMES: Final[Mapping[str, Home]] = {
    "access": Home(_WITH_THE_SERVER, ("audit", "key", "policy"), (
        "--auth", "--users", "--key-file", "--root-access-key-id", "--root-secret-access-key", "--audit-log",
        "--audit-log-bytes", "--audit-log-files", "--requests-per-second-max", "--requests-burst",
    ), ("/v1/access-keys", "/console/access")),
    "console": Home(_WITH_THE_SERVER, ("console",), ("--console-banner",), ("/console", "/v1/console-link")),
    "lab": Home(_WITH_THE_SERVER, ("costs", "lab", "load", "record", "replay", "top"), (
        "--costs", "--prices", "--record", "--record-values", "--record-dir", "--record-bytes-max",
    ), (
        "/v1/costs", "/v1/heat", "/v1/lab", "/v1/recording",
        "/console/capacity", "/console/costs", "/console/heat", "/console/lab",
    )),
    "mcp": Home(_MCP, ("mcp",)),
    "sql": Home(_SQL, ("sql",), (), ("/console/sql",)),
    "sync": Home(_SYNC, ("sync",), (), ("/v1/sync", "/console/sync")),
    "templates": Home(_WITH_THE_SERVER),
    "triggers": Home(_WITH_THE_SERVER, ("stream", "trigger")),
    "postgres": Home(_POSTGRES, (), (
        "--postgres", "--postgres-schema", "--postgres-answer-seconds",
    )),
    "replication": Home(_REPLICATION, ("replica", "standby"), (
        "--copy-to", "--copy-ack", "--copy-key-file", "--copy-spool-bytes", "--copy-retention", "--standby",
        "--promote-after",
    ), ("/v1/promote",)),
}  # fmt: skip
"""The rings of this project. Tests compare them with the rings themselves."""


class Missing(Exception):
    """Something needs a ring that is not installed, or cannot be loaded; the text says what brings it."""


_MEMBERS: Final = (
    "commands", "serving", "stores", "endpoints", "pages", "metrics", "health", "parts", "testing", "forms",
    "follow",
)  # fmt: skip
"""The members of `Ring` that are references, or have them."""


def _itself(held: Any) -> Any:
    return held


class Rings:
    """The rings of this environment.

    `installed`: by name. `failed`: the errors of rings that cannot be loaded, by name. `broken`: the errors
    of members of installed rings, by the ring's name and the member ("metrics", "parts recordings").
    """

    def __init__(self) -> None:
        self.installed: dict[str, Ring] = {}
        self.failed: dict[str, str] = {}
        self.broken: dict[tuple[str, str], str] = {}
        # Imported here, because this takes long, and a database of a test needs no ring.
        from importlib import metadata

        for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
            try:
                self._add(entry.load())
            except Exception as error:
                if isinstance(error, ModuleNotFoundError) and error.name == entry.module.partition(".")[0]:
                    continue  # (its package was deleted)
                self.failed[entry.name] = f"{type(error).__name__}: {error}"
                fields = {"ring": entry.name, "module": entry.module}
                _log.error("a ring cannot be loaded", exc_info=error, extra={"fields": fields})

    def _add(self, ring: object) -> None:
        if not isinstance(ring, Ring):
            raise TypeError(f"{ring!r} is not a hashrange.rings.Ring")
        self.installed[ring.name] = ring

    def commands(self) -> dict[str, Command]:
        """The commands of all rings, by name."""
        return {name: command for ring in self.installed.values() for name, command in ring.commands.items()}

    def each(self, member: str, use: Callable[[Any], T] = _itself) -> dict[str, T]:
        """What `use` makes of what the rings that have a `member` of `Ring` refer to by it; by the names of
        the rings, in their order. An error of one ring costs this ring's member only: see `lose`."""
        made = {}
        for ring in self.installed.values():
            if reference := getattr(ring, member):
                try:
                    made[ring.name] = use(load(reference))
                except Exception as error:
                    self.lose(ring.name, member, error)
                else:
                    self.broken.pop((ring.name, member), None)
        return made

    def find(self, member: str, name: str = "") -> Any:
        """What the one ring that has a `member` refers to by it, or by its `name` in it; None: no ring.
        Raises Missing if it cannot be loaded."""
        for ring in self.installed.values():
            held = getattr(ring, member)
            reference = held.get(name, "") if name else held
            reference = getattr(reference, "command", reference)
            if reference:
                try:
                    return load(reference)
                except Exception as error:
                    self.lose(ring.name, f"{member} {name}".strip(), error)
                    raise self.missing(ring.name) from error
        return None

    def lose(self, ring: str, member: str, error: Exception) -> None:
        """A member of a ring has failed: it is `broken`, and the log says so once for each error."""
        why = f"{type(error).__name__}: {error}"
        if self.broken.get((ring, member)) != why:
            self.broken[ring, member] = why
            fields = {"ring": ring, "member": member, "error": why}
            _log.error("a part of a ring failed", exc_info=error, extra={"fields": fields})

    def examine(self) -> None:
        """Load all that the rings refer to, and so find what is `broken`. What tests use is left out: that
        needs libraries of tests."""
        for ring in self.installed.values():
            for member in _MEMBERS:
                held = getattr(ring, member)
                named: Mapping[str, Any] = held if isinstance(held, Mapping) else {"": held} if held else {}
                for name in named if member != "testing" else ():
                    try:
                        load(getattr(named[name], "command", named[name]))
                    except Exception as error:
                        self.lose(ring.name, f"{member} {name}".strip(), error)

    def troubles(self) -> dict[str, str]:
        """Why rings, or some of their members, cannot be used; by the names of the rings."""
        found = dict(self.failed)
        for (ring, member), why in sorted(self.broken.items()):
            found[ring] = f"{found[ring]}; {member}: {why}" if ring in found else f"{member}: {why}"
        return found

    def options(self) -> dict[str, str]:
        """The ring of each option of `hashrange serve`, whether the ring is installed or not."""
        known: dict[str, Home | Ring] = {**HOMES, **self.installed}
        return {option: name for name, ring in known.items() for option in ring.options}

    def absent_at(self, path: str) -> str | None:
        """The ring to which a path of the admin plane belongs, if the ring's endpoints are not there."""
        known: dict[str, Home | Ring] = {**HOMES, **self.installed}
        below = {
            prefix: name
            for name, ring in known.items()
            for prefix in ring.paths
            if path == prefix or path.startswith(f"{prefix}/")
        }
        if not below:
            return None
        ring = below[max(below, key=len)]
        is_there = ring in self.installed and not {(ring, "endpoints"), (ring, "pages")} & self.broken.keys()
        return None if is_there else ring

    def why_missing(self, name: str) -> str:
        """Why the ring `name`, or a part of it, is not there, and what to do, for users."""
        called = f"the ring {name}"
        brings = HOMES[name].brings if name in HOMES else f"install the package of {name} again"
        why = self.troubles().get(name)
        lacks = f"cannot be loaded ({why})" if why else "is not installed"
        return f"{called} {lacks}; {brings}"

    def missing(self, name: str) -> Missing:
        """The error for who needs the ring."""
        why = self.why_missing(name)
        return Missing(f"{why[0].upper()}{why[1:]}.")


@cache
def rings() -> Rings:
    """The rings of this environment, which are looked for at the first call."""
    return Rings()


def needed(ring: str, member: str, name: str = "") -> Any:
    """What a ring of this project refers to. Raises Missing without the ring."""
    found = rings().find(member, name)
    if found is None:
        raise rings().missing(ring)
    return found


def load(reference: Reference) -> Any:
    """What a reference refers to."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)
