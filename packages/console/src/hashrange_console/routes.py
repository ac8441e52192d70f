"""The addresses of the console, and who may open them.

A link's token is swapped for a cookie, which every page needs until its session ends (`server.admin.entry`).
A browser without it gets a page that says how to get a link. What changes something needs a JSON body, as on
all of the admin plane; `server.admin.guard` refuses what other sites send. With `--console-read-only` every
change is refused here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hashrange.server.admin.application import Endpoint, json
from hashrange.server.admin.data import READ_ONLY
from hashrange_console import ask, entities, items, live, looks, money, past, tables
from hashrange_console.pages import Answer, Change, Page, Part
from hashrange_console.reach import Refused, View, cookie_of, session_of
from hashrange_console.tables import listing


def opened(request: Request) -> bool:
    """Whether the browser has a session of this server."""
    return bool(request.app.state.door.entry.knows(session_of(request)))


async def closed(*, used: bool) -> Response:
    """The page for a browser without a session. `used`: its link is not valid, or no more."""
    return await looks.page("closed.html", 401, used=used)


def shown(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a page, for browsers with a session."""

    async def endpoint(request: Request) -> Response:
        if not opened(request):
            return await closed(used=False)
        view = View.of(request)
        try:
            return await answer(view)
        except Refused as error:
            status = 404 if error.code == "ResourceNotFoundException" else 400
            return await looks.page("problem.html", status, view=view, title="Not found", text=str(error))

    return endpoint


def asked(answer: Answer, *, changes: bool) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a question or a change, for browsers with a session. `changes`: it is refused while the
    console is read-only."""

    async def endpoint(request: Request) -> Response:
        if not opened(request):
            raise HTTPException(401, "open the link that the server printed, or run `hashrange console`")
        view = View.of(request)
        if changes and view.read_only:
            raise HTTPException(403, READ_ONLY)
        try:
            return await answer(view)
        except Refused as error:
            return json({"error": str(error), "code": error.code}, 400)

    return endpoint


async def _start(request: Request) -> Response:
    token = request.query_params.get("token")
    if token is None:
        return await shown(listing.page)(request)
    session = request.app.state.door.entry.redeem(token)
    if session is None and not opened(request):
        return await closed(used=True)
    answer = RedirectResponse("/console", 303, looks.HEADERS)
    if session is not None:
        secure = request.url.scheme == "https"
        answer.set_cookie(
            cookie_of(request), session, path="/console", httponly=True, samesite="strict", secure=secure
        )
    return answer


async def _log_out(request: Request) -> Response:
    request.app.state.door.entry.end(session_of(request))
    answer = RedirectResponse("/console", 303, looks.HEADERS)
    answer.delete_cookie(cookie_of(request), path="/console")
    return answer


async def _static(request: Request) -> Response:
    file = looks.static(request.path_params["stamp"], request.path_params["name"])
    if file is None:
        raise HTTPException(404, "Not Found")
    return file


def _endpoint(part: Part) -> Endpoint:
    if isinstance(part, Page):
        return Endpoint("GET", part.path, part.about, shown(part.answer))
    answer = asked(part.answer, changes=isinstance(part, Change))
    return Endpoint("POST", part.path, part.about, answer, takes=part.takes)


ENDPOINTS: Final = (
    Endpoint("GET", "/console", "The console: the list of tables.", _start),
    Endpoint("POST", "/console/logout", "End the session of the browser.", _log_out),
    Endpoint("GET", "/console/static/{stamp}/{name:path}", "Style sheets and scripts.", _static),
    *[
        _endpoint(part)
        for pages in (tables, items, ask, entities, live, money, past)
        for part in pages.PARTS
    ],
)
