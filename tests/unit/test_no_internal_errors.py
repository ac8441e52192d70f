"""No request, however broken, is answered with an internal error, and none leaves damage behind.

The requests of the golden scripts are good to start from: they know every operation and member. Each is
broken at random places (a member lost, replaced, repeated or moved) and run; the answer must be an answer or
an error of the API's, and the integrity checker must find nothing in the store afterwards.
"""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from golden_scripts import SCRIPTS, request_of, steps
from hashrange import rings
from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.operations.context import Caller
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.inspection.check import check

EVERYTHING = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
ROUNDS = int(os.environ.get("HASHRANGE_FUZZ_ROUNDS", "3"))

JUNK: list[Any] = [
    None, True, False, 0, -1, 1, 2**63, 1.5, "", "x", ":v", "#n", "a.b[0]", "((a = :v", "SET a = :v REMOVE a",
    "arn:aws:dynamodb:x", "\u0000", "ä\U0001f600", "x" * 3_000, [], [None], {}, {"S": "x"}, {"S": 5},
    {"N": "1e999"}, {"N": "00.10"}, {"B": "AA="}, {"M": {}}, {"L": [{}]}, {"NS": ["1", "1.0"]}, {"SS": []},
    {"BOOL": "x"}, {"S": "a", "N": "1"},
    [[[[]]]], {"": {"": {}}}, "NONE", "ALL_OLD", "INDEXES",
]  # fmt: skip


def is_control(lines: list[str]) -> bool:
    """Whether a step is none of the API's."""
    return lines[0].partition(" ")[0] in ("settings", "advance", "region", "sweep")


def is_region(lines: list[str]) -> bool:
    """Whether a step says from which region the next come."""
    return bool(lines) and lines[0].startswith("region ")


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) inside a request."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def broken(request: Any, chance: random.Random) -> Any:
    """A copy of a request with one to three places broken."""
    request = copy.deepcopy(request)
    for _ in range(chance.randint(1, 3)):
        found = list(places(request))
        if not found:
            return request
        container, key = chance.choice(found)
        how = chance.randrange(4)
        if how == 0:
            del container[key]
        elif how == 1:
            container[key] = copy.deepcopy(chance.choice(JUNK))
        elif how == 2:
            other, from_ = chance.choice(found)
            if isinstance(other, dict) or from_ < len(other):
                container[key] = copy.deepcopy(other.get(from_) if isinstance(other, dict) else other[from_])
        elif isinstance(container, dict):
            container[str(key) + chance.choice(["", "x", " "])] = copy.deepcopy(chance.choice(JUNK))
        else:
            container.append(copy.deepcopy(container[key]))
    return request


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}-{script.stem}")
def test_broken_requests_get_errors_of_the_api(script: Path) -> None:
    chance = random.Random(script.stem)
    engine = MemoryEngine()
    clock = ManualClock()
    database = Database(engine, clock=clock)
    identified = None
    # Half of the scripts are judged by a policy that permits everything.
    if len(script.stem) % 2 and "access" in rings.rings().installed:
        policy = rings.needed("access", "testing", "policy")(EVERYTHING, "local", None)
        identified = policy.identified(Caller().account_id)
        policy.begin(database)
    caller = Caller(identified=identified)
    for _, _, lines in steps(script.read_text()):
        if not lines or is_control(lines):
            if is_region(lines):
                caller = Caller(region=lines[0].removeprefix("region "), identified=identified)
            continue
        operation, request = request_of(lines)
        for attempt in [*(broken(request, chance) for _ in range(ROUNDS)), request]:
            try:
                sent = orjson.dumps(attempt)
            except orjson.JSONEncodeError:  # put into itself more often than JSON nests
                continue
            try:
                orjson.dumps(database.execute(operation, attempt, caller))
            except ServiceError as error:
                # (a region that does not exist is an internal error of the service itself)
                is_own = operation != "ListGlobalTables" or "RegionName" not in attempt
                assert error.status < 500 or not is_own, (operation, sent)
            except Exception as error:
                raise AssertionError(f"{operation} {sent!r}") from error
        clock.advance(1)
    database.sweep()
    assert list(check(engine)) == []
