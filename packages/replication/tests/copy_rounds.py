"""Rounds of a store that ships to a bad bucket, on clocks that stand still: what do restores find?

A round draws acts from its seed: writes, seconds that pass, steps of the three threads, clean ends, crashes,
and disks that are lost, after which a restored directory goes on. Meanwhile the bucket is well, away, or bad
(`Rough`); a crash may come at any of its requests. After each crash, and at the end, the copy is restored. It
must have the state of the store after one of its writes, and at least

    with acknowledgements by the bucket    all writes that were acknowledged
    without                                all that the gauge of the lag had said to be there, at any time

Each write has a number, which is in the store, too.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Condition
from typing import Any, Final

from hashrange.buckets import Unreachable
from hashrange.buckets.folders import Folders
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.failures import CommitFailed, CommitUnknown, StorageError
from hashrange_replication.failures import CopyError
from hashrange_replication.restore import restore
from hashrange_replication.running import Options
from hashrange_replication.verify import verify
from shipping import Faulty, World, key_of, place_in

SPACE: Final = 5
P: Final = b"p"
COUNTER: Final = b"counter"
KEYS: Final = 6
ACTS: Final = 40
FAULTS: Final = ("", "", "refused", "lost", "half", "twice", "late")
State = dict[bytes, bytes]


class Rough(Faulty):
    """A bucket that does what `Faulty` can, and "late": the request fails, and is made at a later time, so
    that requests come out of order."""

    def __init__(self, inner: Folders, chance: Random) -> None:
        super().__init__(inner)
        self._chance = chance
        self._late: list[Callable[[], Any]] = []
        self.mood = "well"
        self.dies_in = -1
        """After how many requests nothing reaches the bucket any more, because the process was killed."""
        self.fault = self._fault

    def _fault(self, name: str, key: str) -> str:
        if self.dies_in >= 0:
            self.dies_in -= 1
            if self.dies_in < 0:
                self.mood = "away"
                return self._chance.choice(("refused", "lost", "half", "late"))
        return {"well": "", "away": "refused"}.get(self.mood) or (
            self._chance.choice(FAULTS) if self.mood == "bad" else ""
        )

    def _do(self, name: str, key: str, request: Callable[[], Any]) -> Any:
        if name != "put":
            return super()._do(name, key, request)
        what = self.fault(name, key)
        fault, self.fault = self.fault, lambda name, key: what
        try:
            if what != "late":
                return super()._do(name, key, request)
            self._late.append(request)
            raise Unreachable(f"{name} of {key} is late")
        finally:
            self.fault = fault

    def deliver(self) -> None:
        """Some of the late requests arrive, in any order."""
        self._chance.shuffle(self._late)
        for _ in range(self._chance.randint(0, len(self._late))):
            with suppress(Exception):  # nobody waits for the answer
                self._late.pop()()

    def forget(self) -> None:
        """What is late does not arrive any more."""
        self._late.clear()


class _Stepping(Condition):
    """Whoever waits for the bucket lets the shipping thread work, and the time pass."""

    def __init__(self, step: Callable[[], None]) -> None:
        super().__init__()
        self._step = step

    def wait(self, timeout: float | None = None) -> bool:
        self._step()
        return True


class Round:
    """One round; `counts` says what happened. Raises AssertionError, with the seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed = seed
        self.counts: dict[str, int] = {}
        self._chance = chance = Random(seed)
        self._folder = folder
        self._bucket = Rough(Folders(folder), chance)
        self._place = place_in(folder, self._bucket)
        self._key = key_of(1) if chance.random() < 0.3 else None
        acks = chance.random() < 0.5
        spool = chance.choice((3_000, 1 << 20))
        self._options = Options(acks=acks, ack_seconds=5.0, spool_bytes=spool)
        self._states: list[State] = [{}]
        self._moments: list[float] = [0.0]
        self._needed = 0  # the number of the last write that a restore must have
        self._directories = 0
        self._tell("with acks" if acks else "without acks")
        self._world = self._opened()

    def play(self) -> None:
        acts = [self._write] * 5 + [self._pass] * 3 + [self._ship] * 3
        acts += [self._lease, self._base, self._base, self._mood, self._mood, self._bucket.deliver]
        acts += [self._end, self._crash, self._crash_soon, self._lose]
        try:
            for _ in range(ACTS):
                self._chance.choice(acts)()
                self._look()
                if self._bucket.dies_in < 0 and self._dying:
                    self._crash()
            self._recover()
        except BaseException as error:
            error.add_note(f"seed {self.seed}, in {self._folder}: {self.counts}")
            raise
        finally:
            with suppress(StorageError):
                self._world.database.close()

    # The store.

    def _opened(self) -> World:
        """Open the directory, once the bucket lets it."""
        self._dying = False
        directory = self._folder / f"data {self._directories}"
        while True:
            try:
                world = World(directory, self._place, self._key, self._options, **self._clocks())
                break
            except OSError:
                self._tell("no start")
                self._bucket.mood = self._chance.choice(("well", "bad"))
        if self._options.acks:
            shipper: Any = world.copying.shipper
            shipper._changed = _Stepping(lambda: self._while_waiting(world))
        return world

    def _clocks(self) -> dict[str, Any]:
        world: World | None = getattr(self, "_world", None)
        return {} if world is None else {"now": world.now, "clock": world.clock}

    def _while_waiting(self, world: World) -> None:
        world.copying.ship()
        self._seconds(world, 0.5)

    def _seconds(self, world: World, seconds: float) -> None:
        world.now.advance(seconds)
        world.clock.advance(seconds)

    # The acts.

    def _write(self) -> None:
        number = len(self._states)
        key = b"%d" % self._chance.randrange(KEYS)
        value = None if self._chance.random() < 0.2 else self._chance.randbytes(self._chance.choice((9, 400)))
        state = {**self._states[-1], COUNTER: b"%d" % number}
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value

        def body(txn: Transaction) -> None:
            txn.put(SPACE, P, COUNTER, b"%d" % number)
            if value is None:
                txn.delete(SPACE, P, key)
            else:
                txn.put(SPACE, P, key, value)

        moment = self._world.clock.now()
        try:
            self._world.engine.write(body)
        except CommitFailed:
            self._tell("refused writes")
            return
        except CommitUnknown:
            self._tell("unknown writes")
        else:
            self._tell("writes")
            if self._options.acks:
                self._needed = number
        self._states.append(state)
        self._moments.append(moment)

    def _pass(self) -> None:
        self._seconds(self._world, self._chance.choice((0.1, 1.0, 1.0, 40.0)))

    def _ship(self) -> None:
        self._world.copying.ship()

    def _lease(self) -> None:
        self._world.copying.keep_lease()

    def _base(self) -> None:
        self._world.copying.make_base()

    def _mood(self) -> None:
        self._bucket.mood = self._chance.choice(("well", "away", "bad", "bad"))

    def _crash_soon(self) -> None:
        self._bucket.dies_in = self._chance.randrange(12)
        self._dying = True

    def _end(self) -> None:
        self._tell("ends")
        self._world.close()
        self._bucket.mood = self._chance.choice((self._bucket.mood, "well"))
        self._world = self._opened()

    def _crash(self) -> None:
        self._stop()
        self._tell("crashes")
        self._judge()
        self._world = self._opened()

    def _lose(self) -> None:
        """The disk is lost, and another machine goes on, after all that the first one has sent."""
        self._stop()
        self._bucket.deliver()
        self._bucket.forget()
        restored = self._judge()
        if restored is None:
            self._world = self._opened()
            return
        self._tell("lost disks")
        self._directories += 1
        found, directory = restored
        directory.rename(self._folder / f"data {self._directories}")
        del self._states[found + 1 :], self._moments[found + 1 :]
        self._bucket.mood = "well"
        self._world = self._opened()

    def _stop(self) -> None:
        self._bucket.dies_in = -1
        with suppress(StorageError):
            self._world.engine.follow(None)
        with suppress(StorageError):
            self._world.database.close()

    # The judge.

    def _look(self) -> None:
        """What the gauge says is in the bucket."""
        copying, now = self._world.copying, self._world.clock.now()
        seconds, bytes_ = copying.shipper.lag()
        assert bytes_ >= 0
        if not self._options.acks:
            said = [number for number, moment in enumerate(self._moments) if moment < now - seconds - 0.002]
            self._needed = max(self._needed, *said)

    def _judge(self) -> tuple[int, Path] | None:
        """Restore the copy; returns the number of its last write, and where it is. None: there is no base."""
        mood, self._bucket.mood = self._bucket.mood, "well"
        directory = self._folder / "restored"
        shutil.rmtree(directory, ignore_errors=True)
        try:
            restore(self._place, directory, self._key, owner=f"restore {self._chance.random()}")
        except CopyError as error:
            assert "no base" in str(error) or "There is no copy" in str(error), error
            assert self._needed == 0
            return None
        engine = EmbeddedEngine(directory)
        state = engine.read(_read)
        engine.close()
        found = int(state.get(COUNTER, b"0"))
        self._tell("restores")
        assert state == self._states[found]
        assert found >= self._needed
        problems = [one for one in verify(self._place, self._key).problems if "restored" not in one]
        assert problems == []
        self._bucket.mood = mood
        return found, directory

    def _recover(self) -> None:
        """In the end the bucket is well again, and has everything."""
        self._bucket.deliver()
        self._bucket.mood, self._bucket.dies_in = "well", -1
        for _ in range(4):
            self._seconds(self._world, 60.0)
            self._world.copying.keep_lease()
            self._world.copying.ship()
            self._world.copying.make_base()
            self._world.copying.ship()
        assert self._world.copying.shipper.lag() == (0.0, 0)
        assert not self._world.copying.problem()
        self._needed = len(self._states) - 1
        assert self._judge() is not None
        self._world.close()

    def _tell(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


def _read(reader: Reader) -> State:
    return dict(reader.scan(SPACE, P))
