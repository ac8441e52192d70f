"""The parent: starts a child, kills it at a random moment, checks its directory, and starts the next child
there."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

from crash.levels import LEVELS

TESTS = Path(__file__).resolve().parents[1]
ROUNDS_PER_DIRECTORY = 10
START_SECONDS_MAX = 0.5
WORK_SECONDS_MAX = 0.12
KILLED = 1 if sys.platform == "win32" else -9


def play(level: str, directory: Path, rounds: int, seed: int) -> int:
    """Play rounds; return how many writes survived in all. AssertionError: something was lost or torn."""
    chance = random.Random(seed)
    survived = 0
    acknowledged: list[str] = []
    for number in range(rounds):
        place = directory / f"{level}-{number // ROUNDS_PER_DIRECTORY}"
        if number % ROUNDS_PER_DIRECTORY == 0:
            acknowledged = []
        try:
            acknowledged += kill_one(level, place, chance)
            held = LEVELS[level].check(str(place), acknowledged)
        except BaseException:
            print(f"level {level}, seed {seed}, round {number}, in {place}", file=sys.stderr)
            raise
        if number % ROUNDS_PER_DIRECTORY == ROUNDS_PER_DIRECTORY - 1 or number == rounds - 1:
            survived += held
    return survived


def kill_one(level: str, directory: Path, chance: random.Random) -> list[str]:
    """Let a child work in `directory`, kill it, and return what it acknowledged."""
    paths = os.pathsep.join((str(TESTS), str(TESTS.parent / "src")))
    child = subprocess.Popen(
        [sys.executable, "-m", "crash.child", level, str(directory)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert child.stdout is not None
    output = child.stdout
    lines: list[bytes] = []
    if chance.random() < 0.7:
        # Kill it while it works.
        lines.append(output.readline())
        assert lines[0], "the child ended by itself"
        delay = chance.uniform(0, WORK_SECONDS_MAX)
    else:
        # Kill it at any stage: starting, opening, replaying its log, or at work.
        delay = chance.uniform(0, START_SECONDS_MAX)
    drain = Thread(target=lambda: lines.extend(output))
    drain.start()
    time.sleep(delay)
    child.kill()
    status = child.wait()
    drain.join()
    output.close()
    assert status == KILLED, f"the child ended by itself, with status {status}"
    return [line.decode().rstrip() for line in lines if line.endswith(b"\n")]
