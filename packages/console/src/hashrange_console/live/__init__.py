"""Pages about what happens now, which go on by server-sent events.

    requests      the requests as they come
    stream        the changes of a table, from its stream
    contributors  the keys that contributor insights count
    destinations  the Kinesis data streams of tables
    faults        the fault rules
    clock         the virtual clock

    feed          the requests that are kept for the pages
    records       the records of a stream, as rows
    triggers      the triggers of a table, and their lag
    events        server-sent events
    state         what these share on one server

Nothing is watched, and so nothing costs anything, while no page looks. Only contributor
insights go on by themselves, for tables that have them enabled.
"""

from __future__ import annotations

from typing import Final

from hashrange.server.admin.clock import ClockChange
from hashrange_console.live import clock, contributors, destinations, faults, requests, stream
from hashrange_console.pages import Action, Page, Part

PARTS: Final[tuple[Part, ...]] = (
    Page("/console/requests", "The requests as they come.", requests.page),
    Page("/console/requests/events", "The next requests, as server-sent events.", requests.events),
    Page("/console/streams", "The tables that have a stream.", stream.tables),
    Page("/console/t/{table}/stream", "The changes of a table.", stream.page),
    Page("/console/t/{table}/stream/events", "The next changes, as server-sent events.", stream.events),
    Page("/console/contributors", "The keys that contributor insights count.", contributors.page),
    Action(
        "/console/contributors/change",
        "Enable or disable contributor insights.",
        contributors.change,
        contributors.InsightsChange,
    ),
    Page("/console/kinesis", "The Kinesis destinations of tables.", destinations.page),
    Action(
        "/console/kinesis/change",
        "Enable or disable a Kinesis destination.",
        destinations.change,
        destinations.DestinationChange,
    ),
    Page("/console/faults", "The fault rules.", faults.page),
    Action("/console/faults/add", "Add a fault rule.", faults.add, faults.NewRule),
    Action("/console/faults/remove", "Remove a fault rule.", faults.remove, faults.OldRule),
    Page("/console/clock", "The clock.", clock.page),
    Action("/console/clock/change", "Change a virtual clock.", clock.change, ClockChange),
)
