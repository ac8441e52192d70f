"""A process is killed while it ships, again and again, at any moment."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from hashrange.storage.embedded import EmbeddedEngine
from hashrange_replication.place import Place
from hashrange_replication.restore import restore
from hashrange_replication.verify import verify
from replication_child import SPACE, numbers
from shipping import place_in

ROUNDS = int(os.environ.get("HASHRANGE_COPY_ROUNDS", "6"))
TESTS = Path(__file__).resolve().parents[1]


def run_and_kill(directory: Path, folder: Path, acks: bool, chance: random.Random) -> list[int]:
    """Let a child write, kill it, and return the numbers that it acknowledged."""
    child = subprocess.Popen(
        [sys.executable, "-m", "replication_child", str(directory), str(folder), "acks" if acks else "none"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    assert child.stdout is not None
    assert child.stderr is not None
    lines = [child.stdout.readline() for _ in range(chance.randrange(1, 40))]
    child.kill()
    lines += child.stdout.readlines()
    errors = child.stderr.read().decode()
    child.stdout.close()
    child.stderr.close()
    child.wait()
    assert "Traceback" not in errors, errors
    return [int(line) for line in lines if line.endswith(b"\n")]


def restored_numbers(place: Place, directory: Path) -> list[int]:
    restore(place, directory, None, owner=os.urandom(8).hex())
    engine = EmbeddedEngine(directory)
    found = numbers(engine)
    assert engine.read(lambda reader: reader.totals(SPACE)).records == len(found)
    engine.close()
    return found


@pytest.mark.parametrize("acks", [True, False])
def test_kills(tmp_path: Path, acks: bool) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    place = place_in(tmp_path)
    directory = tmp_path / "data"
    acknowledged: list[int] = []
    for number in range(ROUNDS):
        acknowledged += run_and_kill(directory, tmp_path / "copy", acks, chance)
        report = verify(place, None)
        if not report.bases and not acks:
            continue  # it was killed before its first base was made
        assert report.problems == [], (seed, number)
        found = restored_numbers(place, tmp_path / f"restored {number}")
        # All up to some number, and with acknowledgements by the bucket all that were acknowledged.
        assert found == list(range(len(found))), (seed, number)
        if acks:
            assert set(acknowledged) <= set(found), (seed, number)
        engine = EmbeddedEngine(directory)
        assert set(acknowledged) <= set(numbers(engine)), (seed, number)
        engine.close()
