"""A look: a database of DuckDB in a private folder, filled with what one statement needs.

    with opened(reader) as look:
        plan = look.plan("SELECT status, count(*) FROM orders GROUP BY status")
        look.load(plan)
        rows = look.rows(plan)

The folder, which only its owner may open, is removed at the end. DuckDB keeps what does not fit into the
memory there; it reaches no other file, no network, and runs a single SELECT.
"""

from __future__ import annotations

import io
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import orjson

from hashrange.prices import on_demand
from hashrange.prices.money import Money
from hashrange_console.items.sources import TableOrIndex, sources_of
from hashrange_sql.entities import View, views_of
from hashrange_sql.planning import UNUSED_OPTIMIZERS, Read, read_of, tables_named, uses_of
from hashrange_sql.reading import Json, Rate, Reader
from hashrange_sql.shapes import Columns, columns_of, literal, quoted

SAMPLE_ITEMS: Final = 400
MEMORY: Final = {"memory_limit": "1GB"}
"""What DuckDB may use of the memory."""
ROWS_SHOWN: Final = 1_000
_SEGMENT_BYTES: Final = 1 << 20
_PAGE_BYTES: Final = 1 << 20
_UNIT_BYTES: Final = 8192
"""What half a unit twice reads: eventually consistent reads."""
_FETCHED: Final = 1_000
_NAMES_SHOWN: Final = 20
_WIDTH: Final = 200
_RAW: Final = quoted("raw items")
"""The schema of the items as they came; no table has such a name."""
_SYSTEM: Final = ("information_schema", "pg_catalog")
_KEY_TYPES: Final = {"S": "VARCHAR", "N": "DECIMAL(38,0)", "B": "BLOB"}
_OPTIONS: Final = "skip_null := true, skip_empty := true, skip_default := true"
_ONE_SELECT: Final = (
    "One SELECT over tables, in DuckDB's SQL, can run here: nothing can be written, and no file can be read."
)
_RARE: Final = (
    "Columns are the attributes that a sample has: a larger one (`hashrange sql --sample`) finds rarer "
    "attributes."
)
_ADVICE: Final = (
    (duckdb.OutOfMemoryException, "Ask for fewer rows or columns, or group by something with fewer values."),
    (duckdb.PermissionException, _ONE_SELECT),
    (duckdb.ConversionException, "TRY_CAST gives NULL for a value that does not fit."),
)
_FORMULA_BEGINS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_FORMULA: Final = literal(f"^[{''.join(re.escape(one) for one in _FORMULA_BEGINS)}]")
_INSERT: Final = "INSERT INTO {} SELECT unnest(json_transform(CAST(? AS VARCHAR), '[\"JSON\"]'))"


class Refused(Exception):
    """A statement that cannot run here; the text says why, and what to do."""


@dataclass(slots=True)
class Table:
    """A table that a statement names. `table_class` is that of the API, for prices. `types` are those of its
    columns, from the sample until it is loaded; `told` is what users should know of them. `complete`: the
    sample was all of it."""

    name: str
    sources: list[TableOrIndex]
    table_class: str = ""
    types: dict[str, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    sampled: int = 0
    units: float = 0.0
    complete: bool = False

    @property
    def raw(self) -> str:
        return f"{_RAW}.{quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a statement reads: `tables` are those that it names, `reads` what is read of them. `region` is
    that of the prices, "" where reading costs nothing."""

    sql: str
    tables: list[Table]
    reads: list[Read]
    region: str

    @property
    def units(self) -> float:
        """The read units, at most, without those of the samples, which are read already."""
        return sum([read.units for read in self.reads])

    @property
    def money(self) -> Money:
        """What these units, and those of the samples, cost on demand."""
        classes = {table.name: table.table_class for table in self.tables}
        spent = [(table.units, table.table_class) for table in self.tables]
        spent += [(read.units, classes[read.source.table]) for read in self.reads]
        prices = [on_demand(self.region, reads=units, table_class=class_) for units, class_ in spent]
        return sum(prices, Money())

    @property
    def cost(self) -> str:
        """The units and the money of all that is read, the samples included, as a text; "" for nothing."""
        if not self.tables or not self.region:
            return ""
        units = self.units + sum([table.units for table in self.tables])
        noun = "read unit" if units == 1 else "read units"
        return f"about {units:g} {noun} with the samples, {self.money} on demand in {self.region}"

    @property
    def lines(self) -> list[str]:
        """What is read, a line for each read, sample and list of entities."""
        lines = [
            f"sample of {table.name}: {table.sampled} items, {table.units:g} read units"
            for table in self.tables
        ]
        for table in self.tables:
            if table.views:
                named = ", ".join(f"{quoted(table.name)}.{quoted(view.name)}" for view in table.views)
                lines.append(f"entities of {table.name}: {named}")
        return [*lines, *map(str, self.reads)] or ["nothing is read"]

    def __str__(self) -> str:
        return "\n".join([*self.lines, *([f"in all: {self.cost}"] if self.cost else [])])


class Look:
    """See above. `opened` makes it."""

    def __init__(
        self, reader: Reader, rate: Rate, sample_items: int, folder: Path, settings: Mapping[str, str]
    ) -> None:
        self._reader, self._rate = reader, rate
        self._sample_items = sample_items
        self.folder = folder
        unused = {"disabled_optimizers": ",".join(UNUSED_OPTIMIZERS)}
        self._database = _connected(folder, "loaded items", settings)
        self._planner = _connected(folder, "planned statements", {**settings, **unused})
        self._database.execute(f"CREATE SCHEMA {_RAW}")
        self._tables: dict[str, Table] = {}

    def close(self) -> None:
        self._database.close()
        self._planner.close()

    def plan(self, sql: str, rows: int | None = None) -> Plan:
        """What a SELECT reads, of which at most `rows` rows are wanted. A sample of each table that it names
        is read. Raises Refused, the errors of boto3, and click.ClickException."""
        statement = self._planned(f"json_serialize_sql(?, {_OPTIONS})", sql)
        if len(statement["statements"]) != 1:
            raise Refused("Only one statement can run: leave out all but the first.")
        sql = sql.rstrip().rstrip(";")
        if rows is not None:
            sql = f"SELECT * FROM ({sql}\n) LIMIT {rows}"
        named = [
            self._table(schema, name) for schema, name in tables_named(statement) if schema not in _SYSTEM
        ]
        tables = list({table.name: table for table in named}.values())
        planned = self._planned(f"json_serialize_plan(?, {_OPTIONS}, optimize := true)", sql)
        reads = []
        uses = uses_of(planned)
        for table in tables:
            if own := [use for use in uses if use.table == table.name]:
                whole = Read(table.sources[0], done=True)
                reads.append(whole if table.complete else read_of(table.sources, own, [*table.types]))
        return Plan(sql, tables, reads, self._reader.region)

    def load(self, plan: Plan, progress: Callable[[int], None] = lambda items: None) -> None:
        """Read what a plan says. `progress` gets the number of items of each page, from several threads.
        Raises the errors of boto3, and click.ClickException."""
        for read in plan.reads:
            if not read.done:
                table = self._tables[read.source.table.lower()]
                self._database.execute(f"TRUNCATE {table.raw}")
                self._fill(table, read, progress)
                self._show(table, columns_of(self._ask, table.raw))

    def rows(self, plan: Plan) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names of the columns and the rows that a loaded plan's statement finds. Raises Refused."""
        with _refusing():
            found = self._database.execute(plan.sql)
            return [column[0] for column in found.description or ()], found.fetchall()

    def text(self, plan: Plan) -> str:
        """Up to ROWS_SHOWN rows as a table for people. Raises Refused."""
        with _refusing():
            found = io.StringIO()
            with redirect_stdout(found):
                self._database.sql(plan.sql).show(max_rows=ROWS_SHOWN, max_width=_WIDTH)
            return found.getvalue()

    def write(self, plan: Plan, form: str, *, guarded: bool = False) -> Path:
        """A file with the rows: `form` is csv, json (a line each) or parquet. `guarded`: in a CSV, texts that
        a spreadsheet would run as formulas have an apostrophe before them. Raises Refused."""
        file = self.folder / f"answer.{form}"
        more = ", HEADER" if form == "csv" else ""
        sql = self._guarded(plan.sql) if guarded and form == "csv" else plan.sql
        with _refusing():
            self._database.execute(f"COPY ({sql}\n) TO {literal(str(file))} (FORMAT {form}{more})")
        return file

    def columns(self, sql: str) -> list[tuple[str, str]]:
        """The names and types of a loaded statement's columns. Raises Refused."""
        with _refusing():
            found = self._database.execute(f"SELECT * FROM ({sql}\n) LIMIT 0").description or ()
            return [(name, str(kind)) for name, kind, *_ in found]

    def texts(self, plan: Plan, columns_max: int, characters_max: int) -> list[list[str | None]]:
        """The rows of a loaded plan's statement: the beginnings of the texts of its first columns, None for
        NULL. Raises Refused."""
        count = len(self.columns(plan.sql))
        cut = ", ".join(
            f"left(CAST(c{place} AS VARCHAR), {characters_max})" for place in range(min(count, columns_max))
        )
        with _refusing():
            found = self._database.execute(f"SELECT {cut} FROM ({plan.sql}\n) AS {_answer(count)}")
            return [list(row) for row in found.fetchall()]

    def _guarded(self, sql: str) -> str:
        """A statement whose texts are no formulas of a spreadsheet."""
        columns = self.columns(sql)
        shown = []
        for place, (name, kind) in enumerate(columns):
            column = f"c{place}"
            if kind == "VARCHAR":
                is_formula = f"regexp_matches({column}, {_FORMULA})"
                column = f"CASE WHEN {is_formula} THEN chr(39) || {column} ELSE {column} END"
            title = f"'{name}" if name.startswith(_FORMULA_BEGINS) else name
            shown.append(f"{column} AS {quoted(title)}")
        return f"SELECT {', '.join(shown)} FROM ({sql}\n) AS {_answer(len(columns))}"

    # -- Tables -------------------------------------------------------------------------------------------

    def _table(self, schema: str, name: str) -> Table:
        """A table of a statement: an entity of it, which is `name`, if there is a schema."""
        wanted = name if schema in ("", "main") else schema
        if wanted.lower() not in self._tables:
            described = self._described(wanted)
            sources = [*sources_of(described)]
            class_ = described.get("TableClassSummary", {}).get("TableClass", "")
            table = Table(sources[0].table, sources[:1] if self._reader.past else sources, class_)
            self._tables[table.name.lower()] = table
            self._sample(table)
        return self._tables[wanted.lower()]

    def _described(self, name: str) -> Json:
        if (described := self._reader.describe(name)) is not None:
            return described
        known = self._reader.tables()
        for one in known:
            if one.lower() == name.lower() and (described := self._reader.describe(one)) is not None:
                return described
        shown = ", ".join(known[:_NAMES_SHOWN]) + (", …" if len(known) > _NAMES_SHOWN else "")
        raise Refused(
            f'There is no table {name!r}; there are: {shown or "none"}. Quote names as in "my-table".'
        )

    def _sample(self, table: Table) -> None:
        """Read some items, from several places of a table, and make its views of them."""
        self._database.execute(f"CREATE TABLE {table.raw} (item JSON)")
        segments = self._reader.segments
        items: list[Any] = []
        ends = True
        for segment in range(segments):
            request: Json = {"TableName": table.name, "Limit": -(-self._sample_items // segments)}
            if segments > 1:
                request |= {"Segment": segment, "TotalSegments": segments}
            self._rate.wait()
            page = self._reader.read("Scan", request)
            self._rate.spent(page.units)
            table.units += page.units
            table.sampled += page.size
            ends = ends and page.start is None
            items += orjson.loads(page.items)
            self._database.execute(_INSERT.format(table.raw), [page.items.decode()])
        table.complete = ends
        columns = columns_of(self._ask, table.raw)
        known = {*columns.sql}
        table.views = views_of(table.sources, items, known)
        self._show(table, columns)
        defined = ", ".join(f"{quoted(name)} {type_}" for name, type_ in table.types.items())
        self._planner.execute(f"CREATE TABLE {quoted(table.name)} ({defined})")
        for database in (self._planner, self._database):
            for view in table.views:
                database.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(table.name)}")
                names = ", ".join(map(quoted, view.columns))
                database.execute(
                    f"CREATE VIEW {quoted(table.name)}.{quoted(view.name)} AS "
                    f"SELECT {names} FROM main.{quoted(table.name)} WHERE {view.condition}"
                )

    def _show(self, table: Table, columns: Columns) -> None:
        """Make the view of a table's items. Columns that are known, but not loaded, are NULL."""
        found = columns.sql
        for source in table.sources:
            for name, kind in source.keys:
                table.types.setdefault(name, _KEY_TYPES[kind])
        shown = {name: found.get(name, f"CAST(NULL AS {type_})") for name, type_ in table.types.items()}
        listed = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in {**shown, **found}.items())
        view = f"main.{quoted(table.name)}"
        self._database.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT {listed} FROM {columns.source}")
        described = self._database.execute(f"DESCRIBE {view}").fetchall()
        table.types = {name: type_ for name, type_, *_ in described}
        table.told = [f"{table.name}.{line}" for line in columns.told]

    # -- Loading ------------------------------------------------------------------------------------------

    def _fill(self, table: Table, read: Read, progress: Callable[[int], None]) -> None:
        """Read pages side by side."""
        requests = read.requests()
        for request in requests:
            if limit := self._page_items(read):
                request["Limit"] = limit
        is_scan = not read.partitions
        count = self._reader.segments
        if is_scan and read.items is None and count > 1 and read.source.size > _SEGMENT_BYTES:
            segments = [{"Segment": one, "TotalSegments": count} for one in range(count)]
            requests = [{**requests[0], **segment} for segment in segments]
        stopped = threading.Event()
        operation = "Scan" if is_scan else "Query"

        def run(request: Json) -> None:
            left = read.items
            with self._database.cursor() as cursor:
                while not stopped.is_set() and (left is None or left > 0):
                    self._rate.wait()
                    page = self._reader.read(operation, request)
                    self._rate.spent(page.units)
                    cursor.execute(_INSERT.format(table.raw), [page.items.decode()])
                    progress(page.size)
                    left = None if left is None else left - page.size
                    if page.start is None:
                        return
                    if page.start == request.get("ExclusiveStartKey"):
                        raise Refused(f"The pages of {table.name} do not end: the server answers wrongly.")
                    request = {**request, "ExclusiveStartKey": page.start}

        with ThreadPoolExecutor(count, thread_name_prefix="hashrange-sql") as pool:
            try:
                for done in [pool.submit(run, request) for request in requests]:
                    done.result()
            except BaseException:
                stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _page_items(self, read: Read) -> int | None:
        """How many items a page may have, so that it costs no more than a second's units."""
        found = [] if read.items is None else [read.items]
        if self._rate.units is not None and self._rate.units * _UNIT_BYTES < _PAGE_BYTES:
            found.append(max(1, int(self._rate.units * _UNIT_BYTES / max(read.source.average, 1))))
        return min(found, default=None)

    def _ask(self, statement: str) -> Iterator[tuple[Any, ...]]:
        found = self._database.execute(statement)
        while rows := found.fetchmany(_FETCHED):
            yield from rows

    def _planned(self, call: str, sql: str) -> Json:
        """What DuckDB's planner says of a statement. Raises Refused."""
        with _refusing():
            row = self._planner.execute(f"SELECT CAST({call} AS VARCHAR)", [sql]).fetchone()
        assert row is not None
        answer: Json = orjson.loads(row[0])
        if answer.get("error"):
            text = answer["error_message"].strip()
            is_column = answer.get("error_type") == "binder" and "column" in text.lower()
            raise Refused(f"{text}\n{_RARE if is_column else _ONE_SELECT}")
        return answer


def _answer(count: int) -> str:
    """The name of a subquery, with names for its columns, which may be named twice."""
    return f"answer({', '.join(f'c{place}' for place in range(count))})"


def _connected(folder: Path, name: str, settings: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A database in the folder, which reaches nothing outside of it, and no variables of Python. No statement
    can change its settings."""
    database = duckdb.connect(folder / f"{name}.duckdb")
    own = {setting: literal(value) for setting, value in settings.items()}
    for setting, value in {
        **own,
        "temp_directory": literal(str(folder)),
        "allowed_directories": f"[{literal(str(folder))}]",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
        "enable_external_access": "false",
        "lock_configuration": "true",
    }.items():
        database.execute(f"SET {setting} = {value}")
    return database


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn the errors of DuckDB into Refused."""
    try:
        yield
    except duckdb.Error as error:
        advice = next((text for kind, text in _ADVICE if isinstance(error, kind)), "")
        raise Refused(f"{error}\n{advice}".rstrip()) from error


@contextmanager
def opened(
    reader: Reader,
    *,
    rate: Rate | None = None,
    sample_items: int = SAMPLE_ITEMS,
    settings: Mapping[str, str] = MEMORY,
) -> Iterator[Look]:
    """A look by a reader. `sample_items` are read of each table first; `settings` are DuckDB's."""
    with tempfile.TemporaryDirectory(prefix="hashrange-sql-", ignore_cleanup_errors=True) as folder:
        look = Look(reader, rate or Rate(None), sample_items, Path(folder), settings)
        try:
            yield look
        finally:
            look.close()
