"""The acts of PartiQL statements: PartiQLSelect, PartiQLInsert, PartiQLUpdate and PartiQLDelete.

Source: Developer Guide, "IAM security policies with PartiQL for DynamoDB". EXISTS is a PartiQLSelect
[assumed].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hashrange import partiql
from hashrange.expressions.tree import Node, Path, UpdateTree, walk
from hashrange.operations.context import Request
from hashrange.partiql import Prepared
from hashrange.partiql.access import plan
from hashrange.partiql.statements import DeleteFrom, Exists, Insert, Select, Update
from hashrange.tables.definitions.table import KeySchema
from hashrange.values import AttributeValue
from hashrange_access.judging.act import Act, Keys, StatementAct

_RETURNED: Final = {
    "ALL OLD": "ALL_OLD",
    "ALL NEW": "ALL_NEW",
    "MODIFIED OLD": "UPDATED_OLD",
    "MODIFIED NEW": "UPDATED_NEW",
}


def statement_acts(operation: str, request: Request) -> Iterator[Act]:
    """The acts of an ExecuteStatement or an ExecuteTransaction; `batches` has those of a batch."""
    for content in request.get("TransactStatements") or (request,):
        yield statement_act(operation, content, request)


def statement_act(operation: str, content: Request, request: Request) -> Act:
    """The act of one statement: `content` is its member of the request. Raises the errors of statements."""
    more: Keys = {"dynamodb:returnconsumedcapacity": (request.get("ReturnConsumedCapacity") or "NONE",)}
    if operation == "ExecuteTransaction":
        more["dynamodb:enclosingoperation"] = (operation,)
    prepared = partiql.prepare(content["Statement"])
    statement = prepared.statement
    values = dict(prepared.constants)
    values.update({f"?{number}": value for number, value in enumerate(content.get("Parameters") or ())})
    keys = more | {"dynamodb:attributes": tuple(sorted(_attributes(prepared)))}
    with_values = StatementAct(prepared, values)
    match statement:
        case Insert(table):
            action = "PartiQLInsert"
        case Update(table, returning=returning):
            action = "PartiQLUpdate"
            keys["dynamodb:returnvalues"] = (_RETURNED.get(returning or "", "NONE"),)
        case DeleteFrom(table, returning=returning):
            action = "PartiQLDelete"
            keys["dynamodb:returnvalues"] = (_RETURNED.get(returning or "", "NONE"),)
        case Select() | Exists():
            select = statement.select if isinstance(statement, Exists) else statement
            selected = "ALL_ATTRIBUTES" if select.paths is None else "SPECIFIC_ATTRIBUTES"
            keys["dynamodb:select"] = (selected,)
            return Act("PartiQLSelect", select.table, select.index, keys=keys, statement=with_values)
    return Act(action, table, keys=keys, statement=with_values)


def key_values(act: StatementAct, key: KeySchema) -> tuple[list[AttributeValue], bool]:
    """The values of the partition key that a statement names, and whether it reads a whole table or index."""
    statement = act.prepared.statement
    name = key.partition[0].name
    if isinstance(statement, Insert):
        names: tuple[str, ...] = tuple(value.name for attribute, value in statement.item if attribute == name)
        return _found(names, act), False
    access = plan(act.prepared, key)
    names = access.partition or tuple(branch.partition for branch in access.branches)
    return _found(names, act), not names


def _found(names: tuple[str, ...], act: StatementAct) -> list[AttributeValue]:
    """The values with these names. A statement of a batch may have too few parameters, or some that are no
    values: then it fails."""
    found = [act.values.get(name) for name in names]
    return [value for value in found if isinstance(value, dict) and len(value) == 1]


def _attributes(prepared: Prepared) -> set[str]:
    statement = prepared.statement
    if isinstance(statement, Insert):
        return {name for name, _ in statement.item}
    trees: list[Node] = [] if prepared.where is None else [prepared.where]
    if isinstance(statement, Update):
        trees.append(UpdateTree(statement.actions))
    found = {str(node.elements[0]) for tree in trees for node in walk(tree) if isinstance(node, Path)}
    if isinstance(statement, Select) and statement.paths is not None:
        found.update(str(path.elements[0]) for path in statement.paths)
    return found
