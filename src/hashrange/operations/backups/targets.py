"""The name of a restored table, and the limit of restores."""

from __future__ import annotations

from typing import Final

from hashrange.errors import LimitExceededException, TableAlreadyExistsException, TableInUseException
from hashrange.limits import RESTORES_MAX
from hashrange.operations.context import Context
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog

# [report] ack-api-quirks, service
_TOO_MANY: Final = (
    f"Subscriber limit exceeded: Only {RESTORES_MAX} restore operations can be done simultaneously"
)


def check(reader: Reader, target: str, context: Context) -> None:
    """Refuse a name that is taken ([report] ack-api-quirks DDB-TABLE-100, 219, 275), and too many restores.

    Raises `TableInUseException`, `TableAlreadyExistsException`, `LimitExceededException`.
    """
    existing = catalog.find(reader, target, context.scope)
    if existing is not None:
        if existing.restore is None or existing.gone_at is not None:
            raise TableAlreadyExistsException(f"Table already exists: {target}")
        arn = existing.restore.backup_arn
        source = f" from backup: {arn}" if arn is not None else ""  # [assumed] the words without a backup
        raise TableInUseException(f"Table: {target} is already being restored{source}")
    restoring = sum(
        table.restore is not None and table.gone_at is None and table.scope == context.scope
        for table in catalog.definitions(reader)
    )
    if restoring >= RESTORES_MAX:
        raise LimitExceededException(_TOO_MANY)
