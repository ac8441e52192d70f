"""Pages about items.

    grid         a grid of a table's items
    requests     the requests that a grid's form asks for
    item         one item: its attributes, its versions, and their differences
    changes      saving, deleting and bringing back an item
    forms        an edited item as rows of a form, as JSON, as DynamoDB's JSON
    texts        items in DynamoDB's JSON
    plain        items in plain JSON
    expressions  conditions and updates
    sources      what a request can read: tables and indexes
    estimates    what a request will cost
    found        the items that a Query or a Scan finds
    exports      downloads
    imports      writing the items of a file
    pieces       the rows of a piece of a file
    bulk         changing many items
"""

from __future__ import annotations

from typing import Final

from hashrange_console.items import bulk, changes, exports, grid, imports, item
from hashrange_console.pages import Action, Page, Part, Question

PARTS: Final[tuple[Part, ...]] = (
    Page("/console/t/{table}", "The items of a table.", grid.page),
    Page("/console/t/{table}/item", "An item and its versions.", item.page),
    Page("/console/t/{table}/new", "A form for a new item.", item.new),
    Question("/console/review", "What saving an item would change.", changes.review, changes.Edit),
    Question("/console/convert", "An edited item in another form.", changes.convert, changes.Conversion),
    Action("/console/save", "Save an item.", changes.save, changes.Edit),
    Action("/console/delete", "Delete an item.", changes.delete, changes.Delete),
    Action("/console/undo", "Bring an item back.", changes.undo, changes.Undo),
    Action("/console/undo-save", "Undo saving an item.", changes.undo_save, changes.UndoSave),
    Page("/console/t/{table}/export", "A download of items.", exports.download),
    Page("/console/t/{table}/import", "A form for a file of items.", imports.page),
    Question("/console/import/preview", "The first items of a file.", imports.preview, imports.Piece),
    Action("/console/import", "Write items of a file.", imports.write, imports.Piece),
    Question("/console/bulk/count", "How many items are found.", bulk.count, bulk.Count),
    Action("/console/bulk", "Change many items.", bulk.change, bulk.Step),
)
