"""What is known of a pair: its process stores it; commands and the server of the edge read it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from hashrange_sync.items import Item

KEY: Final[Item] = {"id": {"S": "status"}, "part": {"S": "-"}}
"""The key of the item in the table of the state; its attribute `text` is a `PairStatus` in JSON."""
SECONDS: Final = 5.0
"""How often a running process stores the status, at most."""


class Progress(msgspec.Struct):
    """How far a comparison of both tables has come.

    reason: why it began.
    began: when, in epoch seconds.
    items: how many items were scanned.
    total: how many items there are, about.
    """

    reason: str
    began: float
    items: int = 0
    total: int = 0


class PairStatus(msgspec.Struct, kw_only=True):
    """What is known of a pair of tables. Counts begin with the process.

    name: the name of the pair.
    state: not begun, sweeping (both tables are compared), in step, or stopped (see `error`).
    at: when the process last reported, in epoch seconds.
    in_step_at: until when all changes are passed on, in epoch seconds; 0 for never.
    lag: how old changes were when they were passed on, in seconds: the most since the report before.
    to_cloud: how many items were written to the cloud.
    to_edge: how many items were written to the edge.
    to_cloud_rate: how many of them a second, before the process last reported.
    to_edge_rate: how many of them a second, before the process last reported.
    conflicts: how many conflicts were logged.
    records: how many stream records were read.
    gaps: how often a stream no longer had all changes.
    throttled: how often the cloud has throttled.
    units: how many capacity units of the cloud were used.
    sweep: the comparison of both tables that is under way; null if there is none.
    differences: how the definitions of the tables differ.
    error: the last error; "" if there was none.
    error_at: when it happened, in epoch seconds.
    cloud_endpoint: where the cloud's table is.
    cloud_table: the name of the cloud's table.
    edge_table: the name of the edge's table.
    direction: down (the edge follows), up (the cloud follows) or both.
    policy: what wins a conflict.
    attributes: the only attributes that leave the site, beside the key; none for all.
    withhold: the attributes that do not leave the site.
    """

    name: str
    state: Literal["not begun", "sweeping", "in step", "stopped"] = "not begun"
    at: float = 0.0
    in_step_at: float = 0.0
    lag: float = 0.0
    to_cloud: int = 0
    to_edge: int = 0
    to_cloud_rate: float = 0.0
    to_edge_rate: float = 0.0
    conflicts: int = 0
    records: int = 0
    gaps: int = 0
    throttled: int = 0
    units: float = 0.0
    sweep: Progress | None = None
    differences: list[str] = []
    error: str = ""
    error_at: float = 0.0
    cloud_endpoint: str = ""
    cloud_table: str = ""
    edge_table: str = ""
    direction: Literal["down", "up", "both"] = "both"
    policy: str = "cloud"
    attributes: list[str] = []
    withhold: list[str] = []
