"""Sends changed requests to the verifier of signatures and to the wire of a strict server, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from forgeries.changes import changed
from forgeries.genuine import KEY, SESSION, Sent, any_request
from forgeries.meaning import reasons
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.operations import REGISTRY
from hashrange.protocol import Call, Wire
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.policies.requests import Principal
from hashrange_access.roles import Identity
from hashrange_access.signatures import Key, Verifier
from hashrange_access.users import Users

CHANGES_OF_ONE = 200
_SHOWN_MAX = 20


@dataclass(slots=True)
class Tally:
    """What became of the changed requests: how many were refused, by error; how many were taken because the
    change has no meaning, by the reason; and the first forgeries, which were taken though nobody has signed
    them."""

    refused: Counter[str] = field(default_factory=Counter)
    without_meaning: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    forged: list[str] = field(default_factory=list)
    forgeries: int = 0

    def add_forged(self, where: str, change: str, genuine: Sent, made: Sent) -> None:
        self.forgeries += 1
        if len(self.forged) < _SHOWN_MAX:
            self.forged.append(f"{where} took a request after the change {change}:\n{genuine}\n{made}")


def attack(
    number: int, seed: int, say: Callable[[str], None] = lambda line: None, step: int = 100_000
) -> Tally:
    """Send `number` changed requests. `say` is told of the progress, each `step` requests."""
    random, tally = Random(seed), Tally()
    time = [0.0]
    keys = {key.id: key for key in (KEY, SESSION)}
    verifier = Verifier(keys, lambda: time[0])
    with Database.in_memory() as database:
        guard(database, Gate(_users(keys), lambda: time[0], strict=True))
        observers = database.observers
        wire = Wire(region="us-east-1", account_id="0" * 12, operations=REGISTRY, observers=observers)
        other = any_request(random)
        genuine = any_request(random)
        for count in range(number):
            if count % CHANGES_OF_ONE == 0:
                other, genuine = genuine, any_request(random)
                time[0] = genuine.signed_at
                assert verifier.verify(*genuine.parts).id in keys
                assert isinstance(wire.read(*genuine.parts), Call), genuine
            change, made = changed(random, genuine, other)
            tally.changes[change.partition(" ")[0]] += 1
            _judge(tally, verifier, wire, change, genuine, made, other)
            if (count + 1) % step == 0:
                taken = sum(tally.without_meaning.values())
                say(f"{count + 1:,} changed requests, {taken:,} of them taken, {tally.forgeries} forgeries")
    return tally


def _judge(
    tally: Tally, verifier: Verifier, wire: Wire, change: str, genuine: Sent, made: Sent, other: Sent
) -> None:
    why: list[str] | None = None
    try:
        verifier.verify(*made.parts)
        why = reasons(genuine, made) or reasons(other, made)
        tally.without_meaning[" and ".join(why) or "none"] += 1
        if not why:
            tally.add_forged("the verifier", change, genuine, made)
    except ServiceError as error:
        tally.refused[error.code] += 1
    if isinstance(wire.read(*made.parts), Call):
        why = why if why is not None else reasons(genuine, made) or reasons(other, made)
        if not why:
            tally.add_forged("the wire", change, genuine, made)


def _users(keys: dict[str, Key]) -> Users:
    account = "123456789012"
    alice = Identity(Principal(f"arn:aws:iam::{account}:user/alice", account, name="alice"))
    owned = {key_id: replace(key, owner=alice) for key_id, key in keys.items()}
    return Users(owned, dict.fromkeys(keys, alice), (account,))
