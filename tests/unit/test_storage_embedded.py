"""What only the embedded engine does: directories, keys, checkpoints, disks that fail."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocksdict import Options, Rdict

from hashrange.storage.api import Reader, Totals, Transaction
from hashrange.storage.embedded import EmbeddedEngine, keys
from hashrange.storage.embedded.view import KEPT_SPACE
from hashrange.storage.failures import CommitFailed, DataDirectoryLocked, StorageError, UnknownFormat
from hashrange_engine_tests import faults

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
P = b"partition"


def run_child(script: str, *arguments: str) -> str:
    """The output of a Python program in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_key_vectors_of_the_docstring() -> None:
    documented = [
        line.split()
        for line in (ROOT / "src/hashrange/storage/embedded/keys.py")
        .read_text()
        .split("space  partition  sort   key\n")[1]
        .split("\n\n")[0]
        .splitlines()
    ]
    assert len(documented) == 4
    for space, partition, sort, *key in documented:
        parts = [b"" if text == "-" else bytes.fromhex(text) for text in (partition, sort)]
        address = (int(space), parts[0], parts[1])
        assert keys.pack(*address).hex() == "".join(key)
        assert keys.unpack(bytes.fromhex("".join(key))) == address


partitions = st.binary(max_size=32)
sorts = st.binary(max_size=40)
spaces = st.integers(0, keys.ENGINE_SPACE)


@given(spaces, partitions, sorts)
def test_keys_unpack_to_what_was_packed(space: int, partition: bytes, sort: bytes) -> None:
    assert keys.unpack(keys.pack(space, partition, sort)) == (space, partition, sort)


@given(
    spaces,
    st.integers(0, 4).flatmap(lambda n: st.lists(st.binary(min_size=n, max_size=n), min_size=2)),
    sorts,
)
def test_keys_of_a_space_are_ordered_as_their_addresses(space: int, same: list[bytes], sort: bytes) -> None:
    addresses = [(partition, sort[: index % 5]) for index, partition in enumerate(same)]
    by_key = sorted(addresses, key=lambda address: keys.pack(space, *address))
    assert by_key == sorted(addresses)


@given(st.binary(min_size=1, max_size=8).filter(lambda b: b.strip(b"\xff")), st.binary(max_size=8))
def test_after_is_above_all_that_starts_so(prefix: bytes, rest: bytes) -> None:
    assert prefix + rest < keys.after(prefix)


def test_a_directory_is_locked(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    with pytest.raises(DataDirectoryLocked, match=r"data is in use by another process.*Stop"):
        EmbeddedEngine(tmp_path / "data")
    script = """
        import sys
        from hashrange.storage.failures import DataDirectoryLocked
        from hashrange.storage.embedded import EmbeddedEngine
        try:
            EmbeddedEngine(sys.argv[1])
        except DataDirectoryLocked as error:
            print(error)
    """
    assert f"{tmp_path / 'data'} is in use" in run_child(script, str(tmp_path / "data"))
    engine.close()
    EmbeddedEngine(tmp_path / "data").close()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("FORMAT", b"hashrange data 5\n", "has format 5; this version of Hashrange opens format 4"),
        ("FORMAT", b"something else", "was not written by Hashrange"),
        ("FORMAT", b"\xff\xfe", "was not written by Hashrange"),
        ("diary.txt", b"", "not empty and is not a Hashrange data directory .it holds 'diary.txt'"),
    ],
)
def test_foreign_directories_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnknownFormat, match=message):
        EmbeddedEngine(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_an_unfinished_start_and_a_fresh_volume_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "FORMAT.new").write_text("hash")
    EmbeddedEngine(tmp_path).close()
    assert (tmp_path / "FORMAT").read_text() == "hashrange data 4\n"


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be used"):
        EmbeddedEngine(tmp_path / "file")


@pytest.mark.parametrize("round_", range(10))
def test_writers_leave_a_checkpoint_its_turn(tmp_path: Path, round_: int) -> None:
    """It is made after the commit under way, before the one that collects meanwhile."""
    engine = EmbeddedEngine(tmp_path / "data")
    under_way, goes_on = Event(), Event()

    def hold(moment: str) -> None:
        if moment == "after" and not under_way.is_set():
            under_way.set()
            goes_on.wait()

    engine.commit_fault = hold
    commits = engine._commits
    first = Thread(target=lambda: engine.write(lambda txn: txn.put(64, P, b"first", b"")))
    first.start()
    under_way.wait()
    second = Thread(target=lambda: engine.write(lambda txn: txn.put(64, P, b"second", b"")))
    second.start()
    checkpoint = Thread(target=lambda: engine.checkpoint(str(tmp_path / "copy")))
    checkpoint.start()
    while not (commits._checkpoints and commits.collecting.waiters):
        second.join(0.001)  # until both wait
    goes_on.set()
    for thread in (first, second, checkpoint):
        thread.join()
    engine.close()
    copy = EmbeddedEngine(tmp_path / "copy")
    assert copy.read(lambda reader: [sort for sort, _ in reader.scan(64, P)]) == [b"first"]
    copy.close()


def test_checkpoint(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")

    def fill(txn: Transaction) -> None:
        for n in range(100):
            txn.put(1, P, b"%03d" % n, b"then")

    engine.write(fill)
    engine.checkpoint(str(tmp_path / "copy"))
    engine.write(lambda txn: txn.put(1, P, b"000", b"later"))
    with pytest.raises(StorageError, match="not empty"):
        engine.checkpoint(str(tmp_path / "copy"))
    copy = EmbeddedEngine(tmp_path / "copy")
    rows = copy.read(lambda reader: list(reader.scan(1, P)))
    assert rows == [(b"%03d" % n, b"then") for n in range(100)]
    copy.write(lambda txn: txn.put(1, P, b"000", b"apart"))
    assert engine.read(lambda reader: reader.get(1, P, b"000")) == b"later"
    copy.close()
    engine.close()


def test_every_opening_gives_rocksdb_its_options(tmp_path: Path) -> None:
    """The cache and the filters, which RocksDB's file of options does not hold."""
    cache_bytes = 24 * 1024 * 1024

    def inspect(engine: EmbeddedEngine, name: bytes) -> None:
        engine.write(lambda txn: txn.put(1, P, name, b""))
        assert engine._store.db.property_int_value("rocksdb.block-cache-capacity") == cache_bytes
        # What RocksDB itself notes of the options that it was opened with.
        in_use = max((tmp_path / "data/rocks").glob("OPTIONS-*")).read_text()
        assert "filter_policy=bloomfilter" in in_use
        assert "block_size=8192" in in_use

    engine = EmbeddedEngine(tmp_path / "data", cache_bytes=cache_bytes)
    inspect(engine, b"new")
    engine.close()
    engine = EmbeddedEngine(tmp_path / "data", cache_bytes=cache_bytes)
    inspect(engine, b"opened again")
    with faults.failing(engine), pytest.raises(CommitFailed):
        engine.write(lambda txn: txn.put(1, P, b"", b""))
    inspect(engine, b"repaired")
    engine.close()

    # A store that was opened without them, as every one that was opened twice by an earlier version.
    Rdict(str(tmp_path / "data/rocks"), Options(raw_mode=True)).close()
    engine = EmbeddedEngine(tmp_path / "data", cache_bytes=cache_bytes)
    inspect(engine, b"mended")
    engine.close()


def test_readers_see_nothing_of_a_batch_before_it_is_durable(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    before = [(b"a", b"1"), (b"b", b"1"), (b"d", b"1")]

    def start(txn: Transaction) -> None:
        for sort, value in before:
            txn.put(1, P, sort, value)
        txn.put(2, P, b"", b"")
        txn.count(1, 3, 3)

    def change(txn: Transaction) -> None:
        txn.put(1, P, b"0", b"2")
        txn.put(1, P, b"b", b"2")
        txn.put(1, P, b"c", b"2")
        txn.delete(1, P, b"d")
        txn.delete_space(2)
        txn.count(1, 1, 1)

    def look(reader: Reader) -> Any:
        scanned = list(reader.scan(1, P))
        assert list(reader.scan(1, P, reverse=True)) == scanned[::-1]
        assert [(sort, reader.get(1, P, sort)) for sort, _ in scanned] == scanned
        return scanned, len(list(reader.scan_space(2))), reader.totals(1), reader.get(1, P, b"c")

    seen = []
    engine.write(start)
    with faults.at(engine, "after", lambda: seen.append(engine.read(look))):
        engine.write(change)
    after = [(b"0", b"2"), (b"a", b"1"), (b"b", b"2"), (b"c", b"2")]
    assert seen == [(before, 1, Totals(3, 3), None)]
    assert engine.read(look) == (after, 0, Totals(4, 4), b"2")
    engine.close()


def test_the_totals_of_few_spaces_are_kept_in_memory(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    spaces = range(1, 15_001)

    def count(low: int, txn: Transaction) -> None:
        for space in spaces[low : low + 5_000]:
            txn.count(space, 1, space)

    for low in (*range(0, len(spaces), 5_000), *range(0, len(spaces), 5_000)):
        engine.write(partial(count, low))
    assert len(engine._store._totals) <= 10_000 + 5_000
    assert engine.read(lambda reader: [reader.totals(space) for space in spaces]) == [
        Totals(2, 2 * space) for space in spaces
    ]
    engine.close()


def test_a_long_read_keeps_its_moment_over_many_batches(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")

    def fill(value: bytes, count: int) -> Callable[[Transaction], None]:
        def body(txn: Transaction) -> None:
            for n in range(count):
                txn.put(1, P, b"%d" % n, value)

        return body

    engine.write(fill(b"old", 5))

    def look(reader: Reader) -> Any:
        for count in range(8):
            engine_write(fill(b"new", count))
        engine_write(lambda txn: txn.delete(1, P, b"4"))
        engine_write(lambda txn: txn.delete_space(1))
        engine_write(lambda txn: txn.put(2, P, b"", b""))
        return list(reader.scan(1, P)), reader.get(1, P, b"0"), reader.get(1, P, b"7")

    def engine_write(body: Any) -> None:
        writer = Thread(target=engine.write, args=(body,))
        writer.start()
        writer.join()

    assert engine.read(look) == ([(b"%d" % n, b"old") for n in range(5)], b"old", None)
    assert engine.read(lambda reader: list(reader.scan(1, P))) == []
    engine.write(lambda txn: txn.put(2, P, b"", b""))
    engine.close()


@pytest.mark.parametrize("recent_bytes", [0, 1_500, 1_000_000])
def test_a_write_reads_what_was_committed_last(tmp_path: Path, recent_bytes: int) -> None:
    """From memory while it is there, from RocksDB when it is not, and from RocksDB after a failed commit."""
    engine = EmbeddedEngine(tmp_path / "data", recent_bytes=recent_bytes)
    known: dict[bytes, bytes] = {}

    def change(txn: Transaction, sort: bytes, value: bytes | None) -> None:
        for one in (b"%d" % n for n in range(5)):
            assert txn.get(1, P, one) == known.get(one)
        if value is None:
            txn.delete(1, P, sort)
        else:
            txn.put(1, P, sort, value)

    for turn in range(40):
        sort = b"%d" % (turn * 3 % 5)
        value = None if turn % 4 == 3 else b"v%d" % turn
        if turn % 10 == 9:
            with faults.failing(engine), pytest.raises(CommitFailed):
                engine.write(partial(change, sort=sort, value=b"lost"))
        engine.write(partial(change, sort=sort, value=value))
        if value is None:
            known.pop(sort, None)
        else:
            known[sort] = value
    engine.close()


def test_bodies_that_find_the_batch_full_queue(tmp_path: Path) -> None:
    """They keep their order, and the submitter does not wait: here the commit under way cannot end before
    all is submitted."""
    engine = EmbeddedEngine(tmp_path / "data", batch_bodies_max=3)
    sizes: list[int] = []
    results: list[int] = []
    submitted = Event()

    def done(result: int, error: Exception | None) -> None:
        assert error is None
        results.append(result)

    def note() -> None:
        assert submitted.wait(30)
        sizes.append(engine._commits.committing.bodies if engine._commits.committing else -1)

    with faults.at(engine, "after", note):
        for number in range(50):
            engine.submit(
                lambda txn, number=number: (txn.append(1, P, b""), number)[1],  # type: ignore[misc]
                done,
            )
        submitted.set()
        engine.close()
    assert results == list(range(50))
    assert sum(sizes) == 50
    assert max(sizes) <= 3


class Loop:
    """An event loop of which the test runs each turn."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self.soon: list[Callable[[], None]] = []
        self.delivered: Queue[Callable[[], None]] = Queue()
        engine.loop.use(self.delivered.put, self.soon.append)

    def turn(self) -> None:
        """Run what was put off to this turn."""
        now, self.soon[:] = self.soon[:], []
        for callback in now:
            callback()

    def deliver(self) -> None:
        """Run the next that the engine hands over, which it does within half a minute."""
        self.delivered.get(timeout=30)()


def test_a_batch_is_committed_when_the_loop_releases_it(tmp_path: Path) -> None:
    """The end of the commit before it does not release it: that commit's answers bring more bodies."""
    engine = EmbeddedEngine(tmp_path / "data")
    sizes: list[int] = []
    held, go_on = Event(), Event()

    def note() -> None:
        sizes.append(engine._commits.committing.bodies if engine._commits.committing else -1)
        held.set()
        assert go_on.wait(30)

    engine.commit_fault = faults.only("after", note)
    loop = Loop(engine)
    answered: list[Any] = []

    def submit() -> None:
        engine.submit(lambda txn: txn.append(1, P, b""), lambda result, error: answered.append(error))

    submit()
    while not held.is_set() and loop.soon:
        loop.turn()
    assert held.wait(30)
    submit()  # while the first is being committed
    go_on.set()
    callback = loop.delivered.get(timeout=30)
    # The first commit is over. The next begins only when the loop, which takes new bodies in, releases it.
    assert engine._commits.committing is None
    assert engine._commits.collecting.bodies == 1
    submit()
    callback()
    assert answered == [None]
    submit()
    assert engine._commits.collecting.bodies == 3
    while loop.soon:
        assert len(loop.soon) == 1, "one commit is started once"
        loop.turn()
    loop.deliver()
    assert sizes == [1, 3]
    assert answered == [None] * 4
    engine.close()


def test_a_thread_does_not_depend_on_the_loop(tmp_path: Path) -> None:
    """A write submitted while a commit is under way is committed, although the loop no longer runs."""
    engine = EmbeddedEngine(tmp_path / "data")
    held, go_on = Event(), Event()

    def hold() -> None:
        held.set()
        assert go_on.wait(30)

    engine.commit_fault = faults.only("after", hold)
    loop = Loop(engine)
    engine.submit(lambda txn: txn.append(1, P, b""), lambda result, error: None)
    while loop.soon:
        loop.turn()
    assert held.wait(30)
    writer = Thread(target=engine.write, args=(lambda txn: txn.append(1, P, b""),))
    writer.start()
    while not engine._commits.collecting.waiters:
        pass
    go_on.set()
    writer.join(30)
    assert not writer.is_alive()
    engine.close()


def test_writes_that_outrun_the_disk_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RocksDB refuses writes while too much waits to be flushed; they are tried again, none is lost."""
    pauses: list[float] = []
    sleep = time.sleep

    def note(seconds: float) -> None:
        pauses.append(seconds)
        sleep(seconds)

    monkeypatch.setattr("hashrange.storage.embedded.batches.time.sleep", note)
    engine = EmbeddedEngine(tmp_path / "data", write_buffer_bytes=64 * 1024)

    def body(txn: Transaction) -> None:
        for _ in range(20):
            txn.append(1, P, bytes(10_000))

    batches = 0
    while not pauses:  # a quick disk keeps up for long
        engine.write(body)
        batches += 1
        assert batches < 5_000, "the test was to make RocksDB refuse writes"
    assert engine.read(lambda reader: sum(1 for _ in reader.scan(1, P))) == batches * 20
    engine.close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_full_disk_that_recovers(tmp_path: Path) -> None:
    """A real I/O error, in RocksDB's log: files may not grow beyond a limit, and then may again."""
    script = """
        import resource, signal, sys
        from hashrange.storage.failures import CommitError
        from hashrange.storage.embedded import EmbeddedEngine

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        engine = EmbeddedEngine(sys.argv[1])

        def write(name):
            try:
                engine.write(lambda txn: (txn.put(1, b"", name, bytes(1000)), txn.count(1, 1, 1)))
                print("ok", end=" ")
            except CommitError as error:
                assert "File too large" in str(error), error
                print("failed", end=" ")

        write(b"a")
        resource.setrlimit(resource.RLIMIT_FSIZE, (2500, hard))
        for name in (b"b", b"c", b"d"):
            write(name)
        print(engine.read(lambda r: [k for k, _ in r.scan(1, b"")]), end=" ")
        assert "File too large" in engine.refusing()
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        while engine.refusing():
            pass
        write(b"e")
        print(engine.read(lambda r: ([k for k, _ in r.scan(1, b"")], r.totals(1).records)), end=" ")
        engine.close()
        engine = EmbeddedEngine(sys.argv[1])
        print(engine.read(lambda r: [k for k, _ in r.scan(1, b"")]))
        engine.close()
    """
    output = run_child(script, str(tmp_path / "data")).strip()
    # Where the limit strikes depends on how long RocksDB's records are: at the second or the third.
    kept = output.count("ok") - 2
    names = [b"a", b"b", b"c"][: kept + 1]
    assert output == (
        "ok " * (kept + 1)
        + "failed " * (3 - kept)
        + f"{names} ok {([*names, b'e'], kept + 2)} {[*names, b'e']}"
    )


def test_a_program_that_forgets_to_close_ends_well(tmp_path: Path) -> None:
    """Its commit thread is not left inside RocksDB when the interpreter ends, and nothing is lost."""
    script = """
        import sys
        from hashrange.storage.embedded import EmbeddedEngine

        engine = EmbeddedEngine(sys.argv[1])
        for n in range(200):
            engine.submit(lambda txn, n=n: txn.put(1, b"", b"%d" % n, bytes(1000)), lambda *outcome: None)
        print("end")
    """
    assert run_child(script, str(tmp_path / "data")).strip() == "end"
    engine = EmbeddedEngine(tmp_path / "data")
    assert engine.read(lambda r: len(list(r.scan(1, b"")))) == 200
    engine.close()


def test_what_is_kept_of_a_space_in_memory_is_never_stale(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path)
    try:
        for value in (b"one", b"two", None, b"three"):
            engine.write(partial(put_or_delete, value=value))
            for _ in range(2):
                assert engine.read(lambda reader: reader.get(KEPT_SPACE, b"name", b"")) == value
                assert engine.write(lambda txn: txn.get(KEPT_SPACE, b"name", b"")) == value

        def read_late(reader: Reader) -> bytes | None:
            engine.write(lambda txn: txn.put(KEPT_SPACE, b"name", b"", b"four"))
            return reader.get(KEPT_SPACE, b"name", b"")

        # A reader of an old view finds the old value, and leaves it where no newer view looks.
        assert engine.read(read_late) == b"three"
        assert engine.read(lambda reader: reader.get(KEPT_SPACE, b"name", b"")) == b"four"
    finally:
        engine.close()


def put_or_delete(txn: Transaction, value: bytes | None) -> None:
    if value is None:
        txn.delete(KEPT_SPACE, b"name", b"")
    else:
        txn.put(KEPT_SPACE, b"name", b"", value)
