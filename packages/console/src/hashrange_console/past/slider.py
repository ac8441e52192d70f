"""The slider over the stored past of a table: its two ends, and the moment at which it stands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from hashrange.clock import show_moment
from hashrange.server.admin.application import subject_of
from hashrange_console.reach import Refused, View

_SHORT_SECONDS: Final = 600
OFF: Final = "This table has no point-in-time recovery."


@dataclass(frozen=True, slots=True)
class Slider:
    """From `since` to `now` in epoch seconds, standing at `moment`; `problem` says what is wrong with the
    moment that the address gives."""

    since: int
    now: float
    moment: float
    problem: str = ""

    @property
    def step(self) -> str:
        """How far a key moves it: a second, and less over a past of a few minutes."""
        return "1" if self.now - self.since > _SHORT_SECONDS else "0.05"

    @property
    def value(self) -> float:
        return round(min(max(self.moment, self.since), self.now), 3)

    @property
    def begin(self) -> str:
        return show_moment(self.since)

    @property
    def end(self) -> str:
        return show_moment(self.now)


async def slider(view: View, table: str) -> Slider:
    """The slider of a table, at the moment of the address, or else at an hour ago. Raises `Refused` if the
    table has no past."""
    answer = await view.read("DescribeContinuousBackups", {"TableName": table})
    recovery = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
        raise Refused(OFF)
    now = subject_of(view.request).database.clock.now()
    since = recovery["EarliestRestorableDateTime"]
    moment, problem = max(float(since), now - 3_600), ""
    if given := view.given("at"):
        try:
            moment, _ = view.moment(given)
        except Refused as error:
            problem = str(error)
    first = math.ceil(since)
    return Slider(first, max(float(first), math.floor(now * 1e3) / 1e3), moment, problem)
