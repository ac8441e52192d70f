"""Pages about tables as such.

    listing  the list of tables
    about    the definition of a table
    details  what the description of a table does not say
    changes  changes of a table, each a form of a page
    backups  the backups of tables, and restores
    new      a form for a new table
    demo     a table with some hundred items, for a first look
    filling  makes and fills it, step by step
"""

from __future__ import annotations

from typing import Final

from hashrange_console.pages import Action, Page, Part
from hashrange_console.tables import about, backups, changes, filling, new

PARTS: Final[tuple[Part, ...]] = (
    Page("/console/t/{table}/about", "The definition of a table.", about.page),
    *changes.PARTS,
    Page("/console/backups", "The backups, and forms that make and restore them.", backups.page),
    *backups.PARTS,
    Page("/console/new-table", "A form for a new table, and the demo table.", new.page),
    Action("/console/create-table", "Create a table.", new.create, new.NewTable),
    Action("/console/demo", "Make the demo table, or write some of its items.", filling.fill, filling.Fill),
)
