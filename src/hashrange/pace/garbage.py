"""When the garbage collector looks for cycles in a server's own process (`run.serve`).

The collector stops everything while it looks. Looking at all objects takes a fifth of a second while a
request of 15 MB has made two million, and requests make hardly any cycles: so the collector looks at the
young objects only, in portions of some 15,000 (which takes some milliseconds), and at all of them when no
large request is at work. Objects that are left then are frozen: they live long, and to look at all of them
again took up to a tenth of a second.

The collector belongs to the process. So a server on a thread of somebody's program (`run.running`) leaves
the collector alone.
"""

from __future__ import annotations

import gc
from typing import Final

_YOUNG_OBJECTS: Final = 5_000
_YOUNG_ROUNDS: Final = 2
_NEVER: Final = 2**30
_ROUNDS_BEFORE_ALL: Final = 30


def arrange() -> None:
    """Freeze the objects that exist, and let the collector look at young ones only."""
    _look_at_all()
    gc.set_threshold(_YOUNG_OBJECTS, _YOUNG_ROUNDS, _NEVER)


def look_if_due() -> None:
    """Look at all objects that are not frozen, where enough of them have grown old since the last look."""
    if gc.get_count()[2] > _ROUNDS_BEFORE_ALL:
        _look_at_all()


def _look_at_all() -> None:
    gc.collect()
    gc.freeze()
