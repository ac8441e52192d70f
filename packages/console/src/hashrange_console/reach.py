"""How pages reach the data: requests of DynamoDB's API, and the past, as the admin plane's endpoints do.

`View` is what a page knows of its request: the server, the scope of the tables, and what may be changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request

from hashrange.clock import parse_moment, show_moment
from hashrange.errors import ServiceError
from hashrange.operations.travel import NoPast, Travel
from hashrange.server.admin import data
from hashrange.server.admin.application import subject_of
from hashrange.server.admin.aside import aside
from hashrange_console.code import snippets
from hashrange_console.entry import Console, console_of, is_read_only

T = TypeVar("T")

COOKIE: Final = "hashrange-console"


def cookie_of(request: Request) -> str:
    """The name of the cookie. Browsers keep the cookies of all ports together, so it has the port."""
    server = request.scope.get("server")
    return f"{COOKIE}-{server[1] if server else 0}"


def session_of(request: Request) -> str:
    """The session that a browser claims to have."""
    return request.cookies.get(cookie_of(request), "")


def console(request: Request) -> Console:
    """The console that a request is sent to."""
    return console_of(request.app.state.door)


class Refused(Exception):
    """A request was refused; the text is the database's own. `code` is "" where DynamoDB has no error."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class View:
    """A request of a browser, and the scope of the tables that its page shows, "" where all callers share
    them."""

    request: Request
    scope: str

    @staticmethod
    def of(request: Request) -> View:
        return View(request, request.query_params.get("scope", ""))

    @property
    def read_only(self) -> bool:
        return bool(self.request.app.state.door.read_only) or is_read_only(session_of(self.request))

    @property
    def administers(self) -> bool:
        """Whether the session was opened by an administrator."""
        return console(self.request).entry.administers(session_of(self.request))

    @property
    def banner(self) -> str:
        """The text that every page shows on a red strip, "" for none."""
        return console(self.request).banner

    @property
    def theme(self) -> str:
        """The colours that the browser asks for: `light`, `dark`, or "" for those of its system."""
        return self._setting("theme", ("light", "dark"))

    @property
    def times(self) -> str:
        """The times that the browser asks for: `local`, or "" for UTC."""
        return self._setting("times", ("local",))

    def _setting(self, name: str, values: tuple[str, ...]) -> str:
        given = self.request.cookies.get(f"hashrange-{name}", "")
        return given if given in values else ""

    @property
    def endpoint(self) -> str:
        """The URL of the data plane."""
        return subject_of(self.request).plane.endpoint_url

    @property
    def full_scope(self) -> str:
        """The scope of the page's tables, that of the server's own account and region if the address names
        none; "" where all callers share them. Raises `Refused`."""
        try:
            return data.full_scope(subject_of(self.request), self.scope)
        except ServiceError as error:
            refuse(error)

    def code(self, operation: str, sent: dict[str, Any]) -> list[tuple[str, str]]:
        """A request as code in some languages, for the scope of the page."""
        return snippets(operation, sent, self.endpoint, self.full_scope)

    def given(self, name: str) -> str:
        """A parameter of the page's address, "" if it is missing."""
        return self.request.query_params.get(name, "").strip()

    def full_name(self, table: str) -> str:
        """The name of a table for time travel."""
        return f"{self.full_scope}/{table}" if self.full_scope else table

    async def read(self, operation: str, sent: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request that only reads. Raises `Refused`."""
        if data.writes(operation, sent):
            raise Refused("This page is read-only.")
        return await self.do(operation, sent)

    async def change(self, operation: str, sent: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request that may write. Raises `Refused`, and HTTPException if nothing may be
        changed."""
        if self.read_only:
            raise HTTPException(403, data.READ_ONLY)
        return await self.do(operation, sent)

    async def do(self, operation: str, sent: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request, which the caller has judged."""
        try:
            answer = await data.ask(subject_of(self.request), operation, orjson.dumps(sent), self.scope)
        except ServiceError as error:
            refuse(error)
        return orjson.loads(answer) if answer else {}

    async def travel(self, work: Callable[[Travel], T]) -> T:
        """The result of some time travel, which is done on a thread. Raises `Refused`."""
        try:
            return await aside(self.request, lambda database: work(database.travel))
        except NoPast as error:
            raise Refused(str(error)) from None
        except HTTPException as error:
            raise Refused(error.detail) from None

    def moment(self, text: str) -> tuple[float, str]:
        """A moment that a user gave, and how pages write it. Raises `Refused`."""
        try:
            moment = parse_moment(text, subject_of(self.request).database.clock.now())
        except ValueError as error:
            raise Refused(str(error)) from None
        return moment, show_moment(moment)


def refuse(error: ServiceError) -> NoReturn:
    """Raise `Refused` with the text that DynamoDB answers."""
    wire = error.wire()
    text = str(wire.get("message") or wire.get("Message") or error.code)
    raise Refused(text, error.code) from None


def key_of(text: str) -> dict[str, Any]:
    """A key, or the start of a page, from the address. Raises `Refused`."""
    try:
        key = orjson.loads(text)
    except orjson.JSONDecodeError:
        key = None
    if not isinstance(key, dict) or not key:
        raise Refused("The key in this address is not a key in DynamoDB's JSON.")
    return key


def text_of(value: dict[str, Any]) -> str:
    """A key as addresses hold it."""
    return orjson.dumps(value).decode()
