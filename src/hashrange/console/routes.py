"""The addresses of the console, and who may open them.

A link's token is swapped for a cookie, which every page needs. A browser without it gets a page that says how
to get a link. What changes something needs a JSON body, as on all of the admin plane; `server.admin.guard`
refuses what other sites send. With `--console-read-only` every change is refused here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hashrange.console import ask, changes, item, looks, table, tables
from hashrange.console.reach import Refused, View
from hashrange.server.admin.application import Endpoint, json
from hashrange.server.admin.data import READ_ONLY

COOKIE: Final = "hashrange-console"
Answer = Callable[[View], Awaitable[Response]]


def cookie_of(request: Request) -> str:
    """The name of the cookie. Browsers keep the cookies of all ports together, so it has the port."""
    server = request.scope.get("server")
    return f"{COOKIE}-{server[1] if server else 0}"


def opened(request: Request) -> bool:
    """Whether the browser has a session of this server."""
    session = request.cookies.get(cookie_of(request), "")
    return bool(request.app.state.door.entry.knows(session))


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


def changing(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a change, for browsers with a session, while the console is not read-only."""

    async def endpoint(request: Request) -> Response:
        if not opened(request):
            raise HTTPException(401, "open the link that the server printed, or run `hashrange console`")
        view = View.of(request)
        if view.read_only:
            raise HTTPException(403, READ_ONLY)
        try:
            return await answer(view)
        except Refused as error:
            return json({"error": str(error), "code": error.code}, 400)

    return endpoint


async def _start(request: Request) -> Response:
    token = request.query_params.get("token")
    if token is None:
        return await shown(tables.page)(request)
    session = request.app.state.door.entry.redeem(token)
    if session is None and not opened(request):
        return await closed(used=True)
    answer = RedirectResponse("/console", 303, looks.HEADERS)
    if session is not None:
        answer.set_cookie(cookie_of(request), session, path="/console", httponly=True, samesite="strict")
    return answer


async def _static(request: Request) -> Response:
    found = looks.static(request.path_params["name"])
    if found is None:
        raise HTTPException(404, "Not Found")
    return found


ENDPOINTS: Final = (
    Endpoint("GET", "/console", "The console: the list of tables.", _start),
    Endpoint("GET", "/console/t/{table}", "The items of a table.", shown(table.page)),
    Endpoint("GET", "/console/t/{table}/item", "An item and its versions.", shown(item.page)),
    Endpoint("GET", "/console/t/{table}/new", "A form for a new item.", shown(item.new)),
    Endpoint("GET", "/console/ask", "A PartiQL statement and its answer.", shown(ask.page)),
    Endpoint("GET", "/console/static/{name}", "Style sheets and scripts of the console.", _static),
    Endpoint("POST", "/console/save", "Save an item.", changing(changes.save), takes=changes.Save),
    Endpoint("POST", "/console/delete", "Delete an item.", changing(changes.delete), takes=changes.Delete),
    Endpoint("POST", "/console/undo", "Bring an item back.", changing(changes.undo), takes=changes.Undo),
    Endpoint("POST", "/console/run", "Run a statement.", changing(ask.run), takes=ask.Run),
)
