"""Everything that looks at requests, all at once, beside a database that nobody looks at.

    python -m hostile.onlookers --mutations 100000

Each broken request goes, byte for byte, to four databases with connections of their own, on one thread:

    bare      nobody looks on
    soft      all onlookers; a user with a genuine key and no rights, whose requests are only judged
    strict    all onlookers, and hashed values in the recording; a user who may do everything
    denied    all onlookers; a user with a genuine key and no rights, who is refused

The first three must give the same bytes, apart from the ids of requests, and `denied` a proper answer. Clocks
stand still and identifiers are counted, so equal databases have equal answers. In the end no onlooker has
failed, the audit log and the recording have every request, and `check` finds nothing in the stores.
"""

from __future__ import annotations

import argparse
import logging
import queue
import re
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final

import botocore.session
import msgspec
import orjson
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from hashrange.clock import SystemClock, VirtualClock
from hashrange.database import Database
from hashrange.insights.contributors import Contributors
from hashrange.operations import REGISTRY
from hashrange.prices import published
from hashrange.protocol import Wire
from hashrange.server import REQUESTS_LOGGER
from hashrange.server.admin.port import Subject
from hashrange.server.frames import Frames
from hashrange.server.http import Connection
from hashrange.server.plane import Plane
from hashrange.server.settings import ServerSettings
from hashrange.server.trace import Tracer
from hashrange.settings import Settings
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Insights, Table
from hashrange.tables.inspection.check import check
from hashrange_access.commands.serving import opened_log
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.rates import Limiter
from hashrange_access.users import read
from hashrange_console.entities.recorded import Uses
from hashrange_console.live.feed import Feed, RequestFilter, Viewer
from hashrange_lab.heat import Heat
from hashrange_lab.money import meter
from hashrange_lab.recordings import reader
from hashrange_lab.recordings.recording import Recording
from hostile import seeds
from hostile.answers import find_fault
from hostile.material import LEVELS
from hostile.mutations import Mutation, Mutator, encode, head_of, places
from hostile.seeds import Seeds
from peer import FakeTransport

Json = dict[str, Any]

ACCOUNT: Final = "000000000000"
BEGINNING: Final = 1_767_225_600.0
ADVANCE_SECONDS: Final = 60.0
"""How much time passes with each request: enough for the throughput that it consumed to come back."""
SWEEP_EVERY: Final = 20
EPOCH: Final = 2_000
_HANG_SECONDS: Final = 60.0
_EVERYTHING: Final = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
USERS: Final[Json] = {
    "accounts": {
        ACCOUNT: {
            "users": {
                "all": {"policies": [_EVERYTHING], "keys": [{"id": "AKIDALL", "secret": "secret-of-all"}]},
                "none": {"keys": [{"id": "AKIDNONE", "secret": "secret-of-none"}]},
            }
        }
    }
}
ALL: Final = Credentials("AKIDALL", "secret-of-all")
NONE: Final = Credentials("AKIDNONE", "secret-of-none")
RULES: Final = (
    *("* nth=1000000000 throttle", "* nth=1000000000 internal-error", "* nth=1000000000 lose-answer"),
    *("* nth=1000000000 conflict", "* nth=1000000000 cancel", "* nth=1000000000 unprocessed"),
    *("* nth=1000000000 latency seconds=1", "* nth=1000000000 in-progress", "* nth=1000000000 trim"),
    "PutItem,Query,BatchWriteItem table=hostile_main key.pk=a nth=1000000000 throttle",
    "Query,Scan table=hostile_main index=all nth=1000000000 throttle",
)
"""Rules that requests are compared with, and that never fire."""
WRONG: Final[tuple[Any, ...]] = (
    None, True, 7, -1.5, "", "x", [], ["x"], [None], [[["x"]]], {}, {"x": None}, {"S": "x"},
    {"x": {"S": ["x"]}},
    [{"S": None}], f"\u00011 {LEVELS[-1]}", f"\u00012 {LEVELS[-3]}", "arn:aws:dynamodb:us-east-1:1:table/",
)  # fmt: skip
"""What takes the place of a member. The texts with a mark stand for values that are deeply nested."""
_DENIED: Final = b"#AccessDeniedException"
"""Even who may do everything is refused what belongs to another account; `soft` refuses nothing."""
_VARYING: Final = re.compile(rb"x-amzn-RequestId: [0-9A-V]+|x-amz-crc32: [0-9]+")
_ID: Final = re.compile(rb"[0-9a-f]{8}-0000-4[0-9a-f]{3}-8000-0{12}")


class Ids:
    """Identifiers in place of those of `uuid`, counted for one database."""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self) -> uuid.UUID:
        self._last += 1
        return uuid.UUID(int=self._last << 64 | 1 << 63 | 4 << 76)


class Side:
    """A database, and a client of it. The client signs with `credentials`, or does not."""

    def __init__(self, name: str, credentials: Credentials | None, settings: Settings) -> None:
        self.name = name
        self.sent = 0
        self.credentials = credentials
        self.clock = VirtualClock(BEGINNING, frozen=True)
        self.engine = MemoryEngine()
        self.database = Database(self.engine, settings=settings, clock=self.clock)
        self._ids = Ids()
        self._passed = 0
        self._soon: list[Callable[[], None]] = []
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.database.deliver_on(self._inbox.put)
        observers = self.database.observers
        wire = Wire(region="us-east-1", account_id=ACCOUNT, operations=REGISTRY, observers=observers)
        self.plane = Plane(self.database, wire, Frames(0), ServerSettings(), self._soon.append)
        self.plane.round_seconds = float("inf")
        self._connect()

    def _connect(self) -> None:
        self._transport = FakeTransport()
        self._connection = Connection(self.plane)
        self._connection.connection_made(self._transport)

    def signed(self, operation: str, body: bytes) -> bytes:
        """The head of a request, with a genuine signature."""
        assert self.credentials is not None
        target = re.search(rb"X-Amz-Target: ([^\r]*)", head_of(operation, 0))
        assert target is not None
        named = {"X-Amz-Target": target[1].decode(), "Host": "127.0.0.1"}
        asked = AWSRequest("POST", "http://127.0.0.1/", named, body)
        SigV4Auth(self.credentials, "dynamodb", "us-east-1").add_auth(asked)
        stamp, authorization = asked.headers["X-Amz-Date"], asked.headers["Authorization"]
        return head_of(operation, len(body), X_Amz_Date=stamp, Authorization=authorization)

    def ask(self, mutation: Mutation) -> tuple[int, bytes, bytes]:
        """The answer to a request: status, head, body. Raises queue.Empty if there is none."""
        uuid.uuid4 = self._ids
        if self.credentials is not None and mutation.kind != "headers":
            mutation = Mutation(
                mutation.kind,
                mutation.operation,
                self.signed(mutation.operation, mutation.body),
                mutation.body,
            )
        self.pass_time()
        self.sent += 1
        self._transport.written = b""
        self._connection.data_received(mutation.sent)
        while not self._transport.written and not self._transport.closed:
            (self._soon.pop(0) if self._soon else self._inbox.get(timeout=_HANG_SECONDS))()
        while self._soon:
            self._soon.pop(0)()
        head, _, body = self._transport.written.partition(b"\r\n\r\n")
        if self._transport.closed or mutation.kind == "headers":
            self._connect()
        return int(head[9:12] or b"0"), head + b"\r\n", body

    @property
    def called(self) -> int:
        """How many requests have reached the database."""
        return sum(sum(tally.buckets) for tally in self.plane.metrics.tallies.values())

    def pass_time(self) -> None:
        """Let the time pass that a request takes."""
        self._passed += 1
        self.clock.advance(ADVANCE_SECONDS)
        if self._passed % SWEEP_EVERY == 0:
            self.database.sweep()

    def call(self, operation: str, request: Json) -> Json:
        """The answer to a proper request. Raises ValueError for an error."""
        body = orjson.dumps(request)
        status, _, answer = self.ask(Mutation("values", operation, head_of(operation, len(body)), body))
        if status != 200:
            raise ValueError(answer)
        return orjson.loads(answer) if answer else {}

    def renew_tables(self) -> dict[str, list[Json]]:
        """Make the tables of the seeds again; return the requests for streams."""
        for about in self.database.overview():
            for operation, more in (
                ("UpdateTable", {"DeletionProtectionEnabled": False}),
                ("DeleteTable", {}),
            ):
                try:
                    self.call(operation, {"TableName": about["name"], **more})
                except ValueError:
                    continue
        self.database.settle()
        for create in (seeds.CREATE_MAIN, seeds.CREATE_PLAIN, seeds.CREATE_OTHER):
            try:
                self.call("CreateTable", create)
            except ValueError:
                continue
        self.database.settle()
        self.call("PutItem", {"TableName": seeds.MAIN, "Item": seeds.ITEM})
        return seeds.stream_requests(self.call)


class Watched(Side):
    """A database with all onlookers, which write into `folder`."""

    def __init__(
        self, name: str, credentials: Credentials, folder: Path, *, strict: bool, hashed: bool
    ) -> None:
        super().__init__(name, credentials, Settings(throttle=True, eventual_reads="1"))
        folder.mkdir()
        database = self.database
        observers = database.observers
        real = SystemClock().now
        guard(database, Gate(read(USERS), real, strict=strict, limiter=Limiter(1e9, 1e9, real)))
        for rule in RULES:
            database.faults.add(rule)
        self.costs = database.costs()
        self.costs.__enter__()
        self.meter = meter.begin(database, published())
        self.heat = Heat(database, lambda: False, self.clock)
        self.heat.begin()
        self.contributors = Contributors(observers.observe, lambda: self.clock)
        self.feed = Feed(Subject(database, self.plane, _settle), self.clock)
        observers.observe(self.feed)
        Uses(Subject(database, self.plane, _settle), self.clock).start()
        key = tuple(seeds.ITEM[name] for name in ("pk", "sk"))
        for chosen in (
            RequestFilter(),
            RequestFilter(table=seeds.MAIN),
            RequestFilter(key=tuple(zip(("pk", "sk"), key, strict=True))),
        ):
            self.feed.open(Viewer(chosen), 0)
        observers.number_connections(self.plane.number_connections)
        self.recording = Recording(database, folder / "recording", hashed=hashed)
        self.recording.begin()
        given = {"audit_log": folder / "audit.jsonl", "audit_log_bytes": 1 << 30, "audit_log_files": 2}
        self.audit = opened_log(given, database)
        self.plane.trace_with(Tracer(True, self.audit, observers.failed))

    def renew_tables(self) -> dict[str, list[Json]]:
        found = super().renew_tables()
        tables = self.engine.read(lambda reader: list(catalog.definitions(reader)))
        self.contributors.look_at([_counted(table) for table in tables])
        self.heat.learn(every=True)
        return found

    def end(self) -> Iterator[str]:
        """End the onlookers; what is wrong with what they saw."""
        self.audit.close()
        self.recording.end()
        self.costs.__exit__(None, None, None)
        audited = [orjson.loads(line) for line in self.audit.path.read_bytes().splitlines()]
        asked = sum(line["event"] == "request" for line in audited)
        # (an answer to what is no request of the API is not audited)
        others = sum(n for (_, error), n in self.plane.metrics.responses.items() if not error)
        if asked != self.sent - others:
            yield f"{self.name}: the audit log has {asked} of {self.sent} requests"
        if self.audit.incomplete or self.audit.lost:
            yield f"{self.name}: {self.audit.incomplete} incomplete, {self.audit.lost} lost audit lines"
        if self.database.observers.failures:
            yield f"{self.name}: {self.database.observers.failing}"
        with reader.open(self.recording.path) as opened:
            recorded = sum(1 for _ in opened.entries())
            if opened.end is None or opened.end.why != "stopped" or opened.dropped:
                yield f"{self.name}: the recording ended with {opened.end}, {opened.dropped} dropped"
        if recorded != self.called or len(self.costs) < self.called:
            yield f"{self.name}: {self.called} requests, {recorded} recorded, {len(self.costs)} with costs"
        self.meter.counted("us-east-1")


def _counted(table: Table) -> Table:
    """The table with contributor insights."""
    names = ["", *[index.name for index in table.indexes if index.is_global and index.vector is None]]
    insights = {
        name: Insights(table.space, "ENABLED", "ACCESSED_AND_THROTTLED_KEYS", BEGINNING, 0) for name in names
    }
    return msgspec.structs.replace(table, insights=insights)


async def _settle() -> None:
    """The `settle` of a server whose background work nobody waits for."""


# -- The requests --------------------------------------------------------------------------------------------


def full_requests() -> dict[str, Json]:
    """For each operation a request with every member that botocore's model knows."""
    found: dict[str, Json] = {}
    for service in ("dynamodb", "dynamodbstreams"):
        model = botocore.session.get_session().get_service_model(service)
        for name in model.operation_names:
            shape = model.operation_model(name).input_shape
            if name in REGISTRY:
                found[name] = {} if shape is None else _example(shape, "", 0)
    return found


def _example(shape: Any, name: str, depth: int) -> Any:
    if name in ("TableName", "SourceTableName", "TargetTableName", "GlobalTableName"):
        return seeds.MAIN
    if shape.name == "AttributeValue":
        return {"S": "a"}
    if shape.type_name == "structure":
        return {} if depth > 6 else {
            member: _example(inner, member, depth + 1) for member, inner in shape.members.items()
        }  # fmt: skip
    if shape.type_name == "list":
        return [_example(shape.member, "", depth + 1)]
    if shape.type_name == "map":
        return {"pk": _example(shape.value, "", depth + 1)}
    if shape.type_name in ("integer", "long"):
        return 1
    if shape.type_name in ("float", "double", "timestamp"):
        return 1.5
    return True if shape.type_name == "boolean" else shape.enum[0] if shape.enum else "x"


def every_member_wrong(own: dict[str, list[bytes]], each: int) -> Iterator[Mutation]:
    """Each member of the requests of all operations, once removed, and replaced by `each` of WRONG: those of
    a full request, and those of valid requests."""
    count = 0
    for operation, full in sorted(full_requests().items()):
        for body in (orjson.dumps(full), *own.get(operation, ())):
            for place in range(len(list(places(orjson.loads(body))))):
                for number in range(-1, each):
                    request = orjson.loads(body)
                    container, key = list(places(request))[place]
                    if number < 0:
                        del container[key]
                    else:
                        count += 1
                        container[key] = WRONG[count % len(WRONG)]
                    text = encode(request)
                    yield Mutation("values", operation, head_of(operation, len(text)), text)


def drawn(mutator: Mutator) -> Iterator[Mutation]:
    """Mutations without end, of all kinds but broken HTTP."""
    while True:
        mutation = mutator.draw()
        if mutation.kind != "framing":
            yield mutation


# -- The comparison ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Outcome:
    """What a comparison found; `sent` are the requests."""

    sent: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, mutation: Mutation, what: str) -> None:
        shown = mutation.body if mutation.kind != "headers" else mutation.sent
        self.faults.append(f"{mutation.operation} {shown[:600]!r}\n    {what}")


class Comparison:
    """Sends requests to all sides. `folder` gets the files of the onlookers."""

    def __init__(self, folder: Path) -> None:
        self.bare = Side("bare", None, Settings())
        self.same = [
            Watched("soft", NONE, folder / "soft", strict=False, hashed=False),
            Watched("strict", ALL, folder / "strict", strict=True, hashed=True),
        ]
        self.denied = Watched("denied", NONE, folder / "denied", strict=True, hashed=False)
        self.outcome = Outcome()
        self._seeds = Seeds()

    def renew(self) -> Seeds:
        """Make the tables again; the seeds for them."""
        found = [side.renew_tables() for side in (self.bare, *self.same)]
        if any(other != found[0] for other in found):
            self.outcome.faults.append("the tables of the sides differ")
        self._seeds.set_streams(found[0])
        return self._seeds

    def send(self, mutation: Mutation) -> None:
        """Send a request to all sides, and compare the answers."""
        outcome = self.outcome
        outcome.sent += 1
        called = self.bare.called
        try:
            expected = self.bare.ask(mutation)
        except queue.Empty:
            outcome.add(mutation, "bare gives no answer")
            return
        for side in (*self.same, self.denied):
            asked = mutation
            if mutation.kind == "headers" and side.name != "soft":
                # A changed head has no genuine signature. What is a call nevertheless gets a right head.
                if self.bare.called == called:
                    side.pass_time()
                    continue
                asked = replace(mutation, kind="values")
            try:
                found = side.ask(asked)
            except queue.Empty:
                outcome.add(mutation, f"{side.name} gives no answer")
                continue
            fault = find_fault(asked.kind, mutation.sent, *found, mutation.operation)
            is_equal = _shown(expected) == _shown(found) or (side.name == "strict" and _DENIED in found[2])
            if fault is not None:
                outcome.add(mutation, f"{side.name}: {fault}")
            elif not is_equal and asked is mutation and side is not self.denied:
                alike = takewhile(lambda pair: pair[0] == pair[1], zip(found[2], expected[2], strict=False))
                place = max(sum(1 for _ in alike) - 50, 0)
                shown = [text[place : place + 200] for text in (found[2], expected[2])]
                outcome.add(mutation, f"{side.name}: {shown[0]!r}\n    bare: {shown[1]!r}")

    def end(self) -> Outcome:
        """End the onlookers, and check the stores."""
        for side in (*self.same, self.denied):
            self.outcome.faults += side.end()
        sides: list[Side] = [self.bare, *self.same, self.denied]
        for one in sides:
            self.outcome.faults += [f"{one.name}: {found}" for found in check(one.engine)]
            one.database.close()
        return self.outcome


def _shown(answer: tuple[int, bytes, bytes]) -> tuple[int, bytes, bytes]:
    status, head, body = answer
    # (a request that is prepared again, because it took too long, has taken one more identifier)
    return status, _VARYING.sub(b"", head), _ID.sub(b"", body)


def compare(folder: Path, *, each: int, mutations: int, seed: str) -> Outcome:
    """Send each member of all requests wrong in `each` ways, and then `mutations` that are drawn."""
    with _logged() as errors:
        comparison = Comparison(folder)
        systematic = list(every_member_wrong(comparison.renew().own, each))
        for number, mutation in enumerate(systematic):
            if number and number % EPOCH == 0:
                comparison.renew()
            comparison.send(mutation)
        for epoch, left in enumerate(range(mutations, 0, -EPOCH)):
            mutator = Mutator(comparison.renew(), f"{seed}/{epoch}")
            for mutation in islice(drawn(mutator), min(left, EPOCH)):
                comparison.send(mutation)
        outcome = comparison.end()
    outcome.faults += errors
    return outcome


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Log each request, to nowhere, and gather the errors that are logged; identifiers are those of `uuid`
    again afterwards."""
    errors: list[str] = []
    handler = logging.Handler()

    def emit(record: logging.LogRecord) -> None:
        # (the service has an internal error for a region that does not exist)
        if record.levelno >= logging.ERROR and "ListGlobalTables" not in str(record.__dict__.get("fields")):
            errors.append(handler.format(record))

    handler.emit = emit  # type: ignore[method-assign]
    log, requests, real = logging.getLogger("hashrange"), logging.getLogger(REQUESTS_LOGGER), uuid.uuid4
    before = log.propagate, requests.level
    log.propagate = False
    log.addHandler(handler)
    requests.setLevel(logging.DEBUG)
    try:
        yield errors
    finally:
        uuid.uuid4 = real
        log.removeHandler(handler)
        log.propagate, requests.level = before


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m hostile.onlookers",
        description="Send broken requests to a database with all onlookers, and to one without any.",
    )
    parser.add_argument("--mutations", type=int, default=50_000)
    parser.add_argument("--each", type=int, default=len(WRONG), help="how often each member is replaced")
    parser.add_argument("--seed", default="0")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hashrange-onlookers-") as folder:
        outcome = compare(
            Path(folder), each=arguments.each, mutations=arguments.mutations, seed=arguments.seed
        )
    print("\n".join(outcome.faults[:100]))
    print(f"{outcome.sent:,} requests, {len(outcome.faults):,} faults")
    print("FAILED" if outcome.faults else "GOOD")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
