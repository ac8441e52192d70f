"""`mock_aws`: moto's decorator for suites that use DynamoDB only.

    from hashrange.testing import mock_aws          # in the place of: from moto import mock_aws

It takes what moto's takes: a function, coroutine or class to decorate, nothing, or a ``config``, which has
no meaning here; and it is a context manager with `start` and `stop`. As with moto, the account is
123456789012 and a region is needed only where the program names none: us-east-1.

Another service is not mocked: a call to it raises, instead of leaving the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, overload

from hashrange.testing.blocks import Block
from hashrange.testing.database import LocalDatabase

ACCOUNT_ID: Final = "123456789012"
"""The account of all callers, as moto has it."""

T = TypeVar("T", bound=Callable[..., Any])


class MockAWS(Block):
    """A block that is also begun by `start` and ended by `stop`."""

    def start(self, reset: bool = True) -> LocalDatabase:
        """Begin the block. `reset` is taken for moto's sake: each block begins with an empty database."""
        return self.__enter__()

    def stop(self) -> None:
        """End the block."""
        self.__exit__(None, None, None)


@overload
def mock_aws(given: T, /) -> T: ...


@overload
def mock_aws(given: None = None, /, *, config: Mapping[str, Any] | None = None) -> MockAWS: ...


def mock_aws(given: Any = None, /, *, config: Mapping[str, Any] | None = None) -> Any:
    """As moto's `mock_aws`, for DynamoDB and its streams: `hashrange.local` in the account 123456789012."""
    block = MockAWS(default_account_id=ACCOUNT_ID)
    return block if given is None else block(given)
