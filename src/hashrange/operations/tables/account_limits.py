"""The quotas of an account in a region, where `Settings.account_limits` asks for them.

Source: Developer Guide, "Quotas in Amazon DynamoDB": 2,500 tables, and 500 of them CREATING, UPDATING or
DELETING. The words are those of reports with the quotas of then ([report] hashicorp/terraform pull 14571,
serverless issue 2622).
"""

from __future__ import annotations

from hashrange.errors import LimitExceededException
from hashrange.limits import CHANGING_TABLES_MAX, TABLES_MAX
from hashrange.operations.context import Context
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog


def check(reader: Reader, context: Context, *, adds: bool = False) -> None:
    """Check that a table may be created (`adds`), changed or deleted. Raises `LimitExceededException`."""
    if not context.settings.account_limits:
        return
    tables = changing = 0
    for table in catalog.of_scope(reader, context.scope):
        tables += 1
        changing += table.status != "ACTIVE"
    if changing >= CHANGING_TABLES_MAX:
        raise LimitExceededException(
            f"Subscriber limit exceeded: Only {CHANGING_TABLES_MAX} tables can be created, updated, or "
            "deleted simultaneously"
        )
    if adds and tables >= TABLES_MAX:
        raise LimitExceededException(
            f"Subscriber limit exceeded: There is a limit of {TABLES_MAX} tables per subscriber"
        )
