"""The single-table view.

    overview  the page
    sampling  the entities in a sample of a table's items
    patterns  entities proposed from the patterns of keys
    graph     how entities share partitions
    recorded  how programs use a table, while somebody has it recorded
"""

from __future__ import annotations

from typing import Final

from hashrange_console.entities import overview, recorded
from hashrange_console.pages import Action, Page, Part

PARTS: Final[tuple[Part, ...]] = (
    Page("/console/t/{table}/entities", "The entities of a table.", overview.page),
    Action("/console/entities", "Keep the entities of a table.", overview.keep, overview.Keep),
    Action("/console/uses", "Record how programs use tables, or stop it.", recorded.switch, recorded.Switch),
)
