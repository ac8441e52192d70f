"""What the lab adds to the console: pages about heat, costs and throughput.

    heat      the busiest tables, parts of tables, and keys
    costs     what requests cost, by table, operation and program; advice with figures
    capacity  the units of each minute against the limits of tables and indexes
    plans     what the load would cost on demand, provisioned and reserved
    switches  throttling, reads that are behind, the recording
    charts    bars, as the templates draw them

The server counts (`hashrange_lab.money.meter`) while somebody has asked for it: here, by
`hashrange costs start` or by --costs. The heat is counted while a page shows it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hashrange_console.pages import Action, Page, Pages, Section, Tab
from hashrange_lab.pages import capacity, costs, heat, plans, switches

PAGES: Final = Pages(
    parts=(
        Page("/console/heat", "The busiest tables and keys.", heat.page),
        Page("/console/heat/events", "The counts as they grow, as server-sent events.", heat.events),
        Page("/console/costs", "What requests cost.", costs.page),
        Page("/console/costs/advice", "What would make requests cheaper.", costs.advice),
        Action("/console/costs/record", "Begin or end to count costs.", costs.record, costs.Recording),
        Page("/console/costs/plans", "The load on demand, provisioned and reserved.", plans.page),
        Page("/console/lab", "The switches of the lab.", switches.page),
        Action("/console/lab/throttling", "Switch throttling.", switches.throttle, switches.Throttling),
        Action("/console/lab/eventual", "Set how far reads lag behind.", switches.lag, switches.Eventual),
        Action("/console/lab/recording", "Start or stop a recording.", switches.record, switches.Recording),
        Page("/console/capacity", "Consumed units against the limits.", capacity.page),
    ),
    sections=(
        Section("live", "Live", "/console/requests", (Tab("heat", "Heat", "/console/heat"),)),
        Section("server", "Server", "/console/backups", (Tab("lab", "Lab", switches.PATH),)),
        Section(
            "costs",
            "Costs",
            "/console/costs",
            (
                Tab("costs", "Costs", "/console/costs"),
                Tab("advice", "Advice", "/console/costs/advice"),
                Tab("capacity", "Capacity", "/console/capacity"),
                Tab("plans", "Plans", "/console/costs/plans"),
            ),
        ),
    ),
    folder=Path(__file__).parent,
)
"""The pages, for `rings.Ring.pages`."""
