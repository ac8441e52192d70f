"""The in-process client: boto3 over a `Database`, without a socket.

    client = hashrange.client.connect(database)            # a botocore client, as boto3.client returns
    table = hashrange.client.resource(database).Table("t") # a boto3 resource

botocore builds each request as always and offers it to the handlers of its `before-send` event before it
opens a connection; ours answers. So parameters, results, errors, paginators and waiters are botocore's
own, and the request and the answer pass through `protocol` as they would over HTTP. Background work that
is due is done before a request, as no server does it. Thread-safe, as botocore's clients are.

boto3 is an optional dependency: the extra `hashrange[client]`. Refuses to know what an operation does.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from hashrange import protocol
from hashrange.database import Caller, Database
from hashrange.operations import REGISTRY
from hashrange.protocol import Call, Response, Wire

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from botocore.config import Config
    from botocore.loaders import Loader

# Nothing listens there, by RFC 6761: should a request ever pass our handler, it fails and goes nowhere.
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

    `region` and `account_id` are those of the caller, and appear in ARNs. Raises ImportError where boto3 is
    not installed.
    """
    return _session(database, region, account_id).client(
        service, endpoint_url=_ENDPOINT_URL, config=_config(config)
    )


def resource(
    database: Database,
    *,
    region: str = _ANYONE.region,
    account_id: str = _ANYONE.account_id,
    config: Config | None = None,
) -> Any:
    """A boto3 ``dynamodb`` resource whose requests `database` answers; otherwise as `connect`."""
    return _session(database, region, account_id).resource(
        "dynamodb", endpoint_url=_ENDPOINT_URL, config=_config(config)
    )


def _session(database: Database, region: str, account_id: str) -> Any:
    try:
        import boto3
        import botocore.session
    except ImportError as error:
        raise ImportError(
            "the in-process client needs boto3, which is not installed; "
            "install it with: pip install 'hashrange[client]'"
        ) from error
    session = botocore.session.Session()
    session.register_component("data_loader", _loader())
    for service in ("dynamodb", "dynamodb-streams"):
        # (botocore's stubs describe handlers that return nothing)
        session.register(f"before-send.{service}", cast(Any, _Transport(database, region, account_id)))
    return boto3.Session(botocore_session=session, region_name=region)


@functools.cache
def _loader() -> Loader:
    # Reading the service models takes longer than all the rest; all sessions share what was read.
    import botocore
    import botocore.loaders

    return botocore.loaders.create_loader()


def _config(config: Config | None) -> Config:
    from botocore import UNSIGNED
    from botocore.config import Config

    # The caller is known, so a signature would be work for nothing, and credentials are not looked for.
    unsigned = Config(signature_version=UNSIGNED)
    return unsigned if config is None else config.merge(unsigned)


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
        except Exception as error:
            return protocol.answer(None, error, outcome.form, outcome.operation)
        return protocol.answer(result, None, outcome.form, outcome.operation)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


class _Body(io.BytesIO):
    """The answer's body, as botocore reads it from a connection."""

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.read()
