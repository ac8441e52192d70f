"""The objects of an export to S3: data, manifests and checksums, as the service lays them out.

    <prefix>/AWSDynamoDB/<id>/_started                  empty; the export has begun
    <prefix>/AWSDynamoDB/<id>/data/<name>.json.gz       a full export's items
    <prefix>/AWSDynamoDB/data/<name>.json.gz            an incremental export's changes
    <prefix>/AWSDynamoDB/<id>/manifest-files.json       a line for each data object
    <prefix>/AWSDynamoDB/<id>/manifest-files.md5        the MD5 of that, in base64
    <prefix>/AWSDynamoDB/<id>/manifest-summary.json     the export as a whole; written last
    <prefix>/AWSDynamoDB/<id>/manifest-summary.md5

Every object is written whole or not at all, and equal contents give equal bytes. The caller decides which
items go into which object, keeps the entries of the objects that were written (`DataObject`), and calls
`write_manifests` at the end, so an interrupted export continues with the next object.

Source: Developer Guide, "DynamoDB table export output format"; listings of real exports for the names of the
checksums, which the guide calls `.checksum`.
"""

from __future__ import annotations

import hashlib
from base64 import b32encode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

import orjson

from hashrange.buckets import Buckets, ObjectWriter
from hashrange.interchange import dynamodb_json, ion
from hashrange.interchange.compression import Digesting, gzip_writer
from hashrange.values import Item

Format = Literal["DYNAMODB_JSON", "ION"]
ViewType = Literal["NEW_IMAGE", "NEW_AND_OLD_IMAGES"]

FULL_VERSION: Final = "2020-06-30"
INCREMENTAL_VERSION: Final = "2023-08-01"

_TOP: Final = "AWSDynamoDB"
_EXTENSIONS: Final = {"DYNAMODB_JSON": "json.gz", "ION": "ion.gz"}
_NAME_BYTES: Final = 16


class DataObject(NamedTuple):
    """A data object that was written, as the files manifest describes it."""

    items: int
    md5: str
    etag: str
    key: str


class Layout:
    """The keys of one export's objects. `prefix` is that of the request, "" without one."""

    def __init__(self, prefix: str, export_id: str, *, incremental: bool = False) -> None:
        self._prefix = f"{prefix.removesuffix('/')}/" if prefix else ""
        self._own = f"{_TOP}/{export_id}"
        self._data = f"{_TOP}/data" if incremental else f"{self._own}/data"
        self._id = export_id

    @property
    def started(self) -> str:
        """The key of the empty object that says that the export has begun."""
        return f"{self._prefix}{self._own}/_started"

    def manifest(self, name: Literal["files", "summary"], extension: Literal["json", "md5"] = "json") -> str:
        """The key of a manifest, or of its checksum."""
        return f"{self._prefix}{self._own}/manifest-{name}.{extension}"

    def data(self, number: int, format_: Format) -> str:
        """The key of data object number `number`: a name in the service's form, unique to this export."""
        digest = hashlib.blake2b(f"{self._id}/{number}".encode(), digest_size=_NAME_BYTES).digest()
        name = b32encode(digest).decode().rstrip("=").lower()
        return f"{self._prefix}{self._data}/{name}.{_EXTENSIONS[format_]}"


class DataWriter:
    """Writes the lines of one data object."""

    def __init__(self, sink: ObjectWriter, format_: Format) -> None:
        self._hashing = Digesting(sink, hashlib.md5(usedforsecurity=False))
        self._gzip = gzip_writer(self._hashing)
        self._format = format_
        self.items = 0

    @property
    def compressed_bytes(self) -> int:
        """How many compressed bytes were written so far; the last lines may not be included yet."""
        return self._hashing.count

    def item(self, item: bytes) -> None:
        """A line of a full export. `item` is its JSON, as it is stored."""
        if self._format == "ION":
            self._gzip.write(ion.write(orjson.loads(item)))
        else:
            self._gzip.write(dynamodb_json.write(item))
        self.items += 1

    def line(self, line: bytes) -> None:
        """A line of another kind, without its end."""
        self._gzip.write(line + b"\n")
        self.items += 1

    def change(self, micros: int, keys: Item, old: Item | None, new: Item | None, view: ViewType) -> None:
        """A line of an incremental export: an item at the beginning and at the end of the exported time
        (None: absent).

        `micros` is the time of the item's last write, in microseconds since the epoch.
        """
        images = {"OldImage": old if view == "NEW_AND_OLD_IMAGES" else None, "NewImage": new}
        shown = {name: image for name, image in images.items() if image is not None}
        if self._format == "ION":
            parts = [f"Keys:{ion.struct(keys)}", f"Metadata:{{WriteTimestampMicros:{micros}.}}"]
            parts += [f"{name}:{ion.struct(image)}" for name, image in shown.items()]
            self._gzip.write(f"$ion_1_0 {{Record:{{{','.join(parts)}}}}}\n".encode())
        else:
            metadata = {"WriteTimestampMicros": {"N": str(micros)}}
            line = orjson.dumps({"Metadata": metadata, "Keys": keys, **shown})
            self._gzip.write(line + b"\n")
        self.items += 1

    def close(self) -> str:
        """End the object; returns its MD5 in base64."""
        self._gzip.close()
        return _md5_text(self._hashing.digest.digest())


def _md5_text(digest: bytes) -> str:
    return b64encode(digest).decode()


@contextmanager
def data_object(
    buckets: Buckets, bucket: str, layout: Layout, number: int, format_: Format, written: list[DataObject]
) -> Iterator[DataWriter]:
    """Write data object number `number`. Its entry is appended to `written` once the object exists.

    An earlier object with this number is replaced.
    """
    key = layout.data(number, format_)
    with buckets.create(bucket, key) as sink:
        writer = DataWriter(sink, format_)
        yield writer
        md5 = writer.close()
    written.append(DataObject(writer.items, md5, sink.etag, key))


def write_started(buckets: Buckets, bucket: str, layout: Layout) -> None:
    """Write the object that says that the export has begun, which shows that the bucket takes objects."""
    _put(buckets, bucket, layout.started, b"")


def write_manifests(
    buckets: Buckets, bucket: str, layout: Layout, data: Iterable[DataObject], summary: dict[str, Any]
) -> str:
    """Write both manifests and their checksums, the summary last; returns the key of the summary.

    `summary` comes from `full_summary` or `incremental_summary`.
    """
    digest = hashlib.md5(usedforsecurity=False)
    with buckets.create(bucket, layout.manifest("files")) as sink:
        for entry in data:
            line = {"itemCount": entry.items, "md5Checksum": entry.md5, "etag": entry.etag}
            content = orjson.dumps({**line, "dataFileS3Key": entry.key}) + b"\n"
            digest.update(content)
            sink.write(content)
    _put(buckets, bucket, layout.manifest("files", "md5"), _md5_text(digest.digest()).encode())
    content = orjson.dumps(summary)
    checksum = _md5_text(hashlib.md5(content, usedforsecurity=False).digest())
    _put(buckets, bucket, layout.manifest("summary", "md5"), checksum.encode())
    _put(buckets, bucket, layout.manifest("summary"), content)
    return layout.manifest("summary")


def _put(buckets: Buckets, bucket: str, key: str, content: bytes) -> None:
    with buckets.create(bucket, key) as sink:
        sink.write(content)


def shown_time(moment: float) -> str:
    """A moment, given in epoch seconds, as manifests show it: ``2020-11-04T07:28:34.028Z``."""
    shown = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return shown.replace("+00:00", "Z")


class Export(NamedTuple):
    """What both kinds of summaries say about an export. Moments are in the form of `shown_time`."""

    arn: str
    table_arn: str
    table_id: str
    start_time: str
    end_time: str
    bucket: str
    prefix: str | None
    sse_algorithm: str
    sse_key: str | None
    billed_bytes: int
    items: int
    format: Format


def full_summary(export: Export, layout: Layout, export_time: str) -> dict[str, Any]:
    """The summary of a full export."""
    return _summary(FULL_VERSION, export, layout, {"exportTime": export_time})


def incremental_summary(
    export: Export, layout: Layout, from_time: str, to_time: str, view: ViewType
) -> dict[str, Any]:
    """The summary of an incremental export."""
    times = {"exportFromTime": from_time, "exportToTime": to_time}
    last = {"outputView": view, "exportType": "INCREMENTAL_EXPORT"}
    return {**_summary(INCREMENTAL_VERSION, export, layout, times), **last}


def _summary(version: str, export: Export, layout: Layout, times: dict[str, str]) -> dict[str, Any]:
    return {
        "version": version,
        "exportArn": export.arn,
        "startTime": export.start_time,
        "endTime": export.end_time,
        "tableArn": export.table_arn,
        "tableId": export.table_id,
        **times,
        "s3Bucket": export.bucket,
        "s3Prefix": export.prefix,
        "s3SseAlgorithm": export.sse_algorithm,
        "s3SseKmsKeyId": export.sse_key,
        "manifestFilesS3Key": layout.manifest("files"),
        "billedSizeBytes": export.billed_bytes,
        "itemCount": export.items,
        "outputFormat": export.format,
    }
