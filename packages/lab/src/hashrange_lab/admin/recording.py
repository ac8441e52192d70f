"""The recording of a server's requests, on the admin plane.

    GET     /v1/recording    the recording that is being made, or the last one
    POST    /v1/recording    begin one, in a new file of the directory that --record-dir names
    DELETE  /v1/recording    end it

A caller names a file of that directory only, because the server may write where the caller may not.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Final, Literal

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from hashrange.server.admin.application import Endpoint, read_json, subject_of
from hashrange.server.admin.port import Subject
from hashrange.server.admin.roles import ADMIN
from hashrange_lab.recordings.recording import Recording, recordings_of

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


class Start(msgspec.Struct, forbid_unknown_fields=True):
    """A recording to begin.

    name: the name of its file, without a path.
    values: whether values of items are kept, or each replaced by a hash of the same size.
    bytes_max: the size at which it ends; without it that of --record-bytes-max.
    """

    name: str
    values: Literal["kept", "hashed"] = "kept"
    bytes_max: int | None = None


class RecordingState(msgspec.Struct):
    """A recording.

    state: "recording", or why it ended.
    file: its file on the server's machine.
    values: kept or hashed.
    requests: how many requests are written.
    dropped: how many requests are missing, because they came faster than they could be written.
    bytes: the size of the file.
    bytes_max: the size at which it ends.
    """

    state: str
    file: str
    values: Literal["kept", "hashed"]
    requests: int
    dropped: int
    bytes: int
    bytes_max: int


class RecordingShown(msgspec.Struct):
    """The recording that is being made, or the last one.

    recording: the recording; null: there was none.
    """

    recording: RecordingState | None


def shown(subject: Subject) -> RecordingShown:
    """The recording that is being made, or the last one."""
    recording = recordings_of(subject.database).last
    writer = recording.writer if recording is not None else None
    if recording is None or writer is None:
        return RecordingShown(None)
    return RecordingShown(
        RecordingState(
            state=writer.state,
            file=str(recording.path),
            values="hashed" if recording.hashed else "kept",
            requests=writer.written,
            dropped=writer.dropped,
            bytes=writer.written_bytes,
            bytes_max=recording.bytes_max,
        )
    )


async def _show(request: Request) -> RecordingShown:
    return shown(subject_of(request))


def begin(subject: Subject, start: Start) -> None:
    """Begin a recording. Raises HTTPException."""
    recordings = recordings_of(subject.database)
    if not recordings.directory:
        why = "The server has no directory for recordings: start it with --record-dir DIR."
        raise HTTPException(400, why)
    if not _NAME.fullmatch(start.name):
        raise HTTPException(
            400, f"{start.name!r} is not the name of a file: give letters, digits and _.- without a path."
        )
    bytes_max = recordings.bytes_max if start.bytes_max is None else start.bytes_max
    if bytes_max < 1:
        raise HTTPException(400, f"bytes_max is {bytes_max}; give a number from 1.")
    path = Path(recordings.directory) / start.name
    recording = Recording(subject.database, path, hashed=start.values == "hashed", bytes_max=bytes_max)
    try:
        recording.begin()
    except FileExistsError:
        raise HTTPException(409, f"{path} exists already; give another name.") from None
    except ValueError as error:
        raise HTTPException(409, str(error)) from None
    except OSError as error:
        raise HTTPException(400, f"{path} cannot be written: {error.strerror}") from None


async def end(subject: Subject) -> None:
    """End the recording. Raises HTTPException."""
    recording = recordings_of(subject.database).last
    if recording is None or not recording.is_on:
        raise HTTPException(409, "Nothing is being recorded.")
    await asyncio.to_thread(recording.end)


async def _start(request: Request) -> RecordingShown:
    start = await read_json(request, Start)
    begin(subject_of(request), start)
    return await _show(request)


async def _stop(request: Request) -> RecordingShown:
    await end(subject_of(request))
    return await _show(request)


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/recording", "The recording that is being made, or the last one.", _show),
    Endpoint(
        "POST",
        "/v1/recording",
        "Record all requests in a new file of the directory that --record-dir names.",
        _start,
        takes=Start,
        role=ADMIN,  # it writes a file with all values
    ),
    Endpoint("DELETE", "/v1/recording", "End the recording; its file is complete then.", _stop, role=ADMIN),
)
