"""A primary and a standby in processes of their own, of which one after the other is killed at any moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hashrange.files.durable import lock_file
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.tables.inspection.check import check
from hashrange_replication.verify import verify
from replication_child import SPACE, numbers
from shipping import place_in

ROUNDS = int(os.environ.get("HASHRANGE_COPY_ROUNDS", "1"))
TESTS = Path(__file__).resolve().parents[1]


class Child:
    """A process of `replication_child`, and what it has said."""

    def __init__(self, directory: Path, folder: Path, *roles: str) -> None:
        self.directory = directory
        self.said: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "replication_child", str(directory), str(folder), *roles],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )

    def hear(self, word: str = "") -> str:
        """The next line, or the next one that begins with a word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):
                self.said.append(line.strip())
                if line.startswith(word):
                    return line.strip()
        raise AssertionError(f"{self.directory.name} ended without saying {word!r}: {self.said[-3:]}")

    def acknowledged(self) -> set[int]:
        return {int(line) for line in self.said if line.isdigit()}

    def freeze(self, folder: Path) -> None:
        """Stop it for a while; not while it holds the folder's lock, for which the standby would wait."""
        with open(next(folder.rglob("lock"))) as file:
            lock_file(file.fileno())
            self.process.send_signal(signal.SIGSTOP)
            os.waitpid(self.process.pid, os.WUNTRACED)

    def end(self) -> None:
        """Kill it, and hear the rest."""
        self.process.kill()
        out, _ = self.process.communicate()
        self.said += [line.strip() for line in out.splitlines(keepends=True) if line.endswith("\n")]


def follow(directory: Path, folder: Path, acks: str, chance: random.Random) -> Child:
    """A standby that was killed now and then before the primary has agreed to it."""
    for _ in range(chance.randrange(3)):
        child = Child(directory, folder, acks, "standby")
        child.hear("agreed")
        child.end()
    child = Child(directory, folder, acks, "standby")
    child.hear("agreed")
    return child


@pytest.mark.parametrize("acks", ["acks", "none"])
@pytest.mark.parametrize("end", ["killed", "frozen"])
def test_standbys_take_over_from_primaries_that_die(tmp_path: Path, acks: str, end: str) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    place, folder = place_in(tmp_path), tmp_path / "copy"
    primary = Child(tmp_path / "0", folder, acks)
    started: list[Child] = [primary]
    before: set[int] = set()
    try:
        for number in range(ROUNDS):
            where = (seed, number)
            primary.hear()
            while not list(folder.glob("bases/*/*")):
                primary.hear()
            standby = follow(tmp_path / f"{number + 1}", folder, acks, chance)
            started.append(standby)
            for _ in range(chance.randrange(1, 60)):
                primary.hear()
            if end == "killed":
                primary.end()
            else:
                primary.freeze(folder)
            assert standby.process.stdin is not None
            standby.process.stdin.write("promote\n")
            standby.process.stdin.flush()
            held = int(standby.hear("promoted").split()[1])
            if end == "frozen":
                # It wakes up, and finds out: it acknowledges nothing more, and ends.
                primary.process.send_signal(signal.SIGCONT)
                assert "Another server has taken over" in primary.hear("over:"), where
                primary.end()
            wanted = before | primary.acknowledged()
            if acks == "acks":
                assert wanted <= set(range(held)), where
            before, primary = set(range(held)), standby
        standby.hear()
        standby.end()
    finally:
        for child in started:
            child.end()
    engine = EmbeddedEngine(primary.directory)
    found = numbers(engine)
    assert found == list(range(len(found))), seed
    assert before | primary.acknowledged() <= set(found), seed
    assert engine.read(lambda reader: reader.totals(SPACE)).records == len(found)
    assert list(check(engine)) == []
    engine.close()
    assert verify(place, None).problems == [], seed
