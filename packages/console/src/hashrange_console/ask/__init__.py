"""Pages that ask for data.

    pasted           what a pasted text means
    finding          the search: where a pasted text leads
    places           what a search finds by names: pages and tables
    conditions       conditions on attributes, and their text in expressions
    plans            the Query or Scan that serves some conditions
    builder          the builder
    statements       PartiQL statements
    statement_plans  how a SELECT will read
    saved            saved queries
"""

from __future__ import annotations

from typing import Final

from hashrange_console.ask import builder, finding, places, saved, statements
from hashrange_console.pages import Action, Page, Part, Question

PARTS: Final[tuple[Part, ...]] = (
    Page("/console/ask", "The builder, or a PartiQL statement, and the answer.", builder.page),
    Action("/console/run", "Run a statement.", statements.run, statements.Run),
    Page("/console/find", "Where a pasted text leads.", finding.page),
    Page("/console/places", "The tables and pages, by their names.", places.offered),
    Question("/console/find", "Where a long pasted text leads.", finding.find, finding.Find),
    Action("/console/saved", "Save a query, or rename it.", saved.save, saved.Save),
    Action("/console/saved/delete", "Delete a saved query.", saved.delete, saved.Delete),
)
