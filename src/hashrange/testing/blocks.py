"""`hashrange.local`: a block, a function or a class whose DynamoDB is a database of this process.

    with hashrange.local() as database: …        async with hashrange.local() as database: …
    @hashrange.local                             functions, coroutines, and generators, such as fixtures
    @hashrange.local()                           classes of tests and their subclasses

In the block, each DynamoDB and DynamoDB Streams client and resource of boto3, botocore, aioboto3 and
aiobotocore in this process talks to the database: whenever it was made, in all threads and tasks, with any
endpoint, region and credentials, or with none.

`testing.classes` says what happens to a class, `testing.hook` how clients are reached, and which are not.
Refuses to know botocore, unless a block is entered.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from hashrange import rings
from hashrange.database import Database, Settings
from hashrange.operations.context import Caller
from hashrange.settings import like_aws as settings_like_aws
from hashrange.testing import scopes
from hashrange.testing.database import SETTINGS, LocalDatabase
from hashrange.testing.moments import Moment
from hashrange.testing.scopes import Afterwards, OtherServices, Scope

if TYPE_CHECKING:
    from hashrange.rings import Policy

T = TypeVar("T", bound=Callable[..., Any])
Documents = Mapping[str, Any] | Sequence[Mapping[str, Any]]
LikeAws = bool | Literal["fast"]


@overload
def local(given: T, /) -> T: ...


@overload
def local(
    given: LocalDatabase | Database | None = None,
    /,
    *,
    settings: Settings = ...,
    throttle: bool = ...,
    like_aws: LikeAws = ...,
    endpoint: bool = ...,
    shared_regions: bool = ...,
    now: Moment | None = None,
    endpoint_url: str | None = None,
    region: str | None = None,
    account_id: str | None = None,
    default_account_id: str | None = None,
    other_services: OtherServices = "stop",
    afterwards: Afterwards = "reach",
    policy: Documents | None = None,
    user: str = "local",
    record_policy: str | os.PathLike[str] | None = None,
) -> Block: ...


def local(given: Any = None, /, **options: Any) -> Any:
    """Let a database of this process answer this process's DynamoDB clients, in a block, a function or a
    class.

    given: the database; by default each block gets an empty database in memory, which is closed at its end.
        Or the function or class to decorate, as in ``@hashrange.local``.
    settings: the settings of the empty database. By default each account, and each region, has its own
        tables, as on AWS.
    endpoint: open a port of this machine as well, for clients that this process does not know, and for
        programs that it starts: the block sets the variables by which they find the port. The port is
        ``LocalDatabase.endpoint_url``.
    shared_regions: let all regions of an account share their tables, so that tables can have replicas.
    throttle: refuse requests that exceed the throughput of the empty database's tables.
    like_aws: let the empty database be as slow, eventual and strict as the service (`settings.LIKE_AWS`).
        A given database keeps its settings. With ``"fast"``, what sleeps in the block advances the
        database's clock and goes on at once, so that waiters and retries take no time.
    now: the moment at which the database's clock stands still. By default it shows this process's time, and
        follows freezegun and time-machine.
    endpoint_url, region, account_id: answer only requests to this endpoint, region or account. Blocks with
        different limits can exist side by side; requests that belong to no block are sent as usual.
    default_account_id: the account of callers whose access key is not an account id (12 digits).
    other_services: requests without credentials to services other than DynamoDB raise `RequestStopped` in
        the block, before they leave this machine; with ``"refuse"`` all requests to other services do, and
        with ``"allow"`` none. Requests that moto or a stub answers, and requests to this machine, always
        pass. STS's GetCallerIdentity is answered here, unless this is ``"allow"``; with ``"refuse"``
        AssumeRole and GetSessionToken are too.
    afterwards: ``"reach"`` lets clients that were made in the block reach AWS after it; with ``"refuse"``
        their requests then raise `RequestStopped`.

    policy: an IAM policy, as a document or a list of documents, by which the requests in the block are
        judged. They come from the IAM user whose name is `user`, who may do nothing else. Tables are made
        before, in a block around it. Raises ValueError for a document that is not a policy.
    record_policy: the path of a file, into which the smallest policy that allows the requests in the block is
        written at its end. They are not judged.

    The block's value is the `LocalDatabase`. Blocks nest: the innermost answers. Raises ImportError if
    botocore is not installed.
    """
    if isinstance(given, type) or (callable(given) and not isinstance(given, LocalDatabase | Database)):
        return Block(None, **options)(given)
    return Block(given, **options)


def current() -> LocalDatabase:
    """The database of the block that was entered last. Raises LookupError outside any block."""
    scope = scopes.innermost()
    if scope is None or scope.holder is None:
        raise LookupError("There is no block of hashrange.local here: enter one, or decorate the function.")
    return scope.holder


class Block:
    """The result of `local`: a context manager, sync and async, and a decorator. Each use enters a new
    block."""

    def __init__(
        self,
        database: LocalDatabase | Database | None = None,
        *,
        settings: Settings = SETTINGS,
        throttle: bool = False,
        like_aws: LikeAws = False,
        endpoint: bool = False,
        shared_regions: bool = False,
        now: Moment | None = None,
        endpoint_url: str | None = None,
        region: str | None = None,
        account_id: str | None = None,
        default_account_id: str | None = None,
        other_services: OtherServices = "stop",
        afterwards: Afterwards = "reach",
        policy: Documents | None = None,
        user: str = "local",
        record_policy: str | os.PathLike[str] | None = None,
    ) -> None:
        self._given = LocalDatabase(database, now=now) if isinstance(database, Database) else database
        self._settings = replace(settings, throttle=True) if throttle else settings
        if like_aws:
            self._settings = settings_like_aws(self._settings)
        self._is_fast = like_aws == "fast"
        self._endpoint = endpoint
        if shared_regions:
            self._settings = replace(self._settings, separate_regions=False)
        self._now = now
        self._limits = {"endpoint_url": endpoint_url, "region": region, "account_id": account_id}
        self._default_account_id = default_account_id
        self._other_services: OtherServices = other_services
        self._afterwards: Afterwards = afterwards
        self._own_credentials = False
        self._identified: Callable[[str], Any] | None = None
        self._policy: Policy | None = None
        if policy is not None or record_policy is not None:
            if policy is not None and record_policy is not None:
                raise ValueError("policy= refuses requests and record_policy= records all: give one of them")
            made: Policy = rings.needed("access", "testing", "policy")(policy, user, record_policy)
            self._policy = made
            self._identified = made.identified
        self._open: list[tuple[Scope, LocalDatabase, ExitStack]] = []

    def __enter__(self) -> LocalDatabase:
        # Imported here, because it needs botocore, and the rest of the package does not.
        from hashrange.testing import hook

        hook.install()
        database = self._given or LocalDatabase(
            settings=self._settings,
            now=self._now,
            region=self._limits["region"],
            account_id=self._limits["account_id"] or self._default_account_id,
        )
        scope = Scope(
            database.database,
            holder=database,
            **self._limits,
            default_account_id=self._default_account_id or Caller().account_id,
            other_services=self._other_services,
            afterwards=self._afterwards,
            own_credentials=self._own_credentials,
            identified=self._identified,
        )
        scopes.enter(scope)
        if self._policy is not None:
            self._policy.begin(database.database)
        around = ExitStack()
        if self._is_fast:
            # Imported here, because it imports asyncio, which most programs do not use.
            from hashrange.testing import waiting

            around.enter_context(waiting.passing(database.clock))
        if self._endpoint:
            # Imported here, because it is the whole server, which most tests do not need.
            from hashrange.testing.servers import at_an_endpoint

            around.enter_context(at_an_endpoint(database))
        self._open.append((scope, database, around))
        return database

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        scope, database, around = self._open.pop()
        around.close()
        scopes.leave(scope)
        if self._policy is not None:
            self._policy.end(database.database)
        if self._given is None:
            database.close()

    async def __aenter__(self) -> LocalDatabase:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def again(self) -> Block:
        """A block with the same options, for one more use at the same time."""
        block: Block = object.__new__(Block)
        block.__dict__.update(self.__dict__)
        block._open = []
        return block

    def __call__(self, decorated: T) -> T:
        """Decorate a function, coroutine, generator or class of tests, so that each call or test is a block.

        Raises TypeError for a class that is neither of unittest nor collected by pytest.
        """
        if isinstance(decorated, type):
            # Imported here, because it needs unittest, which most programs do not use.
            from hashrange.testing import classes

            classes.decorate(decorated, self)
            return decorated
        function: T = _decorate(decorated, self)
        return function


def _decorate(function: Any, block: Block) -> Any:
    """`function`, wrapped so that each call runs in a block."""
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def asynchronous_generator(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
            with block.again():
                generated = function(*arguments, **named)
                try:
                    async for item in generated:
                        yield item
                finally:
                    await generated.aclose()

        return asynchronous_generator
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*arguments: Any, **named: Any) -> Any:
            with block.again():
                return await function(*arguments, **named)

        return coroutine
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
            with block.again():
                return (yield from function(*arguments, **named))

        return generator

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with block.again():
            return function(*arguments, **named)

    return call
