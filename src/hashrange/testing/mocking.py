"""`mock_aws`: moto's decorator for suites that use DynamoDB only.

    from hashrange.testing import mock_aws          # in place of: from moto import mock_aws

It takes the same arguments as moto's: a function, coroutine or class to decorate, nothing, or a ``config``,
which has no meaning here; and it is a context manager with `start` and `stop`. As with moto, the account is
123456789012, and the region is us-east-1 if the program names none.

Other services are not mocked: a request to them raises `RequestStopped`, whatever credentials it has, unless
moto or a stub answers it, or it goes to this machine. Meanwhile the environment holds dummy credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, overload

from hashrange.testing.blocks import Block
from hashrange.testing.database import LocalDatabase
from hashrange.testing.scopes import OtherServices

ACCOUNT_ID: Final = "123456789012"
"""The account of all callers, as moto has it."""

T = TypeVar("T", bound=Callable[..., Any])


class MockAWS(Block):
    """A block that is also begun by `start` and ended by `stop`, and hides the developer's credentials."""

    def __init__(self, other_services: OtherServices, shared_regions: bool) -> None:
        super().__init__(
            default_account_id=ACCOUNT_ID, other_services=other_services, shared_regions=shared_regions
        )
        self._own_credentials = True

    def start(self, reset: bool = True) -> LocalDatabase:
        """Begin the block. `reset` exists only for compatibility with moto: each block's database is
        empty."""
        return self.__enter__()

    def stop(self) -> None:
        """End the block."""
        self.__exit__(None, None, None)


@overload
def mock_aws(given: T, /) -> T: ...


@overload
def mock_aws(
    given: None = None,
    /,
    *,
    config: Mapping[str, Any] | None = None,
    other_services: OtherServices = ...,
    shared_regions: bool = ...,
) -> MockAWS: ...


def mock_aws(
    given: Any = None,
    /,
    *,
    config: Mapping[str, Any] | None = None,
    other_services: OtherServices = "refuse",
    shared_regions: bool = False,
) -> Any:
    """As moto's `mock_aws`, for DynamoDB and its streams: `hashrange.local` in the account 123456789012.

    Requests to other services raise `RequestStopped`; with ``other_services="allow"`` they pass.
    With `shared_regions` all regions share their tables, so that tables can have replicas.
    """
    block = MockAWS(other_services, shared_regions)
    return block if given is None else block(given)
