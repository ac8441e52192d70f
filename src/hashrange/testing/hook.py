"""The handlers of botocore's events that let the databases of `scopes` answer a program's own clients.

    before-call    finds the scope that answers a request, by endpoint, region and account; names the caller
    choose-signer  leaves such a request unsigned: no credentials are needed, and none are asked for
    before-send    answers it; stops a request to another service that nothing else answers, if it has no
                   credentials, or if the scope refuses all such requests. STS is answered: if the scope
                   refuses other services, else only the question who asks; not if the scope allows them
    creating-client-class   makes clients that are created in a block refuse requests after the block

`install` adds them to `botocore.handlers.BUILTIN_HANDLERS`, from which each later session, and so each of its
clients, copies its handlers: in botocore and boto3, and in aiobotocore and aioboto3. Existing sessions and
clients already have such copies, so `install` registers the handlers with them once; the garbage collector
lists these objects. The handlers are never removed. Without a scope they do nothing, and every request is
sent as usual.

Nothing of botocore is replaced. Refuses to know how a scope is entered and left.

Out of reach are: sessions made with ``include_builtin_handlers=False`` after `install`, objects that
`gc.freeze` hid before `install`, and programs that send HTTP requests without botocore.
"""

from __future__ import annotations

import gc
import threading
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

try:
    import botocore
    from botocore import handlers, hooks
except ImportError as error:
    raise ImportError(
        "hashrange.local needs boto3, which is not installed; install it with: pip install boto3"
    ) from error

from hashrange import protocol, rings
from hashrange.client import ENDPOINT_URL, transport
from hashrange.clock import SystemClock
from hashrange.errors import ServiceError
from hashrange.testing import scopes
from hashrange.testing.scopes import Scope, Sender, scope_of

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest

_SERVICES: Final = ("dynamodb", "dynamodb-streams")
_STS: Final = "sts"
_IDENTITY: Final = "GetCallerIdentity"
_ID: Final = "hashrange.local"
_CONTEXT: Final = "hashrange.local"
_SCHEME: Final = b"HASHRANGE-LOCAL "

_installing: Final = threading.Lock()
_installed = False


class RequestStopped(Exception):
    """A request was stopped before it left this machine; the text names it, and says what to do."""


def install() -> None:
    """Let all sessions and clients of this process, made before and after, ask the scopes. Idempotent."""
    global _installed
    if _is_installed():
        return
    with _installing:
        if _is_installed():
            return
        handlers.BUILTIN_HANDLERS.extend(_handlers())
        # The last handler, so that moto or a stub may answer first.
        handlers.BUILTIN_HANDLERS.append(("before-send", _check, handlers.REGISTER_LAST))
        for emitter in _emitters():
            for event, handler in _handlers():
                emitter.register(event, handler, unique_id=f"{_ID} {event}")
            emitter.register_last("before-send", _check, unique_id=f"{_ID} before-send")
        _installed = True


def _is_installed() -> bool:
    return _installed


def _emitters() -> list[hooks.HierarchicalEmitter]:
    """The emitters of all existing sessions and clients."""
    kinds = {hooks.HierarchicalEmitter, *hooks.HierarchicalEmitter.__subclasses__()}
    # There are some hundred thousand objects, and an object refers to its class.
    return [emitter for emitter in gc.get_referrers(*kinds) if type(emitter) in kinds]


def _handlers() -> list[tuple[str, Any]]:
    collected: list[tuple[str, Any]] = []
    for service in _SERVICES:
        collected.append((f"creating-client-class.{service}", _create_class))
        collected.append((f"before-call.{service}", _call))
        collected.append((f"choose-signer.{service}", _choose_signer))
        collected.append((f"before-send.{service}", _send))
    collected.append((f"before-call.{_STS}", _call_sts))
    collected.append((f"choose-signer.{_STS}", _choose_signer))
    return collected


def _call(
    params: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    request_signer: Any = None,
    **_: Any,
) -> None:
    """Note in the request's headers who sends it, and in its context that it needs no signature."""
    if params is None or context is None or scopes.innermost() is None:
        return
    url = params.get("url", "")
    if url.startswith(ENDPOINT_URL):
        return  # a client of `hashrange.client`, which has a database of its own
    sender = Sender(_access_key(request_signer), context.get("client_region") or "us-east-1")
    if scope_of(url, sender) is None:
        return
    params["headers"]["Authorization"] = _note(sender)
    context[_CONTEXT] = True


def _call_sts(request_signer: Any = None, **named: Any) -> None:
    """Like `_call`, only for a client without credentials. Signed requests stay as they are, because moto or
    AWS may answer them."""
    if not _access_key(request_signer) and scopes.other_services() != "allow":
        _call(request_signer=request_signer, **named)


@lru_cache
def _note(sender: Sender) -> bytes:
    """The header that names the sender of an unsigned request."""
    return _SCHEME + f"{sender.access_key}/{sender.region}".encode("latin-1", "replace")


def _access_key(signer: Any) -> str:
    """The access key of a client; "" if there is none. It never fetches credentials."""
    credentials = getattr(signer, "_credentials", None)
    if credentials is None:
        return ""
    # Reading the property `access_key` of credentials that expire may fetch new ones.
    held = vars(credentials)
    return str(held.get("access_key") or held.get("_access_key") or "")


def _choose_signer(
    context: dict[str, Any] | None = None, signature_version: Any = None, **_: Any
) -> object | None:
    if context is not None and _CONTEXT in context:
        unsigned: object = botocore.UNSIGNED
        return unsigned
    return None


def _send(request: AWSPreparedRequest, **_: Any) -> transport.Answer | None:
    """The answer of the scope that a request belongs to; None if there is none."""
    url = request.url or ""
    if scopes.innermost() is None or url.startswith(ENDPOINT_URL):
        return None
    sender = _sender(request)
    if sender is None:
        return None
    scope = scope_of(url, sender)
    if scope is None:
        return None
    return transport.answer(scope.database, request, scope.caller(sender))


def _answer_sts(request: AWSPreparedRequest) -> transport.Answer | None:
    """The answer of STS in the scope that a request belongs to; None if there is none."""
    sender = _sender(request)
    scope = None if sender is None else scope_of(request.url or "", sender)
    if sender is None or scope is None:
        return None
    answers: rings.Forms | None = rings.rings().find("forms")
    if answers is None:
        return None
    body: Any = request.body or b""  # a form is text or bytes, never a file
    sent = rings.Sent(b"POST", b"/", {}, body.encode() if isinstance(body, str) else bytes(body))
    caller = scope.caller(sender)
    answered = answers(sent, lambda: caller, None, SystemClock().now, protocol.request_id())
    if answered is None:
        return None
    headers = transport.Headers({"content-type": "text/xml"})
    return transport.Answer(request.url or "", answered.status, headers, answered.body)


def _sender(request: AWSPreparedRequest) -> Sender | None:
    """Who sends a request: as `_call` noted, or as its signature says, if it was signed before."""
    noted: str | bytes = request.headers.get("Authorization") or b""
    return _read_sender(noted.encode("latin-1") if isinstance(noted, str) else noted)


@lru_cache
def _read_sender(text: bytes) -> Sender | None:
    """The sender that a header names; None if it names none."""
    if text.startswith(_SCHEME):
        access_key, _, region = text.removeprefix(_SCHEME).decode("latin-1").rpartition("/")
        return Sender(access_key, region)
    try:
        parts = protocol.header_credential(text, {b"date": b""}).split("/")
    except ServiceError:
        return None
    return Sender(parts[0], parts[-3] if len(parts) >= 5 else "us-east-1")


def _create_class(base_classes: list[type] | None = None, **_: Any) -> None:
    """Let a client that is made in a block refuse its requests after the block, if the block asks for
    that."""
    scope = scopes.innermost()
    if base_classes is not None and scope is not None and scope.afterwards == "refuse":
        base_classes.insert(0, _refusing(scope))


def _refusing(scope: Scope) -> type:
    """A base class of clients. Each registers a handler with its own events, which comes after the others."""

    def refuse(
        context: dict[str, Any] | None = None,
        event_name: str = "",
        **_: Any,
    ) -> None:
        if scopes.is_entered(scope) or (context is not None and _CONTEXT in context):
            return
        raise RequestStopped(
            f"{event_name.removeprefix('before-call.')}: this client was made in a block of hashrange.local "
            'that has ended, and afterwards="refuse" keeps it from reaching AWS. Make the client again, or '
            "use it in a block."
        )

    class MadeInBlock:
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self.meta: Any
            self.meta.events.register_last("before-call", refuse)

    return MadeInBlock


def _check(request: AWSPreparedRequest, event_name: str = "", **_: Any) -> Any:
    """Stop a request to another service that nothing answers, before it leaves this machine: any request, or
    only one without credentials, as the scopes say. Returns a `_Stopped`, the answer of STS, or None if the
    request may be sent."""
    treated = scopes.other_services()
    if treated == "allow":
        return None
    service = event_name.split(".")[1] if "." in event_name else ""
    url = urlsplit(request.url or "")
    if service in _SERVICES or _is_here(url.hostname or ""):
        return None
    # A role may be needed for services that the block lets pass; who asks is asked for DynamoDB's sake.
    answers_sts = service == _STS and (treated == "refuse" or event_name.endswith(f".{_IDENTITY}"))
    if answers_sts and (answer := _answer_sts(request)) is not None:
        return answer
    is_signed = "Authorization" in request.headers or "X-Amz-Signature" in (url.query or "")
    if treated == "stop" and is_signed:
        return None
    why = "has no credentials" if treated == "stop" else "would leave this machine"
    return _Stopped(
        f"{event_name.removeprefix('before-send.')} to {url.hostname} {why}, and hashrange answers DynamoDB "
        "only. Answer it by a mock of that service, as moto's mock_aws is; or let such requests pass with "
        'other_services="allow", an option of hashrange.local and of hashrange.testing.mock_aws.'
    )


class _Stopped:
    """An answer that raises when it is read.

    botocore calls all handlers of an event, and reads the first answer. So the last handler answers instead
    of raising: then an answer of moto or of a stub still counts.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        raise RequestStopped(self._text)


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith((".localhost", ".invalid")):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
