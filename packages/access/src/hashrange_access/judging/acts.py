"""What a request does, for policies: its acts.

A batch is one action on each of its tables, with all its keys there; a transaction and a batch of statements
are one action for each member. Sources: Service Authorization Reference, "Actions, resources, and condition
keys for Amazon DynamoDB"; Developer Guide, "Using IAM policy conditions for fine-grained access control".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hashrange.operations.context import Request
from hashrange.operations.targets import targets
from hashrange_access.judging.act import EVERYTHING, Act, Attributes, Keys
from hashrange_access.judging.attributes import attributes_of

_ARN_MEMBERS: Final = (
    *("ResourceArn", "StreamArn", "BackupArn", "ExportArn", "ImportArn", "BulkOperationArn", "TableArn"),
)
# What these operations are about is not one resource. A refusal of ListTables names all tables.
_BROAD: Final = {
    "DescribeEndpoints": EVERYTHING,
    "DescribeLimits": EVERYTHING,
    "ListBackups": EVERYTHING,
    "ListBulkOperations": EVERYTHING,
    "ListContributorInsights": EVERYTHING,
    "ListExports": EVERYTHING,
    "ListGlobalTables": EVERYTHING,
    "ListImports": EVERYTHING,
    "ListTables": "table/*",
}
_MEMBERS: Final = {
    "Get": "GetItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
_GETS: Final = frozenset({"GetItem", "BatchGetItem"})
_READS: Final = _GETS | {"Query", "Scan"}
_WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"})


def acts(operation: str, request: Request) -> tuple[Act, ...]:
    """The acts of a request that has been checked, and is not a BatchExecuteStatement (`batches`)."""
    if operation in ("ExecuteStatement", "ExecuteTransaction"):
        # Imported here, because most programs use no statements.
        from hashrange_access.judging.statements import statement_acts

        return tuple(statement_acts(operation, request))
    return tuple(_acts(operation, request))


def _acts(operation: str, request: Request) -> Iterator[Act]:
    if operation in _BROAD:
        yield Act(operation, resource=_BROAD[operation])
    elif operation == "BatchGetItem":
        for given, wanted in request["RequestItems"].items():
            keys = _keys(operation, wanted, request)
            keys["dynamodb:attributes"] = _sorted({name for key in wanted["Keys"] for name in key}, wanted)
            yield Act(operation, given, items=tuple(wanted["Keys"]), keys=keys)
    elif operation == "BatchWriteItem":
        for given, requests in request["RequestItems"].items():
            items = tuple(_written(part) for part in requests)
            keys = _keys(operation, {}, request)
            keys["dynamodb:attributes"] = _sorted({name for item in items for name in item}, {})
            yield Act(operation, given, items=items, keys=keys)
    elif "TransactItems" in request:
        for content in request["TransactItems"]:
            kind, part = next((kind, part) for kind, part in content.items() if part is not None)
            action = _MEMBERS[kind]
            yield _on_item(action, part, request, {"dynamodb:enclosingoperation": (operation,)})
    elif operation == "SearchVectors":
        # The condition keys of fine-grained access are not there. [docs] Security and access control
        yield Act(operation, request["TableName"], request["IndexName"])
    elif operation in _READS or operation in _WRITES:
        yield _on_item(operation, request, request, {})
    else:
        yield from _control(operation, request)


def _on_item(action: str, part: Request, request: Request, more: Keys) -> Act:
    items: tuple[Attributes, ...] | None = None
    if action == "Query":
        named = targets(action, part)[0].attributes
        items = None if named is None else (named,)
    elif action != "Scan":
        items = (part["Item"] if "Item" in part else part["Key"],)
    keys = _keys(action, part, request) | more
    keys["dynamodb:attributes"] = _sorted(set(), part)
    return Act(action, part["TableName"], part.get("IndexName"), items=items, keys=keys)


def _written(part: Request) -> Attributes:
    put = part.get("PutRequest")
    written: Attributes = put["Item"] if put is not None else part["DeleteRequest"]["Key"]
    return written


def _sorted(names: Iterable[str], part: Request) -> tuple[str, ...]:
    return tuple(sorted({*names, *attributes_of(part)}))


def _keys(action: str, part: Request, request: Request) -> Keys:
    """The condition keys of parameters, with the values that hold if a request does not give them."""
    keys: Keys = {"dynamodb:returnconsumedcapacity": (request.get("ReturnConsumedCapacity") or "NONE",)}
    if action in _READS:
        keys["dynamodb:select"] = (_select(action, part),)
    if action in _WRITES:
        returned = part.get("ReturnValues") or "NONE"
        if returned == "NONE":
            # A failed condition shows the item as well [assumed].
            returned = part.get("ReturnValuesOnConditionCheckFailure") or "NONE"
        keys["dynamodb:returnvalues"] = (returned,)
    return keys


def _select(action: str, part: Request) -> str:
    if part.get("Select"):
        return str(part["Select"])
    if part.get("ProjectionExpression") or part.get("AttributesToGet"):
        return "SPECIFIC_ATTRIBUTES"
    return "ALL_PROJECTED_ATTRIBUTES" if part.get("IndexName") else "ALL_ATTRIBUTES"


# -- Tables, streams, backups, exports, imports, global tables ----------------------------------------------


def _control(operation: str, request: Request) -> Iterator[Act]:
    keys = _tag_keys(request)
    if operation == "ListStreams":
        yield Act(operation, resource=f"table/{request.get('TableName') or '*'}/stream/*")
    elif operation in ("RestoreTableFromBackup", "RestoreTableToPointInTime"):
        yield Act(operation, request["TargetTableName"])
        if "BackupArn" in request:
            yield Act(operation, resource=request["BackupArn"])
        else:
            yield Act(operation, request.get("SourceTableArn") or request["SourceTableName"])
    elif operation == "ImportTable":
        yield Act(operation, request["TableCreationParameters"]["TableName"])
    elif "GlobalTableName" in request:
        yield Act(operation, resource=f"global-table/{request['GlobalTableName']}")
        if operation in ("CreateGlobalTable", "UpdateGlobalTable"):
            yield Act(operation, request["GlobalTableName"])
    elif "ShardIterator" in request:
        yield Act(operation, resource=request["ShardIterator"].partition("|")[0])
    elif "TableName" in request:
        yield Act(operation, request["TableName"], request.get("IndexName"), keys=keys)
        if operation == "CreateTable":
            if request.get("Tags"):
                yield Act("TagResource", request["TableName"], keys=keys)
            if request.get("ResourcePolicy"):
                yield Act("PutResourcePolicy", request["TableName"])
    else:
        named = next((request[member] for member in _ARN_MEMBERS if request.get(member)), EVERYTHING)
        yield Act(operation, resource=named, keys=keys)


def _tag_keys(request: Request) -> Keys:
    """The condition keys of the tags that a request sets or removes."""
    tags = request.get("Tags") or ()
    names = tuple(tag["Key"] for tag in tags) or tuple(request.get("TagKeys") or ())
    keys: Keys = {f"aws:requesttag/{tag['Key'].lower()}": (tag["Value"],) for tag in tags}
    if names:
        keys["aws:tagkeys"] = names
    return keys
