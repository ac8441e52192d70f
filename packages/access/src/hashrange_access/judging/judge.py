"""Decides in the transaction of a request whether policies allow it: `Judge`.

The decision is made where the request runs, because it needs the table: the attributes of its key, its tags
and its policy. They are those that the request itself sees, so a policy that is changed at the same time
counts either for all of a request or for nothing of it.

Unless regions have tables of their own, a resource is named with the caller's region. A request that reaches
the tables of another account (`accounts`) is executed in that account: then the caller's `account_id` is the
owner's, and the identity's account is the caller's own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import orjson

from hashrange.operations.context import Caller, scope_of
from hashrange.settings import Settings
from hashrange.storage.api import Reader
from hashrange.storage.failures import StorageError
from hashrange.tables import streams
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import KeySchema, Table
from hashrange.tables.streams import Left
from hashrange.values import AttributeValue
from hashrange_access.judging.act import EVERYTHING, Act, Attributes, Keys
from hashrange_access.policies.documents import Policy, parse
from hashrange_access.policies.errors import PolicyError
from hashrange_access.policies.evaluation import Attached, Decision, evaluate
from hashrange_access.policies.requests import Request, principal_keys
from hashrange_access.policies.suggesting import Uses
from hashrange_access.roles import Identity

_log = logging.getLogger("hashrange.access")

WOULD_REFUSE: Final = "strict would refuse a request"
"""The event of the log; `hashrange policy suggest` reads it."""
_LEADING_KEYS: Final = "dynamodb:leadingkeys"
_ORDINALS: Final = ("first", "second", "third", "fourth")
_POLICIES_MAX: Final = 200
# A user who may change policies must be able to mend an unreadable one.
_MENDING: Final = frozenset({"GetResourcePolicy", "PutResourcePolicy", "DeleteResourcePolicy"})


@dataclass(frozen=True, slots=True, eq=False)
class Identified:
    """Who has signed a request. `keys` are the condition keys that the connection gives. `refuses`: what
    policies do not allow is refused, and not only logged. `uses` gets what the requests do, if it is
    recorded."""

    identity: Identity
    keys: Mapping[str, tuple[str, ...]]
    refuses: bool = True
    uses: Uses | None = None


class Judge:
    """Decides the acts of one request."""

    __slots__ = (
        *("_account", "_caller", "_failed", "_identified", "_keys", "_logged", "_owner", "_scope"),
        "_settings",
    )

    def __init__(
        self,
        caller: Caller,
        settings: Settings,
        now: float,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        identified: Identified = caller.identified
        self._failed = failed
        self._identified = identified
        self._caller = caller
        self._settings = settings
        self._account = identified.identity.principal.account
        # (a request that is only logged is executed as its access key says)
        self._owner = caller.account_id if identified.refuses else self._account
        self._scope = scope_of(caller.account_id, caller.region, settings)
        self._keys = {
            **identified.keys,
            **principal_keys(identified.identity.principal),
            **_time_keys(int(now)),
            "aws:requestedregion": (caller.region,),
        }
        self._logged: set[tuple[str, str]] = set()

    def refusal(self, act: Act, reader: Reader) -> str | None:
        """Why policies do not allow an act; None if they do, or if it is only logged that they do not."""
        try:
            decision = self.decide(act, reader)
        except StorageError:
            raise  # (the request itself reads the store as well)
        except Exception as error:
            if self._failed is None:
                raise
            self._failed(error)
            return None
        if decision.allowed:
            return None
        if self._identified.refuses:
            return decision.message()
        use = act.action, decision.request.resource
        if use not in self._logged:
            self._logged.add(use)  # a body may run several times
            fields = {
                "user": decision.request.principal.arn,
                "action": act.action,
                "resource": decision.request.resource,
                "leading_keys": decision.request.keys.get(_LEADING_KEYS),
                "why": "; ".join(decision.explained()),
            }
            _log.warning(WOULD_REFUSE, extra={"fields": fields})
        return None

    def decide(self, act: Act, reader: Reader) -> Decision:
        arn, account = self._resource(act)
        table = self._table(arn, reader) if account == self._owner else None
        keys: Keys = {**self._keys, **act.keys, "aws:resourceaccount": (account,)}
        policies: tuple[Policy, ...] = ()
        left = self._left(arn, reader) if account == self._owner else None
        if left is not None:
            keys.update(_tag_keys(left.tags))
            policies = _of_document(left.policy, act.action)
        elif table is not None:
            keys.update(_tag_keys(table.tags))
            keys.update(_key_values(act, table))
            policies = _policies(table, arn, act.action)
        identity = self._identified.identity
        attached = Attached(identity.policies, policies, identity.boundary, identity.session)
        asked = Request(identity.principal, f"dynamodb:{act.action}", arn, account, keys)
        if self._identified.uses is not None:
            self._identified.uses.add(asked.action, arn, keys.get(_LEADING_KEYS))
        return evaluate(asked, attached)

    def _resource(self, act: Act) -> tuple[str, str]:
        """The ARN of an act's resource, and its account."""
        region = self._caller.region
        given = act.table or act.resource
        account = self._account
        if given.startswith("arn:"):
            parts = [*given.split(":", 5), "", "", "", "", ""][:6]
            if self._settings.separate_regions:
                region = parts[3]
            account, path = parts[4], parts[5]
        else:
            path = f"table/{given}" if act.table else given
        if act.index is not None:
            path = f"{path}/index/{act.index}"
        if path == EVERYTHING or not path.startswith("global-table/"):
            return f"arn:aws:dynamodb:{region}:{account}:{path}", account
        return f"arn:aws:dynamodb::{account}:{path}", account

    def _table(self, arn: str, reader: Reader) -> Table | None:
        """The table that a resource is, or belongs to."""
        path = arn.split(":", 5)[5].split("/")
        return catalog.find(reader, path[1], self._scope) if path[0] == "table" and len(path) > 1 else None

    def _left(self, arn: str, reader: Reader) -> Left | None:
        """What a deleted table has left to the stream that a resource is; None for all other resources."""
        path = arn.split(":", 5)[5].split("/", 3)
        if len(path) < 4 or path[2] != "stream":
            return None
        stream = streams.find(reader, path[1], path[3], self._scope)
        return None if stream is None else stream.left


def _policies(table: Table, arn: str, action: str) -> tuple[Policy, ...]:
    """The policies of the table, for it and its indexes, or of one of its streams."""
    path = arn.split(":", 5)[5].split("/", 3)
    kind = path[2] if len(path) == 4 else ""
    if kind not in ("", "index", "stream"):
        return ()
    policy = table.policies.get(path[3] if kind == "stream" else "")
    return () if policy is None else _of_document(policy.document, action)


def _of_document(document: str, action: str) -> tuple[Policy, ...]:
    """The policy of a stored document, if there is one ("": none)."""
    made = _parsed(document) if document else None
    return () if made is None or (made is _UNREADABLE and action in _MENDING) else (made,)


def _tag_keys(tags: Mapping[str, str]) -> Keys:
    return {f"aws:resourcetag/{name.lower()}": (value,) for name, value in tags.items()}


@lru_cache(16)
def _time_keys(second: int) -> Keys:
    """The condition keys of a time in epoch seconds. Cached, because many requests have the same second."""
    moment = datetime.fromtimestamp(second, UTC)
    return {"aws:currenttime": (moment.strftime("%Y-%m-%dT%H:%M:%SZ"),), "aws:epochtime": (str(second),)}


@lru_cache(_POLICIES_MAX)
def _parsed(document: str) -> Policy:
    """The policy of a stored document. One that was stored before requests were judged may have a condition
    that does not exist: it then refuses everything except what mends it."""
    try:
        return parse(orjson.loads(document), name="the resource's policy", on_resource=True)
    except PolicyError as error:
        _log.warning("a resource-based policy cannot be read: it refuses everything: %s", error)
        return _UNREADABLE


_UNREADABLE: Final = parse(
    {"Statement": {"Sid": "unreadable", "Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}},
    name="a policy that cannot be read",
    on_resource=True,
)


def _key_values(act: Act, table: Table) -> Keys:
    """The condition keys of the values of partition keys. For a key of several attributes, LeadingKeys are
    the values of the first."""
    index = None if act.index is None else table.index(act.index)
    schema = table.key if index is None else index.key
    keys: Keys = {}
    if act.statement is not None:
        from hashrange_access.judging.statements import key_values

        values, is_scan = key_values(act.statement, schema)
        if act.action == "PartiQLSelect":
            keys["dynamodb:fulltablescan"] = ("true" if is_scan else "false",)
        if not is_scan:
            keys.update(_named(0, values))
    elif act.items is not None:
        for place in range(len(schema.partition)):
            keys.update(_named(place, _values(act.items, schema, place)))
    return keys


def _values(items: tuple[Attributes, ...], schema: KeySchema, place: int) -> list[AttributeValue]:
    name = schema.partition[place].name
    return [item[name] for item in items if name in item]


def _named(place: int, values: list[AttributeValue]) -> Keys:
    texts = tuple(dict.fromkeys(map(_text, values)))
    keys: Keys = {f"dynamodb:{_ORDINALS[place]}partitionkeyvalues": texts}
    if place == 0:
        keys[_LEADING_KEYS] = texts
    return keys


def _text(value: AttributeValue) -> str:
    """A key's value as conditions compare it: binary is base64, as in the request."""
    content: Any = next(iter(value.values()))
    return str(content)
