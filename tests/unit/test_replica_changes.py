"""Replicas that come and go in any order, asked for from anywhere: the regions agree on the members."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import worlds
from hashrange.errors import ResourceInUseException, ResourceNotFoundException, ValidationException
from hashrange.operations.context import Caller
from worlds import table_of

REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1")
DAY = 24 * 3600.0

_TABLE: dict[str, Any] = table_of("music", "pk")

_REGION = st.sampled_from(REGIONS)
_STEP = st.one_of(
    st.tuples(st.sampled_from(["Create", "Delete"]), _REGION, _REGION),
    st.tuples(st.just("DeleteTable"), _REGION, _REGION),
    st.tuples(st.just("strong"), _REGION, _REGION),
    st.tuples(st.just("wait"), st.sampled_from([5.0, 10.0, DAY]), st.none()),
)


class World(worlds.World):
    """A database with one table, which was made in the first region, and a clock to move."""

    def __init__(self, seconds: float) -> None:
        super().__init__(update_seconds=seconds, delete_seconds=seconds)
        self.ask("CreateTable", _TABLE, REGIONS[0])

    def ask(self, operation: str, request: dict[str, Any], region: str) -> dict[str, Any]:
        return self(operation, Caller(region=region), **{"TableName": "music", **request})

    def take(self, step: tuple[str, Any, Any]) -> None:
        """Take a step; whatever the service would refuse is refused."""
        kind, region, target = step
        try:
            if kind == "wait":
                self.clock.advance(region)
            elif kind == "DeleteTable":
                self.ask(kind, {}, region)
            elif kind == "strong":
                others = [one for one in REGIONS[:3] if one != region][:2]
                updates = [{"Create": {"RegionName": one}} for one in others]
                self.ask(
                    "UpdateTable", {"ReplicaUpdates": updates, "MultiRegionConsistency": "STRONG"}, region
                )
            else:
                self.ask("UpdateTable", {"ReplicaUpdates": [{kind: {"RegionName": target}}]}, region)
        except (ValidationException, ResourceInUseException, ResourceNotFoundException):
            pass

    def seen(self) -> dict[str, dict[str, Any]]:
        """The description of the table in each region that has it."""
        found = {}
        for region in REGIONS:
            try:
                found[region] = self.ask("DescribeTable", {}, region)["Table"]
            except ResourceNotFoundException:
                continue
        return found

    def listed(self, region: str) -> list[str]:
        names: list[str] = self("ListTables", Caller(region=region))["TableNames"]
        return names


@given(st.lists(_STEP, max_size=25), st.sampled_from([0.0, 10.0]))
def test_regions_agree_on_the_members(taken: list[tuple[str, Any, Any]], seconds: float) -> None:
    world = World(seconds)
    for step in taken:
        world.take(step)
        seen = world.seen()
        assert [region for region in REGIONS if world.listed(region)] == list(seen)
        if not any("Replicas" in table for table in seen.values()):
            assert not any("GlobalTableVersion" in table for table in seen.values())
            continue
        # A region that is nobody's replica sees all but the first; the others see all but themselves.
        members = {one["RegionName"] for table in seen.values() for one in table["Replicas"]}
        assert len(members) > 1
        for region, table in seen.items():
            others = {one["RegionName"] for one in table["Replicas"]}
            assert len(others) == len(members) - 1
            assert region not in others
            assert table["GlobalTableVersion"] == "2019.11.21"
        assert len({seen[region]["TableId"] for region in members}) == len(members)


@given(st.lists(_STEP, max_size=25))
def test_the_items_stay_until_the_last_region_goes(taken: list[tuple[str, Any, Any]]) -> None:
    world = World(0.0)
    world.ask("PutItem", {"Item": {"pk": {"S": "x"}}}, REGIONS[0])
    for step in taken:
        world.take(step)
    try:
        assert world.ask("Scan", {"Select": "COUNT"}, REGIONS[-1])["Count"] == 1
        assert world.seen()
    except ResourceNotFoundException:
        assert not world.seen()
