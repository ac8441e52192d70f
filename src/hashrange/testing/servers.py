"""A server over HTTP in a thread of this process: for code in other languages, or code that has to use
sockets.

    with serving(database) as server:
        subprocess.run(["node", "tests.mjs"], env=os.environ | server.environment)

Blocks of `hashrange.local` do not answer the requests to such a server. `at_an_endpoint` is what
`hashrange.local(endpoint=True)` adds to a block.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock

from hashrange.testing import scopes
from hashrange.testing.database import LocalDatabase

# The last one is capo's spelling.
_ENDPOINTS: Final = (
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_ENDPOINT_URL_DYNAMODB_STREAMS",
    "AWS_ENDPOINT_URL_DYNAMO_DB",
)


@dataclass(frozen=True, slots=True)
class Server:
    """A server, and the database that it serves: tests may fill and read it without a socket."""

    endpoint_url: str
    database: LocalDatabase

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which AWS SDKs and the AWS CLI find the server."""
        region = self.database.caller.region
        return {
            "AWS_ENDPOINT_URL_DYNAMODB": self.endpoint_url,
            "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": self.endpoint_url,
            "AWS_ACCESS_KEY_ID": self.database.caller.account_id,
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
        }

    def client(self, service: str = "dynamodb", **given: Any) -> Any:
        """A boto3 client that reaches the server over HTTP; `given` goes to ``boto3.client``."""
        from hashrange.client import new_session

        settings: dict[str, Any] = {
            "endpoint_url": self.endpoint_url,
            "region_name": self.database.caller.region,
            "aws_access_key_id": self.database.caller.account_id,
            "aws_secret_access_key": "any",
        }
        return new_session().client(service, **(settings | given))  # type: ignore[call-overload]


@contextmanager
def serving(database: LocalDatabase, *, port: int = 0) -> Iterator[Server]:
    """Serve `database` on a free port, or on `port`, while the block runs."""
    # Imported here, because it is the whole server, which most tests do not need.
    from hashrange.server import running

    with running(database.database, port=port) as endpoint_url, scopes.served(endpoint_url):
        yield Server(endpoint_url, database)


@contextmanager
def at_an_endpoint(database: LocalDatabase) -> Iterator[str]:
    """Serve `database` on a free port while the block runs, for clients that read the usual variables. What
    is set already stays, except for the endpoints. Yields the endpoint's URL."""
    from hashrange.server import running

    with running(database.database) as endpoint_url:
        endpoints = dict.fromkeys(_ENDPOINTS, endpoint_url)
        found = Server(endpoint_url, database).environment | dict(os.environ) | endpoints
        with mock.patch.dict(os.environ, found):
            database.endpoint_url = endpoint_url
            try:
                yield endpoint_url
            finally:
                database.endpoint_url = ""
