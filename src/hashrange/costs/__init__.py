"""What requests cost: a record of each request that a database answers, and assertions on these for tests.

    with database.costs() as costs:
        ...
    costs.no_scan()
    costs.read_units_at_most(3)

docs/costs.md has all of it.

    ledger  the records of a block, and the assertions
    table   records as a table for people
"""

from __future__ import annotations

from hashrange.costs.ledger import Costs
from hashrange.costs.table import show
from hashrange.observing.record import Record

__all__ = ["Costs", "Record", "show"]
