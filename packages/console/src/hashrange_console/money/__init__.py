"""Pages about money and throughput.

    costs     what requests cost, by table, operation and program; advice with figures
    capacity  the units of each minute against the limits of tables and indexes
    plans     what the load would cost on demand, provisioned and reserved
    charts    bars, as the templates draw them

The server counts (`hashrange_lab.money.meter`) while somebody has asked for it: here, by
`hashrange costs start` or by --costs.
"""

from __future__ import annotations

from typing import Final

from hashrange_console.money import capacity, costs, plans
from hashrange_console.pages import Change, Page, Part

PARTS: Final[tuple[Part, ...]] = (
    Page("/console/costs", "What requests cost.", costs.page),
    Page("/console/costs/advice", "What would make requests cheaper.", costs.advice),
    Change("/console/costs/record", "Begin or end to count costs.", costs.record, costs.Recording),
    Page("/console/costs/plans", "The load on demand, provisioned and reserved.", plans.page),
    Page("/console/capacity", "Consumed units against the limits.", capacity.page),
)
