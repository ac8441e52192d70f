"""Who may use the admin plane: the checks of a request's headers, before any endpoint gets the request.

- A header that the plane reads may not be repeated, as on the data plane: a proxy may have read the other
  value (400).
- A plane on a loopback address accepts only loopback names in Host, against web pages whose name leads there
  (DNS rebinding); a Host that is not a name is refused everywhere (400).
- On a plane with a token, who sends `Authorization: Bearer TOKEN` has the role admin, and strangers have
  none. It must have a token unless it is on a loopback address (`server.admin.port.bind`).
- With `--auth strict` and `soft`, who signs a request for the service `hashrange` has the role of that user.
- Who has no role is refused (401, and 403 for a user), except at endpoints that need none and look
  themselves: `/health` tells strangers the status only, because probes have no token; the console asks for a
  cookie. Which endpoint needs which role is decided by the application.
- Without a token the role of a stranger is admin with `--auth off`; write with `soft`, because what an admin
  can make, a key, outlives that mode; and none with `strict`.
- A browser may send changes only from the plane's own pages: by Sec-Fetch-Site, or by Origin where there is
  none (403). With `--console-read-only` it may send them only to endpoints that need no role and look
  themselves.

Refuses to know the endpoints.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hashrange import limits
from hashrange.errors import AccessDeniedException, ServiceError
from hashrange.server.access import HEADERS_ONCE, Access, coding_refusal, named
from hashrange.server.admin.port import Door
from hashrange.server.admin.roles import ADMIN, NOBODY, WRITE
from hashrange.server.settings import ServerSettings

if TYPE_CHECKING:
    from hashrange.rings import Audit, Gate

ROLE: Final = "hashrange.role"
"""The member of a request's scope that has the role of who asks."""
SIGNER: Final = "hashrange.signer"
"""The member of a request's scope that has the `rings.Operator` who has signed it, if one has."""
BY: Final = "hashrange.by"
"""The member of a request's scope that the audit log gets: who asks, a dict that endpoints may correct."""
_PATH_CHARS_MAX: Final = 256
_SIGNED: Final = b"AWS4-"
_CREDENTIAL: Final = re.compile(rb"Credential=([^/,\s]{1,128})/")
_NEEDS_TOKEN: Final = "send the token of --admin-token: Authorization: Bearer TOKEN"
_NEEDS_KEY: Final = "sign the request as a user who has a role on the admin plane"
_READS: Final = ("GET", "HEAD", "OPTIONS")
_OWN_SITES: Final = (b"same-origin", b"none")
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="hashrange admin plane"'}

Refusal = tuple[int, str]


class Guard:
    """Middleware that refuses requests which are not allowed, with `{"error": "…"}`."""

    def __init__(
        self,
        app: ASGIApp,
        door: Door,
        gate: Callable[[], Gate | None],
        audit: Callable[[], Audit | None],
        is_open: Callable[[Scope], bool],
    ) -> None:
        self._app = app
        self._gate = gate
        self._audit = audit
        self._is_open = is_open
        self._access = Access(ServerSettings(), listening=[door.address], host=door.host)
        self._expected = f"Bearer {door.token}".encode() if door.token else None
        self._read_only = door.read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self.refusal(scope)
        by: dict[str, Any] = {"by": "anyone", "verified": False}
        if refusal is None:
            scope[BY] = by
            refusal, receive = await self._identify(scope, receive, by)
            if refusal is not None and refusal[0] in (401, 403) and self._is_open(scope):
                refusal = None
        if scope["method"] not in _READS and (audit := self._audit()) is not None:
            send = _audited(scope, send, audit, by, denied=refusal is not None)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, text = refusal
        headers = _CHALLENGE if status == 401 else None
        answer = Response(orjson.dumps({"error": text}), status, headers, "application/json")
        await answer(scope, receive, send)

    async def _identify(
        self, scope: Scope, receive: Receive, by: dict[str, Any]
    ) -> tuple[Refusal | None, Receive]:
        """Find out who asks, and with which role. Returns why who asks is refused, if he is, and how the body
        of the request is read from now on. `by` is for the audit log."""
        gate = self._gate()
        headers = dict(scope["headers"])
        authorization = headers.get(b"authorization", b"")
        if self._expected is not None and self._opens(authorization):
            by.update(by="token", verified=True)
            scope[ROLE] = ADMIN
            return None, receive
        scope[ROLE] = stranger = self._role_of_strangers(gate)
        if gate is None or not gate.identifies or not authorization.startswith(_SIGNED):
            needs = _NEEDS_TOKEN if gate is None or self._expected is not None else _NEEDS_KEY
            return ((401, needs) if stranger == NOBODY else None), receive
        body = await _body(receive)
        if body is None:
            return (413, "the body is too large"), receive
        receive = _again(body, receive)
        query = scope["query_string"]
        target = scope["raw_path"].partition(b"?")[0] + (b"?" + query if query else b"")
        by["key"] = gate_key_of(authorization)
        try:
            operator = gate.operator(scope["method"].encode(), target, headers, body)
        except ServiceError as error:
            if stranger != NOBODY:
                return None, receive
            if isinstance(error, AccessDeniedException):
                return (403, str(error.message)), receive
            return (401, f"{error.code}: {error.message}"), receive
        scope[ROLE], scope[SIGNER] = operator.role, operator
        by.update(by=operator.role, key=operator.key_id, arn=operator.arn, verified=True)
        return None, receive

    def _role_of_strangers(self, gate: Gate | None) -> str:
        """The role of who proves nothing."""
        if self._expected is not None or (gate is not None and gate.strict):
            return NOBODY
        return ADMIN if gate is None else WRITE

    def refusal(self, scope: Scope) -> Refusal | None:
        """The status and the text of the refusal of a request, for any caller; None if the request is
        sound."""
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
        if scope["method"] not in _READS and (why := self._foreign(scope, headers)):
            return 403, why
        return None

    def _foreign(self, scope: Scope, headers: dict[bytes, bytes]) -> str | None:
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
        if self._read_only and not self._is_open(scope):
            return "the server was started with --console-read-only, so a browser may change nothing"
        return None

    def _opens(self, authorization: bytes) -> bool:
        assert self._expected is not None
        scheme, _, token = authorization.partition(b" ")
        # (the time of the comparison reveals nothing about the token)
        return hmac.compare_digest(scheme.title() + b" " + token.strip(), self._expected)


def gate_key_of(authorization: bytes) -> str:
    """The id of the key by which a request claims to be signed."""
    found = _CREDENTIAL.search(authorization)
    return found[1].decode("latin-1") if found is not None else ""


async def _body(receive: Receive) -> bytes | None:
    """The body of a request, None if it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > limits.REQUEST_BODY_BYTES_MAX:
            return None
        if message["type"] != "http.request" or not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive` for a request whose body has been read."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return messages.pop() if messages else await receive()

    return received


def _audited(scope: Scope, send: Send, audit: Audit, by: dict[str, Any], *, denied: bool) -> Send:
    """`send` for a request that may change something: it writes the status to the audit log."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            is_refused = denied or message["status"] in (401, 403)
            operation = f"{scope['method']} {scope['path']}"[:_PATH_CHARS_MAX]
            peer = (scope.get("client") or ("",))[0]
            audit.operated(operation, by, peer, message["status"], denied=is_refused)
        await send(message)

    return sent
