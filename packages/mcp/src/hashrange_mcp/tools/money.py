"""What the requests to a Hashrange server cost on AWS, what would make them cheaper, and what a larger load
would do."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from hashrange import limits
from hashrange.prices import Region, UnknownRegion, published
from hashrange_lab.commands import reports
from hashrange_lab.money.counts import Counted, Minute, Series
from hashrange_lab.money.plans import compare
from hashrange_lab.money.statement import Statement
from hashrange_mcp import answers, plane
from hashrange_mcp.connection import Connection

Json = dict[str, Any]
RegionName = Annotated[str, Field(description="The region of the prices; empty: the server's.")]

_NOT_COUNTING: Final = (
    "The server does not count what requests cost. Ask the user to run `hashrange costs start`, or to "
    "start the "
    "server with --costs; then send the requests of the program, and call this tool again."
)
_KEYS: Final = 20
_KEY_CHARACTERS: Final = 200
_PLACES_MAX: Final = 25


class Money:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def costs(
        self,
        by: Annotated[
            list[Literal["table", "index", "operation", "caller"]], Field(description="What lines are for.")
        ] = ["table", "operation"],  # noqa: B006 (a default that the SDK shows to models)
        region: RegionName = "",
    ) -> str:
        """Show what the requests that the server has counted cost on AWS, and the advice that follows: scans
        that read in vain, indexes that nobody reads, consistent reads, each with its figures."""
        counted, place = self._counted(region)
        statement = Statement(counted, place)
        book = published()
        told = reports.as_json(statement, book)
        lines = [
            {
                **dict(zip(by, line.names, strict=True)),
                "requests": line.requests,
                "read_units": line.read_units,
                "write_units": line.write_units,
                "dollars": None if line.total.missing else f"{line.total.amount:f}",
            }
            for line in statement.lines(by)
        ]
        about = {name: told[name] for name in ("region", "since", "until", "total", "monthly", "advice")}
        about["monthly"] = about["monthly"][:_PLACES_MAX]
        about["advice"] = about["advice"][:_PLACES_MAX]
        return answers.bounded(about, "lines", lines, self._connection.bytes_max)

    def what_if(
        self,
        times: Annotated[
            float, Field(gt=0, le=1_000_000, description="How many times the counted load.")
        ] = 10,
        region: RegionName = "",
    ) -> str:
        """Say what so many times the counted load would cost and where it would be throttled: on demand,
        provisioned with auto scaling (replayed minute by minute), fixed and reserved; which tables and
        indexes pass their capacity, and whether the busiest partition keys pass the limit of a partition.
        Keys are counted for two minutes after a call: call it, let the program run for a minute, and call it
        again."""
        counted, place = self._counted(region)
        busiest = self._busiest(counted, times)
        grown = [_times(part, times) for part in counted.series]
        try:
            compared = compare(grown, place, Statement(counted, place).rates_of)
        except ValueError as error:
            raise ToolError(f"{error} Send the requests of the program, and call this tool again.") from error
        told = reports.comparison_json(compared, place, published())
        stored = {one.table: one for one in counted.stored}
        about: Json = {
            "times": times,
            "minutes": told["minutes"],
            "region": told["region"],
            "plans": told["plans"],
            "busiest_keys": busiest,
        }
        places = [_place(part, stored.get(part.table)) for part in grown if part.minutes]
        places.sort(key=lambda one: -len(one["passes"]))
        return answers.bounded(about, "places", places, self._connection.bytes_max)

    def _counted(self, region: str) -> tuple[Counted, Region]:
        """What the server has counted, and the prices of a region. Raises ToolError."""
        shown = plane.counted(self._connection.admin())
        if shown is None:
            raise ToolError(_NOT_COUNTING)
        counted = msgspec.convert(shown, Counted)
        try:
            return counted, published().region(region or counted.region)
        except UnknownRegion as error:
            raise ToolError(f"{error} Give another `region`, such as us-east-1.") from error

    def _busiest(self, counted: Counted, times: float) -> Json:
        """The busiest keys, and the units a second that each would be asked for."""
        heat = plane.heat(self._connection.admin(), _KEYS)
        if not heat["keys"]:
            return {"note": "No keys were counted yet: call this again while the program runs."}
        peaks = {(part.table, part.index): _peak(part) for part in counted.series}
        sums: dict[tuple[str, str], list[int]] = {}
        for one in heat["places"]:
            sums[one["table"], one["index"]] = [one["reads"], one["writes"]]
        keys = []
        for one in heat["keys"]:
            where = one["table"], one["index"]
            reads, writes = (
                times * peak * own / max(total, 1)
                for peak, own, total in zip(
                    peaks.get(where, (0.0, 0.0)),
                    (one["reads"], one["writes"]),
                    sums.get(where, [0, 0]),
                    strict=True,
                )
            )
            keys.append(
                {
                    "table": one["table"],
                    "index": one["index"],
                    "key": _short(one["key"]),
                    "read_units_a_second": round(reads, 2),
                    "write_units_a_second": round(writes, 2),
                    "throttled": reads > limits.PARTITION_READ_UNITS_MAX
                    or writes > limits.PARTITION_WRITE_UNITS_MAX,
                }
            )
        keys.sort(key=lambda one: -max(one["read_units_a_second"] / 3, one["write_units_a_second"]))
        return {
            "limit": f"{limits.PARTITION_READ_UNITS_MAX} read, {limits.PARTITION_WRITE_UNITS_MAX} write "
            "units a second",
            "keys": keys,
        }


def _short(key: Json) -> Json | str:
    """A key, or its beginning as a text if it is long."""
    text = answers.text_of(key)
    return key if len(text) <= _KEY_CHARACTERS else f"{text[:_KEY_CHARACTERS]}…"


def _times(part: Series, times: float) -> Series:
    minutes = [Minute(one.at, one.reads * times, one.writes * times) for one in part.minutes]
    return Series(part.table, part.index, minutes)


def _peak(part: Series) -> tuple[float, float]:
    """The read and write units a second of the busiest minutes."""
    return (
        max((one.reads for one in part.minutes), default=0.0) / 60,
        max((one.writes for one in part.minutes), default=0.0) / 60,
    )


def _place(part: Series, stored: Any) -> Json:
    """What a table or an index would be asked for, and which bounds that passes."""
    peaks = _peak(part)
    passes = []
    for kind, provisioned in (("provisioned capacity", True), ("maximum on demand", False)):
        bounds = getattr(stored, "provisioned" if provisioned else "maximum", {}).get(part.index, (0, 0))
        for peak, bound, word in zip(peaks, bounds, ("read", "write"), strict=True):
            if bound and peak > bound:
                passes.append(f"{kind}: {bound} {word} units a second")
    for peak, word in zip(peaks, ("read", "write"), strict=True):
        if peak > limits.ACCOUNT_UNITS_MAX:
            passes.append(f"quota of a table: {limits.ACCOUNT_UNITS_MAX} {word} units a second")
    return {
        "table": part.table,
        "index": part.index,
        "peak_read_units_a_second": round(peaks[0], 2),
        "peak_write_units_a_second": round(peaks[1], 2),
        "passes": passes,
    }
