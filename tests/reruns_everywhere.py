"""`make reruns`: every engine that a test makes runs each body several times, as the contract allows.

`rerun_everywhere` puts a function in the place of each engine's class, before the tests import it. An engine
that a test does not make by that name, such as that of a server in another process, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashrange.storage import embedded, memory
from hashrange.storage.contract.reruns import Reruns


def rerun_everywhere() -> None:
    """Wrap the engines that the tests make from now on."""
    for module, name in ((memory, "MemoryEngine"), (embedded, "EmbeddedEngine")):
        setattr(module, name, _rerunning(getattr(module, name)))


def _rerunning(engine: Callable[..., Any]) -> Callable[..., Reruns]:
    def make(*arguments: Any, **named: Any) -> Reruns:
        return Reruns(engine(*arguments, **named))

    return make
