"""The page and its endpoints. Endpoints that are no coroutines run in threads, as the client blocks."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from photos import INVERTED, REACTIONS, TABLE, Photo, Photos, Reaction, User
from pictures import picture
from running import application, client_of_environment, make_table, posted, serve
from sample import NAMES, load
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from hashrange_patterns.entities import Missing, Refused

HERE = Path(__file__).parent


def shown(entity: Any) -> dict[str, Any]:
    """An entity, as the page takes it."""
    values = dataclasses.asdict(entity)
    values.pop("email", None)
    return {
        name: value.isoformat()
        if isinstance(value, datetime)
        else sorted(value)
        if isinstance(value, set)
        else value
        for name, value in values.items()
    }


def make_app(client: Any) -> Starlette:
    """The application."""
    photos = Photos(client)
    if make_table(client, TABLE, INVERTED):
        load(photos)

    def index(request: Request) -> Response:
        return FileResponse(HERE / "page.html")

    def people(request: Request) -> Response:
        """Those of the sample; a program with more users would not list them all."""
        everybody = photos.store.get_all(User.key(name.lower()) for name in NAMES)
        return JSONResponse([shown(user) for user in everybody.values()])

    def profile(request: Request) -> Response:
        username = request.path_params["username"]
        found = photos.profile(username)
        if found is None:
            return JSONResponse({"error": f"there is no {username}"}, 404)
        return JSONResponse(
            {
                "user": shown(found.user),
                "photos": [shown(photo) for photo in reversed(found.photos)],
                "followers": [shown(user) for user in photos.followers(username)],
                "following": [shown(user) for user in photos.following(username)],
            }
        )

    def photo(request: Request) -> Response:
        username, taken_at = request.path_params["username"], moment(request.path_params["taken_at"])
        found = photos.photo(username, taken_at)
        if found is None:
            return JSONResponse({"error": "there is no such photo"}, 404)
        reactions = [shown(reaction) for reaction in found.reactions]
        return JSONResponse({"photo": shown(found.photo), "reactions": reactions})

    def painted(request: Request) -> Response:
        return Response(picture(str(request.url.path)), media_type="image/svg+xml")

    def react(form: dict[str, str]) -> Any:
        if form["type"] not in REACTIONS:
            raise ValueError(f"there is no reaction {form['type']}")
        return photos.react(Reaction(form["as"], form["type"], form["username"], moment(form["taken_at"])))

    def follow(form: dict[str, str]) -> Any:
        return photos.follow(form["as"], form["username"]) or not photos.unfollow(
            form["as"], form["username"]
        )

    def upload(form: dict[str, str]) -> Any:
        photos.upload(Photo(form["as"], datetime.now(UTC), form["title"][:80], form["place"][:40]))

    def change(form: dict[str, str]) -> Any:
        return shown(photos.change(form["as"], form["name"][:40], form["city"][:40]))

    routes = [
        Route("/", index),
        Route("/people", people),
        Route("/profiles/{username}", profile),
        Route("/photos/{username}/{taken_at}", photo),
        Route("/pictures/{username}/{taken_at}", painted),
        *(
            Route(f"/{work.__name__}", posted(work), methods=["POST"])
            for work in (react, follow, upload, change)
        ),
    ]
    return application(routes, {Missing: 404, Refused: 409})


def moment(text: str) -> datetime:
    """A moment from a URL."""
    return datetime.fromisoformat(text)


if __name__ == "__main__":
    serve(make_app(client_of_environment()))
