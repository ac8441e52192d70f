"""The spaces that every store has. A space is the first part of an address: see `storage.api`.

Tables, their indexes, queues and streams get spaces from FIRST_TABLE_SPACE on, when they are made
(`definitions.catalog.new_space`); no number is given twice.
"""

from typing import Final

CATALOG_SPACE: Final = 0
TOKEN_SPACE: Final = 1
LAG_SPACE: Final = 2
BACKFILL_SPACE: Final = 3
HOLD_SPACE: Final = 4
IMPORT_SPACE: Final = 5
EXPORT_SPACE: Final = 6
BACKUP_SPACE: Final = 7
BULK_SPACE: Final = 8
SERVER_SPACE: Final = 9
FIRST_TABLE_SPACE: Final = 64
