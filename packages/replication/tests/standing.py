"""A standby in process, step by step, on clocks that stand still."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from hashrange.clock import ManualClock
from hashrange.database import Database, Settings
from hashrange.storage.embedded import EmbeddedEngine
from hashrange_replication.format.sealing import Key
from hashrange_replication.place import Place
from hashrange_replication.restore import Progress
from hashrange_replication.running import Copying, Options, Setup
from hashrange_replication.standby.following import Standby
from hashrange_replication.standby.opening import make_ready, restore_beside
from hashrange_replication.standby.refusing import Refusing
from shipping import Time, World, random_bytes


class Standing:
    """A standby in a directory, as `hashrange standby` makes it; `again` are the reasons for which it has
    renounced its directory, `looks` what `look` has found while it was restored."""

    def __init__(
        self,
        directory: Path,
        place: Place,
        key: Key | None = None,
        *,
        now: Time,
        clock: ManualClock,
        options: Options = Options(),  # noqa: B008 (immutable)
        promote_after: float | None = None,
        logged_bytes_max: int = 2 << 20,
    ) -> None:
        self.directory = directory
        self.place = place
        self.key = key
        self.now = now
        self.clock = clock
        self.options = options
        self.promote_after = promote_after
        self.logged_bytes_max = logged_bytes_max
        self.wait: Callable[[float], object] = now.advance
        self.again: list[str] = []
        self.look: Callable[[], Any] = lambda: None
        self.looks: list[Any] = []
        self.told: list[str] = []
        self.copying: Copying | None = None
        self.promoted = 0
        self.open()

    def open(self) -> None:
        """Make the directory ready, and begin to follow."""
        make_ready(self.place, self.directory, self.key, random_bytes)
        self.engine = EmbeddedEngine(self.directory, logged_bytes_max=self.logged_bytes_max)
        settings = Settings().with_data_dir(str(self.directory))
        self.database = Database(self.engine, settings=settings, clock=self.clock)
        try:
            setup = Setup(
                directory=self.directory,
                place=self.place,
                key=self.key,
                options=self.options,
                where=f"the standby in {self.directory.name}",
                clock=self.clock.now,
                now=self.now,
                random=random_bytes,
                wait=lambda seconds: self.wait(seconds),
            )
            self.standby = Standby(self.engine, setup, promote_after=self.promote_after)
            self.standby.begin()
        except BaseException:
            self.database.close()
            raise
        self.refusing = Refusing(self.standby.refusal)
        self.database.observers.observe(self.refusing)
        self.database.background.paused = True
        self.standby.again = self._restore
        self.standby.promoted = self._promoted

    def _restore(self, why: str, progress: Progress) -> None:
        def looking(step: str, done: int, total: int) -> None:
            self.looks.append(self.look())
            progress(step, done, total)
            self.told.append(self.standby.shown()["restoring"])

        restore_beside(self.place, self.directory, self.key, why, looking)
        self.again.append(why)

    def _promoted(self, copying: Copying) -> None:
        self.copying = copying
        self.promoted += 1
        self.database.background.paused = False
        self.database.observers.observe(self.refusing, False)

    def step(self) -> None:
        """A step, which has to work."""
        self.standby.step()
        assert self.standby.problem == ""

    def execute(self, operation: str, **request: Any) -> Any:
        return self.database.execute(operation, request)

    def close(self) -> None:
        self.standby.close()
        if self.copying is not None:
            self.copying.close()
        self.database.close()

    def crash(self) -> None:
        """End without a note. (The store is closed, so that it can be opened again.)"""
        self.engine.follow(None)
        self.database.close()


def plain(answer: Any) -> Any:
    """An answer as a client gets it."""
    return orjson.loads(orjson.dumps(answer))


def standing(world: World, name: str = "standby", **given: Any) -> Standing:
    """A standby beside a world that ships, on the same clocks, to which the primary has agreed."""
    directory = world.directory.parent / name
    made = Standing(directory, world.place, world.key, now=world.now, clock=world.clock, **given)
    made.step()
    world.copying.keep_lease()
    made.step()
    return made
