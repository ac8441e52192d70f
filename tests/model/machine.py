"""The machine that runs the same random history against a database and against the model.

Every rule makes up one request, asks both, and compares answers, errors and consumed capacity. At the end
the integrity checker must find nothing.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from math import ceil
from typing import Any, TypeVar

import hypothesis.strategies as st
import orjson
from hypothesis import event
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hashrange.clock import ManualClock
from hashrange.database import Database, Settings
from hashrange.errors import ServiceError
from hashrange.storage.api import Engine
from hashrange.tables.inspection.check import check
from hashrange.values import Item, item_size
from model import strategies
from model.expressions import (
    Placeholders,
    Refused,
    holds,
    plain_item,
    touched,
    write_condition,
    write_update,
)
from model.reference import Model, Selected, Table, Write, admitted, admitted_item

T = TypeVar("T")
Answer = dict[str, Any]

_TABLES = ("plain", "local", "global", "vectors")
_RETURNS = {"update": ("NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")}
_LEAST_UNITS = 0.5
_PAGES_MAX = 1_000


class TableMachine(RuleBasedStateMachine):
    """A history. `open_engine` gives the engine; `can_reopen` says whether its records outlive it."""

    can_reopen = False

    def open_engine(self) -> Engine:
        raise AssertionError("a machine has an engine")

    @initialize(data=st.data(), slow_changes=st.booleans())
    def start(self, data: st.DataObject, slow_changes: bool) -> None:
        self.clock = ManualClock(strategies.START)
        self.settings = Settings(update_seconds=1.0 if slow_changes else 0.0)
        self.database = Database(self.open_engine(), settings=self.settings, clock=self.clock)
        self.model = Model()
        self.filling = self.filling_vectors = False
        for definition in strategies.definitions():
            self.model.tables[definition.name] = Table(definition)
            self.call("CreateTable", strategies.create_request(definition))
            # Most faults show only if there are a few items.
            for item in data.draw(st.lists(strategies.items(definition), min_size=4, max_size=8)):
                self.put(definition.name, item)
            if data.draw(st.booleans(), label="expiry"):
                self.set_expiry(definition.name, enabled=True)
        self.started()

    def started(self) -> None:
        """The tables are there."""

    def time_passes(self) -> None:
        """The clock will go on by at least two seconds; until then nothing changes."""

    def put(self, name: str, item: Item) -> None:
        write = Write("put", name, admitted_item(item))
        request = {"TableName": name, "Item": item}
        self.both("PutItem", request, lambda: self.model.tables[name].write(write))

    def set_expiry(self, name: str, *, enabled: bool) -> None:
        self.model.tables[name].ttl = strategies.TTL_ATTRIBUTE if enabled else None
        specification = {"AttributeName": strategies.TTL_ATTRIBUTE, "Enabled": enabled}
        self.call("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": specification})

    def teardown(self) -> None:
        if not hasattr(self, "database"):
            return
        assert list(check(self.database.engine)) == []
        self.database.close()

    # Asking both.

    def call(self, operation: str, request: Answer) -> Answer:
        """The database's answer as a client sees it."""
        answer = self.database.execute(operation, copy.deepcopy(request))
        return orjson.loads(orjson.dumps(answer))  # type: ignore[no-any-return]

    def both(self, operation: str, request: Answer, ask: Callable[[], T]) -> tuple[Answer, T] | None:
        """The two answers; None where both refuse the request, in the same way."""
        try:
            expected = ask()
        except Refused as refused:
            try:
                answer = self.call(operation, request)
            except ServiceError as error:
                assert error.code in refused.codes, (error, refused.codes)
                if refused.reasons is not None and error.code == "TransactionCanceledException":
                    given = [reason["Code"] for reason in error.members["CancellationReasons"]]
                    assert len(given) == len(refused.reasons)
                    assert all(one in codes for one, codes in zip(given, refused.reasons, strict=True))
                event(f"{operation}: {error.code}")
                return None
            raise AssertionError(f"{operation} should give {refused.codes}, but gave {answer}") from None
        return self.call(operation, request), expected

    def table(self, data: st.DataObject) -> Table:
        return self.model.tables[data.draw(st.sampled_from(_TABLES), label="table")]

    def key(self, data: st.DataObject, table: Table) -> Item:
        """A key, mostly one that is there."""
        known = data.draw(st.integers(0, 3)) > 0
        if known and table.items:
            item = data.draw(st.sampled_from(list(table.items.values())))
            return {a.name: item[a.name] for a in table.definition.key_attributes()}
        return data.draw(strategies.key_items(table.definition))

    # Writes.

    def draw_write(
        self, data: st.DataObject, actions: list[str], *, updates_min: int = 0
    ) -> tuple[str, Answer, Write, list[Any]]:
        """A write: its action, the request, the same for the model, and the update's actions."""
        table = self.table(data)
        action = data.draw(st.sampled_from(actions), label="action")
        name = table.definition.name
        to = Placeholders()
        request: Answer = {"TableName": name}
        changes: list[Any] = []
        if action == "put":
            item: Item = data.draw(strategies.items(table.definition), label="item")
        else:
            item = self.key(data, table)
        request["Item" if action == "put" else "Key"] = item
        if action == "update":
            changes = data.draw(strategies.updates(updates_min), label="update")
            if changes:
                request["UpdateExpression"] = write_update(changes, to)
        condition = None
        if action == "check" or data.draw(st.integers(0, 2)) == 0:
            condition = data.draw(strategies.conditions, label="condition")
            request["ConditionExpression"] = write_condition(condition, to)
        request.update(to.parameters())
        write = Write(action, name, admitted_item(item), admitted(condition), admitted(changes))
        return action, request, write, write.actions

    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        action, request, write, changes = self.draw_write(data, ["put", "put", "update", "update", "delete"])
        returns = data.draw(st.sampled_from(_RETURNS.get(action, ("NONE", "ALL_OLD"))))
        request |= {"ReturnValues": returns, "ReturnConsumedCapacity": "INDEXES"}
        table = self.model.tables[write.table]
        result = self.both(f"{action.title()}Item", request, lambda: table.write(write))
        if result is None:
            return
        answer, done = result
        check_consumed(answer["ConsumedCapacity"], done.cost.table, done.cost.indexes)
        expected: Item | None = None
        if returns in ("ALL_OLD", "ALL_NEW"):
            expected = done.before if returns == "ALL_OLD" else done.after
        elif returns != "NONE":
            expected = touched(changes, (done.after if returns == "UPDATED_NEW" else done.before) or {})
        same_items([answer.get("Attributes", {})], [expected or {}])

    @rule(data=st.data())
    def batch_write(self, data: st.DataObject) -> None:
        batch: dict[str, list[Answer]] = {}
        writes: list[Write] = []
        for table in data.draw(st.lists(st.sampled_from(_TABLES), min_size=1, max_size=3, unique=True)):
            definition = self.model.tables[table].definition
            for item in data.draw(st.lists(strategies.items(definition), min_size=1, max_size=8)):
                if data.draw(st.integers(0, 5)):
                    batch.setdefault(table, []).append({"PutRequest": {"Item": item}})
                    writes.append(Write("put", table, admitted_item(item)))
                else:
                    key = self.key(data, self.model.tables[table])
                    batch.setdefault(table, []).append({"DeleteRequest": {"Key": key}})
                    writes.append(Write("delete", table, admitted_item(key)))
        request = {"RequestItems": batch, "ReturnConsumedCapacity": "INDEXES"}
        result = self.both("BatchWriteItem", request, lambda: self._write_all(writes))
        if result is not None:
            answer, costs = result
            assert answer["UnprocessedItems"] == {}
            for consumed in answer["ConsumedCapacity"]:
                check_consumed(consumed, *costs[consumed["TableName"]])

    def _write_all(self, writes: list[Write]) -> dict[str, tuple[float, dict[str, float]]]:
        """What a batch does: nothing if one of its writes is refused."""
        saved = {name: dict(table.items) for name, table in self.model.tables.items()}
        keys = [(write.table, self.model.tables[write.table].key_of(write.item)) for write in writes]
        if len(set(keys)) != len(keys):
            raise Refused("ValidationException")
        costs: dict[str, tuple[float, dict[str, float]]] = {}
        try:
            for write in writes:
                cost = self.model.tables[write.table].write(write).cost
                units, indexes = costs.get(write.table, (0.0, {}))
                costs[write.table] = units + cost.table, dict(Counter(indexes) + Counter(cost.indexes))
        except Refused:
            for name, items in saved.items():
                self.model.tables[name].items = items
            raise
        return costs

    @rule(data=st.data(), token=st.sampled_from([None, None, None, "one", "other"]))
    def transact_write(self, data: st.DataObject, token: str | None) -> None:
        members: list[Answer] = []
        writes: list[Write] = []
        for _ in range(data.draw(st.integers(1, 4))):
            actions = ["put", "update", "delete", "check"]
            action, member, write, _ = self.draw_write(data, actions, updates_min=1)
            members.append({"ConditionCheck" if action == "check" else action.title(): member})
            writes.append(write)
        if token is not None and token in self.model.tokens and data.draw(st.booleans()):
            members, writes = copy.deepcopy(self.model.tokens[token][0])
        request: Answer = {"TransactItems": members}
        if token is not None:
            request["ClientRequestToken"] = token
        self.both(
            "TransactWriteItems",
            request,
            lambda: self.model.transact(writes, token, (members, writes), self.clock.now()),
        )

    # Reads by key.

    @rule(data=st.data(), consistent=st.booleans())
    def get(self, data: st.DataObject, consistent: bool) -> None:
        table = self.table(data)
        key = self.key(data, table)
        request = {
            "TableName": table.definition.name,
            "Key": key,
            "ConsistentRead": consistent,
            "ReturnConsumedCapacity": "INDEXES",
        }
        item = table.items.get(table.key_of(admitted_item(key)))
        answer = self.call("GetItem", request)
        assert ("Item" in answer) == (item is not None)
        same_items([answer.get("Item", {})], [item or {}])
        check_consumed(answer["ConsumedCapacity"], read_units([item], consistent=consistent), {})

    @rule(data=st.data(), transact=st.booleans())
    def get_many(self, data: st.DataObject, transact: bool) -> None:
        wanted: dict[tuple[Any, ...], tuple[str, Item]] = {}
        for _ in range(data.draw(st.integers(1, 6))):
            table = self.table(data)
            key = self.key(data, table)
            wanted[table.definition.name, table.key_of(admitted_item(key))] = table.definition.name, key
        found = [self.model.tables[name].items.get(key) for name, key in wanted]
        if transact:
            gets = [{"Get": {"TableName": name, "Key": key}} for name, key in wanted.values()]
            answer = self.call("TransactGetItems", {"TransactItems": gets})
            same_items([one.get("Item", {}) for one in answer["Responses"]], [item or {} for item in found])
            return
        tables: dict[str, Answer] = {}
        for name, key in wanted.values():
            tables.setdefault(name, {"Keys": []})["Keys"].append(key)
        answer = self.call("BatchGetItem", {"RequestItems": tables})
        assert answer["UnprocessedKeys"] == {}
        for name, items in answer["Responses"].items():
            pairs = zip(wanted, found, strict=True)
            expected = [item for (table_name, _), item in pairs if table_name == name and item]
            same_items(items, expected, ordered=False)

    # Ordered reads.

    def draw_source(self, data: st.DataObject) -> tuple[Table, Any]:
        """A table, and one of its indexes that can be read, or None."""
        table = self.table(data)
        indexes = [
            index
            for index in table.definition.indexes
            if index.vector is None and not (self.filling and index.name == "late")
        ]
        return table, data.draw(st.sampled_from([None, *indexes]), label="index")

    @rule(data=st.data(), reverse=st.booleans(), limit=st.none() | st.integers(1, 4))
    def query(self, data: st.DataObject, reverse: bool, limit: int | None) -> None:
        table, index = self.draw_source(data)
        definition = table.definition
        partition = index.partition if index else (definition.partition,)
        sort = index.sort if index else (definition.sort,) if definition.sort else ()
        entries = table.entries(index) if index else list(table.items.values())
        known = data.draw(st.integers(0, 9)) > 0
        seen: Item = data.draw(st.sampled_from(entries)) if known and entries else {}
        to = Placeholders()
        bound: list[Any] = [seen.get(name) or data.draw(strategies.keys(type_)) for name, type_ in partition]
        conditions = [
            f"{to.path((one.name,))} = {to.value(value)}" for one, value in zip(partition, bound, strict=True)
        ]
        tests: list[Any] = []
        if sort and data.draw(st.integers(0, 3)):
            tests = [self.draw_sort_test(data, sort[0], seen, to, conditions)]
        request: Answer = {"TableName": definition.name, "ScanIndexForward": not reverse}
        request["KeyConditionExpression"] = " AND ".join(conditions)
        source = index.name if index else None
        selected = table.select(source, admitted(bound), admitted(tests), reverse=reverse)
        excluded = {attribute.name for attribute in [*partition, *sort]}
        self.read_pages(data, "Query", request, table, index, to, limit, selected, excluded)

    def draw_sort_test(
        self, data: st.DataObject, sort: Any, seen: Item, to: Placeholders, conditions: list[str]
    ) -> Any:
        """A condition on the sort key, near the value of an item that is there; adds its text."""
        name, type_ = sort
        near = [seen[name]] if name in seen else []
        operand = st.sampled_from(near) | strategies.keys(type_) if near else strategies.keys(type_)
        operators = ["=", "<", "<=", ">", ">=", "BETWEEN"] + (["begins_with"] if type_ != "N" else [])
        operator = data.draw(st.sampled_from(operators), label="operator")
        operands = [data.draw(operand, label="operand")]
        path = to.path((name,))
        if operator == "BETWEEN":
            operands = strategies.in_order(operands[0], data.draw(operand, label="operand"))
            conditions.append(f"{path} BETWEEN {to.value(operands[0])} AND {to.value(operands[1])}")
        elif operator == "begins_with":
            conditions.append(f"begins_with({path}, {to.value(operands[0])})")
        else:
            conditions.append(f"{path} {operator} {to.value(operands[0])}")
        return name, operator, operands

    def read_pages(
        self,
        data: st.DataObject,
        operation: str,
        request: Answer,
        table: Table,
        index: Any,
        to: Placeholders,
        limit: int | None,
        selected: Selected,
        excluded: set[str],
    ) -> None:
        """Read to the end in pages and compare all that came with what the model selected."""
        request = {**request, "ReturnConsumedCapacity": "INDEXES"}
        consistent = not (index and index.is_global) and data.draw(st.booleans())
        test = None
        # A Query's filter may only use attributes of the index; for a Scan's filter the others are absent.
        only = index.included if index and operation == "Query" else None
        if data.draw(st.integers(0, 2)) == 0 and only != ():
            test = data.draw(strategies.filters(excluded, only), label="filter")
            request["FilterExpression"] = write_condition(test, to)
        selects = [None, None, "COUNT"]
        if index:
            selects += ["ALL_PROJECTED_ATTRIBUTES", *([] if index.is_global else ["ALL_ATTRIBUTES"])]
        select = data.draw(st.sampled_from(selects), label="select")
        request |= {name: value for name, value in (("Limit", limit), ("Select", select)) if value}
        request |= {"ConsistentRead": consistent, **to.parameters()}
        if index:
            request["IndexName"] = index.name

        pages = self.pages(operation, request, limit)
        assert sum(page["ScannedCount"] for page in pages) == len(selected.shown)
        kept = [test is None or holds(admitted(test), item) for item in selected.shown]
        assert sum(page["Count"] for page in pages) == sum(kept)
        fetches = select == "ALL_ATTRIBUTES" and index.included is not None
        if len(pages) == 1 and not fetches:
            units = read_units(selected.shown, consistent=consistent, together=True)
            table_units, index_units = (0.0, {index.name: units}) if index else (units, {})
            check_consumed(pages[0]["ConsumedCapacity"], table_units, index_units)
        if select == "COUNT":
            assert all("Items" not in page for page in pages)
            return
        returned = [item for page in pages for item in page["Items"]]
        shown = [table.items[table.key_of(item)] if fetches else item for item in selected.shown]
        expected = [item for item, keep in zip(shown, kept, strict=True) if keep]
        order = [one for one, keep in zip(selected.order, kept, strict=True) if keep]
        start = 0
        for position in range(1, len(order) + 1):
            if position == len(order) or order[position] != order[start]:
                same_items(returned[start:position], expected[start:position], ordered=False)
                start = position

    def pages(self, operation: str, request: Answer, limit: int | None) -> list[Answer]:
        pages = [self.call(operation, request)]
        while "LastEvaluatedKey" in pages[-1]:
            assert len(pages) < _PAGES_MAX
            assert pages[-1]["ScannedCount"] == limit
            request = {**request, "ExclusiveStartKey": pages[-1]["LastEvaluatedKey"]}
            pages.append(self.call(operation, request))
        assert limit is None or pages[-1]["ScannedCount"] < limit
        return pages

    @rule(data=st.data(), segments=st.none() | st.integers(1, 5), limit=st.none() | st.integers(1, 4))
    def scan(self, data: st.DataObject, segments: int | None, limit: int | None) -> None:
        table, index = self.draw_source(data)
        request: Answer = {"TableName": table.definition.name}
        expected = table.entries(index) if index else list(table.items.values())
        if segments is None:
            selected = Selected(expected, [0] * len(expected), [])
            self.read_pages(data, "Scan", request, table, index, Placeholders(), limit, selected, set())
            return
        if index:
            request["IndexName"] = index.name
        if limit:
            request["Limit"] = limit
        returned: list[Item] = []
        for segment in range(segments):
            pages = self.pages("Scan", {**request, "Segment": segment, "TotalSegments": segments}, limit)
            returned += [item for page in pages for item in page["Items"]]
        same_items(returned, expected, ordered=False)

    # Tables, time, and the store itself.

    @rule(data=st.data())
    def describe(self, data: st.DataObject) -> None:
        table = self.table(data)
        shown = self.call("DescribeTable", {"TableName": table.definition.name})["Table"]
        check_totals(shown["ItemCount"], shown["TableSizeBytes"], list(table.items.values()))
        kinds = ("GlobalSecondaryIndexes", "LocalSecondaryIndexes", "VectorIndexes")
        indexes = [index for kind in kinds for index in shown.get(kind, [])]
        assert {index["IndexName"] for index in indexes} == {one.name for one in table.definition.indexes}
        for index in indexes:
            filling = self.filling_vectors if table.definition.name == "vectors" else self.filling
            if not (filling and index["IndexName"] == "late"):
                entries = table.entries(table.definition.index(index["IndexName"]))
                check_totals(index["ItemCount"], index["IndexSizeBytes"], entries)

    @rule(data=st.data())
    def switch_expiry(self, data: st.DataObject) -> None:
        table = self.table(data)
        self.set_expiry(table.definition.name, enabled=table.ttl is None)

    @rule(seconds=st.sampled_from([2, 30, 601]))
    def let_time_pass(self, seconds: int) -> None:
        self.time_passes()
        self.clock.advance(seconds)
        for table in self.model.tables.values():
            event(f"expired {min(3, table.expire(self.clock.now()))}")
        while self.database.sweep() == 0.0:
            pass
        self.filling = self.filling_vectors = False

    @rule()
    def switch_late_index(self) -> None:
        """Create a global index over the items that are there, or delete it."""
        table = self.model.tables["global"]
        indexes = table.definition.indexes
        if self.call("DescribeTable", {"TableName": "global"})["Table"]["TableStatus"] != "ACTIVE":
            return
        if strategies.LATE_INDEX in indexes:
            indexes.remove(strategies.LATE_INDEX)
            change: Answer = {"Delete": {"IndexName": "late"}}
        else:
            indexes.append(strategies.LATE_INDEX)
            change = {"Create": strategies.index_request(strategies.LATE_INDEX)}
            self.filling = self.settings.update_seconds > 0
        types = [{"AttributeName": n, "AttributeType": t} for n, t in (("h", "N"), ("b", "B"))]
        request: Answer = {"TableName": "global", "GlobalSecondaryIndexUpdates": [change]}
        if "Create" in change:
            request["AttributeDefinitions"] = types
        self.call("UpdateTable", request)

    @precondition(lambda self: self.filling and all(one.ttl is None for one in self.model.tables.values()))
    @rule()
    def fill_a_little(self) -> None:
        """One bite of the background work, while the new index is being filled."""
        self.database.sweep()

    @precondition(lambda self: self.can_reopen)
    @rule()
    def reopen(self) -> None:
        self.database.close()
        self.database = Database(self.open_engine(), settings=self.settings, clock=self.clock)


def same_items(given: list[Item], expected: list[Item], *, ordered: bool = True) -> None:
    """Fail unless the items are the same, sets compared without order."""
    one, other = [*map(plain_item, given)], [*map(plain_item, expected)]
    assert (one == other) if ordered else (Counter(one) == Counter(other)), (given, expected)


def read_units(items: list[Item | None] | list[Item], *, consistent: bool, together: bool = False) -> float:
    """The units of reading items: each rounded up, or all `together`."""
    sizes = [item_size(item) if item else 0 for item in items]
    units = sum(max(1, ceil(size / 4096)) for size in ([sum(sizes)] if together else sizes))
    return units * (1.0 if consistent else _LEAST_UNITS)


def check_consumed(consumed: Answer, table: float, indexes: dict[str, float]) -> None:
    """Fail unless a ConsumedCapacity has these units, and these bytes of vector indexes."""
    units = {
        name: part["CapacityUnits"]
        for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")
        for name, part in consumed.get(kind, {}).items()
    }
    written = consumed.get("VectorIndexes", {}).items()
    assert units | {name: part["VectorWriteRequestBytes"] for name, part in written} == indexes
    assert consumed["Table"]["CapacityUnits"] == table
    assert consumed["CapacityUnits"] == table + sum(units.values())


def check_totals(count: int, size: int, items: list[Item]) -> None:
    """Fail unless a description's totals are those of the items."""
    assert (count, size) == (len(items), sum(map(item_size, items)))
