"""Checkpoints on the admin plane, for `hashrange copy`.

POST /v1/checkpoints    the store at one moment, in a folder of the data directory, which the client removes
"""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from hashrange.database import Database
from hashrange.server.admin.application import Endpoint, read_json
from hashrange.server.admin.aside import aside
from hashrange.server.admin.roles import ADMIN
from hashrange.storage.capabilities import Local
from hashrange.storage.failures import StorageError


class Checkpoint(msgspec.Struct, forbid_unknown_fields=True):
    """No parameters: an empty object."""


class CheckpointMade(msgspec.Struct):
    """The checkpoint.

    checkpoint: its folder on the server's machine, which the client removes.
    """

    checkpoint: str


async def _make(request: Request) -> CheckpointMade:
    await read_json(request, Checkpoint)
    return CheckpointMade(await aside(request, _checkpoint))


def _checkpoint(database: Database) -> str:
    engine = database.engine
    if not isinstance(engine, Local):
        raise HTTPException(400, f"The store is not in a directory: its engine is {engine.name}.")
    try:
        return engine.checkpoint_inside()
    except (StorageError, OSError) as error:
        raise HTTPException(500, f"No checkpoint could be made: {error}") from None


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/v1/checkpoints",
        "Make a checkpoint, the store at one moment, in the data directory; its folder.",
        _make,
        takes=Checkpoint,
        role=ADMIN,
    ),
)
