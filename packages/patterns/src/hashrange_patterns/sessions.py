"""Sessions: remember which user a browser belongs to, while it is used, until the session is ended.

A session's token is a secret of 256 bits, for a cookie. The table holds only its hash, so nobody who reads
the table, or a backup of it, can impersonate a user. A session ends when it was not used for `idle_seconds`
(or up to half of that longer), and at the latest `lifetime_seconds` after it began. DynamoDB's time to live
deletes it later, which may take days, so the time is compared at each use.

    SESSION#<hash>     SESSION     user, data, until, ends
    SESSIONS#<user>    <hash>      for ending all sessions of a user

A use keeps a session for `idle_seconds` from then. An extension lasts half as long again, so that most uses
cost only a read. An extension never brings back a session that was ended meanwhile.

Refuses to know what a login is.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass
from typing import Final

from hashrange_patterns.batches import delete_all, query_all
from hashrange_patterns.flows import AsyncClient, Awaiting, Blocking, C, Client, Flow, Performing, performed
from hashrange_patterns.requests import Runtime, get, item_that_was_there, request, transact, unmet
from hashrange_patterns.tables import Address, Table, number, table_of

HALF_HOUR_SECONDS: Final = 1_800
MONTH_SECONDS: Final = 30 * 86_400


@dataclass(frozen=True, slots=True)
class Session:
    """A valid session: its user, the data that was stored when it began, and when it ends at the latest."""

    user: str
    data: str
    ends_at: int


@dataclass(frozen=True, slots=True)
class SessionFlows:
    """The logic of `Sessions`."""

    table: Table
    idle_seconds: int
    lifetime_seconds: int
    runtime: Runtime

    def __post_init__(self) -> None:
        if not 0 < self.idle_seconds <= self.lifetime_seconds:
            raise ValueError(
                f"a session of {self.lifetime_seconds} s cannot be idle for {self.idle_seconds} s: "
                "give idle_seconds from 1 to lifetime_seconds"
            )

    def begin(self, user: str, data: str = "") -> Flow[str]:
        """Begin a session of a user; returns its token. Costs 4 write units.

        Begin a new session at each login, and `end` the previous one, so that nobody can foist a known token
        on a user.
        """
        token = secrets.token_urlsafe(32)
        hashed = _hash(token)
        now = self.runtime.now()
        ends = int(now) + self.lifetime_seconds
        session = {
            **self.table.key(_address(hashed)),
            "user": {"S": user},
            "data": {"S": data},
            "until": number(self._until(now, ends)),
            "ends": number(ends),
            self.table.expires_at: number(ends),
        }
        by_user = {**self.table.key(Address(f"SESSIONS#{user}", hashed)), self.table.expires_at: number(ends)}
        yield from transact(self.runtime, [{"Put": self.table.put(item)} for item in (session, by_user)])
        return token

    def get(self, token: str) -> Flow[Session | None]:
        """The session with this token, which counts as a use; None if there is none, or it has ended.

        Costs 1 read unit, and a write unit at most once in half of `idle_seconds`.
        """
        address = _address(_hash(token))
        now = self.runtime.now()  # (an answer may take long, and others use the session meanwhile)
        item = yield from get(self.runtime, self.table, address)
        if not item or int(item["until"]["N"]) <= now:
            return None
        ends = int(item["ends"]["N"])
        is_short = int(item["until"]["N"]) < min(now + self.idle_seconds, ends)
        if is_short and not (yield from self._prolong(address, self._until(now, ends))):
            return None
        return Session(item["user"]["S"], item["data"]["S"], ends)

    def end(self, token: str) -> Flow[bool]:
        """End a session; False if there was none. Costs 1 read unit, and 4 write units."""
        address = _address(hashed := _hash(token))
        item = yield from get(self.runtime, self.table, address)
        if item is None:
            return False
        by_user = Address(f"SESSIONS#{item['user']['S']}", hashed)
        deletes = [
            {"Delete": self.table.at(address, condition="attribute_exists(#pk)")},
            {"Delete": self.table.at(by_user)},
        ]
        return not (yield from unmet(self.runtime, deletes))

    def end_all(self, user: str) -> Flow[int]:
        """End all current sessions of a user, as after a change of the password; returns how many.

        Costs 2 write units for each.
        """
        parameters = {**self.table.query(f"SESSIONS#{user}"), "ConsistentRead": True}
        items = yield from query_all(self.runtime, parameters)
        by_user = [self.table.address(item) for item in items]
        # (the sessions first: if this fails, the next end_all can still find the rest)
        yield from delete_all(self.runtime, self.table, (_address(address.sort) for address in by_user))
        yield from delete_all(self.runtime, self.table, by_user)
        return len(by_user)

    def _until(self, now: float, ends: int) -> int:
        """The end of a session that is used now, and not again."""
        return min(math.ceil(now + 1.5 * self.idle_seconds), ends)

    def _prolong(self, address: Address, until: int) -> Flow[bool]:
        """Let a session last until then at least; False if it was ended meanwhile."""
        # (this request may arrive after that of a later use)
        prolonged = self.table.at(
            address, update="SET #until = :until", condition="#until < :until", until=until
        )
        prolonged["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        try:
            yield from request(self.runtime, "update_item", prolonged, repeatable=True)
        except Exception as error:
            return bool(item_that_was_there(error))
        return True


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _address(hashed: str) -> Address:
    return Address(f"SESSION#{hashed}", "SESSION")


class _Sessions(Performing[SessionFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        *,
        idle_seconds: int = HALF_HOUR_SECONDS,
        lifetime_seconds: int = MONTH_SECONDS,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, SessionFlows(table_of(table), idle_seconds, lifetime_seconds, runtime))

    begin = performed(SessionFlows.begin)
    get = performed(SessionFlows.get)
    end = performed(SessionFlows.end)
    end_all = performed(SessionFlows.end_all)


class Sessions(_Sessions[Client], Blocking[SessionFlows]):
    """Sessions of browsers, with a boto3 client."""


class AsyncSessions(_Sessions[AsyncClient], Awaiting[SessionFlows]):
    """`Sessions` with an aiobotocore client."""
