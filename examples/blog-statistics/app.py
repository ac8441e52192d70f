"""The page and its endpoints."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from lanes import TABLE, Blog
from running import application, client_of_environment, make_table, serve
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

HERE = Path(__file__).parent
SHARES = {"duplicates": 0.3, "crashes": 0.1, "conflicts": 0.1}
EVENTS_MAX = 500


def make_app(client: Any) -> Starlette:
    """The application, with the worker of its queue."""
    make_table(client, TABLE)
    blog = Blog(client)
    before = blog.counts()  # (of earlier runs)

    def index(request: Request) -> Response:
        return FileResponse(HERE / "page.html")

    def state(request: Request) -> Response:
        """How many events were sent, and what each lane counted since."""
        counts = {lane: count - before[lane] for lane, count in blog.counts().items()}
        trouble = {name: share > 0 for name, share in dataclasses.asdict(blog.trouble).items()}
        return JSONResponse({"sent": blog.sent, "counts": counts, "trouble": trouble})

    async def send(request: Request) -> Response:
        number = int(request.query_params.get("events", "50"))
        if not 0 <= number <= EVENTS_MAX:
            raise ValueError(f"from 0 to {EVENTS_MAX} events are sent at once, not {number}")
        await run_in_threadpool(blog.send, number)
        return JSONResponse({"sent": number})

    async def trouble(request: Request) -> Response:
        """Turn one kind of trouble on or off."""
        name = request.path_params["name"]
        if name not in SHARES:
            return JSONResponse({"error": f"there is no trouble named {name}"}, 404)
        setattr(blog.trouble, name, SHARES[name] if request.query_params.get("on") == "true" else 0.0)
        return JSONResponse({})

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=blog.worker().run, args=(stop,))
        thread.start()
        yield
        stop.set()
        thread.join()

    routes = [
        Route("/", index),
        Route("/state", state),
        Route("/send", send, methods=["POST"]),
        Route("/trouble/{name}", trouble, methods=["POST"]),
    ]
    return application(routes, lifespan=lifespan)


if __name__ == "__main__":
    serve(make_app(client_of_environment()))
