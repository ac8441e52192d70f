"""The admin plane of a standby.

POST /v1/promote     make the standby the primary; answers when writes are accepted
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
from hashrange_replication.failures import ERRORS


class Promotion(msgspec.Struct, forbid_unknown_fields=True):
    """How a standby becomes the primary.

    force: also if the primary has not agreed to this standby. Only if the primary is dead for certain:
        otherwise both acknowledge writes.
    """

    force: bool = False


class Promoted(msgspec.Struct):
    """A standby that is the primary now.

    epoch: the epoch that it has taken.
    batch: the number of the last batch that it has from the former primary.
    """

    epoch: int
    batch: int


async def _promote(request: Request) -> Promoted:
    wanted = await read_json(request, Promotion)

    def promote(database: Database) -> Promoted | str:
        standby = database.part("replication", "copying").standby
        if standby is None:
            return "This server is no standby. Ask one that was started by `hashrange standby`."
        try:
            copying = standby.promote(force=wanted.force)
        except ERRORS as error:
            return f"The standby was not promoted, and goes on to follow: {error}"
        return Promoted(copying.lease.epoch, standby.batch)

    done = await aside(request, promote)
    if isinstance(done, str):
        raise HTTPException(409, done)
    return done


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/v1/promote",
        "Make a standby the primary; answers when it accepts writes.",
        _promote,
        takes=Promotion,
        role=ADMIN,
    ),
)
