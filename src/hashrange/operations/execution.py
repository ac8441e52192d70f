"""One request to a database, from its parameters to its outcome.

The caller makes an `Execution`, or a subclass that overrides `encode` and `done`, as the server does: so a
request is one object from the parser to the answer. `Database` prepares it, and gives `run` and `finish` to
the engine.

Refuses to know: wire formats, threads, and what operations do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from hashrange.operations.context import Answer, Caller, Encode, Operation, Request
from hashrange.storage.failures import Stopped
from hashrange.storage.loops import Done

Body = Callable[[Any], Any]
"""What the engine runs: it gets a reader or a transaction."""

_FREED: Final[Request] = {}


class Observed(Protocol):
    """A request as its observers see it (`observing.observer.ObservedRequest`)."""

    bill: Any

    def count(self, answer: Answer) -> None:
        """Count the items of an answer that the body has made."""
        ...

    def end(self, error: Exception | None, answer: Any) -> tuple[Exception | None, float]:
        """The error to tell, if any, and the seconds until then."""
        ...


class Owner(Protocol):
    """What an execution needs of the `Database` where its outcome is not simply told."""

    def go_on_aside(self, execution: Execution) -> None:
        """Run an execution again whose turn is over, on a worker thread."""
        ...

    def told(self, execution: Execution, error: Exception) -> Exception:
        """The error to tell where the body or the commit ended with `error`."""
        ...

    def tell_observed(self, execution: Execution, answer: Any, error: Exception | None) -> None:
        """Tell the outcome that the observers of the request settle on."""
        ...


class Execution:
    """A request of `operation`, sent by `caller`.

    The database sets the rest: its `owner`, the `entry` of the operation, the `body` that the engine runs,
    whether that `is_write`, and what observers see (`observed`). `keeps`: the body may have to run again
    after it has succeeded.
    """

    __slots__ = ("body", "caller", "entry", "is_write", "keeps", "observed", "operation", "owner", "request")

    def __init__(self, operation: str, request: Request, caller: Caller) -> None:
        self.operation = operation
        self.request = request
        self.caller = caller
        self.owner: Owner | None = None
        self.entry: Operation | None = None
        self.body: Body | None = None
        self.is_write = False
        self.keeps = True
        self.observed: Observed | None = None

    def encode(self, answer: Answer) -> Any:
        """What `done` gets of a successful answer. It is called where the body runs, maybe on a thread, and
        as often as the body runs."""
        return answer

    def done(self, answer: Any, error: Exception | None) -> None:
        """Take the outcome that is told: what `encode` returned, or the error. Nobody is told the outcome of
        `Database.perform`, which returns it."""

    def run(self, reader: Any) -> Any:
        """The body that the engine runs: the operation's body, then the encoding of its answer. It may run
        several times, and the bill of the last run counts.

        The outcome of a write waits for the commit. The request is freed before, while it is in the
        processor's cache: to free it after the commit took a quarter of a small write's time.
        """
        body, entry, observed = self.body, self.entry, self.observed
        assert body is not None
        assert entry is not None
        result = body(reader)
        if entry.consumes:
            if observed is not None:
                observed.bill = result[1]
            result = result[0]
        if observed is not None:
            observed.count(result)
        answer = self.encode(result)
        if not self.keeps:
            self.body = None
            self.request = _FREED
        return answer

    def finish(self, answer: Any, error: Exception | None) -> None:
        """Take the outcome from the engine: tell it; but if the turn of the body was over, run the body again
        on a worker thread."""
        if error is None:
            self.tell(answer, None)
            return
        assert self.owner is not None
        if isinstance(error, Stopped) and self.body is not None:
            self.owner.go_on_aside(self)
        else:
            self.tell(None, self.owner.told(self, error))

    def tell(self, answer: Any, error: Exception | None) -> None:
        """Tell the outcome to the observers of the request, if there are any, and to the caller."""
        if self.observed is None:
            self.done(answer, error)
        else:
            assert self.owner is not None
            self.owner.tell_observed(self, answer, error)


class Asked(Execution):
    """An execution whose outcome goes to functions: `encoder` and `receiver` are its `encode` and `done`."""

    __slots__ = ("encoder", "receiver")

    def __init__(
        self, operation: str, request: Request, caller: Caller, receiver: Done, encoder: Encode
    ) -> None:
        super().__init__(operation, request, caller)
        self.receiver = receiver
        self.encoder = encoder

    def encode(self, answer: Answer) -> Any:
        return self.encoder(answer)

    def done(self, answer: Any, error: Exception | None) -> None:
        self.receiver(answer, error)
