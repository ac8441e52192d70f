"""The operations of all clients, as they saw them, in memory and in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import orjson

Status = Literal["ok", "failed", "unknown"]


class Refused(Exception):
    """The request certainly changed nothing, and never will. `code`: the error's name."""

    def __init__(self, code: str, answer: dict[str, Any] | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.answer = answer or {}


class OutcomeUnknown(Exception):
    """The request may have been carried out, or may be later, or not at all."""


class NoAnswer(Exception):
    """The server accepted the request, and neither answered nor cut the connection."""


@dataclass(slots=True)
class Operation:
    """What one client invoked and saw. `invoked` and `ended` are moments of one clock that all clients share;
    an operation of unknown outcome has no end."""

    client: int
    workload: str
    action: str
    arguments: dict[str, Any]
    invoked: float
    status: Status = "unknown"
    ended: float = inf
    result: Any = None
    error: str = ""

    def __str__(self) -> str:
        arguments = " ".join(f"{name}={value}" for name, value in self.arguments.items())
        outcome = f"{self.status}: {self.error}" if self.error else self.status
        result = f" -> {self.result}" if self.status == "ok" else ""
        return (
            f"client {self.client} {self.workload} {self.action} {arguments}{result} "
            f"[{self.invoked:.6f}, {self.ended:.6f}] {outcome}"
        )


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A contradiction that no correct database shows. `name` is its term in the literature, `details` the
    operations that show it."""

    name: str
    details: str

    def __str__(self) -> str:
        return f"{self.name}: {self.details}"


@dataclass(slots=True)
class History:
    """The operations in the order of their invocation. Any thread may record."""

    operations: list[Operation] = field(default_factory=list)

    @contextmanager
    def recorded(self, client: int, workload: str, action: str, **arguments: Any) -> Iterator[Operation]:
        """Record the block as one operation. The block sets its result; `Refused`, `OutcomeUnknown` and
        `NoAnswer` are caught here and become its outcome."""
        operation = Operation(client, workload, action, arguments, monotonic())
        self.operations.append(operation)
        try:
            yield operation
        except (OutcomeUnknown, NoAnswer) as error:
            operation.error = f"{type(error).__name__}: {error}"
            return
        except Refused as error:
            operation.status, operation.error = "failed", error.code
        else:
            operation.status = "ok"
        operation.ended = monotonic()

    def of(self, workload: str) -> list[Operation]:
        return [operation for operation in self.operations if operation.workload == workload]

    def counts(self) -> Counter[Status]:
        return Counter(operation.status for operation in self.operations)

    def save(self, path: Path) -> None:
        """Write one operation a line, in JSON; the end of an operation that has none is null."""
        path.write_bytes(b"".join(orjson.dumps(asdict(operation)) + b"\n" for operation in self.operations))


def load(path: Path) -> History:
    """The history in a file that `History.save` wrote."""
    history = History()
    for line in path.read_bytes().splitlines():
        fields = orjson.loads(line)
        if fields["ended"] is None:
            fields["ended"] = inf
        history.operations.append(Operation(**fields))
    return history


def by_key(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    """The operations by the key in their arguments, in their order."""
    grouped: dict[str, list[Operation]] = {}
    for operation in operations:
        grouped.setdefault(operation.arguments["key"], []).append(operation)
    return grouped
