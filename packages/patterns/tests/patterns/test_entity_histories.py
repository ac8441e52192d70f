"""Entities by histories: writers at once, conflicts, lost and late requests, deaths."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import rule

from hashrange_patterns.entities import Entity, EntityFlows, Refused, add, create, delete, key_of
from hashrange_patterns.flows import Flow
from patterns.entity_classes import Photo, Reaction
from patterns.steps import Histories, Outcome, check

NAMES: Final = ["alice", "bob", "carol"]
MORTAL: Final = "carol"
NOON: Final = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


class Account(Entity[str], pk="ACCOUNT#{name}", sk="ACCOUNT", unique=["EMAIL#{email}"]):
    """An entity that notes who wrote it."""

    name: str
    email: str
    log: list[int] = field(default_factory=list)
    total: int = 0


class Writing(Histories):
    """Accounts, each change of which leaves a mark; reactions that a photo counts; photos in batches."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.flows = EntityFlows(self.table, self.steps.runtime())
        self.outcomes: list[str] = []
        """By mark, whether the write was made, refused, or ended with nobody knowing."""
        self.names: list[str] = []
        self.added: Counter[str] = Counter()
        self.added_at_most: Counter[str] = Counter()
        self.photo = Photo("eve", NOON)
        self.alone(self.flows.put_all([self.photo]))
        for name in NAMES[:2]:
            self.alone(self.flows.create(Account(name, f"{name}'s")))
        self.days = 0
        self.put: set[int] = set()

    def write(self, flow: Flow[Any], mark: int) -> None:
        def then(outcome: Outcome) -> None:
            if outcome.returned:
                self.outcomes[mark] = "made"
            elif isinstance(outcome.error, Refused):
                self.outcomes[mark] = "refused"

        self.start(flow, then, Refused)

    def mark(self, name: str) -> int:
        self.outcomes.append("unknown")
        self.names.append(name)
        return len(self.outcomes) - 1

    @rule(name=st.sampled_from(NAMES), email=st.sampled_from("xyz"))
    def create(self, name: str, email: str) -> None:
        mark = self.mark(name)
        self.write(self.flows.create(Account(name, email, [mark])), mark)

    @rule(name=st.sampled_from(NAMES), email=st.sampled_from([None, None, "x", "y"]))
    def modify(self, name: str, email: str | None) -> None:
        mark = self.mark(name)

        def change(account: Account) -> None:
            account.log.append(mark)
            account.email = email or account.email

        self.write(self.flows.modify(Account.key(name), change), mark)

    @rule(name=st.sampled_from(NAMES))
    def add(self, name: str) -> None:
        self.added_at_most[name] += 1

        def then(outcome: Outcome) -> None:
            self.added[name] += outcome.returned

        self.start(self.flows.add(Account.key(name), total=1), then, Refused)

    @rule()
    def delete(self) -> None:
        self.start(self.flows.delete(Account.key(MORTAL)), lambda outcome: None, Refused)

    @rule(reader=st.sampled_from(NAMES))
    def react(self, reader: str) -> None:
        """A reaction comes or goes, in one transaction with the photo's count."""

        def flow() -> Flow[None]:
            key = Reaction.key(reader, "heart", self.photo.username, self.photo.taken_at)
            there = yield from self.flows.get(key, consistent=True)
            if there is None:
                reaction = Reaction(reader, "heart", self.photo.username, self.photo.taken_at)
                yield from self.flows.transact(create(reaction), add(self.photo, likes=1))
            else:
                yield from self.flows.transact(delete(there), add(self.photo, likes=-1))

        self.start(flow(), lambda outcome: None, Refused)

    @rule(number=st.integers(1, 4))
    def put_photos(self, number: int) -> None:
        days = range(self.days, self.days + number)
        self.days += number

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                self.put |= set(days)

        self.start(self.flows.put_all([Photo("dave", NOON + timedelta(days=day)) for day in days]), then)

    @rule(newest_first=st.booleans())
    def query_photos(self, newest_first: bool) -> None:
        """A Query finds all that was put before, in order, each once."""
        before = set(self.put)

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                found = [(photo.taken_at - NOON).days for photo in outcome.result]
                assert found == sorted(set(found), reverse=newest_first)
                assert before <= set(found) <= set(range(self.days))

        self.start(self.flows.query(Photo, "dave", newest_first=newest_first, consistent=True), then)

    def verdict(self) -> None:
        keys = [Account.key(name) for name in NAMES]
        accounts = self.alone(self.flows.get_all(keys, consistent=True)).values()
        logged = Counter(mark for account in accounts for mark in account.log)
        assert max(logged.values(), default=1) == 1
        made = {mark for mark, outcome in enumerate(self.outcomes) if outcome == "made"}
        assert {mark for mark in made if self.names[mark] != MORTAL} <= logged.keys()
        assert not [mark for mark in logged if self.outcomes[mark] == "refused"]
        for account in accounts:
            assert all(self.names[mark] == account.name for mark in account.log)
            assert account.total <= self.added_at_most[account.name]
            assert account.total >= self.added[account.name] or account.name == MORTAL
        # Who has an e-mail address has its item, and nobody else has one.
        owners = {
            (item["PK"]["S"].rpartition("#")[2], item["owner_partition"]["S"])
            for item in self.items("UNIQUE#Account#EMAIL#")
        }
        assert owners == {(account.email, f"ACCOUNT#{account.name}") for account in accounts}
        assert len({account.email for account in accounts}) == len(accounts)
        photo = self.alone(self.flows.get(key_of(self.photo), consistent=True))
        assert photo.likes == len(self.items("REACTION#"))


def test_every_change_is_made_once_or_refused(in_process_client: Any) -> None:
    check(Writing, in_process_client)
