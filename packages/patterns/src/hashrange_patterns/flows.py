"""Flows: the same logic for blocking and asynchronous programs.

A *flow* is a generator. It yields a `Call` for each request to DynamoDB, a `Pause` for each wait, and
`Together` for flows side by side; it gets the answer by `send` or the error by `throw`, and returns its
result. It knows no client, no socket and no event loop. `run` performs a flow with a boto3 client,
`run_async` with an aiobotocore client. A test may perform several flows step by step, in any order, and stop
any of them at any point.

The logic of a pattern is a class of flows (`LockFlows`). A class for both kinds of clients lists its methods,
and programs use one class for each kind:

    class _Locks(Performing[LockFlows, C]):
        renew = performed(LockFlows.renew)

    class Locks(_Locks[Client], Blocking[LockFlows]): ...
    class AsyncLocks(_Locks[AsyncClient], Awaiting[LockFlows]): ...

Refuses to know the meaning of the requests, and when a request is repeated (`requests`).
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
import warnings
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

from botocore.client import BaseClient

T = TypeVar("T")
F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)
F_contra = TypeVar("F_contra", contravariant=True)
P = ParamSpec("P")
C = TypeVar("C")
A_co = TypeVar("A_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)

_KINDS: Final = (
    "the client is of the other kind: classes whose names begin with Async take an asynchronous client, of "
    "aiobotocore, the others a client of boto3"
)

Answer: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A request to DynamoDB: the client's method and its keyword arguments. The flow is sent the answer.

    A request that `adds` would add twice if the client sent it twice: the caller is warned of such a client.
    """

    operation: str
    parameters: Mapping[str, Any]
    adds: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait before the next request. The flow is sent None."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Together:
    """Flows that are performed side by side: by threads, or by tasks. The flow is sent their results, or gets
    the error of the first that fails; then the others are to `stop`, and are waited for."""

    flows: Sequence[Flow[Any]]
    stop: Callable[[], None]


Step: TypeAlias = Call | Pause | Together
Flow: TypeAlias = Generator[Step, Any, T]


class Operations(Protocol[A_co]):
    """The methods of a client for ``dynamodb`` that patterns use."""

    @property
    def get_item(self) -> Callable[..., A_co]: ...
    @property
    def put_item(self) -> Callable[..., A_co]: ...
    @property
    def update_item(self) -> Callable[..., A_co]: ...
    @property
    def delete_item(self) -> Callable[..., A_co]: ...
    @property
    def query(self) -> Callable[..., A_co]: ...
    @property
    def scan(self) -> Callable[..., A_co]: ...
    @property
    def batch_get_item(self) -> Callable[..., A_co]: ...
    @property
    def batch_write_item(self) -> Callable[..., A_co]: ...
    @property
    def transact_write_items(self) -> Callable[..., A_co]: ...
    @property
    def transact_get_items(self) -> Callable[..., A_co]: ...
    @property
    def describe_table(self) -> Callable[..., A_co]: ...
    @property
    def update_table(self) -> Callable[..., A_co]: ...


Client: TypeAlias = Operations[Answer]
"""A client of boto3."""
AsyncClient: TypeAlias = Operations[Awaitable[Answer]]
"""A client of aiobotocore."""


def run(flow: Flow[T], client: Client, sleep: Callable[[float], None] = time.sleep) -> T:
    """Perform `flow` with a boto3 client, and return its result."""
    try:
        step = next(flow)
        while True:
            answer = None
            try:
                if isinstance(step, Pause):
                    sleep(step.seconds)
                elif isinstance(step, Together):
                    answer = _in_threads(step, client, sleep)
                else:
                    answer = _sent(step, client)
                    if inspect.iscoroutine(answer):  # (a client that is not a BaseClient)
                        answer.close()
                        raise TypeError(_KINDS)
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


async def run_async(
    flow: Flow[T], client: AsyncClient, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> T:
    """Perform `flow` with an aiobotocore client, and return its result."""
    try:
        step = next(flow)
        while True:
            answer = None
            try:
                if isinstance(step, Pause):
                    await sleep(step.seconds)
                elif isinstance(step, Together):
                    answer = await _in_tasks(step, client, sleep)
                else:
                    answer = await _sent(step, client)
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


def _in_threads(step: Together, client: Client, sleep: Callable[[float], None]) -> list[Any]:
    with ThreadPoolExecutor(len(step.flows), "flow") as pool:
        futures = [pool.submit(run, flow, client, sleep) for flow in step.flows]
        done: Collection[Future[Any]] = ()
        try:
            done = wait(futures, return_when=FIRST_EXCEPTION).done
            return [future.result() for future in sorted(done, key=futures.index)]
        finally:
            if len(done) < len(futures):
                step.stop()


async def _in_tasks(
    step: Together, client: AsyncClient, sleep: Callable[[float], Awaitable[None]]
) -> list[Any]:
    tasks = [asyncio.ensure_future(run_async(flow, client, sleep)) for flow in step.flows]
    try:
        return await asyncio.gather(*tasks)
    finally:
        if not all(task.done() for task in tasks):
            step.stop()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


class RepeatsByItself(UserWarning):
    """The client repeats requests whose answer was lost: what `add` adds may count twice."""


def _sent(call: Call, client: Client | AsyncClient) -> Any:
    """What the client's method returns; warns of a client that may send an addition twice."""
    config: Any = client.meta.config if isinstance(client, BaseClient) else None
    if call.adds and config and (config.retries or {}).get("total_max_attempts") != 1:
        warnings.warn(
            "this client repeats a request whose answer was lost, and what it adds may count twice: "
            'create the client with Config(retries={"total_max_attempts": 1}), or count events by `once`',
            RepeatsByItself,
            stacklevel=5,
        )
    return getattr(client, call.operation)(**call.parameters)


class Performing(Generic[F_co, C]):
    """Flows with a client of one of the two kinds; raises TypeError for a client of the other."""

    def __init__(self, client: C, flows: F_co) -> None:
        is_asynchronous = inspect.iscoroutinefunction(getattr(client, "_make_api_call", None))
        if isinstance(client, BaseClient) and isinstance(self, Awaiting) != is_asynchronous:
            raise TypeError(_KINDS)
        self._client = client
        self._flows = flows


class Blocking(Performing[F_co, Client]):
    """Flows that are performed at once, with a boto3 client; like the client, threads may share it."""

    _sleep: Callable[[float], None] = staticmethod(time.sleep)

    def _run(self, flow: Flow[T]) -> T:
        return run(flow, self._client, self._sleep)


class Awaiting(Performing[F_co, AsyncClient]):
    """Flows that are performed when awaited, with an aiobotocore client."""

    async def _run(self, flow: Flow[T]) -> T:
        return await run_async(flow, self._client)


class Performed(Protocol[F_contra, P, T_co]):
    """A method whose result is awaited if the client is asynchronous."""

    @overload
    def __get__(self, instance: Performing[F_contra, Client], owner: type) -> Callable[P, T_co]: ...
    @overload
    def __get__(
        self, instance: Performing[F_contra, AsyncClient], owner: type
    ) -> Callable[P, Awaitable[T_co]]: ...


def performed(method: Callable[Concatenate[F, P], Flow[T]]) -> Performed[F, P, T]:
    """The method, of a class for both kinds of clients, that performs the flow which `method` makes."""

    @functools.wraps(method)
    def perform(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return self._run(method(self._flows, *args, **kwargs))

    return cast(Performed[F, P, T], perform)
