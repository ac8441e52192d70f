"""Pages about the past.

    table    a table as of a moment, and its differences between two moments
    back     bringing items back, and trying it first
    slider   the slider over the stored past

The slider over the versions of an item is templates/past/versions.html, which the item's history includes.
"""

from __future__ import annotations

from typing import Final

from hashrange_console.pages import Action, Page, Part, Question
from hashrange_console.past import back, table

PARTS: Final[tuple[Part, ...]] = (
    Page("/console/t/{table}/past", "A table as of a moment, and what has changed.", table.page),
    Question("/console/past/try", "What bringing items back would do.", back.attempt, back.Back),
    Action("/console/past/back", "Bring items back.", back.bring, back.Back),
)
