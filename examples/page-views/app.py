"""The page and its endpoints. Endpoints run in threads (they are no coroutines), as the client blocks."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from running import application, client_of_environment, make_table, serve
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from views import PAGES, TABLE, Views, Workers

from hashrange_patterns import QueueFull

HERE = Path(__file__).parent
VIEWS_MAX = 1_000


def make_app(client: Any) -> Starlette:
    """The application, with its workers."""
    views = Views(client)
    if make_table(client, TABLE):
        views.pages.put_all(PAGES)

    def index(request: Request) -> Response:
        return FileResponse(HERE / "page.html")

    async def take_in(request: Request) -> Response:
        """Views of the form {id, page, reader}; 202 once they are in the queue, 503 if too many wait."""
        try:
            known = {page.path for page in PAGES}
            taken = [
                {
                    "id": str(view["id"])[:100],
                    "page": str(view["page"]),
                    "reader": str(view["reader"])[:100],
                    "at": datetime.now(UTC).isoformat(),
                }
                for view in (await request.json())[:VIEWS_MAX]
            ]
        except (ValueError, TypeError, KeyError):
            return JSONResponse({"error": "a list of {id, page, reader} is expected"}, 400)
        if any(view["page"] not in known for view in taken):
            return JSONResponse({"error": "there is no such page"}, 404)
        try:
            await run_in_threadpool(views.take_in, taken)
        except QueueFull as full:
            return JSONResponse({"error": str(full)}, 503, {"Retry-After": "5"})
        return JSONResponse({"taken": len(taken)}, 202)

    def statistics(request: Request) -> Response:
        return JSONResponse(views.statistics())

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        with Workers(views):
            yield

    routes = [
        Route("/", index),
        Route("/views", take_in, methods=["POST"]),
        Route("/statistics", statistics),
    ]
    return application(routes, lifespan=lifespan)


if __name__ == "__main__":
    serve(make_app(client_of_environment()))
