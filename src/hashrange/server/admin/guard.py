"""Who may use the admin plane: the checks of a request's headers, before any endpoint gets the request.

- A header that the plane reads may not be repeated, as on the data plane: a proxy may have read the other
  value (400).
- A plane on a loopback address accepts only loopback names in Host, against web pages whose name leads there
  (DNS rebinding); a Host that is not a name is refused everywhere (400).
- A plane with a token accepts only requests with `Authorization: Bearer TOKEN` (401). It must have a token
  unless it is on a loopback address (`server.admin.port.bind`). Only the pages of the console, below
  `/console`, do without: they ask for the cookie of `server.admin.entry`.
- A browser may send changes only from the plane's own pages: by Sec-Fetch-Site, or by Origin where there is
  none (403). With `--console-read-only` it may send them to the console only, which refuses them.

Refuses to know the endpoints.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Final

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hashrange.access.audit import AuditLog
from hashrange.access.audit.entries import ALLOWED, DENIED, UNSIGNED
from hashrange.server.access import HEADERS_ONCE, Access, coding_refusal, named
from hashrange.server.admin.port import Door
from hashrange.server.settings import ServerSettings

CONSOLE: Final = "/console"
_PATH_CHARS_MAX: Final = 256
_READS: Final = ("GET", "HEAD", "OPTIONS")
_OWN_SITES: Final = (b"same-origin", b"none")
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="hashrange admin plane"'}

Refusal = tuple[int, str]


def is_on_console(path: str) -> bool:
    """Whether a path is that of a page of the console."""
    return path == CONSOLE or path.startswith(CONSOLE + "/")


class Guard:
    """Middleware that refuses requests which are not allowed, with `{"error": "…"}`."""

    def __init__(self, app: ASGIApp, door: Door, audit: AuditLog | None = None) -> None:
        self._app = app
        self._audit = audit
        self._access = Access(ServerSettings(), listening=[door.address], host=door.host)
        self._expected = f"Bearer {door.token}".encode() if door.token else None
        self._read_only = door.read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self.refusal(scope) if scope["type"] == "http" else None
        if self._audit is not None and scope["type"] == "http" and scope["method"] not in _READS:
            send = self._audited(scope, send, self._audit, denied=refusal is not None)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, text = refusal
        headers = _CHALLENGE if status == 401 else None
        answer = Response(orjson.dumps({"error": text}), status, headers, "application/json")
        await answer(scope, receive, send)

    def _audited(self, scope: Scope, send: Send, audit: AuditLog, *, denied: bool) -> Send:
        """`send` for a request that may change something: it writes the status to the audit log."""
        on_console = is_on_console(scope["path"])
        how = "console" if on_console else "token" if self._expected is not None else "anyone"

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                audit.event(
                    event="admin",
                    source=(scope.get("client") or ("",))[0],
                    who={"by": how, "verified": not denied and how != "anyone"},
                    operation=f"{scope['method']} {scope['path']}"[:_PATH_CHARS_MAX],
                    decision=DENIED if denied else UNSIGNED if how == "anyone" else ALLOWED,
                    result=message["status"],
                )
            await send(message)

        return sent

    def refusal(self, scope: Scope) -> Refusal | None:
        """The status and the text of the refusal of a request; None if it is allowed."""
        headers: dict[bytes, bytes] = {}
        lines: Sequence[tuple[bytes, bytes]] = scope["headers"]
        for name, value in lines:
            if name in headers and name in HEADERS_ONCE:
                return 400, f"the header {name.decode('latin-1')} comes more than once"
            headers[name] = value
        host = named(headers.get(b"host", b"["))
        if host is None:
            return 400, "the header Host is missing or malformed"
        if not self._access.takes_host(host):
            return 400, f"the admin plane does not know the name {host!r} as its own; call it 127.0.0.1"
        coding = headers.get(b"transfer-encoding")
        if coding is not None and (status := coding_refusal(coding, scope["http_version"])):
            return status, "the only transfer coding is chunked, in HTTP/1.1"
        on_console = is_on_console(scope["path"])
        if scope["method"] not in _READS and (why := self._foreign(headers, on_console)):
            return 403, why
        if on_console or self._expected is None or self._opens(headers.get(b"authorization", b"")):
            return None
        return 401, "send the token of --admin-token: Authorization: Bearer TOKEN"

    def _foreign(self, headers: dict[bytes, bytes], on_console: bool) -> str | None:
        """Why a change that a browser sends is refused; None if it is allowed, or no browser sent it."""
        site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
        if site is None and origin is None:
            return None
        if site is not None:
            own = site in _OWN_SITES
        else:
            own = (origin or b"").partition(b"://")[2].lower() == headers[b"host"].lower()
        if not own:
            return "pages of other sites may change nothing here"
        if self._read_only and not on_console:
            return "the server was started with --console-read-only, so a browser may change nothing"
        return None

    def _opens(self, authorization: bytes) -> bool:
        assert self._expected is not None
        scheme, _, token = authorization.partition(b" ")
        # (the time of the comparison reveals nothing about the token)
        return hmac.compare_digest(scheme.title() + b" " + token.strip(), self._expected)
