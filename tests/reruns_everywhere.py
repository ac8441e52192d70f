"""`make reruns`: every engine that a test makes runs each body several times, as the contract allows.

`rerun_everywhere` replaces each engine's class by a function before the tests import it. Engines made in
another way, such as that of a server in another process, are not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashrange.storage import embedded, memory
from hashrange_engine_tests.reruns import Reruns


def rerun_everywhere() -> None:
    """Wrap the engines that the tests make from now on."""
    for module, name in ((memory, "MemoryEngine"), (embedded, "EmbeddedEngine")):
        setattr(module, name, _rerunning(getattr(module, name)))


def _rerunning(engine: Callable[..., Any]) -> Callable[..., Reruns]:
    def make(*arguments: Any, **named: Any) -> Reruns:
        return Reruns(engine(*arguments, **named))

    return make
