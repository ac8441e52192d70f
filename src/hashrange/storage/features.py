"""What a store needs of the programs that open it: a list of features, by name.

A store holds a record for each feature that it uses, written together with the first record that needs it. A
program that does not know one of them would damage the store, so it refuses the store, and names the feature.
A store without the feature stays open to older programs. Engines check the list when a store is opened, and
whenever another server may have added to it.

Add the name of a new feature to KNOWN if programs without it would write, or leave out, what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hashrange.storage.failures import UnknownFormat

SPACE: Final = 0
NEEDS: Final = b"needs"
"""The space and the partition of these records. The sort is the name; there is no value."""

VECTORS: Final = "vectors"
"""Entries of vector indexes, and the logs of their changes."""
KINESIS: Final = "kinesis"
"""The logs of the changes that go to Kinesis."""

KNOWN = frozenset({KINESIS, VECTORS})
"""The features of this program."""


def unknown(needs: Iterable[bytes]) -> str:
    """The names of the features that this program does not know, as a list in a sentence."""
    names = {name.decode(errors="backslashreplace") for name in needs}
    return ", ".join(sorted(names - KNOWN))


def check(place: str, needs: Iterable[bytes]) -> None:
    """Refuse the store in this place if it needs an unknown feature. Raises UnknownFormat."""
    names = unknown(needs)
    if names:
        raise UnknownFormat(
            f"{place} needs what this version of Hashrange does not have: {names}. Nothing was changed. Use "
            "the newer version that has written it."
        )
