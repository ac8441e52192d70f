"""Throughput of tables and indexes: provisioned units, maximums of on-demand requests (ceilings), warm
throughput.

PROVISIONED tables have units, on-demand tables may have ceilings. Every answer shows warm throughput, which
never decreases: the stored value (`warm`) is the highest that was requested or provisioned.

Error messages name tables and indexes in different ways: `Of` has these names.
Source: API reference, CreateTable and UpdateTable; for messages and the contents of answers the measurements
of ack-api-quirks of October 2026 (its DDB-TABLE-038 to 064, 128, 152 to 179).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from hashrange.clock import has_come
from hashrange.errors import INVALID, LimitExceededException, ValidationException
from hashrange.limits import DECREASE_INTERVAL_SECONDS, DECREASES_FREELY_MAX, UNITS_MAX
from hashrange.tables.definitions.table import Index, Table, Throughput

_ON_DEMAND_WARM: Final = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000}
_CEILINGS: Final = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
_INITIAL_THROUGHPUT: Final = (
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"
    "#on-demand-capacity-mode-initial"
)
_NO_CHANGE: Final = (
    "The provisioned throughput for the {of} will not change. The requested value equals the current value. "
    "Current ReadCapacityUnits provisioned for {short}: {read}. Requested ReadCapacityUnits: {read}. "
    "Current WriteCapacityUnits provisioned for {short}: {write}. Requested WriteCapacityUnits: {write}. "
    "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
)


@dataclass(frozen=True, slots=True)
class Of:
    """The names of a table or index in the texts of errors about its throughput."""

    index: str | None = None

    @property
    def unchanged(self) -> dict[str, str]:
        """The name in the error for an update that changes nothing."""
        if self.index is None:
            return {"of": "table", "short": "the table"}
        return {"of": f"index {self.index}", "short": f"index {self.index}"}

    @property
    def ceiling(self) -> str:
        """The name in errors about OnDemandThroughput."""
        return "table" if self.index is None else f"index : {self.index}"

    @property
    def warm(self) -> str:
        """The name in errors about WarmThroughput."""
        return "table" if self.index is None else f"index {self.index}"


TABLE: Final = Of()


# -- Provisioned units ------------------------------------------------------------------------------------


def with_billing_mode(request: dict[str, Any]) -> dict[str, Any]:
    """The request with its billing mode under the name BillingMode.

    TableThroughputMode is a second name, for requests that do not use the first. [report] extenddb pull 320
    """
    if request.get("BillingMode") is not None or request.get("TableThroughputMode") is None:
        return request
    return {**request, "BillingMode": request["TableThroughputMode"]}


def check_billing(billing_mode: str, given: Mapping[str, Any] | None) -> None:
    """Refuse throughput of a table without the billing mode PROVISIONED, and this mode without throughput."""
    if billing_mode == "PROVISIONED" and given is None:
        raise ValidationException(
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode "
            "is PROVISIONED"
        )
    if billing_mode == "PAY_PER_REQUEST" and given is not None:
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode "
            "is PAY_PER_REQUEST"
        )


def check_bounds(given: Mapping[str, Any] | None, index: str | None = None) -> None:
    """Refuse units beyond any quota. A table's units are checked before the table is opened ([report]
    dynalite's recordings)."""
    place = "" if index is None else f" for index {index}"
    for member in ("ReadCapacityUnits", "WriteCapacityUnits"):
        if given is not None and given[member] > UNITS_MAX:
            raise ValidationException(f"Given value {given[member]} for {member} is out of bounds{place}")


def check_index_billing(
    billing_mode: str, given: Mapping[str, Any] | None, name: str, *, updating: bool
) -> None:
    """Like `check_billing`, for a new index. UpdateTable and CreateTable have different messages for this."""
    if billing_mode == "PAY_PER_REQUEST" and given is not None:
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: {name} "
            "when BillingMode is PAY_PER_REQUEST"
            if updating
            else f"{INVALID}ProvisionedThroughput should not be specified for index: {name} when BillingMode "
            "is PAY_PER_REQUEST"
        )
    if billing_mode == "PROVISIONED" and given is None:
        raise ValidationException(
            f"{INVALID}Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: {name}"
            if updating
            else f"{INVALID}ProvisionedThroughput is not specified for index: {name}"
        )


def provisioned(given: Mapping[str, Any] | None) -> Throughput:
    """The stored form of ProvisionedThroughput; zero units if it is not given."""
    if given is None:
        return Throughput()
    return Throughput(given["ReadCapacityUnits"], given["WriteCapacityUnits"])


def changed(current: Throughput, given: Mapping[str, Any], now: float, of: Of = TABLE) -> Throughput:
    """New throughput of a table or index; refuses an update that changes nothing."""
    read, write = given["ReadCapacityUnits"], given["WriteCapacityUnits"]
    if (read, write) == (current.read_units, current.write_units):
        raise ValidationException(_NO_CHANGE.format(**of.unchanged, read=read, write=write))
    lower = read < current.read_units or write < current.write_units
    higher = read > current.read_units or write > current.write_units
    if lower:
        _check_decrease(current, now)
    return Throughput(
        read,
        write,
        current.decreases_today(now) + lower,
        now if higher else current.last_increase,
        now if lower else current.last_decrease,
    )


def switched(current: Throughput, given: Mapping[str, Any] | None) -> Throughput:
    """Throughput after a switch of the billing mode. The switch does not count as an increase or decrease."""
    units = provisioned(given)
    return msgspec.structs.replace(current, read_units=units.read_units, write_units=units.write_units)


def _check_decrease(current: Throughput, now: float) -> None:
    """Refuse more than four decreases per day, unless the last was an hour ago. Source: Developer Guide,
    "Quotas"."""
    last, today = current.last_decrease, current.decreases_today(now)
    if last is None or today < DECREASES_FREELY_MAX:
        return
    if has_come(last + DECREASE_INTERVAL_SECONDS, now, DECREASE_INTERVAL_SECONDS):
        return
    raise LimitExceededException(
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day. "
        f"After the first {DECREASES_FREELY_MAX} decreases, each subsequent decrease in the same UTC day can "
        f"be performed at most once every {DECREASE_INTERVAL_SECONDS} seconds. Number of decreases today: "
        f"{today}. Last decrease at {_moment(last)}. Next decrease can be made at "
        f"{_moment(last + DECREASE_INTERVAL_SECONDS)}"
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%A, %B %d, %Y at %I:%M:%S %p UTC")


# -- Ceilings of on-demand requests -----------------------------------------------------------------------


def ceilings(given: Mapping[str, Any] | None) -> dict[str, int] | None:
    """The stored form of OnDemandThroughput; None if it has no members."""
    return _known(given, _CEILINGS)


def check_ceilings(
    given: Mapping[str, Any] | None, billing_mode: str, of: Of = TABLE, *, updating: bool = False
) -> None:
    """Refuse ceilings with the billing mode PROVISIONED, and ceilings below 1.

    An update may remove a ceiling, with -1.
    """
    named = ceilings(given) or {}
    for name in named:
        if billing_mode == "PROVISIONED":
            raise ValidationException(f"{INVALID}{name} for OnDemandThroughput {_misplaced(of, updating)}")
    for name, units in named.items():
        if units < 1 and not (updating and units == -1):
            raise ValidationException(
                f"{INVALID}Requested {name} for OnDemandThroughput for {of.ceiling} is outside of valid range"
            )


def _misplaced(of: Of, updating: bool) -> str:
    if updating:
        where = "" if of.index is None else f"for {of.ceiling} "
        return f"{where}cannot be specified when the table BillingMode is PROVISIONED"
    where = "" if of.index is None else f"for index: {of.index} "
    return f"{where}cannot be specified when table BillingMode is PROVISIONED."


def changed_ceilings(current: Mapping[str, int] | None, given: Mapping[str, Any]) -> dict[str, int] | None:
    """The ceilings after an update, which changes the ceilings that it names and removes those that it sets
    to -1. [report] dynoxide issue 159."""
    return {name: units for name, units in echoed_ceilings(current, given).items() if units != -1} or None


def echoed_ceilings(current: Mapping[str, int] | None, given: Mapping[str, Any]) -> dict[str, int]:
    """The ceilings in the answer to an update: a removed ceiling is shown as the -1 of the request."""
    return {**(current or {}), **(ceilings(given) or {})}


# -- Warm throughput --------------------------------------------------------------------------------------


def warm(given: Mapping[str, Any] | None) -> dict[str, int] | None:
    """The stored form of WarmThroughput; None if it has no members."""
    return _known(given, tuple(_ON_DEMAND_WARM))


def current_warm(kept: Mapping[str, int] | None, units: Throughput, billing_mode: str) -> dict[str, int]:
    """The warm throughput of a table or index whose stored value is `kept`.

    Store it before changing units or the billing mode.
    """
    base = _provisioned_warm(units) if billing_mode == "PROVISIONED" else _ON_DEMAND_WARM
    return {name: max(least, (kept or {}).get(name, 0)) for name, least in base.items()}


def _provisioned_warm(units: Throughput) -> dict[str, int]:
    return dict(zip(_ON_DEMAND_WARM, (units.read_units, units.write_units), strict=True))


def check_new_warm(
    given: Mapping[str, Any] | None, units: Throughput, billing_mode: str, of: Of = TABLE
) -> None:
    """Refuse less warm throughput for a new table or index than it would have by default."""
    on_demand = billing_mode == "PAY_PER_REQUEST"
    base = _ON_DEMAND_WARM if on_demand else _provisioned_warm(units)
    for name, value in (warm(given) or {}).items():
        if value < base[name]:
            capacity = name.replace("UnitsPerSecond", "CapacityUnits")
            raise ValidationException(
                f"{INVALID}Requested {name} for WarmThroughput for {of.warm} is lower than "
                + (
                    f"initial throughput for OnDemand. See: {_INITIAL_THROUGHPUT}"
                    if on_demand
                    else f"{capacity} of ProvisionedThroughput"
                )
            )


def changed_warm(
    owner: Table | Index, billing_mode: str, given: Mapping[str, Any], of: Of = TABLE
) -> dict[str, int]:
    """The stored value after an update of warm throughput; refuses a decrease."""
    current, named = current_warm(owner.warm, owner.throughput, billing_mode), warm(given) or {}
    for name, value in named.items():
        if value < current[name]:
            raise ValidationException(
                f"{INVALID}Requested {name} for WarmThroughput for {of.warm} is lower than current "
                "WarmThroughput, decreasing WarmThroughput is not supported"
            )
    return {**current, **named}


def _known(given: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, int] | None:
    """The known members of a structure; None if there are none."""
    return {name: given[name] for name in names if given.get(name) is not None} or None if given else None
