"""The in-process client: boto3 over a `Database`, without a socket.

    with hashrange.Database.in_memory() as database:
        client = hashrange.client.connect(database)             # as boto3.client("dynamodb") returns
        table = hashrange.client.resource(database).Table("t")  # as boto3.resource("dynamodb") returns

A handler of botocore's `before-send` event answers each request before botocore opens a connection
(`client.transport`). Thread-safe, as botocore's clients are. For tests in process there is also
`hashrange.local`, which answers the clients that a program makes itself.

All clients come from one boto3 session, so they share their exception classes. Making a client takes a few
milliseconds, so clients are cached with their database: a later call with the same arguments returns the same
client.

boto3 is an optional dependency. Refuses to know what an operation does.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from hashrange.database import Caller, Database

if TYPE_CHECKING:
    import boto3
    from botocore.awsrequest import AWSPreparedRequest
    from botocore.config import Config

    from hashrange.client.transport import Answer

# RFC 6761 reserves names below `.invalid`: a request that is not answered here reaches no server, and fails.
ENDPOINT_URL: Final = "http://hashrange.invalid"
"""The endpoint of the clients of this module."""

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
    the same client; with a `config` it makes a new client. Raises ImportError if boto3 is not installed. A
    request after `database` was closed raises StoreClosed (`hashrange.storage.failures`).
    """

    def make(session: boto3.Session, chosen: Config) -> Any:
        client = session.client(
            cast(Any, service), region_name=region, endpoint_url=ENDPOINT_URL, config=chosen
        )
        _answer_from(database, region, account_id, client)
        return client

    return _cached(database, (service, "client", region, account_id), config, make)


def resource(
    database: Database,
    *,
    region: str = _ANYONE.region,
    account_id: str = _ANYONE.account_id,
    config: Config | None = None,
) -> Any:
    """A boto3 ``dynamodb`` resource whose requests `database` answers; otherwise as `connect`."""

    def make(session: boto3.Session, chosen: Config) -> Any:
        resource_ = session.resource("dynamodb", region_name=region, endpoint_url=ENDPOINT_URL, config=chosen)
        _answer_from(database, region, account_id, resource_.meta.client)
        return resource_

    return _cached(database, ("dynamodb", "resource", region, account_id), config, make)


# boto3 must not make two clients of a session at once.
_making: Final = threading.Lock()


def _cached(
    database: Database,
    key: tuple[str, ...],
    config: Config | None,
    make: Callable[[boto3.Session, Config], Any],
) -> Any:
    """The client or resource that is cached for `database` under `key`; `make` makes it if there is none yet.

    A client with a `config` is not cached.
    """
    cached = database.clients.get(key) if config is None else None
    if cached is not None:
        return cached
    with _making:
        session = _session()
        if config is not None:
            return make(session, config.merge(_unsigned()))
        cached = database.clients.get(key)
        if cached is None:
            cached = database.clients[key] = make(session, _unsigned())
        return cached


@functools.cache
def _session() -> boto3.Session:
    """The session of all clients: it makes the exception classes once."""
    return new_session()


def new_session(region: str | None = None) -> boto3.Session:
    """A boto3 session. All sessions share a loader, so that botocore reads its models once: that is most of
    the cost of a session's first client.

    Raises ImportError if boto3 is not installed.
    """
    try:
        import boto3
        import botocore.session
    except ImportError as error:
        raise ImportError(
            "the in-process client needs boto3, which is not installed; install it with: pip install boto3"
        ) from error
    core = botocore.session.Session()
    core.register_component("data_loader", _loader())
    return boto3.Session(botocore_session=core, region_name=region)


@functools.cache
def _loader() -> Any:
    import botocore.session

    return botocore.session.Session().get_component("data_loader")


@functools.cache
def _unsigned() -> Config:
    from botocore import UNSIGNED
    from botocore.config import Config

    # The caller is known without a signature. Without signing, botocore does not need credentials either.
    return Config(signature_version=UNSIGNED)


def _answer_from(database: Database, region: str, account_id: str, client: Any) -> None:
    """Let `database` answer the requests of `client`."""
    client.meta.events.register("before-send", _Transport(database, Caller(region, account_id)))


class _Transport:
    """The handler of ``before-send``: answers a request instead of sending it."""

    def __init__(self, database: Database, caller: Caller) -> None:
        from hashrange.client.transport import answer

        self._database = database
        self._caller = caller
        self._answer = answer

    def __call__(self, request: AWSPreparedRequest, **_: Any) -> Answer:
        return self._answer(self._database, request, self._caller)
