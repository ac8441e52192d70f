"""The names of DynamoDB's actions, and of the condition keys that requests have here. By them
`hashrange policy lint` knows a misspelled name, and a key that never has a value.

Source: Service Authorization Reference, "Actions, resources, and condition keys for Amazon DynamoDB".
"""

from typing import Final

from hashrange.operations import REGISTRY
from hashrange.operations.policies.documents import STREAM_ACTIONS, TABLE_ACTIONS

_WITHOUT_OPERATION: Final = """AssociateTableReplica CreateTableReplica DeleteTableReplica
    DescribeReservedCapacity DescribeReservedCapacityOfferings GetAbacStatus
    PurchaseReservedCapacityOfferings ReadDataForReplication ReplicateSettings RestoreTableFromAwsBackup
    StartAwsBackupJob UpdateAbacStatus WriteDataForReplication""".lower().split()
_NO_ACTIONS: Final = {"executestatement", "batchexecutestatement", "executetransaction"}

KNOWN_ACTIONS: Final = (
    frozenset(name.lower() for name in REGISTRY) | {*TABLE_ACTIONS, *STREAM_ACTIONS, *_WITHOUT_OPERATION}
) - _NO_ACTIONS - {"transactgetitems", "transactwriteitems"}
"""In lower case, without the service. Statements and transactions have the actions of their members."""

KNOWN_KEYS: Final = frozenset({
    "aws:currenttime", "aws:epochtime", "aws:principalaccount", "aws:principalarn",
    "aws:principalisawsservice", "aws:principaltag/", "aws:principaltype", "aws:referer",
    "aws:requestedregion", "aws:requesttag/", "aws:resourceaccount", "aws:resourcetag/",
    "aws:securetransport", "aws:sourceip", "aws:tagkeys", "aws:useragent", "aws:userid", "aws:username",
    "dynamodb:attributes", "dynamodb:enclosingoperation", "dynamodb:firstpartitionkeyvalues",
    "dynamodb:fourthpartitionkeyvalues", "dynamodb:fulltablescan", "dynamodb:leadingkeys",
    "dynamodb:returnconsumedcapacity", "dynamodb:returnvalues", "dynamodb:secondpartitionkeyvalues",
    "dynamodb:select", "dynamodb:thirdpartitionkeyvalues", "sts:externalid", "sts:rolesessionname",
})  # fmt: skip
"""In lower case; a key of tags ends in a slash, which the tag's name follows."""
