"""The addresses of the console, and who may open them: browsers with a session, whatever role they have.

A link's token is swapped for a cookie, which every page needs until its session ends (`entry`).
A browser without it gets a page that says how to get a link. What changes something needs a JSON body, as on
all of the admin plane; `server.admin.guard` refuses what other sites send. With `--console-read-only` every
change is refused here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hashrange.rings import rings
from hashrange.server.admin.application import Endpoint, json, read_json, role_of, subject_of
from hashrange.server.admin.data import READ_ONLY
from hashrange.server.admin.guard import BY, SIGNER
from hashrange.server.admin.roles import ADMIN, NOBODY, READ
from hashrange_console import ask, entities, items, live, looks, past, tables
from hashrange_console.pages import Action, Answer, Page, Part, of_rings
from hashrange_console.reach import Refused, View, console, cookie_of, session_of
from hashrange_console.tables import listing


def opened(request: Request) -> bool:
    """Whether the browser has a session of this server."""
    is_known = console(request).entry.knows(session_of(request))
    if is_known:
        request.scope[BY].update(by="console", verified=True)
    return is_known


async def closed(request: Request, *, used: bool) -> Response:
    """The page for a browser without a session, with the command that makes a link to this very server.
    `used`: the browser's link is not valid, or no more."""
    address, port = request.scope["server"]
    host = f"[{address}]" if ":" in address else address
    plane = f"{request.url.scheme}://{host}:{port}"
    return await looks.page("closed.html", 401, used=used, plane=plane)


def shown(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a page, for browsers with a session."""

    async def endpoint(request: Request) -> Response:
        if not opened(request):
            return await closed(request, used=False)
        view = View.of(request)
        try:
            return await answer(view)
        except Refused as error:
            is_missing = error.code == "ResourceNotFoundException"
            title = "Not found" if is_missing else "This cannot be shown"
            status = 404 if is_missing else 400
            return await looks.page("problem.html", status, view=view, title=title, text=str(error))

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
    session = console(request).entry.redeem(token)
    if session is None and not opened(request):
        return await closed(request, used=True)
    answer = RedirectResponse("/console", 303, looks.HEADERS)
    if session is not None:
        secure = request.url.scheme == "https"
        answer.set_cookie(
            cookie_of(request), session, path="/console", httponly=True, samesite="strict", secure=secure
        )
    return answer


async def _log_out(request: Request) -> Response:
    console(request).entry.end(session_of(request))
    answer = RedirectResponse("/console", 303, looks.HEADERS)
    answer.delete_cookie(cookie_of(request), path="/console")
    return answer


async def _unknown(view: View) -> Response:
    path = view.request.url.path
    ring = rings().absent_at(path)
    if ring is None:
        raise Refused(f"The console has no page {path}.", "ResourceNotFoundException")
    status = 503 if ring in rings().troubles() else 404
    text = rings().why_missing(ring)
    return await looks.page("problem.html", status, view=view, title="This page is not there", text=text)


class NewLink(msgspec.Struct, forbid_unknown_fields=True):
    """No parameters: an empty object."""


class Link(msgspec.Struct):
    """A link to the console.

    link: its path and query, to be put behind the URL of the admin plane.
    """

    link: str


async def _link(request: Request) -> Link:
    await read_json(request, NewLink)
    subject, operator = subject_of(request), request.scope.get(SIGNER)

    def counts() -> bool:
        """Whether the user who asks may still do what the role of the link says."""
        gate = subject.database.observers.gate
        return operator is None or (gate is not None and gate.still_operates(operator))

    role = role_of(request)
    link = console(request).entry.link(read_only=role == READ, is_admin=role == ADMIN, counts=counts)
    return Link(f"/console?token={link}")


async def _static(request: Request) -> Response:
    file = looks.static(request.path_params["stamp"], request.path_params["name"])
    if file is None:
        raise HTTPException(404, "Not Found")
    return file


def _endpoint(part: Part) -> Endpoint:
    if isinstance(part, Page):
        return Endpoint("GET", part.path, part.about, shown(part.answer), role=NOBODY)
    answer = asked(part.answer, changes=isinstance(part, Action))
    return Endpoint("POST", part.path, part.about, answer, takes=part.takes, role=NOBODY)


ENDPOINTS: Final = (
    Endpoint("GET", "/console", "The console: the list of tables.", _start, role=NOBODY),
    Endpoint(
        "POST",
        "/v1/console-link",
        "Make a link to the console, which can be used once.",
        _link,
        takes=NewLink,
        role=READ,
    ),
    Endpoint("POST", "/console/logout", "End the session of the browser.", _log_out, role=NOBODY),
    Endpoint("GET", "/console/static/{stamp}/{name:path}", "Style sheets and scripts.", _static, role=NOBODY),
    *[_endpoint(part) for package in (tables, items, ask, entities, live, past) for part in package.PARTS],
    *[_endpoint(part) for pages in of_rings() for part in pages.parts],
    Endpoint("GET", "/console/{rest:path}", "An answer for an unknown page.", shown(_unknown), role=NOBODY),
)
