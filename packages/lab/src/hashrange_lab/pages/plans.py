"""What the counted load would cost on demand, provisioned and reserved: `hashrange costs compare` as a page.

`?place=` is a table, a table without its indexes (`orders/`) or one of its indexes (`orders/by-kind`);
`?minimum=`, `?maximum=` and `?target=` are those of auto scaling, `?region=` says whose prices are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.prices.money import Money
from hashrange.server.admin.aside import aside
from hashrange_console import looks
from hashrange_console.reach import Refused, View
from hashrange_lab.admin import costs
from hashrange_lab.money.counts import Series
from hashrange_lab.money.plans import ON_DEMAND, PLANS, Plan, compare
from hashrange_lab.money.scaling import CAPACITY_MAX, TARGETS, Policy
from hashrange_lab.money.statement import Statement
from hashrange_lab.pages.charts import share
from hashrange_lab.pages.costs import missing_rates, regions_of, statement_of

PLACES_MAX: Final = 100
_CAPACITIES: Final = range(1, CAPACITY_MAX + 1)
_DEFAULT: Final = Policy()
FIELDS: Final = {
    "minimum": ("Minimum", _CAPACITIES, _DEFAULT.minimum),
    "maximum": ("Maximum", _CAPACITIES, _DEFAULT.maximum),
    "target": ("Target", TARGETS, round(100 * _DEFAULT.target)),
}
"""The fields of auto scaling: what they are called, the numbers that they take, and the one that is taken if
none is given."""


@dataclass(frozen=True, slots=True)
class PlanBar:
    """A plan, and the length of its bar, in percent of the most expensive one's."""

    plan: Plan
    bar: float


@dataclass(frozen=True, slots=True)
class PricedTable:
    """A table or an index: what a month costs by each of `PLANS`, and the cheapest, None if no plan has all
    its prices."""

    table: str
    index: str
    months: list[Money]
    cheapest: Plan | None


async def page(view: View) -> Response:
    """The plans, the cheapest first."""
    counted = await costs.counted(view.request)
    if counted is None:
        return await looks.page("lab/plans.html", view=view, since="")
    statement, book = statement_of(view, counted)
    series = [part for part in counted.series if part.minutes]
    place = view.given("place")
    chosen = [part for part in series if place in ("", part.table, f"{part.table}/{part.index}")]
    if place and not chosen:
        raise Refused(f"Nothing was counted of {place!r}.")
    problem, shown = "", {}
    try:
        policy = _policy(view)
    except ValueError as error:
        problem = str(error)
    else:
        # Auto scaling is replayed minute by minute, which takes a while for many tables.
        shown = await aside(view.request, lambda _: _shown(chosen, statement, policy)) if chosen else {}
    return await looks.page(
        "lab/plans.html",
        400 if problem else 200,
        view=view,
        since=show_moment(counted.since),
        statement=statement,
        book=book,
        regions=regions_of(book),
        choices=_choices(series),
        place=place,
        fields={name: (*about, view.given(name) or about[-1]) for name, about in FIELDS.items()},
        problem=problem,
        shown=shown,
        names=PLANS,
    )


def _policy(view: View) -> Policy:
    """The auto scaling that the address asks for. Raises ValueError."""
    numbers = []
    for name, (title, allowed, default) in FIELDS.items():
        text = view.given(name) or str(default)
        # (no allowed number is this long)
        is_number = text.isascii() and text.isdigit() and len(text) < 10
        if not is_number or int(text) not in allowed:
            raise ValueError(f"{title} is a whole number from {allowed[0]:,} to {allowed[-1]:,}.")
        numbers.append(int(text))
    minimum, maximum, target = numbers
    if minimum > maximum:
        raise ValueError(f"Minimum {minimum:,} is more than maximum {maximum:,}.")
    return Policy(minimum, maximum, target / 100)


def _choices(series: Sequence[Series]) -> list[tuple[str, str]]:
    """What can be chosen: the values of `?place=` and their texts."""
    indexes: dict[str, list[str]] = {}
    for part in series:
        indexes.setdefault(part.table, []).append(part.index)
    choices = []
    for table, names in sorted(indexes.items()):
        has_indexes = names != [""]
        choices.append((table, f"{table} with its indexes" if has_indexes else table))
        if has_indexes:
            choices += [
                (f"{table}/{name}", f"{table} index {name}" if name else f"{table} alone")
                for name in sorted(names)
            ]
    return choices


def _shown(series: Sequence[Series], statement: Statement, policy: Policy) -> dict[str, Any]:
    """The plans of a load, as the page shows them."""
    compared = compare(series, statement.region, statement.rates_of, policy)
    plans = compared.plans
    highest = max(plan.a_month.amount for plan in plans)
    demand = next(plan for plan in plans if plan.name == ON_DEMAND)
    saved = demand.a_month.amount - plans[0].a_month.amount
    places = [_place(table, index, found) for (table, index), found in compared.places.items()]
    return {
        "minutes": compared.minutes,
        "cheapest": _cheapest(plans),
        "demand": demand,
        "saved": Money(Decimal(0) if demand.a_month.missing else saved),
        "rows": [PlanBar(plan, share(plan.a_month.amount, highest)) for plan in plans],
        "places": places[:PLACES_MAX] if len(places) > 1 else [],
        "left": len(places) - PLACES_MAX,
        "missing": missing_rates(sum((plan.cost for plan in plans), Money())),
    }


def _place(table: str, index: str, plans: Sequence[Plan]) -> PricedTable:
    months = {plan.name: plan.a_month for plan in plans}
    return PricedTable(table, index, [months[name] for name in PLANS], _cheapest(plans))


def _cheapest(plans: Sequence[Plan]) -> Plan | None:
    return None if plans[0].cost.missing else plans[0]
