"""A store that ships to a folder, step by step, on clocks that stand still; and a bucket with faults."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from hashrange.buckets import Buckets, Content, Object, ObjectReader, ObjectWriter, Unreachable
from hashrange.buckets.folders import Folders
from hashrange.clock import ManualClock
from hashrange.database import Database, Settings
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange_replication.drill import digests
from hashrange_replication.format.sealing import Key
from hashrange_replication.place import Place
from hashrange_replication.restore import Restored, restore
from hashrange_replication.running import Copying, Options, Setup
from worlds import create

BEGIN = 1_700_000_000.0
BUCKET = "copy"


class Time:
    """A clock of which tests say how it goes on."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.seconds = now

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


def random_bytes(length: int) -> bytes:
    return random.randbytes(length)


def key_of(number: int) -> Key:
    return Key(bytes([number]) * 32, random_bytes)


def place_in(folder: Path, buckets: Buckets | None = None) -> Place:
    """The place of a copy in a folder."""
    (folder / BUCKET).mkdir(parents=True, exist_ok=True)
    return Place(buckets or Folders(folder), BUCKET, "", str(folder / BUCKET))


class World:
    """A database in a directory, with clocks of its own."""

    def __init__(
        self,
        directory: Path,
        place: Place,
        key: Key | None = None,
        options: Options = Options(),  # noqa: B008 (immutable)
        *,
        now: Time | None = None,
        clock: ManualClock | None = None,
        settings: Settings = Settings(),  # noqa: B008 (immutable)
        logged_bytes_max: int = 2 << 20,
    ) -> None:
        self.directory = directory
        self.place = place
        self.key = key
        self.options = options
        self.now = now or Time()
        self.clock = clock or ManualClock(BEGIN)
        self.settings = settings
        self.logged_bytes_max = logged_bytes_max
        self.open()

    def open(self) -> None:
        """Open the store, and begin to ship."""
        self.engine = EmbeddedEngine(self.directory, logged_bytes_max=self.logged_bytes_max)
        settings = self.settings.with_data_dir(str(self.directory))
        self.database = Database(self.engine, settings=settings, clock=self.clock)
        setup = Setup(
            directory=self.directory,
            place=self.place,
            key=self.key,
            options=self.options,
            where=f"the test in {self.directory.name}",
            clock=self.clock.now,
            now=self.now,
            random=random_bytes,
            wait=self.now.advance,
        )
        self.copying = Copying(self.engine, setup)
        try:
            self.copying.begin()
        except BaseException:
            self.database.close()
            raise

    def step(self) -> None:
        """What the threads do in a second."""
        self.now.advance(1.0)
        self.clock.advance(1.0)
        self.copying.ship()
        self.copying.make_base()
        self.copying.ship()

    def close(self) -> None:
        self.copying.close()
        self.database.close()

    def crash(self) -> None:
        """End without shipping anything more. (The store is closed, so that it can be opened again.)"""
        self.engine.follow(None)
        self.database.close()


def begun(world: World) -> World:
    """A world with a table, whose copy has a base."""
    create(world.database, "table", "p")
    world.step()
    return world


def contents(engine: Engine) -> dict[bytes, Any]:
    """All records of an engine, in all spaces that a test can have."""
    found: dict[bytes, Any] = {}

    def read(reader: Any) -> None:
        for space in range(400):
            for partition, sort, value in reader.scan_space(space):
                found[space.to_bytes(4) + bytes([len(partition)]) + partition + sort] = value
            found[space.to_bytes(4)] = tuple(reader.totals(space))

    engine.read(read)
    return found


def restored(
    place: Place, directory: Path, key: Key | None = None, until: float | None = None
) -> tuple[Restored, dict[bytes, Any]]:
    """Restore a copy, and read all records of the new directory. `until` is in epoch seconds."""
    millis = None if until is None else int(until * 1_000)
    done = restore(place, directory, key, owner="of a restore", until=millis)
    engine = EmbeddedEngine(directory)
    try:
        return done, contents(engine)
    finally:
        engine.close()


class Faulty:
    """A bucket whose requests fail as `fault` says: it is called with the request's name and the key, and
    returns what happens:

    ""          nothing
    "refused"   the request is not made
    "lost"      the request is made, and its answer is lost
    "half"      an object that is written piece by piece is cut off; others are as "refused"
    "twice"     the request is made twice
    """

    def __init__(self, inner: Buckets) -> None:
        self._inner = inner
        self.fault: Callable[[str, str], str] = lambda name, key: ""
        self.calls: list[tuple[str, str]] = []

    def _do(self, name: str, key: str, request: Callable[[], Any]) -> Any:
        self.calls.append((name, key))
        what = self.fault(name, key)
        if what in ("refused", "half"):
            raise Unreachable(f"{name} of {key} failed")
        answer = request()
        if what in ("twice", "lost") and name == "open":
            answer.close()
        if what == "twice":
            answer = request()
        if what == "lost":
            raise Unreachable(f"the answer to {name} of {key} was lost")
        return answer

    def check(self, bucket: str) -> None:
        self._do("check", "", lambda: self._inner.check(bucket))

    def list(self, bucket: str, prefix: str, after: str = "") -> Iterator[Object]:
        return iter(self._do("list", prefix, lambda: list(self._inner.list(bucket, prefix, after))))

    def open(self, bucket: str, item_object: Object, offset: int = 0) -> ObjectReader:
        reader: ObjectReader = self._do(
            "open", item_object.key, lambda: self._inner.open(bucket, item_object, offset)
        )
        return reader

    def create(self, bucket: str, key: str) -> AbstractContextManager[ObjectWriter]:
        what = self.fault("create", key)
        self.calls.append(("create", key))
        if what == "refused":
            raise Unreachable(f"create of {key} failed")
        return _Creating(self._inner.create(bucket, key), what, key)

    def read(self, bucket: str, key: str) -> tuple[bytes, str]:
        answer: tuple[bytes, str] = self._do("read", key, lambda: self._inner.read(bucket, key))
        return answer

    def put(
        self, bucket: str, key: str, content: Content, *, etag: str | None = None, new: bool = False
    ) -> str:
        answer: str = self._do("put", key, lambda: self._inner.put(bucket, key, content, etag=etag, new=new))
        return answer

    def delete(self, bucket: str, key: str) -> None:
        self._do("delete", key, lambda: self._inner.delete(bucket, key))


class _Creating:
    """An object that is being written."""

    def __init__(self, inner: AbstractContextManager[ObjectWriter], what: str, key: str) -> None:
        self._inner = inner
        self._what = what
        self._key = key
        self._sink: ObjectWriter | None = None
        self.etag = ""

    def __enter__(self) -> ObjectWriter:
        self._sink = self._inner.__enter__()
        return self

    def write(self, data: bytes, /) -> object:
        assert self._sink is not None
        if self._what == "half":
            self._sink.write(data[: len(data) // 2])
            raise Unreachable(f"the connection was lost while {self._key} was written")
        return self._sink.write(data)

    def __exit__(self, *error: Any) -> bool | None:
        done = self._inner.__exit__(*error)
        if self._what == "lost" and error[0] is None:
            raise Unreachable(f"the answer to create of {self._key} was lost")
        return done


__all__ = ["BEGIN", "Faulty", "Time", "World", "contents", "digests", "key_of", "place_in", "restored"]
