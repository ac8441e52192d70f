"""`hashrange top`: the busiest keys, tables and operations of a running server, live."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import click
import orjson

from hashrange.cli.forms import JSON, Duration, format_option, limit_option
from hashrange.cli.remote.asking import Plane, ask, plane_options
from hashrange.pace.workers import hold_up
from hashrange_lab.commands.tables import bar, milliseconds, table

COLUMNS: Final = 80
_KEY_COLUMNS: Final = 26
_PLACE_COLUMNS: Final = 16
_BAR_COLUMNS: Final = 10
_OPERATIONS_SHOWN: Final = 6
_PLACES_SHOWN: Final = 5
_HOME: Final = "\x1b[H\x1b[2J"
ORDERS: Final = ("all", "reads", "writes", "throttles")

_EPILOG: Final = """\b
Examples:
  hashrange top
  hashrange top --table orders --by writes
  hashrange top --by throttles --interval 5s
  hashrange top --once --format json | jq '.keys[0]'

Each item that a request names counts once; a key is a partition key, of a table or a global index. The server
counts only while this command or the console's page Heat asks. See packages/lab/docs/load.md."""


@click.command("top", epilog=_EPILOG)
@click.option("--table", "table_name", metavar="NAME", help="Show only this table and its indexes.")
@click.option(
    "--by", type=click.Choice(ORDERS), default=ORDERS[0], show_default=True, help="The order of keys."
)
@click.option(
    "--interval",
    type=Duration(0.1, 60),
    default="2s",
    show_default=True,
    help="The time that each report covers.",
)
@limit_option("Show at most N keys.", type=click.IntRange(1, 100), default=15, show_default=True)
@click.option("--once", is_flag=True, help="Show one report, after one interval, and stop.")
@format_option("How each report is printed: as tables, or as a JSON object on a line.")
@plane_options
def command(
    plane: Plane, table_name: str | None, by: str, interval: float, limit: int, once: bool, format_: str
) -> None:
    """Show the busiest keys of a running server, and the rates and latencies of its operations."""
    before = _ask(plane)
    is_live = sys.stdout.isatty() and not (once or format_ == JSON)
    try:
        while True:
            hold_up(interval)
            now = _ask(plane)
            picture = difference(before, now, table_name, by, limit)
            before = now
            if format_ == JSON:
                click.echo(orjson.dumps(picture))
            else:
                text = "\n".join(lines(picture, by))
                click.echo(f"{_HOME}{text}\n\n(Ctrl-C ends)" if is_live else text)
            if once:
                return
    except KeyboardInterrupt:
        return


def _ask(plane: Plane) -> dict[str, Any]:
    heat: dict[str, Any] = ask(plane, "/v1/heat?keys=500", "heat", "hashrange serve")["heat"]
    return heat


@dataclass(frozen=True, slots=True)
class _Rates:
    """What was counted from one moment to another, a second."""

    seconds: float

    def of(self, before: dict[str, Any], now: dict[str, Any]) -> dict[str, float]:
        rates = {
            name: max(now[name] - before.get(name, 0), 0) / self.seconds
            for name in ("reads", "writes", "throttles")
        }
        return rates | {"all": rates["reads"] + rates["writes"]}


def difference(
    before: dict[str, Any], now: dict[str, Any], table_name: str | None, by: str, keys: int
) -> dict[str, Any]:
    """A picture: what happened between two answers of `GET /v1/heat`, in rates a second. Counts that began
    in between count from zero."""
    rates = _Rates(max(now["seconds"] - before["seconds"], 1e-3))
    if before["since"] != now["since"]:
        before = {**before, "keys": [], "places": []}

    def taken(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in rows if table_name in (None, row["table"], row["table"].rpartition("/")[2])]

    earlier = {_identity(row): row for row in before["keys"]}
    shown = [{**row, **rates.of(earlier.get(_identity(row), {}), row)} for row in taken(now["keys"])]
    earlier_places = {(row["table"], row["index"]): row for row in before["places"]}
    places = []
    for row in taken(now["places"]):
        known = earlier_places.get((row["table"], row["index"]), {})
        without = (row["without_key"] - known.get("without_key", 0)) / rates.seconds
        places.append({**row, **rates.of(known, row), "without_key": without})
    operations = [
        {"operation": name, **_operation(before["operations"].get(name), of, rates.seconds, now)}
        for name, of in now["operations"].items()
    ]
    return {
        "seconds": rates.seconds,
        "keys": sorted([row for row in shown if row[by]], key=lambda row: -row[by])[:keys],
        "places": sorted(places, key=lambda row: -(row["all"] + row["without_key"])),
        "operations": sorted([of for of in operations if of["rate"]], key=lambda of: -of["rate"]),
    }


def _identity(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["table"], row["index"], orjson.dumps(row["key"]).decode()


def _operation(
    before: dict[str, Any] | None, now: dict[str, Any], seconds: float, heat: dict[str, Any]
) -> dict[str, Any]:
    """The rate, the errors and the latencies of an operation. Latencies are the bounds of the histogram's
    buckets; None: beyond the last."""
    earlier = before or {"requests": 0, "errors": 0, "buckets": [0] * len(now["buckets"])}
    counts = [count - old for count, old in zip(now["buckets"], earlier["buckets"], strict=True)]
    total = sum(counts)
    bounds = [*heat["bounds_seconds"], None]
    percentiles = {}
    for percent in (50, 99):
        places = [place for place, seen in enumerate(accumulate(counts)) if seen * 100 >= total * percent]
        percentiles[f"p{percent}_seconds"] = bounds[places[0]] if total else 0.0
    errors = (now["errors"] - earlier["errors"]) / seconds
    return {"rate": (now["requests"] - earlier["requests"]) / seconds, "errors": errors, **percentiles}


def lines(picture: dict[str, Any], by: str) -> list[str]:
    """The lines of a picture, none longer than `COLUMNS`."""
    requests = sum([of["rate"] for of in picture["operations"]])
    errors = sum([of["errors"] for of in picture["operations"]])
    shown = [f"{_rate(requests)} requests/s, {_rate(errors)} errors/s, in {picture['seconds']:.1f} s", ""]
    rows = [
        [of["operation"], _rate(of["rate"]), _rate(of["errors"]), *map(_latency, _percentiles(of))]
        for of in picture["operations"][:_OPERATIONS_SHOWN]
    ]
    if rows:
        shown += [*table(["operation", "a second", "errors", "p50 ms", "p99 ms"], rows), ""]
    rows = [
        [_cut(_place(row), _KEY_COLUMNS), *map(_rate, _counts(row)), _rate(row["without_key"])]
        for row in picture["places"][:_PLACES_SHOWN]
    ]
    if rows:
        heads = ["table", "reads/s", "writes/s", "throttles/s", "without key"]
        shown += [*table(heads, rows), ""]
    if not picture["keys"]:
        return [*shown, "no key was used" if by != "throttles" else "no key was throttled"]
    most = max([row[by] for row in picture["keys"]])
    width = max(
        min(max([len(_value(row["key"])) for row in picture["keys"]]), _KEY_COLUMNS), len("partition key")
    )
    shown.append(f"{'partition key'.ljust(width)}  {'table'.ljust(_PLACE_COLUMNS)}   reads  writes  thrott")
    for row in picture["keys"]:
        numbers = "  ".join(_rate(count).rjust(6) for count in _counts(row))
        place = _cut(_place(row), _PLACE_COLUMNS).ljust(_PLACE_COLUMNS)
        filled = bar(row[by] / most, _BAR_COLUMNS)
        shown.append(f"{_cut(_value(row['key']), width).ljust(width)}  {place}  {numbers}  {filled}".rstrip())
    return shown


def _counts(row: dict[str, Any]) -> tuple[float, float, float]:
    return row["reads"], row["writes"], row["throttles"]


def _percentiles(of: dict[str, Any]) -> tuple[float | None, float | None]:
    return of["p50_seconds"], of["p99_seconds"]


def _place(row: dict[str, Any]) -> str:
    name = str(row["table"]).rpartition("/")[2]
    return f"{name}/{row['index']}" if row["index"] else name


def _value(key: dict[str, Any]) -> str:
    """A key for people: its value, without what a terminal could take for a command."""
    [attribute] = key.values()
    [text] = attribute.values()
    return "".join([letter if letter.isprintable() else "·" for letter in str(text)])


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _rate(value: float) -> str:
    return f"{value:.1f}" if 0 < value < 10 else f"{value:,.0f}"


def _latency(seconds: float | None) -> str:
    return "more" if seconds is None else f"≤ {milliseconds(seconds)}"
