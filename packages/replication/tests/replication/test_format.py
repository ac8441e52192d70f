"""What objects hold: everything can be read as it was written, and no change of a byte stays unnoticed."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashrange_replication.failures import CopyError, Damaged
from hashrange_replication.format import names
from hashrange_replication.format.batches import Batch, add_frame, frames
from hashrange_replication.format.manifests import BaseFile, Manifest, decode_manifest, encode_manifest
from hashrange_replication.format.objects import CHUNK_BYTES, Reader, Writer, encode, in_memory
from hashrange_replication.format.sealing import Key, read_key
from hashrange_replication.format.segments import Segment, SegmentHeader, encode_segment, root_of
from shipping import key_of, random_bytes

RECORDS = st.dictionaries(st.binary(max_size=30), st.none() | st.binary(max_size=60), max_size=8)
NUMBERS = st.integers(0, 2**63 - 1)
KEYS = st.sampled_from([None, key_of(1)])


def framed(*batches: tuple[int, int, dict[bytes, bytes | None]]) -> bytes:
    content = bytearray()
    for batch in batches:
        add_frame(content, *batch)
    return bytes(content)


def encoded(content: bytes, key: Key | None) -> tuple[bytes, str]:
    pieces, digest = encode({"kind": "test"}, content, key)
    return b"".join(pieces), digest


@given(st.lists(st.tuples(NUMBERS, NUMBERS, RECORDS), max_size=6))
def test_batches_are_read_as_they_were_written(
    batches: list[tuple[int, int, dict[bytes, bytes | None]]],
) -> None:
    assert list(frames(framed(*batches))) == [Batch(*batch) for batch in batches]


@given(RECORDS, st.data())
def test_a_batch_that_is_cut_off_is_noticed(records: dict[bytes, bytes | None], data: st.DataObject) -> None:
    content = framed((1, 2, records))
    with pytest.raises(Damaged):
        list(frames(content[: -data.draw(st.integers(1, len(content) - 1))]))


@given(st.integers(0, 3), st.booleans())
@settings(max_examples=8)
def test_what_does_not_become_smaller_is_not_compressed(times: int, repeats: bool) -> None:
    piece = (b"some words, " * CHUNK_BYTES) if repeats else random_bytes(CHUNK_BYTES)
    content = piece[:CHUNK_BYTES] * times + piece[: CHUNK_BYTES // 3]
    written = encoded(content, None)[0]
    assert Reader(in_memory(written), None).content() == content
    assert len(written) < (len(content) // 20 if repeats else len(content) + 200)


@given(
    st.lists(
        st.sampled_from([0, 1, CHUNK_BYTES // 3, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1]), max_size=5
    ),
    KEYS,
)
@settings(max_examples=30)
def test_it_does_not_matter_in_which_pieces_an_object_was_written(sizes: list[int], key: Key | None) -> None:
    written: list[bytes] = []
    writer = Writer(lambda piece: written.append(bytes(piece)), {}, key)
    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    for piece in pieces:
        writer.write(piece)
    digest = writer.finish()
    reader = Reader(in_memory(b"".join(written)), key)
    chunks = list(reader.chunks())
    assert (b"".join(chunks), reader.digest) == (b"".join(pieces), digest)
    assert all(len(chunk) == CHUNK_BYTES for chunk in chunks[:-1])


@given(st.binary(max_size=200), st.integers(0, 3), KEYS)
@settings(max_examples=40)
def test_an_object_is_read_as_it_was_written(piece: bytes, times: int, key: Key | None) -> None:
    content = piece * (times * CHUNK_BYTES // 100 + 1)
    written, digest = encoded(content, key)
    reader = Reader(in_memory(written), key)
    assert reader.header["kind"] == "test"
    assert reader.content() == content
    assert reader.digest == digest
    checked = Reader(in_memory(written), None, sealed_too=True)
    assert checked.content() == (b"" if key else content)
    assert checked.digest == digest


@given(st.binary(max_size=60), KEYS, st.data())
def test_a_change_of_an_object_is_noticed(content: bytes, key: Key | None, data: st.DataObject) -> None:
    written = encoded(content, key)[0]
    changed = bytearray(written)
    at = data.draw(st.integers(0, len(written) - 1))
    changed[at] ^= data.draw(st.integers(1, 255))
    for other in (bytes(changed), written[: data.draw(st.integers(0, len(written) - 1))], written + b"x"):
        with pytest.raises(CopyError):
            Reader(in_memory(other), key).content()


def test_chunks_cannot_be_moved_between_sealed_objects() -> None:
    key = key_of(1)
    one, other = (encoded(content, key)[0] for content in (b"a" * 99, b"b" * 99))
    head, tail = one.index(b"\n", 20) + 1, other.index(b"\n", 20) + 1
    with pytest.raises(Damaged):
        Reader(in_memory(one[:head] + other[tail:]), key).content()


def test_a_key_that_does_not_fit_is_named() -> None:
    written = encoded(b"secret " * 20, key_of(1))[0]
    assert b"secret" not in written
    with pytest.raises(CopyError, match=f"sealed by the key {key_of(1).id}: give its file"):
        Reader(in_memory(written), None)
    with pytest.raises(CopyError, match=f"the key file holds the key {key_of(2).id}"):
        Reader(in_memory(written), key_of(2))


def test_an_object_of_a_later_program_is_named() -> None:
    written = encoded(b"", None)[0].replace(b"copy 1\n", b"copy 2\n")
    with pytest.raises(CopyError, match="use the version that has written it"):
        Reader(in_memory(written), None)


TWO: Any = [(5, 70, {b"a": b"1"}), (7, 90, {b"b": None})]


def header(**changed: object) -> SegmentHeader:
    content = framed(*TWO)
    members: dict[str, object] = {
        "epoch": 2, "index": 9, "predecessor": root_of(2), "after": 0, "first": 5, "last": 7, "batches": 2,
        "first_moment": 70, "last_moment": 90, "bytes": len(content),
    }  # fmt: skip
    return SegmentHeader(**(members | changed))  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [None, key_of(1)])
def test_a_segment_is_read_as_it_was_written(key: Key | None) -> None:
    content = framed(*TWO)
    written, digest = encode_segment(header(), content, key)
    segment = Segment(in_memory(b"".join(written)), key)
    segment.read()
    assert segment.header == header()
    assert segment.header.is_root
    assert segment.batches == [Batch(*batch) for batch in TWO]
    assert segment.digest == digest


@pytest.mark.parametrize("changed", [{"first": 4}, {"last": 8}, {"batches": 3}, {"bytes": 1}, {"after": 5}])
def test_a_segment_has_the_batches_of_its_header(changed: dict[str, object]) -> None:
    content = framed(*TWO)
    written = b"".join(encode_segment(header(**changed), content, None)[0])
    segment = Segment(in_memory(written), None)
    with pytest.raises(Damaged, match="not those of its header"):
        segment.read()


@pytest.mark.parametrize("path", ["../x", "/x", "rocks/../../x", "", "a//b", "C:x", "a\\b"])
def test_no_manifest_leads_out_of_its_directory(path: str) -> None:
    manifest = Manifest(
        epoch=1, batch=2, moment=3, store_id="s", data_format=4, index=1, predecessor="root 1",
        files=[BaseFile(path, 1, "00")],
    )  # fmt: skip
    with pytest.raises(Damaged, match="outside of the directory"):
        decode_manifest(in_memory(encode_manifest(manifest, None)), None)


def test_names_sort_as_their_numbers() -> None:
    segments = [names.SegmentName(epoch, index) for epoch in (1, 2, 10) for index in (1, 2, 10, 100)]
    assert [names.segment_of(one.name) for one in segments] == segments
    assert sorted(one.name for one in segments) == [one.name for one in segments]
    base = names.BaseName(3, 12)
    assert names.base_of(base.name) == base
    assert names.base_of("bases/3/12") is None
    assert names.segment_of("segments/0000000001/x") is None


def test_a_key_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with pytest.raises(CopyError, match="openssl rand"):
        read_key(path, random_bytes)
    path.write_bytes(base64.b64encode(b"1" * 31))
    path.chmod(0o600)
    with pytest.raises(CopyError, match="does not hold 32 bytes"):
        read_key(path, random_bytes)
    path.write_bytes(base64.b64encode(b"1" * 32) + b"\n")
    assert read_key(path, random_bytes).id == Key(b"1" * 32, random_bytes).id
    path.chmod(0o640)
    with pytest.raises(CopyError, match="chmod 600"):
        read_key(path, random_bytes)
