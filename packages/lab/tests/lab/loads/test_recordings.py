"""Recordings in files: their form, compression, order, and what is left of a file that was cut off."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest

from hashrange_lab.recordings import blocks, reader
from hashrange_lab.recordings.lines import Dropped, End, Entry, Head, TableLine, encode
from hashrange_lab.recordings.reader import NotARecording, in_order

HEAD = Head(1, 1_767_225_600.0)
CREATE = {"TableName": "orders", "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}
ENTRIES = [
    Entry(at=0.5, operation="GetItem", seconds=0.25, connection=2, request={"TableName": "orders"}),
    Entry(
        at=0.1,
        operation="PutItem",
        seconds=1.0,
        connection=1,
        request={"TableName": "orders", "Item": {"pk": {"S": "ä"}}},
        status=400,
        error="ValidationException",
        tables=("orders",),
        write_units=1.0,
        index_units={"by-date": 1.0},
        answer_bytes=70,
    ),
]


def text(*lines: object) -> bytes:
    return b"".join(encode(line) + b"\n" for line in lines)


def written(path: Path, *parts: bytes) -> Path:
    path.write_bytes(b"".join(map(blocks.compressed, parts)))
    return path


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = written(
        tmp_path / "load",
        text(HEAD, TableLine(CREATE), ENTRIES[0]),
        text(Dropped(3), ENTRIES[1], Dropped(1), End(2.0, 2, "stopped")),
    )
    with reader.open(path) as recording:
        assert recording.head == HEAD
        assert recording.head.moment == "2026-01-01T00:00:00Z"
        assert list(recording.entries()) == ENTRIES
        assert recording.tables == {"orders": CREATE}
        assert (recording.requests, recording.dropped, recording.is_cut) == (2, 4, False)
        assert recording.end == End(2.0, 2, "stopped")


def test_a_file_is_readable_up_to_where_it_was_cut_off(tmp_path: Path) -> None:
    parts = [text(HEAD), *(text(entry) for entry in ENTRIES), text(End(2.0, 2, "stopped"))]
    whole = b"".join(map(blocks.compressed, parts))
    ends = list(itertools.accumulate(len(blocks.compressed(part)) for part in parts))
    for length in range(ends[0], len(whole)):
        path = tmp_path / "cut"
        path.write_bytes(whole[:length])
        with reader.open(path) as recording:
            read = list(recording.entries())
            assert read == ENTRIES[: len(read)]
            assert len(read) >= sum(end <= length for end in ends) - 1
            assert recording.is_cut


def test_bytes_that_no_block_can_have_end_the_recording(tmp_path: Path) -> None:
    path = written(tmp_path / "load", text(HEAD), text(ENTRIES[0]))
    path.write_bytes(path.read_bytes() + b"\0" * 100)
    with reader.open(path) as recording:
        assert list(recording.entries()) == ENTRIES[:1]
        assert recording.is_cut


@pytest.mark.parametrize("has_zstd", [True, False], ids=["zstd", "gzip"])
def test_both_compressions_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_zstd: bool
) -> None:
    if has_zstd:
        pytest.importorskip("backports.zstd" if blocks.zstd is None else blocks.zstd.__name__)
    with monkeypatch.context() as patched:
        if not has_zstd:
            patched.setattr(blocks, "zstd", None)
        assert blocks.kind() == ("zstd" if has_zstd else "gzip")
        path = written(tmp_path / "load", text(HEAD), text(ENTRIES[0]))
    with reader.open(path) as recording:
        assert list(recording.entries()) == ENTRIES[:1]


def test_lines_without_compression_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "load").write_bytes(text(HEAD, *ENTRIES))
    with reader.open(tmp_path / "load") as recording:
        assert list(recording.entries()) == ENTRIES


def test_zstd_that_this_python_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if blocks.zstd is None:
        pytest.skip("needs zstd")
    path = written(tmp_path / "load", text(HEAD))
    monkeypatch.setattr(blocks, "zstd", None)
    with pytest.raises(NotARecording, match=r"pip install backports\.zstd"), reader.open(path):
        pass


OTHER_FILES = [b"", b"{}\n", b"PK\x03\x04", gzip.compress(b"hello\n", mtime=0), text(*ENTRIES)]


@pytest.mark.parametrize("content", OTHER_FILES, ids=["empty", "JSON", "zip", "gzip", "no head"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(NotARecording, match="other is not a recording"), reader.open(tmp_path / "other"):
        pass


def test_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "load").write_bytes(text(Head(2, 0.0)))
    with pytest.raises(NotARecording, match="form 2; this"), reader.open(tmp_path / "load"):
        pass


def test_a_wrong_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "load").write_bytes(text(HEAD, ENTRIES[0]) + b'{"line":"request","at":"soon"}\n')
    with reader.open(tmp_path / "load") as recording, pytest.raises(NotARecording, match="Line 3 of"):
        list(recording.entries())


def test_members_of_later_versions_are_skipped(tmp_path: Path) -> None:
    line = b'{"line":"request","at":1,"operation":"GetItem","seconds":0.5,"colour":"red"}\n'
    (tmp_path / "load").write_bytes(text(HEAD) + line)
    with reader.open(tmp_path / "load") as recording:
        assert list(recording.entries()) == [Entry(at=1.0, operation="GetItem", seconds=0.5)]


def test_requests_come_in_the_order_of_their_beginnings() -> None:
    assert [entry.operation for entry in in_order(ENTRIES)] == ["PutItem", "GetItem"]


def test_only_a_window_of_requests_is_kept() -> None:
    taken = []

    def endless() -> object:
        for number in itertools.count():
            taken.append(number)
            yield Entry(at=float(number), operation="GetItem", seconds=0.5)

    ordered = in_order(endless())  # type: ignore[arg-type]
    assert [next(ordered).at for _ in range(3)] == [0.0, 1.0, 2.0]
    assert len(taken) < 100
