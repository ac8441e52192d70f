"""Finds a smaller request that fails in the same way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import orjson

from hostile.mutations import encode, places

_SECONDS_MAX = 4.0


def shrink(body: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """The smallest JSON text found that still fails: members are taken out, texts and lists halved."""
    try:
        return _shrink_value(body, fails)
    except (ValueError, RecursionError):
        # Not JSON, or nested too deeply to be parsed here.
        return _shrink_text(body, fails)


def _shrink_value(body: bytes, fails: Callable[[bytes], bool]) -> bytes:
    value = orjson.loads(body)
    deadline = time.monotonic() + _SECONDS_MAX
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(value, deadline):
            if time.monotonic() > deadline:
                return encode(value)
            encoded = encode(smaller)
            if fails(encoded):
                value, changed = json.loads(encoded), True
                break
    return encode(value)


def _smaller(value: Any, deadline: float) -> list[Any]:
    """Copies of a value with one part removed, those with the largest part removed first."""
    candidates: list[tuple[int, Any]] = []
    text = encode(value)
    count = len(list(places(value)))
    for number in range(count):
        if time.monotonic() > deadline:
            break
        for reduce in (_drop, _halve, _lift):
            copy = json.loads(text)
            container, key = list(places(copy))[number]
            if reduce(container, key):
                candidates.append((len(encode(copy)), copy))
    candidates.sort(key=lambda pair: pair[0])
    return [copy for length, copy in candidates if length < len(text)]


def _drop(container: Any, key: Any) -> bool:
    del container[key]
    return True


def _halve(container: Any, key: Any) -> bool:
    value = container[key]
    if not isinstance(value, str | list) or len(value) < 2:
        return False
    container[key] = value[: len(value) // 2]
    return True


def _lift(container: Any, key: Any) -> bool:
    """Replace a container by one of its members: a value may be nested deeper than the failure needs."""
    value = container[key]
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if len(inner) != 1:
        return False
    container[key] = inner[0]
    return True


def _shrink_text(body: bytes, fails: Callable[[bytes], bool]) -> bytes:
    step = len(body) // 2
    deadline = time.monotonic() + _SECONDS_MAX
    while step and time.monotonic() < deadline:
        place = 0
        while place < len(body) and time.monotonic() < deadline:
            smaller = body[:place] + body[place + step :]
            if smaller != body and fails(smaller):
                body = smaller
            else:
                place += step
        step //= 2
    return body
