"""Changes of data in versions, as programs know them of SQL: files that say how the items of a table change,
applied in order, once, beside the programs that write.

    python -m hashrange_patterns.migrations --table blog plan
    python -m hashrange_patterns.migrations --table blog up --rate 500

    edits       what a change makes of an item, and its conditional write
    steps       definitions of indexes, and switches
    files       the files of migrations
    records     what the table remembers, and the run under the lock
    walks       walks over the items: to change them, and to look
    runner      status, plan, up, down, verify
    __main__    the command line

packages/patterns/docs/migrations.md is the guide.
"""

from hashrange_patterns.locks import Lost
from hashrange_patterns.migrations.edits import DELETE, Change, Shape, Unsettled
from hashrange_patterns.migrations.files import write_new
from hashrange_patterns.migrations.runner import (
    AsyncMigrations,
    Irreversible,
    Locked,
    MigrationFlows,
    Migrations,
    Planned,
    Status,
    Unfinished,
)
from hashrange_patterns.migrations.steps import AddIndex, AsyncSwitches, DropIndex, Switch, Switches
from hashrange_patterns.migrations.walks import Contended, Look

__all__ = [
    "DELETE",
    "AddIndex",
    "AsyncMigrations",
    "AsyncSwitches",
    "Change",
    "Contended",
    "DropIndex",
    "Irreversible",
    "Locked",
    "Look",
    "Lost",
    "MigrationFlows",
    "Migrations",
    "Planned",
    "Shape",
    "Status",
    "Switch",
    "Switches",
    "Unfinished",
    "Unsettled",
    "write_new",
]
