"""The crash of the machine: writes survive a power failure.

A child writes, and a journal records its calls of the file system. For random moments of the journal, the
test makes a disk as a power failure might leave it (`power`), and opens the store on it: all acknowledged
writes must be there, and none in part. Each child is cut off at many moments; the next child begins on the
disk of the last cut.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Semaphore, Thread

from crash import storage_level
from crash.power import Disk, read_journal
from hashrange.storage.api import Reader
from hashrange.storage.embedded import EmbeddedEngine

TESTS = Path(__file__).resolve().parents[1]
CUTS_PER_LIFE = 20
BODIES_PER_TURN = 60
LARGE_BYTES = 1_000

Acknowledge = Callable[[str], None]


def build(directory: Path) -> Path | None:
    """The shared library that writes the journal; None if it cannot be built."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = directory / "journal.so"
    source = Path(__file__).with_name("journal.c")
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return library


def bodies_done(reader: Reader) -> int:
    """The number of bodies whose records a reader sees."""
    return int(reader.get(storage_level.COUNTER, storage_level.P, b"") or b"0")


def live(directory: str, acknowledge: Acknowledge) -> None:
    """The work of a child: open, write from threads, copy, close; open again and write."""
    for turn in range(2):
        # A small buffer lets flushes and compactions happen. A quarter of the batches of the second turn
        # are too large for the log.
        engine = EmbeddedEngine(
            directory, write_buffer_bytes=64 * 1024, logged_bytes_max=(2**24, LARGE_BYTES)[turn]
        )
        done = engine.read(storage_level.numbers_done)

        def write(worker: int, engine: EmbeddedEngine = engine, done: dict[int, int] = done) -> None:
            for number in range(done[worker], done[worker] + BODIES_PER_TURN):
                sequence = engine.write(storage_level.body_of(worker, number))
                acknowledge(f"{worker} {number} {sequence}")

        def submit(worker: int, engine: EmbeddedEngine = engine, done: dict[int, int] = done) -> None:
            left = Semaphore(0)

            def receiver(number: int) -> Callable[[int, Exception | None], None]:
                def receive(sequence: int, error: Exception | None) -> None:
                    if error is None:
                        acknowledge(f"{worker} {number} {sequence}")
                    left.release()

                return receive

            for number in range(done[worker], done[worker] + BODIES_PER_TURN):
                engine.submit(storage_level.body_of(worker, number), receiver(number))
            for _ in range(BODIES_PER_TURN):
                left.acquire()

        threads = [Thread(target=work, args=(worker,)) for worker, work in enumerate((write, write, submit))]
        for thread in threads:
            thread.start()
        seen = 0
        while any(thread.is_alive() for thread in threads):
            # Records that a reader saw must not be lost either.
            count = engine.read(bodies_done)
            if count != seen:
                acknowledge(f"seen {count}")
                seen = count
        if turn == 0:
            copy = Path(directory).parent / f"copy-{os.getpid()}"
            engine.checkpoint(str(copy))
            acknowledge(f"copy {copy.name}")
        engine.close()


def play(directory: Path, library: Path, rounds: int, seed: int) -> int:
    """Play rounds; return how many writes survived. AssertionError: something was lost or torn."""
    chance = random.Random(seed)
    survived = 0
    acknowledged: list[str] = []
    before = directory / "before"
    before.mkdir()
    for first in range(0, rounds, CUTS_PER_LIFE):
        root = directory / "root"
        before.rename(root)
        disk = Disk(root)
        journal = directory / "journal"
        journal.unlink(missing_ok=True)
        _run(root / "new" / "data", library, journal, root)
        events = list(read_journal(journal))
        # Half of the moments come right after an acknowledgement, which is the worst time for a crash.
        moments = [at + 1 for at, event in enumerate(events) if event.kind == "A"]
        cuts = sorted(
            chance.choice(moments) if chance.random() < 0.5 else chance.randrange(len(events))
            for _ in range(min(CUTS_PER_LIFE, rounds - first))
        )
        at = 0
        for cut in cuts:
            for event in events[at:cut]:
                disk.follow(event)
                if event.kind == "A":
                    acknowledged += event.data.decode().splitlines()
            at = max(at, cut)
            shutil.rmtree(before, ignore_errors=True)
            disk.cut(before, chance)
            cut_disk = directory / "cut"
            shutil.copytree(before, cut_disk)
            try:
                survived += check(before, acknowledged)
            except BaseException:
                life = first // CUTS_PER_LIFE
                print(
                    f"seed {seed}, life {life}, cut at {cut} of {len(events)}, in {cut_disk}", file=sys.stderr
                )
                raise
            shutil.rmtree(before)
            cut_disk.rename(before)
        shutil.rmtree(root)
    return survived


def check(root: Path, acknowledged: list[str]) -> int:
    """Assert that the store holds what was acknowledged, and so do its copies."""
    earlier: list[str] = []
    seen_count = 0
    for line in acknowledged:
        word, _, rest = line.partition(" ")
        if word == "copy":
            storage_level.check(str(root / "new" / rest), earlier)
        elif word == "seen":
            seen_count = int(rest)
        else:
            earlier.append(line)
    if not earlier and not (root / "new" / "data").exists():
        return 0
    count = storage_level.check(str(root / "new" / "data"), earlier)
    assert count >= seen_count, f"a reader saw {seen_count} bodies, and {count} are there"
    return count


def _run(data: Path, library: Path, journal: Path, root: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent / "src"))),
        "LD_PRELOAD": str(library),
        "JOURNAL": str(journal),
        "JOURNAL_ROOT": str(root),
    }
    command = [sys.executable, "-m", "crash.child", "machine", str(data)]
    subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=True)
