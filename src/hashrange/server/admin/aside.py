"""Work that may take long, for endpoints of the admin plane: on a thread, so that no request waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.server.admin.application import subject_of

T = TypeVar("T")

# The codes of errors that mean 404.
_NOT_FOUND = ("ResourceNotFoundException", "TableNotFoundException", "BackupNotFoundException")


async def aside(request: Request, work: Callable[[Database], T]) -> T:
    """Do work on a thread, and return its result. A `ServiceError` becomes the answer 400 or 404."""
    database = subject_of(request).database
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def succeed(result: T) -> None:
        if not done.cancelled():
            done.set_result(result)

    def fail(error: Exception) -> None:
        if not done.cancelled():
            done.set_exception(error)

    def run() -> None:
        try:
            result = work(database)
        except Exception as error:
            loop.call_soon_threadsafe(fail, error)
        else:
            loop.call_soon_threadsafe(succeed, result)

    database.start_aside(run)
    try:
        return await done
    except ServiceError as error:
        if error.code in _NOT_FOUND:
            raise HTTPException(404, str(error.message)) from None
        raise HTTPException(400, f"{error.code}: {error.message}") from None
