"""The in-process client: boto3 over a `Database`, without a socket.

    with hashrange.Database.in_memory() as database:
        client = hashrange.client.connect(database)             # as boto3.client("dynamodb") returns
        table = hashrange.client.resource(database).Table("t")  # as boto3.resource("dynamodb") returns

botocore builds each request as always and offers it to the handlers of its `before-send` event before it
opens a connection; the handler of this module answers it. So parameters, results, errors, paginators and
waiters are botocore's own, and the request and the answer pass through `protocol` as they would over HTTP.
There is no server that does background work, so each request first does the background work that is due.
Thread-safe, as botocore's clients are.

All clients come from one boto3 session, so they share their exception classes. Making a client takes some
milliseconds, so it is kept with its database: a later call with the same arguments returns the same client.

boto3 is an optional dependency. Refuses to know what an operation does.
"""

from __future__ import annotations

import functools
import io
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from hashrange import protocol
from hashrange.database import Caller, Database
from hashrange.operations import REGISTRY
from hashrange.protocol import Call, Response, Wire
from hashrange.storage.api import StoreClosed

if TYPE_CHECKING:
    import boto3
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from botocore.config import Config

# RFC 6761 reserves names below `.invalid`: a request that is not answered here reaches no server, and fails.
_ENDPOINT_URL: Final = "http://hashrange.invalid"

_ANYONE: Final = Caller()


def connect(
    database: Database,
    *,
    region: str = _ANYONE.region,
    account_id: str = _ANYONE.account_id,
    service: str = "dynamodb",
    config: Config | None = None,
) -> Any:
    """A boto3 client for `service` (``dynamodb`` or ``dynamodbstreams``) whose requests `database` answers.

    `region` and `account_id` are those of the caller, and appear in ARNs. With the same arguments it returns
    the same client; with a `config` it makes a new one. Raises ImportError where boto3 is not installed.
    A request after `database` was closed raises StoreClosed (`hashrange.storage.api`).
    """

    def make(session: boto3.Session, chosen: Config) -> Any:
        client = session.client(
            cast(Any, service), region_name=region, endpoint_url=_ENDPOINT_URL, config=chosen
        )
        _answer_from(database, region, account_id, client)
        return client

    return _kept(database, (service, "client", region, account_id), config, make)


def resource(
    database: Database,
    *,
    region: str = _ANYONE.region,
    account_id: str = _ANYONE.account_id,
    config: Config | None = None,
) -> Any:
    """A boto3 ``dynamodb`` resource whose requests `database` answers; otherwise as `connect`."""

    def make(session: boto3.Session, chosen: Config) -> Any:
        made = session.resource("dynamodb", region_name=region, endpoint_url=_ENDPOINT_URL, config=chosen)
        _answer_from(database, region, account_id, made.meta.client)
        return made

    return _kept(database, ("dynamodb", "resource", region, account_id), config, make)


# boto3 must not make two clients of a session at once.
_making: Final = threading.Lock()


def _kept(
    database: Database,
    key: tuple[str, ...],
    config: Config | None,
    make: Callable[[boto3.Session, Config], Any],
) -> Any:
    """The client or resource that is kept for `database` under `key`; `make` makes it if there is none yet.

    One that is made with a `config` is not kept.
    """
    made = database.clients.get(key) if config is None else None
    if made is not None:
        return made
    with _making:
        session = _session()
        if config is not None:
            return make(session, config.merge(_unsigned()))
        made = database.clients.get(key)
        if made is None:
            made = database.clients[key] = make(session, _unsigned())
        return made


@functools.cache
def _session() -> boto3.Session:
    """The session of all clients: it reads the service models and makes the exception classes once."""
    try:
        import boto3
        import botocore.session
    except ImportError as error:
        raise ImportError(
            "the in-process client needs boto3, which is not installed; install it with: pip install boto3"
        ) from error
    return boto3.Session(botocore_session=botocore.session.Session())


@functools.cache
def _unsigned() -> Config:
    from botocore import UNSIGNED
    from botocore.config import Config

    # The caller is known without a signature. Without signing, botocore does not look for credentials either.
    return Config(signature_version=UNSIGNED)


def _answer_from(database: Database, region: str, account_id: str, client: Any) -> None:
    """Let `database` answer the requests of `client`."""
    client.meta.events.register("before-send", _Transport(database, region, account_id))


class _Transport:
    """The handler of ``before-send``: answers a request instead of sending it."""

    def __init__(self, database: Database, region: str, account_id: str) -> None:
        self._database = database
        self._caller = Caller(region, account_id)
        self._wire = Wire(region=region, account_id=account_id, operations=REGISTRY)

    def __call__(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        from botocore.awsrequest import AWSResponse
        from botocore.compat import HTTPHeaders

        response = self._answer(request)
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in protocol.response_headers(response)
        }
        headers["Content-Length"] = str(len(response.body))
        return AWSResponse(
            request.url or _ENDPOINT_URL,
            response.status,
            HTTPHeaders.from_dict(headers),
            _Body(response.body),
        )

    def _answer(self, request: AWSPreparedRequest) -> Response:
        headers = {_bytes(name).lower(): _bytes(value) for name, value in request.headers.items()}
        # The JSON protocol's serializer makes text or bytes, never a file.
        body = _bytes(cast(str | bytes, request.body or b""))
        outcome = self._wire.read(b"POST", b"/", headers, body, caller=self._caller)
        if not isinstance(outcome, Call):
            return outcome
        try:
            self._database.tend()
            result = self._database.execute(outcome.operation, outcome.request, outcome.caller)
        except StoreClosed:
            # This error is no answer: botocore passes it on to the caller unchanged, and does not try again.
            raise
        except Exception as error:
            return protocol.answer(None, error, outcome.form, outcome.operation)
        return protocol.answer(result, None, outcome.form, outcome.operation)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


class _Body(io.BytesIO):
    """The answer's body, as botocore reads it from a connection."""

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.read()
