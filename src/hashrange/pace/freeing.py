"""Frees the values of large requests piece by piece.

When the last reference to an item of 400 KB goes, Python frees its hundred thousand values at once, and
keeps the interpreter's lock for some 20 ms. `take_apart` empties the containers of a value before that, and
lets other threads run in between.
"""

from __future__ import annotations

from typing import Any, Final

from hashrange.pace import turns

FEW: Final = 100
"""A container with more members is only emptied; the members of a smaller one are taken apart, too."""


def take_apart(value: Any) -> None:
    """Empty the lists and dicts of a JSON value that nobody uses any more. May raise `Abandoned`."""
    if type(value) is list:
        few = len(value) <= FEW
        while value:
            member = value.pop()
            if few and (type(member) is dict or type(member) is list):
                take_apart(member)
            turns.point()
    elif type(value) is dict:
        few = len(value) <= FEW
        while value:
            member = value.popitem()[1]
            if few and (type(member) is dict or type(member) is list):
                take_apart(member)
            turns.point()
