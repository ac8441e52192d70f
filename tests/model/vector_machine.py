"""The machine's rules for vector indexes: searches, an index that comes and goes, and restores.

A search is compared with a look at all items: the scores are those of the nearest, and each item has its
score. Which of several items with equal scores are found, no document says.
"""

from __future__ import annotations

import copy
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import event
from hypothesis.stateful import invariant, precondition, rule

from hashrange.values import Item
from model import strategies
from model.expressions import Condition, Placeholders, Refused, holds, plain_item, write_condition
from model.machine import Answer, TableMachine, check_totals, same_items
from model.reference import IndexDefinition, Table, Vector, admitted
from vector_tables import score

NAME = "vectors"
RESTORED = "restored"


class VectorMachine(TableMachine):
    """A history with searches. `moments` are points in time with the items that the table then had; the last
    change before a moment is at least a second older, and so is the moment than the next change."""

    def started(self) -> None:
        self.steps = 0
        self.moments: list[tuple[float, Table]] = []
        recovery = {"PointInTimeRecoveryEnabled": True}
        self.call(
            "UpdateContinuousBackups", {"TableName": NAME, "PointInTimeRecoverySpecification": recovery}
        )

    def time_passes(self) -> None:
        table = self.model.tables[NAME]
        self.moments.append((self.clock.now() + 1, copy.deepcopy(table)))

    def is_served(self, index: IndexDefinition) -> bool:
        return not (index.name == strategies.LATE_VECTOR_INDEX.name and self.filling_vectors)

    # Searches.

    @rule(data=st.data())
    def search(self, data: st.DataObject) -> None:
        table = self.model.tables[NAME]
        indexes = [index for index in table.definition.indexes if self.is_served(index)]
        index = data.draw(st.sampled_from(indexes), label="index")
        self.search_in(data, NAME, table, index)

    def search_in(self, data: st.DataObject, name: str, table: Table, index: IndexDefinition) -> None:
        vector = index.vector
        assert vector is not None
        entries = table.entries(index)
        known: Item = data.draw(st.sampled_from(entries), label="known") if entries else {}
        wanted = [
            ("compare", (name_,), "=", known.get(name_) or data.draw(strategies.keys(type_)))
            for name_, type_ in index.partition
        ]
        has_filter = data.draw(st.integers(0, 2)) > 0
        if has_filter and vector.filters:
            wanted.append(data.draw(strategies.search_conditions(vector.filters), label="filter"))
        query = data.draw(st.lists(strategies.components, min_size=2, max_size=2), label="query")
        top = data.draw(st.integers(1, 6), label="top")
        to = Placeholders()
        terms = [f"({write_condition(test, to)})" for test in wanted]
        request: Answer = {
            "TableName": name,
            "IndexName": index.name,
            "SearchVector": [{"N": number} for number in query],
            "TopK": top,
            **to.parameters(),
        }
        if terms:
            request["SearchConditionExpression"] = " AND ".join(terms)

        def chosen() -> list[Item]:
            equal = [name_ for test in wanted for name_ in equalities(test)]
            if len(set(equal)) < len(equal):
                raise Refused("ValidationException")
            tests = admitted(wanted)
            return [entry for entry in entries if all(holds(test, entry) for test in tests)]

        both = self.both("SearchVectors", request, chosen)
        if both is None:
            return
        results = both[0]["SearchResults"]
        event(f"results {min(3, len(results))}")
        check_results(vector, results, [self.shown(vector, table, entry, query) for entry in both[1]], top)

    def shown(self, vector: Vector, table: Table, entry: Item, query: list[str]) -> tuple[float, Item]:
        """The score of an entry, and what an answer shows of it."""
        whole = table.items[table.key_of(entry)]
        numbers = [member["N"] for member in whole[vector.attribute]["L"]]
        shown = {name: value for name, value in entry.items() if name != vector.attribute}
        return score(vector.distance, numbers, query), shown

    @invariant()
    def the_whole_index_is_there(self) -> None:
        """Now and then, so that a search often has several changes to follow."""
        self.steps += 1
        if self.steps % 3:
            return
        table = self.model.tables[NAME]
        for index in table.definition.indexes:
            if index.partition or index.vector is None or not self.is_served(index):
                continue
            query = ["1", "-1"]
            request: Answer = {"TableName": NAME, "IndexName": index.name, "TopK": 100}
            request["SearchVector"] = [{"N": number} for number in query]
            answer = self.call("SearchVectors", request)
            pairs = [self.shown(index.vector, table, entry, query) for entry in table.entries(index)]
            check_results(index.vector, answer["SearchResults"], pairs, 100)

    # An index that comes and goes.

    @rule()
    def switch_late_vector_index(self) -> None:
        """Create a vector index over the items that are there, or delete it, or cancel its filling."""
        indexes = self.model.tables[NAME].definition.indexes
        if self.call("DescribeTable", {"TableName": NAME})["Table"]["TableStatus"] != "ACTIVE":
            return
        late = strategies.LATE_VECTOR_INDEX
        assert late.vector is not None
        request: Answer = {"TableName": NAME}
        if late in indexes:
            indexes.remove(late)
            change: Answer = {"Delete": {"IndexName": late.name}}
            self.filling_vectors = False
        else:
            indexes.append(late)
            change = {"Create": strategies.vector_index_request(late, late.vector)}
            types = [{"AttributeName": name, "AttributeType": type_} for name, type_ in late.attributes()]
            request["AttributeDefinitions"] = types
            self.filling_vectors = self.settings.update_seconds > 0
        self.call("UpdateTable", {**request, "VectorIndexUpdates": [change]})

    # Restores.

    @precondition(lambda self: not (self.filling or self.filling_vectors))
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        """Restore the table as it is now or was at a moment, and look at the indexes of the restored one."""
        table = self.model.tables[NAME]
        request: Answer = {"SourceTableName": NAME, "TargetTableName": RESTORED}
        is_past = data.draw(st.booleans(), label="past")
        if is_past and self.moments:
            moment, table = data.draw(st.sampled_from(self.moments), label="moment")
            request["RestoreDateTime"] = moment
        else:
            request["UseLatestRestorableTime"] = True
        table = copy.deepcopy(table)
        self.call("RestoreTableToPointInTime", request)
        for each in self.model.tables.values():
            each.expire(self.clock.now())
        self.database.settle()
        described = self.call("DescribeTable", {"TableName": RESTORED})["Table"]
        assert described["TableStatus"] == "ACTIVE"
        items = self.call("Scan", {"TableName": RESTORED})["Items"]
        same_items(items, [*table.items.values()], ordered=False)
        # The restored table has the indexes that the table has now.
        for shown in described["VectorIndexes"]:
            index = self.model.tables[NAME].definition.index(shown["IndexName"])
            check_totals(shown["ItemCount"], shown["IndexSizeBytes"], table.entries(index))
            self.search_in(data, RESTORED, table, index)
        self.call("DeleteTable", {"TableName": RESTORED})
        event(f"restored {min(3, len(table.items))}")


def equalities(test: Condition) -> list[str]:
    """The attributes that the conjuncts of a condition compare by `=`, each as often as they do."""
    if test[0] == "and":
        return [name for inner in test[1:] for name in equalities(inner)]
    return [test[1][0]] if test[0] == "compare" and test[2] == "=" else []


def check_results(vector: Vector, results: list[Answer], pairs: list[tuple[float, Item]], top: int) -> None:
    """Fail unless the answer has the nearest of the scored items, the nearest first."""
    descends = vector.distance == "DOT_PRODUCT"
    best = sorted((score_ for score_, _ in pairs), reverse=descends)[:top]
    assert [result["Score"] for result in results] == pytest.approx(best, abs=1e-9)
    scored: dict[Any, float] = {plain_item(item): score_ for score_, item in pairs}
    items = [plain_item(result["Item"]) for result in results]
    assert len(set(items)) == len(items)
    for item, result in zip(items, results, strict=True):
        assert result["Score"] == pytest.approx(scored[item], abs=1e-9)
