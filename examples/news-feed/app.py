"""The page and its endpoints. Endpoints that are no coroutines run in threads, as the client blocks."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from newspaper import PEOPLE, TABLE, Newspaper, Workers
from running import application, client_of_environment, make_table, posted, serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

HERE = Path(__file__).parent
TEXT_MAX = 280


def make_app(client: Any) -> Starlette:
    """The application, with its workers."""
    new = make_table(client, TABLE)
    newspaper = Newspaper(client)
    if new:
        newspaper.begin()
    feeds = newspaper.feeds

    def index(request: Request) -> Response:
        return FileResponse(HERE / "page.html")

    def home(request: Request) -> Response:
        """A page of a reader's feed, and the cursors of the pages before and behind it."""
        reader = request.path_params["reader"]
        if reader not in PEOPLE:
            return JSONResponse({"error": f"there is no {reader}"}, 404)
        page = feeds.home(reader, limit=8, cursor=request.query_params.get("cursor"), consistent=True)
        posts = [
            {"id": post.id, "author": post.author, "content": post.content, "at": post.at.isoformat()}
            for post in page.posts
        ]
        return JSONResponse({"posts": posts, "older": page.older, "newer": page.newer})

    def people(request: Request) -> Response:
        follows = set(feeds.following(person(request.path_params["reader"])))
        everybody = [
            {"name": name, "followers": len(feeds.followers(name)), "followed": name in follows}
            for name in PEOPLE
        ]
        return JSONResponse(everybody)

    def post(form: dict[str, str]) -> Any:
        text = form["content"].strip()
        if not 0 < len(text) <= TEXT_MAX:
            raise ValueError(f"a post has from 1 to {TEXT_MAX} characters")
        return feeds.post(person(form["as"]), text).id

    def follow(form: dict[str, str]) -> Any:
        reader, author = person(form["as"]), person(form["author"])
        return feeds.follow(reader, author) or not feeds.unfollow(reader, author)

    def delete(form: dict[str, str]) -> Any:
        feeds.delete(person(form["as"]), form["id"])

    def burst(form: dict[str, str]) -> Any:
        return newspaper.burst(40)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        with Workers(newspaper):
            yield

    actions = [
        Route(f"/{work.__name__}", posted(work), methods=["POST"]) for work in (post, follow, delete, burst)
    ]
    routes = [Route("/", index), Route("/home/{reader}", home), Route("/people/{reader}", people), *actions]
    return application(routes, lifespan=lifespan)


def person(name: str) -> str:
    """One of the people. Raises ValueError."""
    if name not in PEOPLE:
        raise ValueError(f"there is no {name}")
    return name


if __name__ == "__main__":
    serve(make_app(client_of_environment()))
