"""Entities by random rounds: many writers, throttling, conflicts, lost answers, deaths."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any

from hashrange_patterns import Table
from hashrange_patterns.entities import (
    Entity,
    EntityFlows,
    Refused,
    add,
    create,
    delete,
    key_of,
)
from hashrange_patterns.flows import Flow
from patterns.entity_classes import Photo, Reaction
from patterns.simulation import Simulation

NAMES = ["alice", "bob", "carol"]
NOON = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


class Account(Entity[str, str], pk="ACCOUNT#{bank}#{name}", sk="ACCOUNT", unique=["EMAIL#{bank}#{email}"]):
    """An entity that notes who wrote it."""

    bank: str
    name: str
    email: str
    log: list[str] = field(default_factory=list)
    total: int = 0


def noting(account: Account, mark: str, email: str) -> None:
    """Note and count a write in the account; every third also takes an e-mail address."""
    account.log.append(mark)
    account.total += 1
    if int(mark) % 3 == 0:
        account.email = email


def scanned(client: Any, table: Table, prefix: str) -> list[dict[str, Any]]:
    """All items whose partition keys begin with `prefix`."""
    return [
        item
        for page in client.get_paginator("scan").paginate(TableName=table.name, ConsistentRead=True)
        for item in page["Items"]
        if item["PK"]["S"].startswith(prefix)
    ]


def test_every_change_is_made_once_or_refused(client: Any, table: Table, rounds: range) -> None:
    for seed in rounds:
        simulation = Simulation(client, seed)
        flows = EntityFlows(table, simulation.runtime())
        bank = f"bank{seed}"
        outcomes: dict[str, str] = {}
        serial = iter(range(10_000))

        def change(
            flows: EntityFlows = flows,
            bank: str = bank,
            outcomes: dict[str, str] = outcomes,
            simulation: Simulation = simulation,
            serial: Any = serial,
        ) -> Flow[None]:
            chance = simulation.chance
            for _ in range(12):
                name, mark = chance.choice(NAMES), str(next(serial))
                key = Account.key(bank, name)
                email = f"{chance.choice(NAMES)}@{chance.randrange(3)}"
                outcomes[mark] = "unknown"

                note = functools.partial(noting, mark=mark, email=email)

                try:
                    if chance.random() < 0.3:
                        yield from flows.create(Account(bank, name, email, [mark]))
                    elif chance.random() < 0.3:
                        yield from flows.transact(add(key, total=1))
                        outcomes[mark] = f"added to {name}"
                        continue
                    else:
                        yield from flows.modify(key, note)
                    outcomes[mark] = "made"
                except Refused:
                    outcomes[mark] = "refused"
                except Exception:
                    continue

        for _ in range(4):
            simulation.start(change)
        simulation.run()
        simulation.calm()
        keys = [Account.key(bank, name) for name in NAMES]
        accounts = simulation.perform(flows.get_all(keys, consistent=True)).values()
        logged = Counter(mark for account in accounts for mark in account.log)
        assert max(logged.values(), default=1) == 1, seed
        assert {mark for mark, outcome in outcomes.items() if outcome == "made"} <= logged.keys(), seed
        assert not {mark for mark, outcome in outcomes.items() if outcome == "refused"} & logged.keys(), seed
        for account in accounts:
            added = sum(outcome == f"added to {account.name}" for outcome in outcomes.values())
            unknown = sum(outcome == "unknown" for outcome in outcomes.values())
            changed = len(account.log) - 1  # (the first was written by its creation)
            assert added <= account.total - changed <= added + unknown, seed
        # Who has an e-mail address has its item, and nobody else has one.
        owners = {
            (item["PK"]["S"].rpartition("#")[2], item["owner_partition"]["S"])
            for item in scanned(client, table, f"UNIQUE#Account#EMAIL#{bank}#")
        }
        assert owners == {(account.email, f"ACCOUNT#{bank}#{account.name}") for account in accounts}, seed
        assert len({account.email for account in accounts}) == len(accounts), seed


def test_a_count_agrees_with_what_it_counts(client: Any, table: Table, rounds: range) -> None:
    """Reactions come and go, each in one transaction with the photo's count."""
    for seed in rounds:
        simulation = Simulation(client, seed)
        flows = EntityFlows(table, simulation.runtime())
        photo = Photo(f"alice{seed}", NOON)
        simulation.perform(flows.put_all([photo]))

        def react(
            flows: EntityFlows = flows, photo: Photo = photo, simulation: Simulation = simulation
        ) -> Flow[None]:
            chance = simulation.chance
            for _ in range(12):
                who = f"reader{chance.randrange(4)}"
                reaction = Reaction(who, "heart", photo.username, photo.taken_at)
                try:
                    there = yield from flows.get(key_of(reaction), consistent=True)
                    if there is None:
                        yield from flows.transact(create(reaction), add(photo, likes=1))
                    else:
                        yield from flows.transact(delete(there), add(photo, likes=-1))
                except Exception:
                    continue

        for _ in range(4):
            simulation.start(react)
        simulation.run()
        simulation.calm()
        keys = [
            Reaction.key(f"reader{number}", "heart", photo.username, photo.taken_at) for number in range(4)
        ]
        reactions = simulation.perform(flows.get_all(keys, consistent=True))
        read = simulation.perform(flows.get(key_of(photo), consistent=True))
        assert read.likes == len(reactions), seed


def test_a_single_writer_agrees_with_a_dict(client: Any, table: Table, rounds: range) -> None:
    """What is read is what was written: after a failure of unknown outcome, the old or the new."""
    for seed in rounds:
        simulation = Simulation(client, seed, death_rate=0.0, fault_rate=0.3)
        chance = simulation.chance
        flows = EntityFlows(table, simulation.runtime(attempts_max=4))
        model: dict[int, Photo] = {}

        def photo_at(place: int, seed: int = seed) -> Photo:
            return Photo(f"dict{seed}", NOON + timedelta(days=place))

        def work(
            flows: EntityFlows = flows,
            model: dict[int, Photo] = model,
            photo_at: Any = photo_at,
            chance: Any = chance,
            seed: int = seed,
        ) -> Flow[None]:
            for step in range(60):
                place = chance.randrange(5)
                before = model.get(place)
                after: Photo | None = photo_at(place)
                assert after is not None
                after.title, after.likes = f"title {chance.randrange(3)}", chance.randrange(3)
                key = key_of(after)
                failed = None
                try:
                    if before is None:
                        yield from flows.create(after)
                    elif chance.random() < 0.3:
                        after = None
                        yield from flows.delete(before)
                    elif chance.random() < 0.3:
                        after.title, after.likes = before.title, before.likes + 2
                        yield from flows.add(key, likes=2)
                    elif chance.random() < 0.5:
                        yield from flows.put_all([after])
                    else:
                        title, likes = after.title, after.likes

                        def change(photo: Photo, title: str = title, likes: int = likes) -> None:
                            photo.title, photo.likes = title, likes

                        yield from flows.modify(key, change)
                except Refused:
                    raise
                except Exception as error:
                    failed = error
                while True:
                    try:
                        found = yield from flows.get(key, consistent=True)
                        break
                    except Exception:
                        continue
                assert found == after or (failed and found in (before, after)), (seed, step, failed)
                model.pop(place, None)
                if found is not None:
                    model[place] = found
            while True:
                try:
                    everything = yield from flows.query(Photo, f"dict{seed}", consistent=True)
                    break
                except Exception:
                    continue
            assert everything == [model[place] for place in sorted(model)], seed

        simulation.start(work, mortal=False)
        simulation.run()
