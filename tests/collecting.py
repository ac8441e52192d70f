"""The garbage collector in a process that holds the objects of all tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from hashrange.testing import install

_freeze, _unfreeze = gc.freeze, gc.unfreeze
_tests_are_frozen = False
_more_is_frozen = False


def freeze_the_tests() -> None:
    """Freeze what collecting the tests made, unless it is frozen. Whoever calls gc.unfreeze() thaws it."""
    global _tests_are_frozen
    if not _tests_are_frozen:
        install()  # which does not find frozen clients
        gc.collect()
        _freeze()
        _tests_are_frozen = True


def thaw() -> bool:
    """Undo what tests, or what they call, have frozen; returns whether they have."""
    left = _more_is_frozen
    if left:
        gc.unfreeze()
    return left


def _freeze_more() -> None:
    global _more_is_frozen
    _freeze()
    _more_is_frozen = True


def _unfreeze_all() -> None:
    global _tests_are_frozen, _more_is_frozen
    _unfreeze()
    _tests_are_frozen = _more_is_frozen = False


# To ask Python instead, which counts the frozen objects one by one, takes longer.
gc.freeze, gc.unfreeze = _freeze_more, _unfreeze_all


@contextmanager
def young_objects_only() -> Iterator[None]:
    """Within the block the collector leaves out the objects that existed before: to look at those of all
    tests takes a third of a second each time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
