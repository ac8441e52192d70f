"""An act: one action on one resource, with its condition keys. Policies decide acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hashrange.partiql import Prepared
from hashrange.values import AttributeValue

Attributes = Mapping[str, Any]
Keys = dict[str, tuple[str, ...]]

EVERYTHING: Final = "*"


@dataclass(frozen=True, slots=True)
class StatementAct:
    """What a statement adds to an act: the compiled statement, and its values by their names."""

    prepared: Prepared
    values: Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class Act:
    """One action on one resource.

    `table` is the name or the ARN by which a request names a table ("": it names none), `index` an index of
    it. `resource` is another resource: an ARN, or the part of one that follows the account. `items` are the
    items whose keys the action names, in full or by their keys; None: it names no key. `keys` are the
    condition keys that do not depend on the table.
    """

    action: str
    table: str = ""
    index: str | None = None
    resource: str = ""
    items: tuple[Attributes, ...] | None = None
    keys: Keys = field(default_factory=dict)
    statement: StatementAct | None = None
