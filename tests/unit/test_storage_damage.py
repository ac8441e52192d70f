"""Damage to a data directory: no loss stays unnoticed, and a refused directory is not changed.

Each test makes a store, stops it as a killed process leaves it (`killed`), damages its files, and opens it.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from fastcrc.crc32 import iscsi as crc32c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doses import examples
from hashrange.cli import main
from hashrange.storage.api import Transaction
from hashrange.storage.embedded import EmbeddedEngine, disk
from hashrange.storage.embedded.files.logs import BLOCK_BYTES, BadBytes, LogRecord, read_log, write_log
from hashrange.storage.embedded.files.manifest import read_manifest
from hashrange.storage.embedded.files.mark import Mark, OpenMark, read_mark, write_mark
from hashrange.storage.embedded.offline.salvage import StoredRecords
from hashrange.storage.failures import (
    CommitFailed,
    CommitUnknown,
    DataDirectoryLocked,
    StorageError,
    StoreDamaged,
    UnknownFormat,
)
from hashrange_engine_tests import faults

P = b"partition"
ITEMS = 60

# Writes items in two sittings, so that there are SST files and a log; then ends without closing anything.
_WRITER = """
import os, sys
from hashrange.storage.embedded import EmbeddedEngine

def put(engine, numbers):
    for n in numbers:
        engine.write(lambda txn, n=n: txn.put(1, b"partition", b"%03d" % n, b"%03d" % n + bytes(1500)))

directory, items = sys.argv[1], int(sys.argv[2])
engine = EmbeddedEngine(directory)
put(engine, range(items // 2))
engine.close()
engine = EmbeddedEngine(directory)
put(engine, range(items // 2, items))
os._exit(9)
"""


@pytest.fixture(scope="session")
def killed_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of `ITEMS` acknowledged items, whose process was killed."""
    directory = tmp_path_factory.mktemp("killed") / "data"
    done = subprocess.run([sys.executable, "-c", _WRITER, str(directory), str(ITEMS)], check=False)
    assert done.returncode == 9
    return directory


@pytest.fixture
def data(killed_store: Path, tmp_path: Path) -> Path:
    """A copy of the killed store."""
    return Path(shutil.copytree(killed_store, tmp_path / "data"))


def log_of(data: Path) -> Path:
    """The log that holds what is in no SST file."""
    return max((data / "rocks").glob("*.log"), key=lambda path: int(path.stem))


def records_of(log: Path) -> list[LogRecord]:
    return [found for found in read_log(log.read_bytes()) if isinstance(found, LogRecord)]


def flip(path: Path, offset: int, count: int = 1) -> None:
    content = bytearray(path.read_bytes())
    for at in range(offset, offset + count):
        content[at] ^= 0xFF
    path.write_bytes(content)


def put(txn: Transaction, sort: bytes) -> None:
    txn.put(1, P, sort, bytes(1000))


def contents(data: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}


def items_of(data: Path) -> set[int]:
    engine = EmbeddedEngine(data)
    try:
        return {int(sort) for sort, _ in engine.read(lambda reader: list(reader.scan(1, P)))}
    finally:
        engine.close()


def assert_refused(data: Path, message: str) -> None:
    """It is refused, more than once, and no file is changed."""
    before = contents(data)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=message) as refused:
            EmbeddedEngine(data)
        assert str(data) in str(refused.value)
    assert contents(data) == before


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ("IO error: While lock file: rocks/LOCK", DataDirectoryLocked, "is in use by another process"),
        ("Corruption: bad block", StoreDamaged, "damaged and cannot be opened: Corruption: bad block"),
        ("IO error: no room", StorageError, "cannot be opened: IO error: no room"),
    ],
)
def test_what_rocksdb_refuses_is_said(
    data: Path, monkeypatch: pytest.MonkeyPatch, words: str, error: type[Exception], message: str
) -> None:
    def refuse(*_: object) -> None:
        raise Exception(words)

    monkeypatch.setattr(disk, "Rdict", refuse)
    with pytest.raises(error, match=message):
        disk.open_rocks(data, cache_bytes=1024**2)


def test_a_killed_store_opens_with_all_that_was_acknowledged(data: Path) -> None:
    assert items_of(data) == set(range(ITEMS))


# What is missing.


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rocks", "the folder rocks is missing"),
        ("rocks/CURRENT", "rocks/CURRENT is missing"),
        ("rocks/MANIFEST-*", "rocks/MANIFEST-.* is missing"),
        ("rocks/*.sst", r"rocks/\d+.sst is missing; it held \d+ bytes"),
        ("rocks/*.log", "write-ahead log is missing"),
        ("rocks/*", "rocks/CURRENT is missing"),
        ("STORE", "the file STORE is missing"),
        ("FORMAT", "the file FORMAT is missing"),
    ],
)
def test_a_store_of_which_something_is_missing_is_refused(data: Path, name: str, message: str) -> None:
    for path in list(data.glob(name)):
        remove(path)
    assert_refused(data, message)


def as_of_format(data: Path, version: int, names: str) -> None:
    """Let the files of these names say that the directory has this format."""
    if "FORMAT" in names:
        (data / "FORMAT").write_text(f"hashrange data {version}\n")
    else:
        (data / "FORMAT").unlink()
    mark = read_mark(data)
    assert mark is not None
    if "STORE" in names:
        write_mark(data, mark._replace(format=version))
    else:
        (data / "STORE").unlink()


@pytest.mark.parametrize("version", [1, 3, 5])
@pytest.mark.parametrize("names", ["FORMAT STORE", "FORMAT", "STORE"])
def test_another_format_is_refused_unchanged_with_the_remedy(data: Path, version: int, names: str) -> None:
    """Older and newer, by a server and by each command; also where FORMAT or STORE is lost."""
    as_of_format(data, version, names)
    before = contents(data)
    for open_store in (EmbeddedEngine, StoredRecords):
        with pytest.raises(UnknownFormat, match=rf"format {version}; .* format 4\..*`hashrange pull --all"):
            open_store(data)
    for command in (["check"], ["check", "--repair"], ["serve", "--data-dir"]):
        result = CliRunner().invoke(main, [*command, str(data)])
        assert result.exit_code == (2 if "check" in command else 1)
        assert f"has format {version}; " in result.output
    assert contents(data) == before


@pytest.mark.parametrize("text", ["hashrange data 3", "hashrange data 5", "hashrange", ""])
def test_a_format_that_is_not_that_of_the_store_is_damage(data: Path, text: str) -> None:
    """STORE has a checksum, so it is right; and the repair writes FORMAT again."""
    (data / "FORMAT").write_text(text)
    assert_refused(data, "the file FORMAT is damaged")
    CliRunner().invoke(main, ["check", "--repair", str(data)])
    assert (data / "FORMAT").read_text() == "hashrange data 4\n"


def test_a_mark_that_names_no_format_is_of_another_one(data: Path) -> None:
    (data / "FORMAT").unlink()
    line = (data / "STORE").read_bytes().partition(b" format ")[0]
    (data / "STORE").write_bytes(b"%b crc %08x\n" % (line, crc32c(line)))
    with pytest.raises(UnknownFormat, match="has format 2; "):
        EmbeddedEngine(data)


def test_another_store_in_the_place_of_this_one_is_refused(data: Path, tmp_path: Path) -> None:
    EmbeddedEngine(tmp_path / "other").close()
    shutil.rmtree(data / "rocks")
    shutil.copytree(tmp_path / "other/rocks", data / "rocks")
    assert_refused(data, "rocks holds another store")


def test_an_older_state_of_the_store_is_refused(data: Path, tmp_path: Path) -> None:
    """The whole of rocks was put back from yesterday: all files fit together, but newer writes are gone."""
    shutil.copytree(data / "rocks", tmp_path / "yesterday")
    engine = EmbeddedEngine(data)
    engine.write(lambda txn: txn.put(1, P, b"099", b""))
    engine.close()
    shutil.rmtree(data / "rocks")
    shutil.move(tmp_path / "yesterday", data / "rocks")
    assert_refused(data, "lost are the batches 61 to 61 with 2 writes, which were acknowledged")


@pytest.mark.parametrize("name", ["rocks", "rocks/CURRENT"])
def test_the_store_is_taken_away_while_it_is_open(tmp_path: Path, name: str) -> None:
    """A failed commit opens RocksDB again: that may not make a new store where the old one was."""
    data = tmp_path / "data"
    engine = EmbeddedEngine(data)
    engine.write(lambda txn: txn.put(1, P, b"001", b""))
    (data / name).rename(tmp_path / "taken")

    with faults.failing(engine):
        with pytest.raises(CommitUnknown, match="is missing"):
            engine.write(lambda txn: txn.put(1, P, b"002", b""))
        for _ in range(3):
            with pytest.raises(CommitFailed, match="is missing"):
                engine.write(lambda txn: txn.put(1, P, b"002", b""))
    assert not (data / name).exists()
    (tmp_path / "taken").rename(data / name)
    while engine.refusing():
        pass
    engine.write(lambda txn: txn.put(1, P, b"003", b""))
    engine.close()
    assert items_of(data) == {1, 3}


# A new store.


class Killed(BaseException):
    """Stands for the end of the process."""


@contextmanager
def killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process ends before its `step`th operation on files."""
    left = step

    def counted(operation: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object, **named: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return operation(*arguments, **named)

        return run

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", counted(Path.mkdir))
        patch.setattr(os, "open", counted(os.open))
        patch.setattr(Path, "replace", counted(Path.replace))
        patch.setattr(Path, "chmod", counted(Path.chmod))
        patch.setattr(os, "fsync", counted(os.fsync))
        patch.setattr(disk, "open_rocks", counted(disk.open_rocks))
        patch.setattr("hashrange.storage.embedded.files.directory.read_manifest", counted(read_manifest))
        patch.setattr("hashrange.storage.embedded.files.directory.OpenMark", counted(OpenMark))
        yield


def test_a_creation_that_was_killed_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = 0
    while True:
        data = tmp_path / f"data{step}"
        try:
            with killed_at(step, monkeypatch):
                engine = EmbeddedEngine(data)
        except Killed:
            engine = EmbeddedEngine(data)
        else:
            break
        finally:
            engine.write(lambda txn: txn.put(1, P, b"001", b""))
            engine.close()
            assert items_of(data) == {1}
        step += 1
    assert step > 15


def test_a_creation_that_was_killed_inside_rocksdb_is_done_again(tmp_path: Path) -> None:
    """RocksDB's files come one by one: each beginning of them is what a kill can leave."""
    whole = tmp_path / "whole"
    EmbeddedEngine(whole).close()
    names = sorted(path.name for path in (whole / "rocks").iterdir())
    order = ["rocksdict-config.json", "LOCK", "LOG", "IDENTITY", "MANIFEST-000001", "MANIFEST-000005"]
    order.append("CURRENT")
    order += [name for name in names if name not in order]
    for count in range(len(order) + 1):
        data = tmp_path / f"data{count}"
        (data / "rocks").mkdir(parents=True)
        (data / "FORMAT").write_text("hashrange data 4\n")
        write_mark(data, Mark(False, "", 0, 0))
        for name in order[:count]:
            if name in names:
                shutil.copy(whole / "rocks" / name, data / "rocks" / name)
        engine = EmbeddedEngine(data)
        engine.write(lambda txn: txn.put(1, P, b"001", b""))
        engine.close()
        assert items_of(data) == {1}


@pytest.mark.skipif(sys.platform == "win32", reason="rights are inherited there")
def test_a_data_directory_is_for_its_owner_only(tmp_path: Path) -> None:
    data = tmp_path / "data"
    engine = EmbeddedEngine(data)
    engine.write(lambda txn: txn.put(1, P, b"001", b""))
    engine.checkpoint(str(tmp_path / "copy"))
    engine.close()
    for directory in (data, tmp_path / "copy"):
        assert directory.stat().st_mode & 0o777 == 0o700
        assert (directory / "rocks").stat().st_mode & 0o777 == 0o700
        assert (directory / "STORE").stat().st_mode & 0o077 == 0
    data.chmod(0o755)  # as version 0.1.0 made it
    EmbeddedEngine(data).close()
    assert data.stat().st_mode & 0o777 == 0o700


def test_a_checkpoint_has_its_own_mark(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    for sort in (b"0", b"1", b"2"):
        engine.write(partial(put, sort=sort))
    engine.checkpoint(str(tmp_path / "copy"))
    engine.close()
    copy = tmp_path / "copy"
    assert items_of(shutil.copytree(copy, tmp_path / "good")) == {0, 1, 2}
    for sst in (copy / "rocks").glob("*.sst"):
        sst.unlink()
    assert_refused(copy, "sst is missing")


# The log.


def test_bytes_changed_in_the_middle_of_the_log(data: Path) -> None:
    flip(log_of(data), 20_000, 3)
    message = r"log is damaged at byte 1\d{4} \(checksum mismatch.*lost are the batches 4\d to 4\d with 2 w"
    assert_refused(data, message)


def test_bytes_changed_in_the_last_record_of_the_log(data: Path) -> None:
    """It looks like a torn tail, but the mark says that it was acknowledged."""
    flip(log_of(data), log_of(data).stat().st_size - 100)
    assert_refused(data, "lost are the batches 60 to 60 with 2 writes, which were acknowledged")


def test_the_log_is_cut_between_two_records(data: Path) -> None:
    os.truncate(log_of(data), records_of(log_of(data))[20].end)
    assert_refused(data, "lost are the batches 52 to 60 with 18 writes, which were acknowledged: the logs en")


@pytest.mark.parametrize("tail", [b"", bytes(5000), os.urandom(5000)])
def test_a_torn_tail_is_normal(data: Path, tail: bytes) -> None:
    """The write that was under way: it was not acknowledged, and the mark does not include it."""
    log = log_of(data)
    records = [found.payload for found in records_of(log)]
    begun = write_log([*records, records[-1] + bytes(3000)])
    log.write_bytes(begun[: log.stat().st_size + 1000] + tail)
    assert items_of(data) == set(range(ITEMS))


def test_a_crash_right_after_the_start_that_followed_a_crash(data: Path) -> None:
    """RocksDB begins a new log, and a crash comes before the MANIFEST lets go of the torn one."""
    log = log_of(data)
    records = records_of(log)
    first, count = struct.unpack_from("<QI", records[-1].payload)
    log.write_bytes(log.read_bytes() + write_log([records[-1].payload])[:30])
    next_log = log.with_name(f"{int(log.stem) + 1:06}.log")
    shutil.copytree(data, data.parent / "as before")
    next_log.write_bytes(write_log([struct.pack("<QI", first + count, 0)]))
    assert items_of(data) == set(range(ITEMS))
    # A number is missing between the two logs: what was torn was acknowledged.
    shutil.rmtree(data)
    (data.parent / "as before").rename(data)
    next_log.write_bytes(write_log([struct.pack("<QI", first + count + 2, 0)]))
    assert_refused(data, "lost are 2 writes")


def manifest_of(data: Path) -> Path:
    return data / "rocks" / (data / "rocks/CURRENT").read_text().strip()


@pytest.mark.parametrize("tail", [bytes(300), bytes(150) + os.urandom(80), write_log([bytes(99)])[:50]])
def test_edits_of_the_manifest_that_were_not_synced_are_normal(data: Path, tail: bytes) -> None:
    """The disk kept the length of the file, and none or some of its last bytes."""
    with manifest_of(data).open("ab") as file:
        file.write(tail)
    assert items_of(data) == set(range(ITEMS))


def test_lost_edits_of_the_manifest_lose_nothing_in_silence(killed_store: Path, tmp_path: Path) -> None:
    """The same zeros in the place of edits that count: what they name is missed."""
    edits = records_of(manifest_of(killed_store))
    outcomes = set()
    for number, edit in enumerate(edits):
        data = Path(shutil.copytree(killed_store, tmp_path / f"{number}"))
        manifest = manifest_of(data)
        content = manifest.read_bytes()
        manifest.write_bytes(content[: edit.offset] + bytes(len(content) - edit.offset))
        try:
            assert items_of(data) == set(range(ITEMS))
            outcomes.add("whole")
        except StoreDamaged:
            outcomes.add("refused")
    assert "refused" in outcomes


@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        (2, "no edit before it gives the first log that is needed"),
        (3, "no edit before it gives the number of the next file"),
        (4, "no edit before it gives the last sequence number"),
    ],
)
def test_the_manifest_lacks_a_number_that_every_store_needs(data: Path, lacking: int, message: str) -> None:
    """All files that its edits name may be there, if nothing was compacted since."""
    given = bytes(byte for tag in (2, 3, 4) if tag != lacking for byte in (tag, 1))
    manifest_of(data).write_bytes(write_log([given]))
    assert_refused(data, message)


def test_a_crash_of_the_machine_leaves_an_older_mark(data: Path) -> None:
    """Then the end of the log is found by its records alone, and a hole is one all the same."""
    mark = read_mark(data)
    assert mark is not None
    write_mark(data, mark._replace(batch=35, sequence=70))
    damaged = Path(shutil.copytree(data, data.with_name("damaged")))
    assert items_of(data) == set(range(ITEMS))
    flip(log_of(damaged), 30_000)
    assert_refused(damaged, "the log goes on behind them")


def test_a_page_of_the_log_turned_into_zeros(data: Path) -> None:
    """RocksDB takes a header of zeros for the end of what was written, and goes on at the next block."""
    log = log_of(data)
    content = bytearray(log.read_bytes())
    offset = next(found.offset for found in records_of(log) if found.offset > 9_000)
    content[offset : offset + 4096] = bytes(4096)
    log.write_bytes(content)
    assert_refused(data, "no record begins here.*the log goes on behind them")


def test_the_mark_is_damaged(data: Path) -> None:
    flip(data / "STORE", 80)
    assert_refused(data, "the file STORE is damaged")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
@given(where=st.tuples(st.integers(0), st.integers(0)), bits=st.integers(1, 255))
def test_no_changed_byte_loses_anything_in_silence(
    killed_store: Path, tmp_path: Path, where: tuple[int, int], bits: int
) -> None:
    """Opening or reading tells of it, or every acknowledged item is there."""
    data = Path(shutil.copytree(killed_store, tmp_path / "flipped"))
    try:
        files = sorted(path for path in data.rglob("*") if path.is_file() and path.stat().st_size)
        path = files[where[0] % len(files)]
        content = bytearray(path.read_bytes())
        content[where[1] % len(content)] ^= bits
        path.write_bytes(content)
        try:
            found = items_of(data)
        except StorageError:
            return
        assert found == set(range(ITEMS)), path
    finally:
        shutil.rmtree(data)


# The format of RocksDB's logs.


payloads = st.lists(st.one_of(st.binary(max_size=200), st.integers(0, 80_000).map(bytes)), max_size=8)


@given(payloads)
def test_a_log_is_read_as_it_was_written(written: list[bytes]) -> None:
    found = list(read_log(write_log(written)))
    assert [one.payload if isinstance(one, LogRecord) else one for one in found] == written


@given(payloads.filter(len), st.integers(0), st.integers(1, 255))
def test_a_changed_byte_of_a_log_spoils_no_record_but_those_beside_it(
    written: list[bytes], at: int, bits: int
) -> None:
    log = bytearray(write_log(written))
    at %= len(log)
    log[at] ^= bits
    found = list(read_log(bytes(log)))
    sound = [one.payload for one in found if isinstance(one, LogRecord)]
    block = at // BLOCK_BYTES
    untouched = [
        one.payload
        for one in read_log(write_log(written))
        if isinstance(one, LogRecord) and (one.end <= at or one.offset // BLOCK_BYTES > block)
    ]
    assert [one for one in sound if one in untouched] == untouched or len(sound) >= len(untouched)
    assert all(one in written for one in sound)
    if len(sound) < len(written):
        assert any(isinstance(one, BadBytes) for one in found)


def test_rocksdb_never_sees_the_torn_tail_of_a_log(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can loop forever over random bytes."""
    log, sizes = log_of(data), []
    whole = log.stat().st_size
    with log.open("ab") as file:
        file.write(os.urandom(5000))
    opened = disk.open_rocks

    def opening(*arguments: Path, **options: bool) -> object:
        sizes.append(log.stat().st_size)
        return opened(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(disk, "open_rocks", opening)
    assert items_of(data) == set(range(ITEMS))
    assert sizes == [whole]
