"""The objects of an export: their layout and checksums, and that DuckDB, pandas and an import read them."""

from __future__ import annotations

import gzip
import hashlib
from base64 import b64encode
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest

from hashrange.buckets.folders import Folders
from hashrange.interchange import exports, ion_text
from hashrange.interchange.exports import DataObject, Export, Layout
from hashrange.values import Item
from importing import BUCKET, World, item_of

ID = "01693685827463-2d8752fd"
ARN = "arn:aws:dynamodb:us-east-1:111122223333:table/music"
NAME = r"[a-z2-7]{26}"
ITEMS = [item_of(number) for number in range(250)]


def export_of(items: int, format_: exports.Format = "DYNAMODB_JSON") -> Export:
    return Export(
        arn=f"{ARN}/export/{ID}",
        table_arn=ARN,
        table_id="12345a12-abcd-123a-ab12-1234abc12345",
        start_time="2020-11-04T07:28:34.028Z",
        end_time="2020-11-04T07:33:43.897Z",
        bucket=BUCKET,
        prefix="2020-Nov",
        sse_algorithm="AES256",
        sse_key=None,
        billed_bytes=0,
        items=items,
        format=format_,
    )


def write_full(directory: Path, format_: exports.Format, objects: int = 3) -> list[DataObject]:
    """A full export of `ITEMS` in several objects, one of them empty."""
    (directory / BUCKET).mkdir(parents=True, exist_ok=True)
    buckets, layout = Folders(directory), Layout("2020-Nov", ID)
    written: list[DataObject] = []
    exports.write_started(buckets, BUCKET, layout)
    for number in range(objects):
        with exports.data_object(buckets, BUCKET, layout, number, format_, written) as data:
            for item in ITEMS[number :: objects - 1] if number < objects - 1 else ():
                data.item(orjson.dumps(item))
    summary = exports.full_summary(export_of(len(ITEMS), format_), layout, "2020-11-04T07:28:34.028Z")
    exports.write_manifests(buckets, BUCKET, layout, written, summary)
    return written


def listed(directory: Path) -> list[str]:
    return [one.key for one in Folders(directory).list(BUCKET, "")]


def md5(data: bytes) -> str:
    return b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def test_a_full_export_lies_as_the_guide_says(tmp_path: Path) -> None:
    import re

    written = write_full(tmp_path, "DYNAMODB_JSON")
    top = f"2020-Nov/AWSDynamoDB/{ID}"
    keys = listed(tmp_path)
    data = [key for key in keys if "/data/" in key]
    assert sorted(one.key for one in written) == data
    assert all(re.fullmatch(rf"{top}/data/{NAME}\.json\.gz", key) for key in data)
    assert [key for key in keys if key not in data] == [
        f"{top}/{name}"
        for name in (
            "_started",
            "manifest-files.json",
            "manifest-files.md5",
            "manifest-summary.json",
            "manifest-summary.md5",
        )
    ]
    folder = tmp_path / BUCKET
    assert (folder / top / "_started").read_bytes() == b""
    for name in ("files", "summary"):
        content = (folder / top / f"manifest-{name}.json").read_bytes()
        assert (folder / top / f"manifest-{name}.md5").read_text() == md5(content)
    lines = [orjson.loads(line) for line in (folder / top / "manifest-files.json").read_bytes().splitlines()]
    assert [line["itemCount"] for line in lines] == [125, 125, 0]
    for line in lines:
        content = (folder / line["dataFileS3Key"]).read_bytes()
        assert line["md5Checksum"] == md5(content)
        digest = hashlib.md5(content, usedforsecurity=False).digest()
        assert line["etag"] == hashlib.md5(digest, usedforsecurity=False).hexdigest() + "-1"
        assert len(gzip.decompress(content).splitlines()) == line["itemCount"]
    # The example of the guide, but for the name of this export.
    assert orjson.loads((folder / top / "manifest-summary.json").read_bytes()) == {
        "version": "2020-06-30",
        "exportArn": f"{ARN}/export/{ID}",
        "startTime": "2020-11-04T07:28:34.028Z",
        "endTime": "2020-11-04T07:33:43.897Z",
        "tableArn": ARN,
        "tableId": "12345a12-abcd-123a-ab12-1234abc12345",
        "exportTime": "2020-11-04T07:28:34.028Z",
        "s3Bucket": BUCKET,
        "s3Prefix": "2020-Nov",
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": f"{top}/manifest-files.json",
        "billedSizeBytes": 0,
        "itemCount": 250,
        "outputFormat": "DYNAMODB_JSON",
    }


@pytest.mark.parametrize(
    ("prefix", "top"),
    [("", "AWSDynamoDB/"), ("foo", "foo/AWSDynamoDB/"), ("foo/", "foo/AWSDynamoDB/")],
)
def test_prefixes(prefix: str, top: str) -> None:
    """[report] ack-api-quirks DDB-EXPORT-018"""
    assert Layout(prefix, ID).started == f"{top}{ID}/_started"
    assert Layout(prefix, ID, incremental=True).data(1, "ION").startswith(f"{top}data/")
    assert Layout(prefix, ID).data(1, "ION") != Layout(prefix, ID).data(2, "ION")


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    assert write_full(tmp_path / "a", "ION") == write_full(tmp_path / "b", "ION")


@pytest.mark.parametrize("format_", ["DYNAMODB_JSON", "ION"])
def test_an_export_is_imported(tmp_path: Path, format_: exports.Format) -> None:
    world = World(tmp_path)
    write_full(tmp_path / "s3", format_)
    prefix = f"2020-Nov/AWSDynamoDB/{ID}/data/"
    shown = world.done(kind=format_, prefix=prefix, InputCompressionType="GZIP")
    assert (shown["ImportStatus"], shown["ImportedItemCount"]) == ("COMPLETED", len(ITEMS))
    assert sorted(world.scan(), key=str) == sorted(ITEMS, key=str)
    world.database.close()


def test_duckdb_reads_an_export(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    write_full(tmp_path, "DYNAMODB_JSON")
    files = tmp_path / BUCKET / f"2020-Nov/AWSDynamoDB/{ID}/data/*.json.gz"
    query = (
        "SELECT Item.pk.S AS pk, Item.n.N::DECIMAL(38) AS n FROM "
        f"read_json('{files}', format = 'newline_delimited') ORDER BY n"
    )
    found = duckdb.sql(query).fetchall()
    assert found == [(item["pk"]["S"], Decimal(item["n"]["N"])) for item in ITEMS]


def test_pandas_reads_an_export(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    written = write_full(tmp_path, "DYNAMODB_JSON")
    frames = [
        pandas.read_json(tmp_path / BUCKET / one.key, lines=True, compression="gzip")
        for one in written
        if one.items
    ]
    found = pandas.concat(frames)["Item"].tolist()
    assert sorted(found, key=str) == sorted(ITEMS, key=str)


KEYS: Item = {"ISBN": {"S": "333-3333333333"}}
OLD: Item = {**KEYS, "Price": {"N": "2000"}}
NEW: Item = {**KEYS, "Price": {"N": "2.5"}}
MICROS = 1_684_374_845_117_899


def lines_of(tmp_path: Path, format_: exports.Format, view: exports.ViewType) -> list[bytes]:
    (tmp_path / BUCKET).mkdir(exist_ok=True)
    layout = Layout("", ID, incremental=True)
    written: list[DataObject] = []
    with exports.data_object(Folders(tmp_path), BUCKET, layout, 0, format_, written) as data:
        data.change(MICROS, KEYS, None, NEW, view)
        data.change(MICROS, KEYS, OLD, NEW, view)
        data.change(MICROS, KEYS, OLD, None, view)
    assert written[0].items == 3
    return gzip.decompress((tmp_path / BUCKET / written[0].key).read_bytes()).splitlines()


@pytest.mark.parametrize("view", ["NEW_AND_OLD_IMAGES", "NEW_IMAGE"])
def test_the_lines_of_an_incremental_export(tmp_path: Path, view: exports.ViewType) -> None:
    with_old: dict[str, Any] = {"OldImage": OLD} if view == "NEW_AND_OLD_IMAGES" else {}
    begin = {"Metadata": {"WriteTimestampMicros": {"N": str(MICROS)}}, "Keys": KEYS}
    assert [orjson.loads(line) for line in lines_of(tmp_path, "DYNAMODB_JSON", view)] == [
        {**begin, "NewImage": NEW},
        {**begin, **with_old, "NewImage": NEW},
        {**begin, **with_old},
    ]
    lines = lines_of(tmp_path, "ION", view)
    assert lines[0].decode() == (
        '$ion_1_0 {Record:{Keys:{ISBN:"333-3333333333"},Metadata:{WriteTimestampMicros:1684374845117899.},'
        'NewImage:{ISBN:"333-3333333333",Price:2.5}}}'
    )
    members = [set(ion_text.read(line.decode())["Record"]) for line in lines]
    both = {"Keys", "Metadata", *with_old}
    assert members == [{"Keys", "Metadata", "NewImage"}, {*both, "NewImage"}, both]


def test_the_summary_of_an_incremental_export() -> None:
    layout = Layout("", ID, incremental=True)
    shown = exports.incremental_summary(
        export_of(3), layout, "2023-02-20T10:00:00.000Z", "2023-02-20T11:00:00.000Z", "NEW_AND_OLD_IMAGES"
    )
    assert shown["version"] == "2023-08-01"
    assert shown["exportFromTime"] == "2023-02-20T10:00:00.000Z"
    assert shown["exportToTime"] == "2023-02-20T11:00:00.000Z"
    assert "exportTime" not in shown
    assert (shown["outputView"], shown["exportType"]) == ("NEW_AND_OLD_IMAGES", "INCREMENTAL_EXPORT")
    assert list(shown)[-3:] == ["outputFormat", "outputView", "exportType"]
