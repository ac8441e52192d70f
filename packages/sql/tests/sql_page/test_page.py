"""The console's page for SQL: plans, rows and downloads; what it may read; and that it harms nobody."""

from __future__ import annotations

import csv
import io
import sys
import threading
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import duckdb
import orjson
import pytest

from consoles import EVERY_TYPE, Browser, opened, parsed, put
from hashrange.cli.admin import bind_admin
from hashrange.database import Caller, Database
from hashrange.errors import ResourceNotFoundException
from hashrange.server import running
from hashrange.settings import Settings
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judging import guard
from hashrange_access.users import read
from hashrange_console.reach import Refused
from hashrange_sql.pages import running as statements
from hashrange_sql.pages.running import AT_ONCE_MAX, READ_BYTES_MAX, Statement
from worlds import create


def page(browser: Browser, statement: str, **more: str) -> tuple[int, str]:
    """The status and the text of the page."""
    status, html = browser.ask(f"/console/sql?{urlencode({'statement': statement, **more})}")
    return status, " ".join(parsed(html).text.split())


def download(browser: Browser, statement: str, form: str) -> tuple[int, str]:
    return browser.ask(f"/console/sql/export?{urlencode({'statement': statement, 'format': form})}")


@pytest.fixture
def many(orders: Database) -> Database:
    """250 more items in the table."""
    for number in range(250):
        put(orders, {"pk": {"S": "many"}, "sk": {"N": str(number)}, "kind": {"S": f"kind {number % 3}"}})
    return orders


def test_a_plan_says_what_is_read_and_what_it_costs_and_runs_nothing(
    many: Database, browser: Browser
) -> None:
    status, text = page(browser, "select kind, count(*) from orders group by kind", plan="1")
    assert status == 200
    assert "orders: nothing more, the sample was all of it" in text
    assert "Will cost about 1 read unit with the samples, $0.00000012 on demand in us-east-1" in text
    assert "kind 1" not in text


def test_rows_are_shown_and_the_first_ones_of_many(many: Database, browser: Browser) -> None:
    status, text = page(
        browser, "select kind, count(*) as n from orders where kind is not null group by kind order by kind"
    )
    assert (status, "kind 0 84 kind 1 83 kind 2 83" in text) == (200, True)
    assert "3 rows" in text
    _, text = page(browser, "select sk from orders where pk = 'many' order by sk desc")
    assert text.count("249 248 247") == 1
    assert "the first 200 rows" in text
    _, text = page(browser, "select null as nothing, 'x' as a, 'y' as a, [1, 2] as list")
    assert "nothing a a_1 list – x y [1, 2]" in text
    wide = ", ".join(f"{one} as c{one}" for one in range(52))
    assert "2 more columns are not shown here" in page(browser, f"select {wide}")[1]
    assert "The answer has no rows" in page(browser, "select 1 where false")[1]


def test_every_type_is_shown(orders: Database, browser: Browser) -> None:
    status, text = page(browser, "from orders")
    assert status == 200
    for shown in (EVERY_TYPE["sk"]["N"], "[42, x]", "<script>alert(1)</script>"):
        assert shown in text


def test_downloads_have_all_rows(many: Database, browser: Browser, tmp_path: Path) -> None:
    sql = "select sk, kind from orders where pk = 'many' order by sk"
    status, text = download(browser, sql, "csv")
    assert (status, browser.last.getheader("Content-Disposition")) == (200, 'attachment; filename="rows.csv"')
    assert len([*csv.reader(io.StringIO(text))]) == 251
    assert download(browser, sql, "json")[1].splitlines()[1] == '{"sk":1,"kind":"kind 1"}'
    status, text = download(browser, sql, "exe")
    assert (status, "is not a format" in text) == (400, True)
    status, text = download(browser, "selct", "csv")
    assert (status, "syntax error" in text) == (400, True)
    done, body = Statement(asker(many)).run(sql, "us-east-1", "parquet", only_plan=False)
    file = tmp_path / "rows.parquet"
    file.write_bytes(body)
    assert done.cost
    with duckdb.connect() as reader:
        assert reader.execute(f"select count(*), max(sk) from '{file}'").fetchall() == [(250, 249)]


def test_a_csv_has_no_formulas(orders: Database, browser: Browser) -> None:
    _, text = download(browser, "select '=1+1' as \"=a\", '-x' as b, -5 as c, 'plain' as d, null as e", "csv")
    assert [*csv.reader(io.StringIO(text))] == [
        ["'=a", "b", "c", "d", "e"],
        ["'=1+1", "'-x", "-5", "plain", ""],
    ]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("selct 1", "syntax error"),
        ("delete from orders", "nothing can be written"),
        ("select nothing from orders", "hashrange sql --sample"),
        ("select * from read_text('/etc/passwd')", "no file can be read"),
        ("select cast(pk as integer) from orders", "TRY_CAST gives NULL"),
    ],
)
def test_what_cannot_run_is_told_with_a_remedy(
    orders: Database, browser: Browser, statement: str, said: str
) -> None:
    status, text = page(browser, statement)
    assert (status, said in text) == (400, True), text
    assert "root:" not in text


def test_only_a_session_opens_the_page(many: Database) -> None:
    """Under strict rules, too: who may open the console reads all tables, as on the console's other pages."""
    users: Any = {"accounts": {"123456789012": {"users": {"alice": {"keys": []}}}}}
    guard(many, Gate(read(users), many.clock.now, strict=True))
    admin = bind_admin(0)
    with running(many, admin=admin):
        stranger = Browser(admin.url)
        assert stranger.ask("/console/sql?statement=select+1")[0] == 401
        assert stranger.ask("/console/sql/export?statement=select+1&format=csv")[0] == 401
        status, text = page(opened(admin), "select count(*) as n from orders")
        assert (status, "n 251" in text) == (200, True)


def test_the_tables_of_a_scope() -> None:
    with Database.in_memory(settings=Settings(separate_accounts=True, separate_regions=True)) as database:
        caller = Caller("eu-west-1", "111111111111")
        create(database, "orders", "pk", caller=caller)
        database.execute("PutItem", {"TableName": "orders", "Item": {"pk": {"S": "there"}}}, caller)
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            assert page(browser, "from orders")[0] == 400
            status, text = page(browser, "from orders", scope="111111111111/eu-west-1")
            assert (status, "pk there" in text, "in eu-west-1" in text) == (200, True, True)


# -- Statements that would do harm --------------------------------------------------------------------------


def asker(database: Database) -> Callable[[str, bytes], bytes]:
    return lambda operation, sent: orjson.dumps(database.execute(operation, orjson.loads(sent)))


def refused(statement: Statement, sql: str) -> str:
    with pytest.raises(Refused) as raised:
        statement.run(sql, "us-east-1", "", only_plan=False)
    return str(raised.value)


ENDLESS = "select count(*) from range(1_000_000_000_000) a where hash(a.range) = 7"


def test_a_statement_that_takes_too_long_is_stopped(orders: Database) -> None:
    text = refused(Statement(asker(orders), seconds=0.0), ENDLESS)
    assert text.startswith("The statement took more than 0 s, and was stopped. Ask for less")


def test_a_statement_is_stopped_while_it_runs(orders: Database) -> None:
    asked = threading.Event()

    def ask(operation: str, sent: bytes) -> bytes:
        asked.set()
        return asker(orders)(operation, sent)

    statement = Statement(ask)

    def stop() -> None:
        assert asked.wait(60)
        statement.stop("The browser has gone.")

    stopper = threading.Thread(target=stop)
    stopper.start()
    assert refused(statement, f"select ({ENDLESS}) from orders") == "The browser has gone."
    stopper.join()


def test_a_statement_that_needs_too_much_memory_ends_alone(orders: Database) -> None:
    text = refused(
        Statement(asker(orders)), "select length(string_agg(repeat('x', 1_000_000), '')) from range(5_000)"
    )
    assert "memory" in text.lower()
    assert "Ask for" in text


def test_a_statement_that_reads_too_much_is_stopped(orders: Database) -> None:
    large = b'{"Items":[' + b" " * (READ_BYTES_MAX + 1) + b"]}"

    def ask(operation: str, sent: bytes) -> bytes:
        return asker(orders)(operation, sent) if operation == "DescribeTable" else large

    assert refused(Statement(ask), "from orders").startswith("The statement reads more than 512 MiB.")


def test_errors_of_the_api_are_told(orders: Database) -> None:
    def ask(operation: str, sent: bytes) -> bytes:
        if operation == "Scan":
            raise ResourceNotFoundException("it has gone")
        return asker(orders)(operation, sent)

    assert refused(Statement(ask), "from orders") == "ResourceNotFoundException: it has gone"


def test_no_more_run_at_once_than_may(orders: Database) -> None:
    """Others are refused, and nobody waits."""
    inside, leave = threading.Semaphore(0), threading.Event()

    def ask(operation: str, sent: bytes) -> bytes:
        inside.release()
        assert leave.wait(60)
        return asker(orders)(operation, sent)

    users = [
        threading.Thread(
            target=Statement(ask).run, args=("from orders", "us-east-1", ""), kwargs={"only_plan": False}
        )
        for _ in range(AT_ONCE_MAX)
    ]
    for user in users:
        user.start()
        inside.acquire()
    assert (
        refused(Statement(ask), "select 1") == "2 statements run at the moment: try again when one has ended."
    )
    leave.set()
    for user in users:
        user.join()
    done, _ = Statement(ask).run("select 1 as one", "us-east-1", "", only_plan=False)
    assert done.rows == [["1"]]


def test_a_process_that_asks_for_a_write_is_not_answered(
    orders: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever happens in the process, the page passes on requests that read."""
    asks = """print('{"ask": "DeleteTable", "request": {"TableName": "orders"}}', flush=True); input()"""
    monkeypatch.setattr(statements, "_COMMAND", (sys.executable, "-c", asks))
    with pytest.raises(AssertionError, match="DeleteTable"):
        Statement(asker(orders)).run("from orders", "us-east-1", "", only_plan=False)
    assert orders.execute("DescribeTable", {"TableName": "orders"})


def test_nothing_is_left_in_the_folder_of_temporary_files(
    orders: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Statement(asker(orders)).run("from orders", "us-east-1", "csv", only_plan=False)
    refused(Statement(asker(orders), seconds=0.0), "from orders")
    assert [*tmp_path.iterdir()] == []


def test_a_statement_stalls_nobody_and_ends_with_the_browser(
    orders: Database, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons: list[str] = []
    stop = Statement.stop

    def noting(statement: Statement, why: str) -> None:
        reasons.append(why)
        stop(statement, why)

    monkeypatch.setattr(Statement, "stop", noting)
    places = statements._places
    connection = HTTPConnection(urlsplit(browser.url).netloc)
    query = urlencode({"statement": ENDLESS})
    connection.request("GET", f"/console/sql?{query}", headers={"Cookie": browser.cookie})
    while places._value == AT_ONCE_MAX:
        assert browser.ask("/console/t/orders")[0] == 200
    assert page(browser, "select 1 as one")[0] == 200
    assert places._value == AT_ONCE_MAX - 1  # (the first still runs)
    assert reasons == []
    connection.close()
    for _ in range(AT_ONCE_MAX):
        assert places.acquire(timeout=60)
    for _ in range(AT_ONCE_MAX):
        places.release()
    assert reasons == ["The browser has gone."]


def test_errors_that_are_not_the_statements_are_not_hidden(orders: Database) -> None:
    def ask(operation: str, sent: bytes) -> bytes:
        raise LookupError(operation)

    with pytest.raises(LookupError, match="DescribeTable"):
        Statement(ask).run("from orders", "us-east-1", "", only_plan=False)
