"""The spaces that every store has. A space is the first part of an address: see `storage.api`.

Tables, their indexes, queues and streams get spaces from FIRST_TABLE_SPACE on, when they are made
(`definitions.catalog.new_space`); no number is used twice.
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
CONSOLE_SPACE: Final = 10
DELIVERY_SPACE: Final = 11
ACCESS_SPACE: Final = 12
FIRST_TABLE_SPACE: Final = 64

IMPORT_JOBS: Final = b"import"
EXPORT_JOBS: Final = b"export"
BACKUPS: Final = b"backup"
BULK_JOBS: Final = b"bulk"
DELIVERIES: Final = b"delivery"
"""The partitions in the spaces of imports, exports, backups, bulk operations and deliveries that hold the
record of each; the other partitions of these spaces are named where they are used."""
