"""The recording of a server's requests, on the admin plane.

    GET     /recording    the recording that is being made, or the last one
    POST    /recording    begin one, in a new file of the directory that --record-dir names
    DELETE  /recording    end it

A caller names a file of that directory only, because the server may write where the caller may not.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hashrange.server.admin.application import Endpoint, json, read_json, subject_of
from hashrange.server.admin.port import Subject
from hashrange.server.admin.roles import ADMIN
from hashrange_lab.recordings.recording import Recording, recordings_of

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


class Start(msgspec.Struct, forbid_unknown_fields=True):
    """A recording to begin: the name of its file, whether values are kept, and the size at which it ends."""

    name: str
    values: Literal["kept", "hashed"] = "kept"
    bytes_max: int | None = None


def shown(subject: Subject) -> dict[str, Any]:
    """What `GET /recording` shows."""
    recording = recordings_of(subject.database).last
    writer = recording.writer if recording is not None else None
    if recording is None or writer is None:
        return {"recording": None}
    about = {
        "state": writer.state,
        "file": str(recording.path),
        "values": "hashed" if recording.hashed else "kept",
        "requests": writer.written,
        "dropped": writer.dropped,
        "bytes": writer.written_bytes,
        "bytes_max": recording.bytes_max,
    }
    return {"recording": about}


async def _show(request: Request) -> Response:
    return json(shown(subject_of(request)))


async def _start(request: Request) -> Response:
    start = await read_json(request, Start)
    subject = subject_of(request)
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
    return await _show(request)


async def _stop(request: Request) -> Response:
    recording = recordings_of(subject_of(request).database).last
    if recording is None or not recording.is_on:
        raise HTTPException(409, "Nothing is being recorded.")
    await asyncio.to_thread(recording.end)
    return await _show(request)


ENDPOINTS: Final = (
    Endpoint("GET", "/recording", "The recording that is being made, or the last one.", _show),
    Endpoint(
        "POST",
        "/recording",
        "Record all requests in a new file of the directory that --record-dir names.",
        _start,
        takes=Start,
        role=ADMIN,  # it writes a file with all values
    ),
    Endpoint("DELETE", "/recording", "End the recording; its file is complete then.", _stop, role=ADMIN),
)
