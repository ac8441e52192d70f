"""Looks over a database in process: types, entities, what becomes a Query, and what cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import hashrange_sql
from hashrange.client import connect
from hashrange.database import Database
from hashrange_sql.looking import Look, Plan, Refused, opened
from hashrange_sql.reading import ApiReader, Rate
from worlds import create

ORDERS = 600
Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with Database.in_memory() as database:
        indexes = {
            "by-status": "status",
            "by-place": "place, since",
            "few": "status | KEYS_ONLY",
        }
        create(database, "shop", "pk, sk", indexes=indexes)
        create(database, "numbers", "id:N")
        create(database, "empty", "id:N")
        client = connect(database)
        for number in range(ORDERS):
            order = {
                "pk": {"S": f"CUSTOMER#{number % 10}"},
                "sk": {"S": f"ORDER#{number:04}"},
                "status": {"S": "open" if number % 3 else "done"},
                "amount": {"N": f"{number}.{number % 100:02}"},
                "tags": {"SS": ["a", "b"]},
                "place": {"S": "here"},
                **({"since": {"S": f"{number:04}"}} if number % 2 else {}),
            }
            client.put_item(TableName="shop", Item=order)
        for number in range(300):
            profile = {
                "pk": {"S": f"CUSTOMER#{number}"},
                "sk": {"S": "PROFILE"},
                "name": {"S": f"name {number}"},
            }
            client.put_item(TableName="shop", Item=profile)
        for number in range(50):
            client.put_item(
                TableName="numbers", Item={"id": {"N": str(number)}, "half": {"N": str(number / 2)}}
            )
        yield client


@pytest.fixture
def look(client: Any) -> Iterator[Look]:
    with ApiReader(client).opened() as reader, opened(reader, sample_items=200) as look:
        yield look


def found(look: Look, sql: str) -> tuple[Plan, list[Row]]:
    plan = look.plan(sql)
    look.load(plan)
    return plan, look.rows(plan)[1]


def test_a_scan_reads_the_attributes_that_are_used(look: Look) -> None:
    plan, rows = found(
        look, "select status, sum(amount) from shop group by status order by status nulls last"
    )
    assert rows[:2] == [
        (name, sum(Decimal(f"{one}.{one % 100:02}") for one in range(ORDERS) if (one % 3 == 0) is is_done))
        for name, is_done in (("done", True), ("open", False))
    ]
    [read] = plan.reads
    assert read.partitions == ()
    assert read.attributes == ("status", "amount")
    assert 0 < plan.units == read.units


@pytest.mark.parametrize(
    ("where", "index", "partitions", "sort", "count"),
    [
        ("pk = 'CUSTOMER#1'", "", 1, "", 61),
        ("pk in ('CUSTOMER#1', 'CUSTOMER#2', 'nobody')", "", 3, "", 122),
        ("pk = 'CUSTOMER#1' and sk = 'ORDER#0001'", "", 1, "=", 1),
        ("pk = 'CUSTOMER#1' and sk >= 'ORDER#0100'", "", 1, ">=", 51),
        ("pk = 'CUSTOMER#1' and sk > 'ORDER#0101'", "", 1, ">", 50),
        ("pk = 'CUSTOMER#1' and sk between 'ORDER#0' and 'ORDER#01'", "", 1, "BETWEEN", 10),
        ("pk = 'CUSTOMER#1' and sk > 'ORDER#0001' and sk < 'ORDER#0021'", "", 1, "BETWEEN", 1),
        ("pk = 'CUSTOMER#1' and starts_with(sk, 'ORDER#00')", "", 1, "BETWEEN", 10),
        ("pk = 'CUSTOMER#1' and sk like 'ORDER#00%'", "", 1, "BETWEEN", 10),
        ("pk = 'CUSTOMER#1' and sk > 'b' and sk < 'a'", "", 0, "", 0),
        ("pk = 'CUSTOMER#1' and (sk = 'PROFILE' or amount > 100)", "", 1, "", 51),
        ("status = 'done'", "by-status", 1, "", 200),
        # The items without `since` are not in the index.
        ("place = 'here'", "", 0, "", ORDERS),
        ("place = 'here' and since < '0010'", "by-place", 1, "<", 5),
        ("pk = 'CUSTOMER#1' or sk = 'PROFILE'", "", 0, "", 360),
        ("upper(pk) = 'CUSTOMER#1'", "", 0, "", 61),
        ("pk = ''", "", 0, "", 0),
    ],
)
def test_conditions_on_keys_become_queries(
    look: Look, where: str, index: str, partitions: int, sort: str, count: int
) -> None:
    plan, [(counted,)] = found(look, f"select count(*) from shop where {where}")
    assert counted == count
    if plan.reads:
        [read] = plan.reads
        assert (read.source.index, len(read.partitions)) == (index, partitions)
        assert [one.operator for one in read.sort] == ([sort] if sort else [])
    else:
        assert partitions == 0


def test_a_plan_says_what_all_reads_cost(client: Any) -> None:
    """Half a unit for each 4 KB, at 0.125 dollars a million; the samples are read already."""
    with ApiReader(client).opened() as reader, opened(reader, sample_items=8) as look:
        plan = look.plan("select a.pk from shop a join numbers b on a.sk > b.half::varchar")
        sampled = [table.units for table in plan.tables]
        assert sampled == [2.0, 2.0]  # (four segments of two items)
        size = sum(
            client.describe_table(TableName=name)["Table"]["TableSizeBytes"] for name in ("shop", "numbers")
        )
        assert plan.units == pytest.approx(size / 8192, abs=1)
        assert plan.money.amount == Decimal(plan.units + sum(sampled)) * Decimal("0.000000125")
        assert str(plan).splitlines()[-1] == f"in all: {plan.cost}"
        assert plan.cost.endswith(f"with the samples, {plan.money} on demand in us-east-1")
        reader.region = "nowhere-1"
        assert look.plan("from shop").cost.endswith("no price on demand in nowhere-1")
        reader.region = ""  # (the past costs nothing)
        assert "in all" not in str(look.plan("from shop"))


def test_an_index_without_the_attributes_is_not_used(look: Look) -> None:
    plan = look.plan("select sum(amount) from shop where status = 'done'")
    assert plan.reads[0].source.index == "by-status"
    assert "Query of the index by-status, status = 'done'" in str(plan)


def test_keys_that_are_numbers(client: Any) -> None:
    with ApiReader(client).opened() as reader, opened(reader, sample_items=8) as look:
        plan, rows = found(look, "select half from numbers where id = 7")
        assert rows == [(Decimal("3.5"),)]
        assert plan.reads[0].partitions == ((("N", "7"),),)
        assert "id = 7" in str(plan)
        assert found(look, "select count(*) from numbers where id < 10")[1] == [(10,)]


def test_places_of_a_table_in_a_join_are_read_together(look: Look) -> None:
    sql = "select count(*) from shop a join shop b using (pk) where a.pk = 'CUSTOMER#3' and b.sk = 'PROFILE'"
    plan, rows = found(look, sql)
    assert rows == [(61,)]
    assert (len(plan.reads), plan.reads[0].partitions) == (1, ((("S", "CUSTOMER#3"),),))
    plan, rows = found(look, "select (select count(*) from shop where pk = 'CUSTOMER#3'), count(*) from shop")
    assert rows == [(61, ORDERS + 300)]
    assert plan.reads[0].partitions == ()


def test_entities_are_views(look: Look) -> None:
    plan = look.plan("from shop")
    names = {view.name for table in plan.tables for view in table.views}
    assert len(names) == 2
    orders, profiles = sorted(names)
    plan, rows = found(
        look,
        f"""select name, count(*) from shop."{orders}" o join shop."{profiles}" c on o.pk = c.pk
        where c.pk = 'CUSTOMER#4' group by name""",
    )
    assert rows == [("name 4", 60)]
    assert plan.reads[0].partitions == ((("S", "CUSTOMER#4"),),)


def test_a_limit_reads_no_more(look: Look) -> None:
    for sql, rows_max in (("select pk from shop limit 5 offset 2", None), ("from shop", 7)):
        plan = look.plan(sql, rows_max)
        look.load(plan)
        assert plan.reads[0].items == 7
        assert len(look.rows(plan)[1]) == (rows_max or 5)
    assert look.plan("select pk from shop order by sk limit 5").reads[0].items is None


def test_what_the_sample_had_is_not_read_again(client: Any) -> None:
    with ApiReader(client).opened() as reader, opened(reader) as look:
        plan, rows = found(look, "select count(*) from numbers")
        assert rows == [(50,)]
        assert "nothing more" in str(plan)
        assert plan.units == 0
        assert found(look, "select * from empty")[1] == []
        assert found(look, "select column_name, column_type from (describe empty)")[1] == [
            ("id", "DECIMAL(38,0)")
        ]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("delete from shop", "nothing can be written"),
        ("create table x as from shop", "nothing can be written"),
        ("copy shop to 'x.csv'", "nothing can be written"),
        ("select 1; select 2", "Only one statement"),
        ("selct 1", "syntax error"),
        ("select nothing from shop", "--sample"),
        ("select * from nowhere", "no table 'nowhere'; there are: empty, numbers, shop"),
        ("select shop.nothing from shop", "--sample"),
        ("select 1 from shop a join shop b using (nothing)", "--sample"),
        *[
            (f"select * from {source}", "no file can be read")
            for source in (
                "read_csv('/etc/passwd')", "read_text('/etc/passwd')", "read_blob('/etc/passwd')",
                "read_parquet('/etc/passwd')", "read_json('/etc/passwd')", "sniff_csv('/etc/passwd')",
                "glob('/etc/*')", "duckdb_secrets()", "read_text('http://127.0.0.1:8000/')",
            )
        ],
        ("from '/etc/passwd'", "no table '/etc/passwd'"),
        ("from query('attach ''x.db''')", "single SELECT"),
        ("from query('select * from read_text(''/etc/passwd'')')", "no file can be read"),
        ("attach 'x.db'", "nothing can be written"),
        ("set enable_external_access = true", "nothing can be written"),
        ("load httpfs", "nothing can be written"),
        ("select getenv('HOME')", "getenv"),
        ("from sys", "no table 'sys'"),
        ("select amount::integer / 0, error('x') from shop", "x"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_told(look: Look, sql: str, said: str) -> None:
    with pytest.raises(Refused, match=said.replace("(", r"\(")):
        found(look, sql)


def test_no_statement_changes_settings(look: Look) -> None:
    for database in (look._database, look._planner):
        with pytest.raises(duckdb.InvalidInputException, match="has been locked"):
            database.execute("SET enable_external_access = true")


def test_names_that_a_statement_defines_are_no_tables(look: Look) -> None:
    assert found(look, "with open as (select * from shop where status = 'open') select count(*) from open")[
        1
    ] == [(400,)]
    assert found(look, "select count(*) from information_schema.tables")[0].tables == []
    assert found(look, "select count(*) from SHOP where sk = 'PROFILE'")[1] == [(300,)]


def test_a_query_of_a_program(client: Any) -> None:
    rows = hashrange_sql.query("select id, half from numbers where id = 3", client)
    assert rows == [{"id": Decimal(3), "half": Decimal("1.5")}]
    # The client decodes its own answers again.
    assert client.get_item(TableName="numbers", Key={"id": {"N": "3"}})["Item"]["half"] == {"N": "1.5"}


def test_a_rate_is_kept(client: Any) -> None:
    time = [0.0]

    def pause(seconds: float) -> None:
        time[0] += seconds

    rate = Rate(2, now=lambda: time[0], pause=pause)
    with ApiReader(client).opened() as reader, opened(reader, rate=rate, sample_items=4) as look:
        plan, _ = found(look, "select count(*) from shop")
    spent = plan.tables[0].units + plan.units
    # (each page costs half a unit at least, and the last one is not waited for)
    assert time[0] >= (spent - 2) / 2
