"""Answers that are bounded in bytes: JSON, with as many entries as fit and a note how to go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

Json = dict[str, Any]

_OUTLINE_BYTES: Final = 160
_NOTE_BYTES: Final = 1_024
"""The room for the note and the position of the next page."""


def text_of(answer: object) -> str:
    """An answer as JSON."""
    return orjson.dumps(answer).decode()


def bounded(
    about: Json,
    member: str,
    entries: Sequence[Any],
    bytes_max: int,
    proceed: Callable[[Any], Json] = lambda last: {},
) -> str:
    """`about` with the first `entries` as its `member`, in at most `bytes_max` bytes.

    If entries are left out, `proceed` says for the last one that is shown what to send for the next; a first
    entry that does not fit alone is outlined.
    """
    room = bytes_max - len(orjson.dumps(about)) - _NOTE_BYTES
    shown: list[Any] = []
    for entry in entries:
        size = len(orjson.dumps(entry)) + 1
        if size > room:
            break
        room -= size
        shown.append(entry)
    answer = {**about, member: shown}
    left = len(entries) - len(shown)
    if not left:
        return text_of(answer)
    if not shown:
        answer[member], left = [_outlined(entries[0], room)], left - 1
        answer["outlined"] = (
            f"The first of {member} is larger than an answer may be, so only its small parts are shown: "
            f"ask for "
            "its large ones by a projection, a few at a time."
        )
    if left:
        more = proceed(entries[max(len(shown) - 1, 0)])
        answer.pop("next", None)  # (it would skip what is left out)
        answer.update(more)
        how = "send `next` as `start` for them" if "next" in more else "ask for less, or for a part"
        answer["truncated"] = f"{left} of {member} did not fit into {bytes_max} bytes: {how}."
    return text_of(answer)


def _outlined(entry: Any, room: int) -> Any:
    """An entry without its large parts, whose sizes are told."""
    if not isinstance(entry, dict):
        return f"({len(orjson.dumps(entry))} bytes)"
    outline: Json = {}
    for name, value in entry.items():
        size = len(orjson.dumps(value))
        told = value if size <= _OUTLINE_BYTES else f"({size} bytes)"
        room -= len(orjson.dumps({name: told}))
        if room < 0:
            break
        outline[name] = told
    return outline
