"""Idempotency: a handler may be called twice for a request but acts once. A table keeps the results of
requests.

    IDEMPOTENT#payment-17   IDEMPOTENT   claim, until, fingerprint, result, expires_at

    started = store.begin("payment-17", body)
    if started.result is not None:
        return started.result          # done before: the same answer
    result = charge(body)
    store.finish(started, result)
    return result

While a worker handles a request, others get `InProgress`. A worker that dies loses its claim after
`lease_seconds`, and the next worker handles the request again. So effects outside DynamoDB happen at least
once, and twice only if a worker died in between. Effects in DynamoDB can happen exactly once: put `member`
into their transaction. Then the effects and the result commit together, and only if the worker still has the
claim.

Refuses to know handlers: a result is a text.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, ParamSpec, TypeVar

from hashrange_patterns.flows import AsyncClient, Awaiting, Blocking, C, Client, Flow, Performing, performed
from hashrange_patterns.requests import Runtime, check_seconds, is_met, item_that_was_there, request
from hashrange_patterns.tables import Address, Item, Table, table_of

P = ParamSpec("P")
T = TypeVar("T")

DAY_SECONDS: Final = 86_400
LEASE_SECONDS: Final = 300.0
"""Longer than a client waits for an answer, which is 60 seconds with botocore."""
_MILLIS: Final = 1_000


class InProgress(Exception):
    """Another worker is handling this request: answer with status 409, or try again later."""


class KeyReused(Exception):
    """The key was used for another request, which is a mistake of the caller: answer with status 422."""


@dataclass(frozen=True, slots=True)
class Started:
    """A request that was begun. If it has a `result`, answer with that; otherwise handle it and call
    `finish`."""

    key: str
    claim: str
    result: str | None = None


@dataclass(frozen=True, slots=True)
class IdempotencyFlows:
    """The logic of `Idempotency`."""

    table: Table
    lease_seconds: float
    remember_seconds: int
    runtime: Runtime

    def __post_init__(self) -> None:
        check_seconds("lease_seconds", self.lease_seconds)
        check_seconds("remember_seconds", self.remember_seconds)

    def begin(self, key: str, request_body: str = "") -> Flow[Started]:
        """Claim `key`, or get the result of an earlier call.

        Raises `InProgress` while another worker has the claim, and `KeyReused` if the key was used with
        another `request_body`, of which a hash is stored. Costs 1 write unit, even if it fails.
        """
        fingerprint = sha256(request_body.encode()).hexdigest()
        for _ in range(self.runtime.attempts_max):
            started_at = self.runtime.elapsed()
            started = yield from self._claim(key, fingerprint)
            # An answer that came after the lease is not a claim: another worker may have one by now.
            if started.result is not None or self.runtime.elapsed() < started_at + self.lease_seconds:
                return started
        raise InProgress(f"claims of the key {key!r} took longer than their lease: give them a longer one")

    def _claim(self, key: str, fingerprint: str) -> Flow[Started]:
        """One attempt of `begin`."""
        claim = self.runtime.token()
        now = self.runtime.now()
        parameters = self.table.at(
            _address(key),
            update="SET #claim = :claim, #until = :until, #fingerprint = :fingerprint, "
            "#expires_at = :expires_at REMOVE #result",
            # No item; an item that is about to expire; a claim that ran out; or ours, its answer lost. (Not
            # a result, even our own: this request may arrive late.)
            condition="attribute_not_exists(#fingerprint) OR #expires_at <= :seconds OR "
            "(attribute_not_exists(#result) AND #fingerprint = :fingerprint "
            "AND (#until <= :now OR #claim = :claim))",
            claim=claim,
            until=(now + self.lease_seconds) * _MILLIS,
            fingerprint=fingerprint,
            expires_at=now + self.lease_seconds + self.remember_seconds,
            seconds=now,
            now=now * _MILLIS,
        )
        parameters["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        try:
            yield from request(self.runtime, "update_item", parameters, repeatable=True)
        except Exception as error:
            item = item_that_was_there(error)
        else:
            return Started(key, claim)
        if item.get("fingerprint", {}).get("S") != fingerprint:
            raise KeyReused(f"the key {key!r} was used for a request with another body")
        if "result" not in item:
            raise InProgress(f"a request with the key {key!r} is being worked on")
        return Started(key, "", item["result"]["S"])

    def finish(self, started: Started, result: str) -> Flow[bool]:
        """Store the result for `remember_seconds`; False if the claim expired and another worker has it.

        Costs 1 write unit for each KB of the item. Safe to repeat.
        """
        return (yield from is_met(self.runtime, "update_item", self._finish(started, result)))

    def member(self, started: Started, result: str) -> Item:
        """`finish` as a member of your own TransactWriteItems: what it does is done exactly once.

        The transaction is canceled if the claim expired and another worker has it. Costs 2 write units there.
        """
        return {"Update": self._finish(started, result)}

    def abandon(self, started: Started) -> Flow[None]:
        """Give the claim back, because the work failed without effect: the next worker may begin at once.

        Costs 1 write unit.
        """
        condition = "#claim = :claim AND attribute_not_exists(#result)"
        delete = self.table.at(_address(started.key), condition=condition, claim=started.claim)
        yield from is_met(self.runtime, "delete_item", delete)

    def _finish(self, started: Started, result: str) -> dict[str, Any]:
        if started.result is not None:
            raise ValueError(
                f"the request with the key {started.key!r} was finished before: answer with its result"
            )
        return self.table.at(
            _address(started.key),
            update="SET #result = :result, #expires_at = :expires_at",
            condition="#claim = :claim",
            claim=started.claim,
            result=result,
            expires_at=self.runtime.now() + self.remember_seconds,
        )


def _address(key: str) -> Address:
    return Address(f"IDEMPOTENT#{key}", "IDEMPOTENT")


def _body(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The arguments of a handler as the body of its request."""
    return json.dumps([args, kwargs], sort_keys=True)


class _Idempotency(Performing[IdempotencyFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        *,
        lease_seconds: float = LEASE_SECONDS,
        remember_seconds: int = DAY_SECONDS,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, IdempotencyFlows(table_of(table), lease_seconds, remember_seconds, runtime))

    begin = performed(IdempotencyFlows.begin)
    finish = performed(IdempotencyFlows.finish)
    abandon = performed(IdempotencyFlows.abandon)

    def member(self, started: Started, result: str) -> Item:
        """`finish` as a member of your own TransactWriteItems: what it does is done exactly once."""
        return self._flows.member(started, result)


class Idempotency(_Idempotency[Client], Blocking[IdempotencyFlows]):
    """A record of requests by key, with a boto3 client.

    A claim lasts `lease_seconds`, which must be longer than the work takes. Results are kept for
    `remember_seconds`, which must be longer than callers repeat a request.
    """

    def handler(self, key: Callable[P, str]) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """A decorator: the function is performed once for each key, and later calls get its result.

        `key` makes the key from the function's arguments. Arguments and result must be JSON. A function that
        raises gives its claim back, so that the next call performs it again. Raises as `begin`.
        """

        def decorate(function: Callable[P, T]) -> Callable[P, T]:
            @functools.wraps(function)
            def handle(*args: P.args, **kwargs: P.kwargs) -> T:
                started = self.begin(key(*args, **kwargs), _body(args, kwargs))
                if started.result is not None:
                    earlier: T = json.loads(started.result)
                    return earlier
                try:
                    result = function(*args, **kwargs)
                    text = json.dumps(result)
                except BaseException:
                    self.abandon(started)
                    raise
                self.finish(started, text)
                return result

            return handle

        return decorate


class AsyncIdempotency(_Idempotency[AsyncClient], Awaiting[IdempotencyFlows]):
    """`Idempotency` with an aiobotocore client."""

    def handler(
        self, key: Callable[P, str]
    ) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
        """A decorator for asynchronous functions: see `Idempotency.handler`."""

        def decorate(function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
            @functools.wraps(function)
            async def handle(*args: P.args, **kwargs: P.kwargs) -> T:
                started = await self.begin(key(*args, **kwargs), _body(args, kwargs))
                if started.result is not None:
                    earlier: T = json.loads(started.result)
                    return earlier
                try:
                    result = await function(*args, **kwargs)
                    text = json.dumps(result)
                except BaseException:
                    await self.abandon(started)
                    raise
                await self.finish(started, text)
                return result

            return handle

        return decorate
