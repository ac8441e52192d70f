"""A store that ships is cut off from its power: its disk loses a part of what was not synced (`crash.power`).

A child writes numbers and ships them to a folder; sometimes the bucket is away, so that segments wait in the
spool, and the child ends, begins again, and ends. Then for random moments of its life the disk is made as a
power failure might have left it, with the bucket at its side. There

    a restore from the copy finds the numbers up to some number; with acknowledgements by the bucket all
    that were acknowledged
    the data directory opens, goes on with its copy, and the copy then has all that the store has

The next child begins on the disk of the last cut.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

from crash.power import Disk, read_journal
from hashrange.buckets.folders import Folders
from hashrange.files.durable import make_directory
from hashrange.storage.api import Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange_replication.failures import CopyError
from hashrange_replication.restore import restore
from hashrange_replication.running import Copying, Options, Setup
from hashrange_replication.verify import verify
from replication_child import PARTITION, SPACE, numbers
from shipping import BUCKET, Faulty, Time, place_in

CUTS_PER_LIFE: Final = 10
WRITES: Final = 25
PATHS: Final = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[3] / "tests")]


class Store:
    """A store under `root`, and its copy beside it, step by step, on a clock that stands still."""

    def __init__(self, root: Path, seed: int, *, acks: bool) -> None:
        self.bucket = Faulty(Folders(root))
        self.now = Time()
        self.engine = EmbeddedEngine(
            root / "data", write_buffer_bytes=64 * 1024, logged_bytes_max=6_000, cache_bytes=1 << 20
        )
        make_directory(root / BUCKET)
        # The same name wherever the disk of a cut is.
        place = place_in(root, self.bucket)
        place.shown = BUCKET
        setup = Setup(
            directory=root / "data",
            place=place,
            options=Options(acks=acks, ack_seconds=60.0),
            where="a test of power cuts",
            clock=lambda: 1_700_000_000.0 + self.now(),
            now=self.now,
            random=Random(seed).randbytes,
            wait=self.now.advance,
        )
        self.copying = Copying(self.engine, setup)
        self.copying.begin()
        if acks:
            self.copying.start()

    def write(self, number: int) -> None:
        def body(txn: Transaction) -> None:
            txn.put(SPACE, PARTITION, number.to_bytes(8), b"")
            txn.put(SPACE + 1, PARTITION, number.to_bytes(8), bytes(2_000 + number % 5 // 4 * 9_000))

        self.engine.write(body)

    def step(self) -> None:
        self.now.advance(1.0)
        self.copying.ship()
        self.copying.make_base()
        self.copying.ship()

    def close(self) -> None:
        self.copying.close()
        self.engine.close()


def live(root: Path, seed: int, acknowledge: Callable[[str], None], *, acks: bool) -> None:
    """The life of a child."""
    chance = Random(seed)
    for turn in range(2):
        store = Store(root, chance.randrange(1 << 30), acks=acks)
        first = max(numbers(store.engine), default=-1) + 1
        for number in range(first, first + WRITES):
            is_away = not acks and chance.random() < 0.4
            store.bucket.fault = (lambda name, key: "refused") if is_away else (lambda name, key: "")
            store.write(number)
            acknowledge(f"{number}")
            if not acks and chance.random() < 0.7:
                store.step()
        if turn == 0:
            store.bucket.fault = lambda name, key: ""
            if chance.random() < 0.5:
                store.step()
                store.bucket.fault = lambda name, key: "refused" if name == "put" else ""
        store.close()


class Cuts:
    """Cuts in a folder. `counts` says what happened."""

    def __init__(self, folder: Path, library: Path, seed: int, *, acks: bool) -> None:
        self.counts: dict[str, int] = {"writes": 0, "restores": 0, "no base": 0}
        self._folder = folder
        self._library = library
        self._seed = seed
        self._acks = acks

    def play(self, cuts: int) -> None:
        """Raises AssertionError."""
        chance = Random(self._seed)
        before = self._folder / "before"
        before.mkdir()
        acknowledged: list[int] = []
        for first in range(0, cuts, CUTS_PER_LIFE):
            root = self._folder / "root"
            before.rename(root)
            disk = Disk(root)
            journal = self._folder / "journal"
            journal.unlink(missing_ok=True)
            self._run(root, journal, chance.randrange(1 << 30))
            events = list(read_journal(journal))
            moments = sorted(chance.randrange(len(events)) for _ in range(min(CUTS_PER_LIFE, cuts - first)))
            at = 0
            for cut in moments:
                for event in events[at:cut]:
                    disk.follow(event)
                    if event.kind == "A":
                        acknowledged += map(int, event.data.decode().splitlines())
                at = cut
                shutil.rmtree(before, ignore_errors=True)
                disk.cut(before, chance)
                tried = self._folder / "tried"
                shutil.copytree(before, tried)
                try:
                    self._check(tried, acknowledged, chance)
                except BaseException as error:
                    error.add_note(f"seed {self._seed}, cut {cut} of {len(events)} after {first}, {before}")
                    raise
                shutil.rmtree(tried)
            shutil.rmtree(root)

    def _run(self, root: Path, journal: Path, seed: int) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(PATHS),
            "LD_PRELOAD": str(self._library),
            "JOURNAL": str(journal),
            "JOURNAL_ROOT": str(root),
        }
        words = [str(root), str(seed), "acks" if self._acks else "none"]
        command = [sys.executable, "-m", "copy_power", *words]
        subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=True)

    def _check(self, root: Path, acknowledged: list[int], chance: Random) -> None:
        found = self._restored(root, "restored")
        wanted = max(acknowledged, default=-1) + 1
        if self._acks:
            assert len(found) >= wanted
        store = Store(root, chance.randrange(1 << 30), acks=self._acks)
        had = numbers(store.engine)
        assert had == list(range(len(had)))
        assert len(had) >= max(wanted, len(found))
        for number in range(len(had), len(had) + 3):
            store.write(number)
            if not self._acks:
                store.step()
        self.counts["writes"] += len(had)
        store.close()
        assert self._restored(root, "again") == list(range(len(had) + 3))
        problems = verify(place_in(root), None).problems
        assert problems == []

    def _restored(self, root: Path, name: str) -> list[int]:
        """The numbers that a restore finds: all up to some number."""
        place: Any = place_in(root)
        try:
            restore(place, root / name, None, owner=name)
        except CopyError as error:
            assert "no base" in str(error) or "no server has shipped" in str(error), error
            self.counts["no base"] += 1
            return []
        self.counts["restores"] += 1
        engine = EmbeddedEngine(root / name)
        found = numbers(engine)
        engine.close()
        assert found == list(range(len(found)))
        return found


def _acknowledge(line: str) -> None:
    os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    live(Path(sys.argv[1]), int(sys.argv[2]), _acknowledge, acks=sys.argv[3] == "acks")
