"""A database on a clock that steps forth and back by up to a year, between any two requests and sweeps.

A model keeps what was promised: states that only go on, tokens that count once and for ten minutes, streams
that lose and repeat nothing and whose times never decrease, queues that never stand still.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import orjson
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from doses import examples
from hashrange.clock import BEHIND_SECONDS_MAX, VirtualClock
from hashrange.database import Database, Settings
from hashrange.errors import ServiceError
from hashrange.limits import CLIENT_REQUEST_TOKEN_SECONDS as TOKEN_SECONDS
from hashrange.operations import REGISTRY
from hashrange.operations.context import Caller, Context
from hashrange.storage import drafts
from hashrange.storage.api import Transaction
from hashrange.storage.memory import MemoryEngine
from hashrange.tables import streams
from hashrange.tables.spaces import LAG_SPACE
from hashrange.tables.streams import Shard, Stream, StreamRecord
from worlds import expiry_of, index_on, table_of

START = 1_767_225_600.0
HOUR, DAY, YEAR = 3_600.0, 86_400.0, 365 * 86_400.0
STATE_SECONDS = 5.0

STEPS = st.sampled_from([0.001, 1.0, 4.0, 61.0, 700.0, HOUR, 5 * HOUR, DAY, 40 * DAY, YEAR])
NAMES = st.sampled_from(["one", "two"])
# What a state may have become by itself since it was seen.
NEXT = {
    "MISSING": {"MISSING"},
    "CREATING": {"CREATING", "ACTIVE"},
    "ACTIVE": {"ACTIVE"},
    "UPDATING": {"UPDATING", "ACTIVE"},
    "DELETING": {"DELETING", "MISSING"},
}
FIXED = "fixed"
INDEX = index_on("again", "pk | KEYS_ONLY")


@dataclass
class Token:
    """What is known of a token: how far the clock has run on since it was claimed, and since a sweep that
    came after the last step back."""

    ran: float = 0.0
    ran_since_sweep: float = 0.0
    stepped_back: bool = False


class Stepping(RuleBasedStateMachine):
    """The requests of a client of the server: sweeps may run between any two of them."""

    tends = False

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock(START, frozen=True)
        self.database = Database(
            MemoryEngine(),
            settings=Settings(
                create_seconds=STATE_SECONDS,
                update_seconds=STATE_SECONDS,
                delete_seconds=STATE_SECONDS,
                gsi_delay_seconds=STATE_SECONDS,
                stream_shards=2,
                stream_shard_seconds=HOUR,
            ),
            clock=self.clock,
        )
        self.states = {"one": "MISSING", "two": "MISSING"}
        self.tokens: dict[str, Token] = {}
        self.counted = 0
        self.put_keys: list[str] = []
        self.read_keys: list[str] = []
        self.places: dict[str, str] = {}
        self.expiries: dict[str, float] = {}
        self.maybe_gone: set[str] = set()  # by a sweep before a request, before the clock went back
        self.begun: list[tuple[str, Callable[[Transaction], Any]]] = []
        self.number = 0

    def ask(self, operation: str, **request: Any) -> dict[str, Any]:
        if self.tends:
            self.database.tend()
            now = self.clock.now()
            self.maybe_gone |= {key for key, until in self.expiries.items() if int(until) <= int(now)}
        answer: dict[str, Any] = orjson.loads(orjson.dumps(self.database.execute(operation, request)))
        return answer

    def code_of(self, operation: str, **request: Any) -> str | None:
        """The code of the error that a request ends with, None for an answer."""
        try:
            self.ask(operation, **request)
        except ServiceError as error:
            return error.code
        return None

    def create(self, name: str, **more: Any) -> str | None:
        return self.code_of("CreateTable", **table_of(name, "pk", **more))

    def new_key(self) -> str:
        self.number += 1
        return str(self.number)

    # -- Time ----------------------------------------------------------------------------------------------

    def move(self, seconds: float) -> None:
        before = self.clock.now()
        self.clock.set(min(max(before + seconds, START - YEAR), START + YEAR))
        ran = self.clock.now() - before
        for token in self.tokens.values():
            token.ran += max(ran, 0.0)
            token.ran_since_sweep += max(ran, 0.0)
            token.stepped_back |= ran < 0

    def settle(self) -> None:
        self.database.settle()
        for token in self.tokens.values():
            if token.stepped_back:
                token.stepped_back, token.ran_since_sweep = False, 0.0
        now = self.clock.now()
        self.expiries = {key: until for key, until in self.expiries.items() if int(until) > int(now)}

    def run_on(self, seconds: float) -> None:
        """Let the time pass, with a sweep before and after."""
        if self.clock.now() + seconds > START + YEAR:
            self.move(START - self.clock.now())
        self.settle()
        self.move(seconds)
        self.settle()

    @initialize()
    def set_up(self) -> None:
        specification = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        self.create(FIXED, StreamSpecification=specification, GlobalSecondaryIndexes=[dict(INDEX)])
        self.move(STATE_SECONDS)
        self.settle()
        self.ask("UpdateTimeToLive", **expiry_of(FIXED, "until"))

    @rule(seconds=STEPS, back=st.booleans())
    def step(self, seconds: float, *, back: bool) -> None:
        self.move(-seconds if back else seconds)

    @rule()
    def sweep(self) -> None:
        self.settle()

    # -- States --------------------------------------------------------------------------------------------

    def look(self, name: str) -> str:
        try:
            state = self.ask("DescribeTable", TableName=name)["Table"]["TableStatus"]
        except ServiceError:
            state = "MISSING"
        assert state in NEXT[self.states[name]]
        self.states[name] = state
        return str(state)

    @rule(name=NAMES)
    def create_table(self, name: str) -> None:
        missing = self.look(name) == "MISSING"
        assert self.create(name) == (None if missing else "ResourceInUseException")
        if missing:
            self.states[name] = "CREATING"

    @rule(name=NAMES)
    def update_table(self, name: str) -> None:
        state, given = self.look(name), "STANDARD"
        code = self.code_of("UpdateTable", TableName=name, TableClass=given)
        assert (code is None) == (state == "ACTIVE")
        self.states[name] = "UPDATING" if code is None else state

    @rule(name=NAMES)
    def delete_table(self, name: str) -> None:
        state = self.look(name)
        code = self.code_of("DeleteTable", TableName=name)
        assert (code is None) == (state == "ACTIVE")
        self.states[name] = "DELETING" if code is None else state

    @rule(name=NAMES)
    def use_table(self, name: str) -> None:
        state = self.look(name)
        code = self.code_of("PutItem", TableName=name, Item={"pk": {"S": "a"}})
        assert (code is None) == (state in ("ACTIVE", "UPDATING"))

    @rule()
    def no_state_lasts_longer_than_it_may(self) -> None:
        self.run_on(STATE_SECONDS)
        assert {self.look(name) for name in self.states} <= {"ACTIVE", "MISSING"}

    # -- Tokens --------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(["a", "b"]))
    def count_once(self, name: str) -> None:
        update = {
            "TableName": FIXED,
            "Key": {"pk": {"S": "count"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        self.ask("TransactWriteItems", TransactItems=[{"Update": update}], ClientRequestToken=name)
        item = self.ask("GetItem", TableName=FIXED, Key={"pk": {"S": "count"}})["Item"]
        counted = int(item["n"]["N"])
        known = self.tokens.get(name)
        if known is not None and known.ran < TOKEN_SECONDS - 1:
            assert counted == self.counted
        bound = TOKEN_SECONDS + BEHIND_SECONDS_MAX + 1
        if known is None or (not known.stepped_back and known.ran_since_sweep > bound):
            assert counted == self.counted + 1
        if counted > self.counted:
            self.tokens[name] = Token()
            self.put_keys.append("count")
        self.counted = counted
        self.read_stream()

    @rule(name=st.sampled_from(["a", "b"]))
    def a_token_ends(self, name: str) -> None:
        self.run_on(TOKEN_SECONDS + BEHIND_SECONDS_MAX + 2.0)
        counted = self.counted
        self.count_once(name)
        assert self.counted == counted + 1

    # -- Streams, expiry, lag ------------------------------------------------------------------------------

    @rule()
    def change(self) -> None:
        latest = self.latest()
        key = self.new_key()
        self.ask("PutItem", TableName=FIXED, Item={"pk": {"S": key}})
        self.put_keys.append(key)
        assert [one for iterator in latest for one in self.records(iterator)] == [key]
        self.read_stream()

    @rule()
    def begin(self) -> None:
        """Begin a request, which has its time from then on."""
        key, new_id = self.new_key(), self.new_key
        context = Context(Caller(), self.clock.now(), self.database.settings, new_id)
        request = {"TableName": FIXED, "Item": {"pk": {"S": key}}}
        self.begun.append((key, REGISTRY["PutItem"].prepare(request, context)))

    @precondition(lambda self: self.begun)
    @rule(newest=st.booleans(), aside=st.booleans())
    def commit_what_began(self, *, newest: bool, aside: bool) -> None:
        key, body = self.begun.pop(-1 if newest else 0)
        if aside:
            drafts.write_aside(self.database.engine, body)
        else:
            self.database.engine.write(body)
        self.put_keys.append(key)
        # Before a sweep trims it: it may have begun more than a day ago.
        self.tends = False
        self.read_stream()
        self.tends = type(self).tends

    def stored(self) -> list[tuple[Stream, Shard, list[tuple[int, StreamRecord]]]]:
        """The records of each shard."""
        return self.database.engine.read(
            lambda reader: [
                (stream, shard, list(streams.read(reader, stream, shard.id, 0, 1_000)))
                for stream in streams.all_streams(reader)
                for shard in stream.shards
            ]
        )

    @invariant()
    def times_never_decrease_in_a_shard(self) -> None:
        for _, _, stored in self.stored():
            assert all(before.time <= after.time for (_, before), (_, after) in pairwise(stored))

    @rule()
    def a_shard_is_read_from_any_time_on(self) -> None:
        for stream, shard, stored in self.stored():
            moments = {change.time for _, change in stored}
            for moment in moments | {moment + 1.0 for moment in moments} | {self.clock.now()}:
                mark_at = partial(streams.mark_at, stream=stream, shard=shard, moment=moment)
                mark = self.database.engine.read(mark_at)
                late = [sequence for sequence, change in stored if change.time >= moment]
                assert [sequence for sequence, _ in stored if sequence > mark] == late

    @rule()
    def after_a_sweep_a_record_has_the_time_of_the_clock(self) -> None:
        self.settle()
        self.change()
        latest = max(stored[-1] for _, _, stored in self.stored() if stored)[1]
        assert self.clock.now() <= latest.time <= self.clock.now() + BEHIND_SECONDS_MAX

    def shards(self) -> list[dict[str, Any]]:
        self.arn = self.ask("DescribeTable", TableName=FIXED)["Table"]["LatestStreamArn"]
        shards: list[dict[str, Any]] = []
        while True:
            more = {"ExclusiveStartShardId": shards[-1]["ShardId"]} if shards else {}
            answer = self.ask("DescribeStream", StreamArn=self.arn, **more)["StreamDescription"]
            shards += answer["Shards"]
            if "LastEvaluatedShardId" not in answer:
                return shards

    def latest(self) -> list[str]:
        """Iterators at the ends of the shards that are open."""
        return [
            self.iterator(shard["ShardId"], ShardIteratorType="LATEST")
            for shard in self.shards()
            if "EndingSequenceNumber" not in shard["SequenceNumberRange"]
        ]

    def iterator(self, shard: str, **kind: Any) -> str:
        answer = self.ask("GetShardIterator", StreamArn=self.arn, ShardId=shard, **kind)
        return str(answer["ShardIterator"])

    def records(self, iterator: str, shard: str | None = None) -> Iterator[str]:
        for record in self.ask("GetRecords", ShardIterator=iterator)["Records"]:
            if shard is not None:
                self.places[shard] = record["dynamodb"]["SequenceNumber"]
            if record["eventName"] != "REMOVE":
                yield record["dynamodb"]["Keys"]["pk"]["S"]

    def read_stream(self) -> None:
        """Read what was not read yet, parents before children as they are listed; nothing is missing."""
        found: list[str] = []
        for shard in self.shards():
            name = shard["ShardId"]
            after = self.places.get(name)
            if after is None:
                iterator = self.iterator(name, ShardIteratorType="TRIM_HORIZON")
            elif "EndingSequenceNumber" in shard["SequenceNumberRange"]:
                # All of it was read when it was written.
                continue
            else:
                kind = "AFTER_SEQUENCE_NUMBER"
                iterator = self.iterator(name, ShardIteratorType=kind, SequenceNumber=after)
            found += self.records(iterator, name)
        self.read_keys += found
        assert self.read_keys == self.put_keys

    @rule(seconds=STEPS)
    def put_what_expires(self, seconds: float) -> None:
        key, until = self.new_key(), self.clock.now() + seconds
        item = {"pk": {"S": key}, "until": {"N": str(int(until))}}
        self.ask("PutItem", TableName=FIXED, Item=item)
        self.put_keys.append(key)
        self.expiries[key] = until
        self.read_stream()

    @rule()
    def what_expired_is_gone_and_nothing_else(self) -> None:
        self.settle()
        items = self.ask("Scan", TableName=FIXED)["Items"]
        found = {item["pk"]["S"] for item in items if "until" in item}
        assert found - self.maybe_gone == set(self.expiries) - self.maybe_gone
        assert found <= set(self.expiries)

    @rule()
    def an_index_catches_up(self) -> None:
        def waiting() -> set[bytes]:
            scan = self.database.engine.read(lambda reader: list(reader.scan(LAG_SPACE, b"change")))
            return {sequence for sequence, _ in scan}

        before = waiting()
        self.run_on(STATE_SECONDS + BEHIND_SECONDS_MAX)
        assert before.isdisjoint(waiting())

    @rule()
    def records_are_trimmed(self) -> None:
        def kept() -> set[int]:
            """The sequence numbers of all records."""
            return {sequence for _, _, stored in self.stored() for sequence, _ in stored}

        before = kept()
        for _ in range(2):
            self.run_on(DAY + 1.0)
        assert before.isdisjoint(kept())


class Tending(Stepping):
    """The same through the client in process, which sweeps before a request if it is time to."""

    tends = True


TestStepping = Stepping.TestCase
TestTending = Tending.TestCase
TestStepping.settings = TestTending.settings = profile(max_examples=examples(40), stateful_step_count=50)


def test_a_request_swept_while_the_clock_was_ahead() -> None:
    """What expired by a clock that was ahead stays expired when the clock is back, also for the model."""
    world = Tending()
    world.set_up()
    world.an_index_catches_up()
    world.put_what_expires(0.001)
    world.step(YEAR, back=False)
    world.change()
    world.an_index_catches_up()
    world.what_expired_is_gone_and_nothing_else()
    assert world.ask("GetItem", TableName=FIXED, Key={"pk": {"S": "1"}}) == {}


def test_a_step_back_within_a_shard() -> None:
    """A request that began before another one and is committed after it, then a clock that is set back."""
    world = Stepping()
    world.set_up()
    world.begin()
    world.step(61.0, back=False)
    world.change()
    world.commit_what_began(newest=True, aside=True)
    world.step(4.0, back=True)
    world.change()
    world.times_never_decrease_in_a_shard()
    world.a_shard_is_read_from_any_time_on()
    world.after_a_sweep_a_record_has_the_time_of_the_clock()


def test_a_change_is_not_held_up_by_one_before_it_that_is_due_later() -> None:
    """After a step back, the first change was due just within its bound, and the second waited for it."""
    world = Stepping()
    world.set_up()
    world.change()
    world.step(1.0, back=False)
    world.change()
    world.step(61.0, back=True)
    world.an_index_catches_up()
