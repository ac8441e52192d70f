"""Auto scaling over series of minutes, and the plans of a load."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.errors import LimitExceededException
from hashrange.prices import published
from hashrange_lab.money.counts import Minute, Series
from hashrange_lab.money.loads import Minutes, WrongLoad, read, read_csv, to_csv
from hashrange_lab.money.plans import MINUTES_MAX, compare
from hashrange_lab.money.scaling import Allowance, Policy, Scaled, hourly, scale
from hashrange_lab.recordings import blocks
from hashrange_lab.recordings.lines import End, Entry, Head, encode

REGION = published().region("us-east-1")
DAY = 1_440
FIRST = 20_000 * DAY
"""The number of a day's first minute."""


def minutes(*parts: tuple[float, int]) -> list[float]:
    """The units of each minute, from units a second and numbers of minutes."""
    return [units * 60 for units, number in parts for _ in range(number)]


def alone(asked: list[float], policy: Policy = Policy()) -> Scaled:  # noqa: B008 (immutable)
    """The outcome of reads of which there are no writes."""
    [outcome] = scale([asked], FIRST, policy)
    return outcome


def changes(capacities: list[int]) -> list[tuple[int, int]]:
    """The minutes in which the capacity changed, and the new capacities."""
    return [
        (minute, capacities[minute])
        for minute in range(len(capacities))
        if not minute or capacities[minute] != capacities[minute - 1]
    ]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        # 70 units a second are at the target with 100: nothing changes.
        (minutes((70, 60)), [(0, 100)]),
        # One minute above the target is no alarm, two are; the next minute has the new capacity.
        (minutes((70, 5), (90, 1), (70, 5)), [(0, 100)]),
        (minutes((70, 5), (90, 2), (70, 5)), [(0, 100), (7, 129)]),
        # 50 of 100 are 20 points below the target, 51 are not: fifteen such minutes lower the capacity.
        (minutes((70, 1), (51, 30)), [(0, 100)]),
        (minutes((70, 1), (50, 14), (70, 1)), [(0, 100)]),
        (minutes((70, 1), (50, 15), (50, 20)), [(0, 100), (16, 72)]),
        # The highest of the fifteen minutes counts.
        (minutes((70, 1), (10, 7), (49, 1), (10, 7), (10, 1)), [(0, 100), (16, 70)]),
        # It never goes below the minimum.
        (minutes((7, 1), (0, 60)), [(0, 10), (16, 1)]),
        ([], []),
    ],
)
def test_auto_scaling(asked: list[float], expected: list[tuple[int, int]]) -> None:
    assert changes(alone(asked).capacities) == expected


def test_auto_scaling_keeps_to_its_bounds() -> None:
    scaled = alone(minutes((1, 3), (1_000, 30), (0, 30)), Policy(minimum=5, maximum=80))
    assert (min(scaled.capacities), max(scaled.capacities)) == (5, 80)
    # The alarms see what was consumed, which is hardly more than the capacity: it rises step by step.
    assert changes(scaled.capacities) == [
        (0, 5), (5, 8), (7, 12), (9, 18), (11, 26), (13, 38), (15, 55), (17, 79), (19, 80), (48, 5),
    ]  # fmt: skip
    assert (scaled.raised, scaled.lowered) == (8, 1)


def test_what_was_not_used_for_300_seconds_meets_a_burst_and_the_rest_is_throttled() -> None:
    # 1,000 a second saved up 300 times the unused 30 % at most; then a minute asks for twice the capacity.
    quiet, asked = minutes((70, 20)), 200 * 60.0
    assert alone([*quiet, asked]).throttled == 0
    saved = 300 * 100
    assert alone([*quiet, 100 * 60 + saved + 500.0]).throttled == 500
    # At the start nothing is saved.
    assert alone([70 * 60.0, 190 * 60.0]).throttled == 190 * 60 - 100 * 60 - 30 * 60


def test_decreases_of_a_day_are_limited_as_update_table_limits_them() -> None:
    allowance = Allowance()
    assert [allowance.take(FIRST + minute) for minute in range(5)] == [True] * 4 + [False]
    # From then on there is one an hour after the last.
    later = [allowance.take(FIRST + minute) for minute in (62, 63, 64, 122, 123)]
    assert later == [False, True, False, False, True]
    # Hours without a decrease allow no more than one.
    assert [allowance.take(FIRST + 600 + minute) for minute in range(3)] == [True, False, False]
    # The next day begins with four.
    assert [allowance.take(FIRST + DAY + minute) for minute in range(5)] == [True] * 4 + [False]


def test_auto_scaling_decreases_when_update_table_would() -> None:
    """The same moments, asked of a table."""
    clock = ManualClock(FIRST * 60.0)
    with Database.in_memory(clock=clock) as database:
        units = {"ReadCapacityUnits": 1_000, "WriteCapacityUnits": 1}
        key = {"KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}]}
        key["AttributeDefinitions"] = [{"AttributeName": "p", "AttributeType": "S"}]
        database.execute("CreateTable", {"TableName": "table", **key, "ProvisionedThroughput": units})
        allowance = Allowance()
        for minute in range(0, 2 * DAY, 7):
            clock.set((FIRST + minute) * 60.0)
            database.settle()
            lower = {**units, "ReadCapacityUnits": units["ReadCapacityUnits"] - 1}
            try:
                database.execute("UpdateTable", {"TableName": "table", "ProvisionedThroughput": lower})
            except LimitExceededException:
                is_allowed = False
            else:
                is_allowed, units = True, lower
            assert allowance.take(FIRST + minute) == is_allowed


def test_decreases_of_reads_and_writes_count_together() -> None:
    asked = minutes(*[(4_000 / 2.2**step, 16) for step in range(10)])
    first = alone(asked)
    both = scale([asked, asked], FIRST)
    assert first.lowered == 5
    assert sum(side.lowered for side in both) == 5


def test_at_most_27_decreases_in_a_day() -> None:
    allowance = Allowance()
    assert sum(allowance.take(FIRST + minute) for minute in range(DAY)) == 27


def test_a_load_that_falls_steadily_is_lowered_as_often_as_allowed() -> None:
    # Each quarter of an hour asks for less than half of the one before.
    asked = minutes(*[(4_000 / 2.2**step, 16) for step in range(10)])
    scaled = alone(asked)
    assert scaled.lowered == 5  # four, and one an hour after the fourth
    assert scaled.raised == 0


def test_an_hour_is_billed_at_its_highest_capacity() -> None:
    assert hourly([1] * 30 + [5] + [2] * 60, FIRST) == [5, 2]
    assert hourly([3] * 10 + [1] * 61, FIRST + 50) == [3, 1, 1]
    assert hourly([], FIRST) == []


def series(table: str, index: str, reads: list[float], writes: list[float]) -> Series:
    return Series(
        table,
        index,
        [
            Minute((FIRST + number) * 60, read, write)
            for number, (read, write) in enumerate(zip(reads, writes, strict=True))
            if read or write
        ],
    )


def test_a_steady_load_is_cheapest_reserved() -> None:
    steady = minutes((700, 3 * 60))
    compared = compare([series("orders", "", steady, steady)], REGION)
    costs = {plan.name: plan.cost.amount for plan in compared.plans}
    units = Decimal(700 * 3_600 * 3)
    assert costs["on demand"] == units * Decimal("0.75") / 1_000_000
    assert costs["provisioned, auto scaling"] == 1_000 * 3 * (Decimal("0.00013") + Decimal("0.00065"))
    assert costs["provisioned, fixed"] == 700 * 3 * (Decimal("0.00013") + Decimal("0.00065"))
    reads = Decimal("0.0016") + Decimal(36) / (3 * 8_760)
    writes = Decimal("0.0081") + Decimal(180) / (3 * 8_760)
    assert costs["reserved for 3 years, auto scaling"] == 10 * 3 * (reads + writes)
    assert compared.plans[0].name == "reserved for 3 years, auto scaling"
    assert compared.plans[0].about == "1,000 read and 1,000 write units reserved"
    assert compared.minutes == 180


def test_a_month_is_that_of_the_minutes_and_of_the_billed_hours() -> None:
    # 40 minutes over two clock hours: on demand pays for the minutes, provisioned capacity for both hours.
    part = Series("orders", "", [Minute((FIRST + 40 + number) * 60, 60.0, 0.0) for number in range(40)])
    months = {plan.name: plan.a_month.amount for plan in compare([part], REGION).plans}
    assert months["on demand"] == 730 * 60 * 60 * Decimal("0.125") / 1_000_000
    # (1 unit, and the least of writes)
    assert months["provisioned, fixed"] == 730 * (Decimal("0.00013") + Decimal("0.00065"))


def test_a_spiky_load_is_cheapest_on_demand() -> None:
    spiky = [5_000 * 60.0, *[0.0] * 58, 60.0]
    compared = compare([series("orders", "", [0.0] * 60, spiky)], REGION)
    assert compared.plans[0].name == "on demand"
    by_name = {plan.name: plan for plan in compared.plans}
    assert by_name["provisioned, fixed"].about == "1 read, 5,000 write units, as in the highest minute"


def test_a_small_load_needs_no_reservation() -> None:
    compared = compare([series("orders", "", [60.0] * 60, [60.0] * 60)], REGION)
    assert {plan.about for plan in compared.plans if "reserved" in plan.name} == {"no reservation would pay"}


def test_tables_and_indexes_scale_on_their_own_and_share_reservations() -> None:
    half = minutes((35, 60))
    load = [series("orders", "", half, half), series("orders", "by-g", half, half)]
    compared = compare(load, REGION)
    assert list(compared.places) == [("orders", ""), ("orders", "by-g")]
    by_name = {plan.name: plan for plan in compared.plans}
    # 50 units each are one block of 100.
    assert by_name["reserved for 3 years, auto scaling"].about == "100 read and 100 write units reserved"
    assert by_name["provisioned, auto scaling"].cost.amount == 100 * Decimal("0.00078")


def test_tables_of_the_other_class_cannot_use_reservations() -> None:
    region = published().region("us-west-2")
    steady = minutes((70, 60))
    load = [series("rare", "", steady, steady), series("orders", "", steady, steady)]
    classes = {"rare": region.infrequent, "orders": region.standard}
    compared = compare(load, region, lambda table: classes[table])
    reserved = next(plan for plan in compared.plans if plan.name.startswith("reserved for 3"))
    assert reserved.about == "100 read and 100 write units reserved"
    term = region.reservations[1]
    rare = 100 * (Decimal("0.00016") + Decimal("0.00081"))
    assert reserved.cost.amount == rare + term.hourly(writes=False) + term.hourly(writes=True)


def test_a_missing_price_is_said_and_comes_last() -> None:
    compared = compare([series("orders", "", [60.0], [60.0])], published().region("eu-west-3"))
    assert compared.plans[-1].name == "on demand"
    assert compared.plans[-1].cost.missing == {"read_requests", "write_requests"}
    assert str(compared.plans[-1].cost) == "no price"


def test_a_load_needs_minutes_and_has_a_limit() -> None:
    with pytest.raises(ValueError, match="The load has no minutes"):
        compare([Series("orders", "", [])], REGION)
    long = Series("orders", "", [Minute(0, 1.0), Minute(MINUTES_MAX * 60, 1.0)])
    with pytest.raises(ValueError, match="The load is 45 days long; at most 45 can be compared"):
        compare([long], REGION)


def test_requests_are_added_up_to_minutes() -> None:
    minutes = Minutes()
    minutes.add_request(119.5, ("orders",), 0.0, 3.0, {"by-g": 1.0})
    minutes.add_request(61, ("orders", "others"), 0.0, 1.0, {})
    minutes.add_request(60, ("orders",), 0.5, 0.0, {"by-g": 0.5})
    minutes.add_request(60, (), 1.0, 0.0, {})
    minutes.add_request(60, ("orders",), 0.0, 0.0, {})
    shown = [(part.index, [(m.at, m.reads, m.writes) for m in part.minutes]) for part in minutes.series()]
    assert shown == [("", [(60, 0.0, 3.0)]), ("by-g", [(60, 0.5, 1.0)])]


def test_the_load_of_a_recording(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    entries = [
        Entry(at=70.0, operation="PutItem", seconds=0.1, tables=("orders",), write_units=3.0,
              index_units={"by-g": 1.0}),
        Entry(at=1.0, operation="GetItem", seconds=0.1, tables=("orders",), read_units=0.5),
    ]  # fmt: skip
    lines = [Head(1, 1_767_225_600.0), *entries, End(80.0, 2, "stopped")]
    path = tmp_path / "load.jsonl.zst"
    path.write_bytes(blocks.compressed(b"".join(encode(line) + b"\n" for line in lines)))
    assert to_csv(read(path)) == (
        "at,table,index,read_units,write_units\n"
        "2026-01-01T00:00:00.000Z,orders,,0.5,0\n"
        "2026-01-01T00:01:00.000Z,orders,,0,2\n"
        "2026-01-01T00:01:00.000Z,orders,by-g,0,1\n"
    )
    assert not caplog.records
    path.write_bytes(blocks.compressed(b"".join(encode(line) + b"\n" for line in lines[:-1])))
    assert len(read(path)) == 2
    assert "is cut off or damaged" in caplog.text
    path.write_bytes(blocks.compressed(encode(lines[0]) + b"\n"))
    with pytest.raises(WrongLoad, match="has consumed anything"):
        read(path)
    path.write_bytes(blocks.compressed(b"{}\n"))
    with pytest.raises(WrongLoad, match="is not a recording"):
        read(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(WrongLoad, match="is neither a recording nor CSV"):
        read(path)


CSV = """at,table,index,read_units,write_units
2026-11-25T10:00:00.000Z,orders,,1200.5,340
2026-11-25T10:00:00.000Z,orders,by-status,0,340
2026-11-25T10:07:00.000Z,orders,,1,0
"""


def test_loads_as_csv() -> None:
    load = read_csv(CSV.splitlines())
    assert [(part.table, part.index, len(part.minutes)) for part in load] == [
        ("orders", "", 2), ("orders", "by-status", 1),
    ]  # fmt: skip
    assert to_csv(load) == CSV


def test_lines_of_a_minute_are_added_up_whatever_their_order() -> None:
    text = "table,at,write_units,read_units\na,120,1,0\na,61,1,0\na,119.5,2,0.5\n"
    [part] = read_csv(text.splitlines())
    first, second = part.minutes
    assert (first.at, first.reads, first.writes) == (60, 0.5, 3)
    assert (second.at, second.reads, second.writes) == (120, 0, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("at,table\n", "The first line has no column read_units, write_units"),
        ("at,table,read_units,write_units\n", "There is no line after the first"),
        ("at,table,read_units,write_units\nnever,a,1,1\n", "Line 2: .*never"),
        ("at,table,read_units,write_units\n0,a,x,1\n", "Line 2: 'x' is not a number of units"),
        ("at,table,read_units,write_units\n0,a,1,-1\n", "Line 2: '-1' is not a number of units"),
        ("at,table,read_units,write_units\n0,a,1\n", "Line 2: None is not a number of units"),
        ("at,table,read_units,write_units\n0,,1,1\n", "Line 2 names no table"),
        ('at,table,read_units,write_units\n0,"a"b,1,1\n', "Line 2 is not CSV"),
    ],
)
def test_a_wrong_load_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(WrongLoad, match=message):
        read_csv(text.splitlines(keepends=True))
