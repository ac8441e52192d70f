"""How many examples Hypothesis draws in a test: all of them in the gate, which draws the same at each run;
a quarter in other runs, which draw new ones."""

from __future__ import annotations

import os
from typing import Final

WHOLE: Final = not {"CI", "HASHRANGE_WHOLE"}.isdisjoint(os.environ)
_QUICK_MIN: Final = 5


def examples(whole: int) -> int:
    """The number of examples in this run, of which the gate draws `whole`."""
    return whole if WHOLE else max(whole // 4, min(whole, _QUICK_MIN))
