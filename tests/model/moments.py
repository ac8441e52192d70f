"""The machine of two moments: what a step saw or stored is used later, when something else has changed.

Settings change at each restart, and differ between the two servers of a store; items, indexes and whole
tables change between the turns of a page, between its pages, and between the reads and the write of a bite
of background work; tables come and go between the pages of a listing and before its names are used.

The model is what has been acknowledged: the items of each table, and who has looked at which of them. A
request may be refused only for a reason that the model, or the table's own description, gives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import hypothesis.strategies as st
import orjson
from hypothesis import event
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hashrange.clock import ManualClock
from hashrange.database import Caller, Database, Settings
from hashrange.errors import ServiceError
from hashrange.operations.context import scope_of
from hashrange.operations.execution import Asked
from hashrange.storage.api import Engine, Reader
from hashrange.tables.background.sharing import Sharing
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.inspection.check import check
from hashrange.tables.items import records
from hashrange.tables.writes import lag
from hashrange.values import Item
from hashrange_engine_tests.loops import Loop
from interruptions import Between, Interrupted, Killed, Stopping
from model.acknowledged import (
    CHANGES,
    CHANGES_OF_TABLES,
    COLLECTION_BYTES,
    KEYS,
    LATER,
    LONG,
    NAMES,
    NEVER,
    NONE_SEEN,
    SETTINGS,
    START,
    TABLE,
    Answer,
    Cursor,
    Key,
    Known,
    Listing,
    attributes_of,
    index_of,
    key_of,
    selects,
)
from model.folded_streams import folded, shards

_CALLER: Final = Caller()


class MomentsMachine(RuleBasedStateMachine):
    """A history of two servers over one store, or of one database that is there twice."""

    def open_engines(self) -> list[Engine]:
        """The engines of the two servers over what is stored, or one engine twice."""
        raise AssertionError("a machine has engines")

    def close_engines(self) -> None:
        """Close the engines, unless nothing would be left."""
        for server in self.servers:
            server.close()

    # Servers.

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.clock = ManualClock(START)
        self.tables: dict[str, Known] = {}
        self.cursors: list[Cursor] = []
        self.listings: list[Listing] = []
        self.iterators: list[tuple[str, str, int]] = []
        self.number = self.settled_at = self.opened = 0
        self.held = False
        self.servers: list[Database] = []
        self.open(data)
        for name in NAMES[: data.draw(st.integers(1, 3))]:
            self.create(self.servers[0], name)
        self.settle()
        for name in [name for name in NAMES if self.known(name)]:
            for key in data.draw(st.lists(KEYS, min_size=4, max_size=12, unique=True)):
                self.put(self.servers[0], name, self.item(data, key))
            # What is built in the background has yet to begin.
            if data.draw(st.booleans(), label="expiry"):
                self.switch_expiry(self.servers[0], name)
            if data.draw(st.booleans(), label="index"):
                self.switch_index(self.servers[0], name)

    def open(self, data: st.DataObject) -> None:
        drawn = data.draw(st.tuples(SETTINGS, SETTINGS), label="settings")
        apart = data.draw(st.sampled_from([False, False, False, True]), label="separate accounts")
        each = [Settings(**one, separate_accounts=apart) for one in drawn]
        self.held |= any(one.transaction_seconds > 0 for one in each)
        engines = [Stopping(NEVER, Interrupted(engine)) for engine in self.open_engines()]
        self.engine: Any = engines[0]
        self.servers = [
            Database(engine, settings=one, clock=self.clock)
            for engine, one in zip(engines, each, strict=True)
        ]
        # Nothing may depend on the machine's clock, or on random names: a history has to be the same again.
        self.servers[0].turn_seconds = float(NEVER)
        for server in self.servers:
            self.opened += 1
            if server.background.sharing is not None:
                server.background.sharing = Sharing(server.engine, f"server {self.opened}", self.clock.now)
        self.loop = Loop(self.engine)
        self.servers[0].deliver_on(self.loop.deliver, self.loop.defer, watch=self.loop.watch)
        self.listings = []  # of another account, perhaps
        self.iterators = [one for one in self.iterators if one[0] == self.scope]

    @rule(data=st.data())
    def restart(self, data: st.DataObject) -> None:
        assert list(check(self.engine)) == []
        self.close_engines()
        self.open(data)

    def teardown(self) -> None:
        if not getattr(self, "servers", None):
            return
        try:
            self.settle()
            self.compare()
        finally:
            for server in self.servers:
                server.close()

    # Requests.

    @property
    def scope(self) -> str:
        return scope_of(_CALLER.account_id, _CALLER.region, self.servers[0].settings)

    def full(self, name: str) -> str:
        return f"{self.scope}/{name}" if self.scope else name

    def known(self, name: str) -> Known | None:
        return self.tables.get(self.full(name))

    def call(self, server: Database, operation: str, request: Answer) -> Answer:
        given = orjson.loads(orjson.dumps(request))
        found: Answer = orjson.loads(orjson.dumps(server.execute(operation, given, _CALLER)))
        return found

    def attempt(self, server: Database, operation: str, name: str, request: Answer) -> Answer | None:
        """The answer; None if the request was refused for a good reason."""
        try:
            return self.call(server, operation, request)
        except ServiceError as error:
            self.excuse(server, operation, name, request, error)
            return None

    def excuse(
        self, server: Database, operation: str, name: str, request: Answer, error: ServiceError
    ) -> None:
        """Fail unless the error has a reason."""
        table, is_known = self.stored(self.full(name)), self.known(name) is not None
        event(f"{operation}: {error.code}")
        comes_or_goes = table is not None and table.status in ("CREATING", "DELETING")
        is_busy = table is not None and is_changing(table)
        is_small = server.settings.item_collection_bytes_max == COLLECTION_BYTES
        reasons = {
            "ResourceNotFoundException": not is_known or comes_or_goes,
            "ResourceInUseException": is_busy or (operation == "CreateTable" and is_known),
            "LimitExceededException": is_busy and operation == "UpdateTable",
            "ItemCollectionSizeLimitExceededException": is_small,
            "TransactionConflictException": self.held,
            "TransactionCanceledException": self.held or is_small,
            # The index was deleted, or is being filled; time to live was changed a moment ago.
            "ValidationException": request.get("IndexName") == "late"
            or (operation == "UpdateTimeToLive" and server.settings.ttl_changes_limited),
        }
        assert reasons.get(error.code, False), f"{operation} of {name} was refused: {error!r}"

    def stored(self, full_name: str) -> Table | None:
        return self.engine.read(lambda reader: catalog.find_full(reader, full_name))  # type: ignore[no-any-return]

    # Changes, each of which may come between two steps of something else.

    def change(
        self,
        data: st.DataObject,
        server: Database,
        kinds: list[str],
        near: str | None = None,
        seen: list[Key] = NONE_SEEN,
    ) -> None:
        """A change of a table, most likely of `near`, where items with the keys `seen` have been read."""
        kind = data.draw(st.sampled_from(kinds), label="change")
        there = [name for name in NAMES if self.known(name)]
        likely = [near] * 9 if near else [] if kind == "create" else there * 3
        name = data.draw(st.sampled_from([*likely, *NAMES]), label="table")
        known = self.known(name)
        keys = st.sampled_from(seen) | KEYS if seen else KEYS
        if kind == "create":
            self.create(server, name)
        elif kind in ("drop", "again"):
            self.drop(server, name)
            if kind == "again":
                self.create(server, name)
        elif kind == "index":
            self.switch_index(server, name)
        elif kind == "expiry":
            self.switch_expiry(server, name)
        elif kind == "put":
            self.put(server, name, self.item(data, data.draw(keys)))
        elif kind == "transact":
            several = data.draw(st.lists(keys, min_size=2, max_size=3, unique=True))
            items = [self.item(data, key) for key in several]
            puts = [{"Put": {"TableName": name, "Item": item}} for item in items]
            if self.attempt(server, "TransactWriteItems", name, {"TransactItems": puts}) is not None:
                self.note(name, {key_of(item): item for item in items})
        else:
            chosen = st.sampled_from(sorted(known.items)) if known and known.items and not seen else keys
            self.change_item(server, kind, name, data.draw(chosen), data.draw(st.sampled_from("wxyz")))

    def item(self, data: st.DataObject, key: Key) -> Item:
        self.number += 1
        item: Item = {"p": {"S": key[0]}, "s": {"S": key[1]}, "n": {"N": str(self.number)}, "x": LONG}
        for name, values in (("i", "uvwxyz"), ("g", "gh")):
            value = data.draw(st.sampled_from(values) | st.none())
            item |= {name: {"S": value}} if value is not None else {}
        lifetime = data.draw(st.sampled_from([None, None, None, -1, 2, 15]))
        if lifetime is not None:
            item["ttl"] = {"N": str(int(self.clock.now()) + lifetime)}
        return item

    def put(self, server: Database, name: str, item: Item) -> None:
        if self.attempt(server, "PutItem", name, {"TableName": name, "Item": item}) is not None:
            self.note(name, {key_of(item): item})

    def change_item(self, server: Database, kind: str, name: str, key: Key, value: str) -> None:
        request: Answer = {"TableName": name, "Key": {"p": {"S": key[0]}, "s": {"S": key[1]}}}
        if kind == "update":
            request |= {"UpdateExpression": "SET i = :v, g = if_not_exists(g, :g)", "ReturnValues": "ALL_NEW"}
            request["ExpressionAttributeValues"] = {":v": {"S": value}, ":g": {"S": "g"}}
        answer = self.attempt(server, f"{kind.title()}Item", name, request)
        if answer is not None:
            self.note(name, {key: answer.get("Attributes")})

    def create(self, server: Database, name: str) -> None:
        answer = self.attempt(server, "CreateTable", name, {"TableName": name, **TABLE})
        if answer is not None:
            self.tables[self.full(name)] = Known(answer["TableDescription"]["TableId"])
            for listing in self.listings:
                listing.ever.add(name)

    def drop(self, server: Database, name: str) -> None:
        if self.attempt(server, "DeleteTable", name, {"TableName": name}) is not None:
            self.note(name, dict.fromkeys(self.tables[self.full(name)].items))
            del self.tables[self.full(name)]
            for listing in self.listings:
                listing.always.discard(name)
            for cursor in self.cursors:
                cursor.is_loose |= cursor.table == self.full(name)

    def switch_index(self, server: Database, name: str) -> None:
        known = self.known(name)
        has_late = known is not None and known.has_late
        change = {"Delete": {"IndexName": "late"}} if has_late else {"Create": index_of("late", "i", "s")}
        request = {
            "TableName": name,
            "GlobalSecondaryIndexUpdates": [change],
            "AttributeDefinitions": attributes_of("is"),
        }
        if self.attempt(server, "UpdateTable", name, request) is not None and known is not None:
            known.has_late = not has_late

    def switch_expiry(self, server: Database, name: str) -> None:
        known = self.known(name)
        self.note_expired()  # what a sweep has deleted so far: later nobody knows that items expired
        enabled = known is None or not known.expires
        specification = {"AttributeName": "ttl", "Enabled": enabled}
        request = {"TableName": name, "TimeToLiveSpecification": specification}
        if self.attempt(server, "UpdateTimeToLive", name, request) is not None and known is not None:
            known.expires = enabled

    def note(self, name: str, items: dict[Key, Item | None]) -> None:
        self.note_of(self.full(name), items)

    def note_of(self, full_name: str, items: dict[Key, Item | None]) -> None:
        """Note what the items of a table are now; None for those that are gone."""
        known = self.tables[full_name]
        for key, item in items.items():
            if item is None:
                known.items.pop(key, None)
            else:
                known.items[key] = item
            for cursor in self.cursors:
                if cursor.table == full_name:
                    cursor.versions.setdefault(key, [None]).append(item)
                    cursor.touched.add(key)

    @rule(data=st.data(), which=st.integers(0, 1), kinds=st.sampled_from([CHANGES, CHANGES_OF_TABLES]))
    def change_something(self, data: st.DataObject, which: int, kinds: list[str]) -> None:
        for _ in range(data.draw(st.integers(1, 4), label="changes")):
            self.change(data, self.servers[which], kinds)

    def changes(
        self,
        data: st.DataObject,
        near: str | None = None,
        seen: list[Key] = NONE_SEEN,
        after_each: Callable[[], None] = lambda: None,
    ) -> None:
        """What happens between two steps."""
        for _ in range(data.draw(st.integers(1, 3), label="changes")):
            kinds = data.draw(st.sampled_from([CHANGES, CHANGES, CHANGES_OF_TABLES]))
            self.change(data, self.servers[data.draw(st.integers(0, 1), label="server")], kinds, near, seen)
            after_each()

    def begin_reading(self, data: st.DataObject) -> None:
        tables = [self.stored(self.full(name)) for name in NAMES if self.known(name)]
        ready = [table.name for table in tables if table is not None and table.status == "ACTIVE"]
        if not ready:
            return
        name = data.draw(st.sampled_from(ready), label="table")
        known, table = self.tables[self.full(name)], self.stored(self.full(name))
        assert table is not None
        operation = data.draw(st.sampled_from(["Scan", "Query"]))
        index_name = data.draw(st.sampled_from(known.reads), label="index")
        request: Answer = {"TableName": name}
        is_loose = False
        if index_name is not None:
            request["IndexName"] = index_name
            index = table.index(index_name)
            assert index is not None
            waiting = self.engine.read(lag.waiting_spaces)
            is_loose = index.lags or index.space in waiting or index.status != "ACTIVE"
        if operation == "Query":
            partition = {None: "p", "local": "p", "global": "g", "late": "i"}[index_name]
            value = data.draw(st.sampled_from({"p": "ab", "g": "gh", "i": "uvwxyz"}[partition]))
            request |= {"KeyConditionExpression": "#p = :p", "ExpressionAttributeNames": {"#p": partition}}
            request["ExpressionAttributeValues"] = {":p": {"S": value}}
            request["ScanIndexForward"] = data.draw(st.booleans())
        limit = data.draw(st.none() | st.integers(1, 4))
        request |= {"Limit": limit} if limit else {}
        versions: dict[Key, list[Item | None]] = {key: [item] for key, item in known.items.items()}
        self.cursors.append(Cursor(self.full(name), operation, request, versions, is_loose))

    @rule(data=st.data(), again=st.booleans(), pages=st.integers(1, 4))
    def read_on(self, data: st.DataObject, again: bool, pages: int) -> None:
        """The next pages of cursors."""
        for _ in range(pages):
            if again or not self.cursors:
                self.begin_reading(data)
            if self.cursors:
                self.read_page(data, data.draw(st.sampled_from(self.cursors), label="cursor"))

    def read_page(self, data: st.DataObject, cursor: Cursor) -> None:
        """The next page of a cursor; its turn is over after some records, and something happens then."""
        name = cursor.request["TableName"]
        if cursor.table != self.full(name):
            return
        after = data.draw(st.sampled_from([1, 2, 3, NEVER]), label="records")
        moments: list[Any] = []

        def look() -> None:
            moments.append(self.attempt(self.servers[0], cursor.operation, name, cursor.request))

        def between() -> None:
            self.engine.after = NEVER
            read = moments[0]["Items"] if moments[0] is not None else []
            self.changes(data, name, [key_of(item) for item in read[: after + 1]], look)

        look()
        page = self.page(cursor, after, between)
        event(f"read a page, at {len(moments)} moments")
        if page is None or moments[-1] is None:
            self.cursors.remove(cursor)
            return
        if "IndexName" in cursor.request:
            assert page in moments, "the page of an index is not of one moment"
        self.take(cursor, page)

    def page(self, cursor: Cursor, after: int, between: Callable[[], None]) -> Answer | None:
        """A page as a server reads it on its event loop; None if it was refused for a good reason."""
        server = self.servers[0]
        outcomes: list[tuple[Any, Exception | None]] = []
        plain = server._workers
        server._workers = Between(plain, between)  # type: ignore[assignment]
        self.engine.records, self.engine.after = 0, after
        request = orjson.loads(orjson.dumps(cursor.request))
        try:
            ask = Asked(cursor.operation, request, _CALLER, lambda *one: outcomes.append(one), orjson.dumps)
            server.submit(ask)
            self.loop.run(lambda: bool(outcomes))
        finally:
            self.engine.after, server._workers = NEVER, plain
        [(answer, error)] = outcomes
        if isinstance(error, ServiceError):
            self.excuse(server, cursor.operation, request["TableName"], request, error)
            return None
        assert error is None, error
        found: Answer = orjson.loads(answer)
        return found

    def take(self, cursor: Cursor, page: Answer) -> None:
        """Compare a page with all states that its items have had since the cursor began."""
        for item in page["Items"]:
            key = key_of(item)
            assert cursor.is_loose or item in cursor.versions[key], f"{key} was never like this"
            assert cursor.is_loose or key in cursor.touched or key not in cursor.seen, f"{key} came twice"
            cursor.seen.append(key)
        if "LastEvaluatedKey" in page:
            cursor.request = {**cursor.request, "ExclusiveStartKey": page["LastEvaluatedKey"]}
            return
        self.cursors.remove(cursor)
        if not cursor.is_loose:
            expected = [
                key
                for key, versions in cursor.versions.items()
                if key not in cursor.touched and versions[0] and selects(cursor.request, versions[0])
            ]
            assert set(expected) <= set(cursor.seen), "a page left out what was there all the time"
        event("a cursor came to its end")

    @rule(data=st.data(), limit=st.integers(1, 2))
    def list_on(self, data: st.DataObject, limit: int) -> None:
        """The next page of a ListTables."""
        begun = [listing for listing in self.listings if not listing.is_complete]
        if begun:
            listing = begun[0]
        else:
            there = self.engine.read(lambda reader: [table.name for table in catalog.definitions(reader)])
            listing = Listing({name for name in NAMES if self.known(name)}, set(there))
            self.listings.append(listing)
        request: Answer = {"Limit": limit}
        request |= {"ExclusiveStartTableName": listing.names[-1]} if listing.names else {}
        answer = self.call(self.servers[data.draw(st.integers(0, 1))], "ListTables", request)
        listing.names += answer["TableNames"]
        if "LastEvaluatedTableName" not in answer:
            listing.is_complete = True
            assert listing.names == sorted(set(listing.names))
            assert listing.always <= set(listing.names) <= listing.ever

    @precondition(lambda self: any(listing.is_complete for listing in self.listings))
    @rule(data=st.data(), use=st.sampled_from(["DescribeTable", "Scan", "DeleteTable"]))
    def use_listed(self, data: st.DataObject, use: str) -> None:
        """Do something to each table of a listing, as a program that cleans up does."""
        event(f"used a listing: {use}")
        listing = next(one for one in self.listings if one.is_complete)
        self.listings.remove(listing)
        for name in listing.names:
            server = self.servers[data.draw(st.integers(0, 1))]
            if use == "DeleteTable":
                self.drop(server, name)
                continue
            answer = self.attempt(server, use, name, {"TableName": name})
            known = self.known(name)
            if answer is not None and known is not None and use == "DescribeTable":
                assert answer["Table"]["TableId"] == known.id
            if data.draw(st.booleans()):
                self.changes(data)

    @rule(data=st.data())
    def open_streams(self, data: st.DataObject) -> None:
        """Get iterators of all shards of a stream; `follow` uses them later."""
        server = self.servers[0]
        for arn in self.call(server, "ListStreams", {})["Streams"]:
            if data.draw(st.booleans()):
                found = shards(partial(self.call, server), arn["StreamArn"])
                self.iterators += [(self.scope, shard["iterator"], 0) for shard in found]

    @precondition(lambda self: self.iterators)
    @rule(data=st.data(), which=st.integers(0, 1))
    def follow(self, data: st.DataObject, which: int) -> None:
        scope, iterator, last = self.iterators.pop(data.draw(st.integers(0, len(self.iterators) - 1)))
        try:
            answer = self.call(self.servers[which], "GetRecords", {"ShardIterator": iterator, "Limit": 2})
        except ServiceError as error:
            assert error.code == "ExpiredIteratorException", error
            return
        event("followed a stream")
        for record in answer["Records"]:
            sequence = int(record["dynamodb"]["SequenceNumber"])
            assert sequence > last
            last = sequence
        if "NextShardIterator" in answer:
            self.iterators.append((scope, answer["NextShardIterator"], last))

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0, 20.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(data=st.data(), bites=st.integers(1, 4))
    def sweep(self, data: st.DataObject, bites: int) -> None:
        """Bites of all background work; something happens between the reads and one of the writes of each."""
        for _ in range(bites):
            server = self.servers[data.draw(st.integers(0, 1), label="server")]
            between: Any = server.engine
            killed = data.draw(st.sampled_from([False, False, False, True]), label="killed")

            def meanwhile(killed: bool = killed) -> None:
                self.changes(data)
                if killed:
                    raise Killed

            between.inner.before_write = meanwhile
            between.inner.spared = data.draw(st.integers(0, 2), label="spared writes")
            try:
                server.sweep()
            except Killed:
                event("killed")
                self.close_engines()
                self.open(data)
            finally:
                between.inner.before_write, between.inner.spared = None, 0
            self.note_expired()

    def note_expired(self) -> bool:
        """Note which items have expired and are gone. Whether others have yet to go."""
        now, others = int(self.clock.now()), False
        for full_name, known in self.tables.items():
            expired = [key for key, item in known.items.items() if int(item.get("ttl", LATER)["N"]) <= now]
            if known.expires and expired:
                left = self.rows(full_name)
                self.note_of(full_name, {key: None for key in expired if key not in left})
                others |= any(key in left for key in expired)
        return others

    def rows(self, full_name: str) -> dict[Key, Item]:
        """The items of a table, in any state."""

        def body(reader: Reader) -> list[Item]:
            table = catalog.find_full(reader, full_name)
            assert table is not None
            return [records.item_of(record) for _, _, record in reader.scan_space(table.space)]

        return {key_of(item): item for item in self.engine.read(body)}

    @precondition(lambda self: self.number > self.settled_at + 10)
    @rule()
    def come_to_rest(self) -> None:
        self.settle()

    def settle(self) -> None:
        """Let time pass until nothing waits, and compare everything."""
        for _ in range(50):
            self.clock.advance(4)  # no server of several may think that it was away
            for server in self.servers:
                server.settle()
            if not self.note_expired() and not self.engine.read(_waits):
                break
        else:
            raise AssertionError("the background work comes to no end")
        self.settled_at = self.number
        self.compare()

    def compare(self) -> None:
        assert list(check(self.engine)) == []
        defined = self.engine.read(lambda reader: [table.full_name for table in catalog.definitions(reader)])
        assert set(defined) == set(self.tables)
        for full_name, known in self.tables.items():
            assert self.rows(full_name) == known.items
        for server in self.servers:
            for name in NAMES:
                known_ = self.known(name)
                if known_ is not None:
                    self.compare_reads(server, name, known_)

    def compare_reads(self, server: Database, name: str, known: Known) -> None:
        for index in known.reads:
            request = {"TableName": name, **({"IndexName": index} if index else {})}
            found = self.call(server, "Scan", request)["Items"]
            assert len(found) == len({key_of(item) for item in found})
            expected = {key: item for key, item in known.items.items() if selects(request, item)}
            assert {key_of(item): item for item in found} == expected
        shown = self.call(server, "DescribeTable", {"TableName": name})["Table"]
        assert shown["ItemCount"] == len(known.items)
        assert folded(partial(self.call, server), shown["LatestStreamArn"]) == known.items


def is_changing(table: Table) -> bool:
    """Whether the table or one of its indexes is in a state other than ACTIVE."""
    return {table.status, *(index.status for index in table.indexes)} != {"ACTIVE"}


def _waits(reader: Reader) -> bool:
    """Whether background work is left."""
    if lag.waiting_spaces(reader):
        return True
    return any(
        is_changing(table) or (table.ttl is not None and not table.ttl.built)
        for table in catalog.definitions(reader)
    )
