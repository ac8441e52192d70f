"""Valid requests of every operation, to be broken: those below and those of the golden scripts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import orjson

from golden_scripts import SCRIPTS, request_of, steps
from hashrange.operations import REGISTRY
from hostile import feature_seeds
from vector_tables import index_of, listed

Json = dict[str, Any]
Ask = Callable[[str, Json], Json]

MAIN = "hostile_main"
POLICY = (
    '{"Version":"2012-10-17","Statement":{"Effect":"Deny","Principal":{"AWS":"123456789012"},'
    '"Action":"dynamodb:Get*","Resource":"*"}}'
)
PLAIN = "hostile_plain"
OTHER = "hostile_other"
BACKUP_REGION = "eu-west-1"
_ARN = "arn:aws:dynamodb:us-east-1:000000000000"
_REQUEST_BYTES_MAX = 20_000
_TABLE_NAME = re.compile(rb'"TableName":"[^"]*"')
_CONTROL_WORDS = ("settings", "advance", "region", "sweep")


def _key(*pairs: tuple[str, str]) -> list[Json]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in pairs]


def _typed(**types: str) -> list[Json]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


_IN_G: Json = {"AttributeName": "g", "SearchSchemaElementType": "HASH"}
CREATE_MAIN: Json = {
    "TableName": MAIN,
    "AttributeDefinitions": _typed(pk="S", sk="N", l="S", g="S", b="B", r="S"),
    "KeySchema": _key(("pk", "HASH"), ("sk", "RANGE")),
    "BillingMode": "PAY_PER_REQUEST",
    "LocalSecondaryIndexes": [
        {
            "IndexName": "local",
            "KeySchema": _key(("pk", "HASH"), ("l", "RANGE")),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["n"]},
        }
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "all",
            "KeySchema": _key(("g", "HASH"), ("sk", "RANGE")),
            "Projection": {"ProjectionType": "ALL"},
        },
        {
            "IndexName": "several",
            "KeySchema": _key(("g", "HASH"), ("r", "HASH"), ("sk", "RANGE"), ("b", "RANGE")),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        },
    ],
    "VectorIndexes": [index_of("nearby", SearchSchema=[_IN_G])],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    "Tags": [{"Key": "team", "Value": "a"}],
}
CREATE_PLAIN: Json = {
    "TableName": PLAIN,
    "AttributeDefinitions": _typed(pk="S"),
    "KeySchema": _key(("pk", "HASH")),
    "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
}
CREATE_OTHER: Json = {
    **CREATE_PLAIN,
    "TableName": OTHER,
    "AttributeDefinitions": _typed(pk="S", g="N"),
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-g",
            "KeySchema": _key(("g", "HASH")),
            "Projection": {"ProjectionType": "ALL"},
            "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        }
    ],
    "SSESpecification": {"Enabled": True, "SSEType": "KMS"},
    "DeletionProtectionEnabled": False,
    "TableClass": "STANDARD",
}

ITEM: Json = {
    "pk": {"S": "a"},
    "sk": {"N": "1"},
    "l": {"S": "l1"},
    "g": {"S": "g1"},
    "r": {"S": "eu"},
    "b": {"B": "AAEC"},
    "n": {"N": "-12.5e3"},
    "t": {"BOOL": True},
    "u": {"NULL": True},
    "ss": {"SS": ["a", "é"]},
    "ns": {"NS": ["1", "2.5"]},
    "bs": {"BS": ["AA==", "AQ=="]},
    "list": {"L": [{"N": "1"}, {"S": "x"}, {"L": [{"M": {}}]}]},
    "v": listed((0.5, -1)),
    "map": {"M": {"a": {"M": {"b": {"L": [{"N": "7"}]}}}, "c.d": {"S": "dot"}}},
}
_KEY: Json = {"pk": {"S": "a"}, "sk": {"N": "1"}}
_PLAIN_KEY: Json = {"pk": {"S": "a"}}
_NAMES: Json = {"#n": "n", "#m": "map", "#d": "c.d"}

REQUESTS: dict[str, list[Json]] = {
    "PutItem": [
        {"TableName": MAIN, "Item": ITEM, "ReturnValues": "ALL_OLD", "ReturnConsumedCapacity": "INDEXES"},
        {
            "TableName": MAIN,
            "Item": {**ITEM, "sk": {"N": "2"}},
            "ConditionExpression": "attribute_not_exists(pk) OR (#n BETWEEN :a AND :b AND size(#m.#d) >= :a)",
            "ExpressionAttributeNames": _NAMES,
            "ExpressionAttributeValues": {":a": {"N": "-13000"}, ":b": {"N": "0"}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            "ReturnItemCollectionMetrics": "SIZE",
        },
        {
            "TableName": PLAIN,
            "Item": {"pk": {"S": "a"}, "ttl": {"N": "1700000000"}},
            "Expected": {"ttl": {"ComparisonOperator": "NOT_NULL"}, "pk": {"Value": {"S": "a"}}},
            "ConditionalOperator": "OR",
        },
    ],
    "GetItem": [
        {"TableName": MAIN, "Key": _KEY, "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"},
        {
            "TableName": MAIN,
            "Key": _KEY,
            "ProjectionExpression": "list[2][0], #m.a.b[0], #m.#d, ss",
            "ExpressionAttributeNames": {"#m": "map", "#d": "c.d"},
        },
        {"TableName": PLAIN, "Key": _PLAIN_KEY, "AttributesToGet": ["ttl", "pk"]},
    ],
    "UpdateItem": [
        {
            "TableName": MAIN,
            "Key": _KEY,
            "UpdateExpression": "SET #n = if_not_exists(#n, :one) + :one, #m.a.b[3] = :x,"
            " list = list_append(list, :l) REMOVE #m.#d, list[0] ADD ns :ns DELETE ss :ss",
            "ConditionExpression": "attribute_exists(pk) AND NOT contains(ss, :x) OR begins_with(l, :x)",
            "ExpressionAttributeNames": _NAMES,
            "ExpressionAttributeValues": {
                ":one": {"N": "1"},
                ":x": {"S": "x"},
                ":l": {"L": [{"S": "y"}]},
                ":ns": {"NS": ["3"]},
                ":ss": {"SS": ["é"]},
            },
            "ReturnValues": "UPDATED_NEW",
        },
        {
            "TableName": PLAIN,
            "Key": _PLAIN_KEY,
            "AttributeUpdates": {
                "count": {"Action": "ADD", "Value": {"N": "1"}},
                "gone": {"Action": "DELETE"},
                "note": {"Action": "PUT", "Value": {"M": {"a": {"NULL": True}}}},
            },
            "ReturnValues": "ALL_NEW",
        },
    ],
    "DeleteItem": [
        {
            "TableName": MAIN,
            "Key": {"pk": {"S": "a"}, "sk": {"N": "2"}},
            "ConditionExpression": "attribute_type(#n, :t) OR #n IN (:a, :b)",
            "ExpressionAttributeNames": {"#n": "n"},
            "ExpressionAttributeValues": {":t": {"S": "N"}, ":a": {"N": "1"}, ":b": {"S": "x"}},
            "ReturnValues": "ALL_OLD",
        },
    ],
    "Query": [
        {
            "TableName": MAIN,
            "KeyConditionExpression": "pk = :p AND sk BETWEEN :a AND :b",
            "FilterExpression": "#m.a.b[0] > :a AND size(list) < :b AND contains(l, :p)",
            "ProjectionExpression": "sk, #m.a",
            "ExpressionAttributeNames": {"#m": "map"},
            "ExpressionAttributeValues": {":p": {"S": "a"}, ":a": {"N": "0"}, ":b": {"N": "1e3"}},
            "ScanIndexForward": False,
            "Limit": 5,
        },
        {
            "TableName": MAIN,
            "IndexName": "several",
            "KeyConditionExpression": "g = :g AND r = :r AND sk = :s AND b > :b",
            "ExpressionAttributeValues": {
                ":g": {"S": "g1"},
                ":r": {"S": "eu"},
                ":s": {"N": "1"},
                ":b": {"B": "AA=="},
            },
            "ExclusiveStartKey": {**_KEY, "g": {"S": "g1"}, "r": {"S": "eu"}, "b": {"B": "AAEC"}},
        },
        {
            "TableName": MAIN,
            "IndexName": "local",
            "KeyConditions": {
                "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]},
                "l": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "l"}]},
            },
            "QueryFilter": {"n": {"ComparisonOperator": "LT", "AttributeValueList": [{"N": "5"}]}},
            "Select": "ALL_ATTRIBUTES",
            "ConsistentRead": True,
        },
    ],
    "Scan": [
        {
            "TableName": MAIN,
            "FilterExpression": "attribute_exists(#n) AND NOT (g <> :g OR l IN (:g, :h))",
            "ExpressionAttributeNames": {"#n": "n"},
            "ExpressionAttributeValues": {":g": {"S": "g1"}, ":h": {"S": "h"}},
            "Segment": 1,
            "TotalSegments": 4,
            "Limit": 10,
        },
        {"TableName": MAIN, "IndexName": "all", "Select": "COUNT", "ReturnConsumedCapacity": "INDEXES"},
        {
            "TableName": PLAIN,
            "ScanFilter": {
                "ttl": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [{"N": "0"}, {"N": "9"}]}
            },
            "ExclusiveStartKey": _PLAIN_KEY,
        },
    ],
    "BatchGetItem": [
        {
            "RequestItems": {
                MAIN: {
                    "Keys": [_KEY, {"pk": {"S": "b"}, "sk": {"N": "2"}}],
                    "ProjectionExpression": "n, list[1]",
                },
                PLAIN: {"Keys": [_PLAIN_KEY], "ConsistentRead": True, "AttributesToGet": ["pk"]},
            },
            "ReturnConsumedCapacity": "TOTAL",
        },
    ],
    "BatchWriteItem": [
        {
            "RequestItems": {
                MAIN: [
                    {"PutRequest": {"Item": ITEM}},
                    {"DeleteRequest": {"Key": {"pk": {"S": "b"}, "sk": {"N": "2"}}}},
                ],
                PLAIN: [{"PutRequest": {"Item": {"pk": {"S": "b"}}}}],
            },
            "ReturnItemCollectionMetrics": "SIZE",
        },
    ],
    "TransactWriteItems": [
        {
            "TransactItems": [
                {"Put": {"TableName": MAIN, "Item": ITEM}},
                {
                    "Update": {
                        "TableName": PLAIN,
                        "Key": {"pk": {"S": "counter"}},
                        "UpdateExpression": "ADD #c :one",
                        "ExpressionAttributeNames": {"#c": "count"},
                        "ExpressionAttributeValues": {":one": {"N": "1"}},
                    }
                },
                {"Delete": {"TableName": MAIN, "Key": {"pk": {"S": "c"}, "sk": {"N": "3"}}}},
                {
                    "ConditionCheck": {
                        "TableName": PLAIN,
                        "Key": {"pk": {"S": "check"}},
                        "ConditionExpression": "attribute_not_exists(pk)",
                        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                    }
                },
            ],
            "ClientRequestToken": "token-1",
        },
    ],
    "TransactGetItems": [
        {
            "TransactItems": [
                {"Get": {"TableName": MAIN, "Key": _KEY, "ProjectionExpression": "list"}},
                {"Get": {"TableName": PLAIN, "Key": _PLAIN_KEY}},
            ]
        },
    ],
    "ExecuteStatement": [
        {"Statement": f"SELECT * FROM \"{MAIN}\" WHERE pk = 'a' AND sk IN [1, 2] AND n < 5", "Limit": 3},
        {
            "Statement": f'SELECT pk, "map".a.b[0], list[1] FROM "{MAIN}"."all" WHERE g = ?',
            "Parameters": [{"S": "g1"}],
        },
        {
            "Statement": f"INSERT INTO \"{PLAIN}\" VALUE "
            "{'pk': ?, 'a': [1, {'b': <<'x', 'y'>>}], 'n': NULL}",
            "Parameters": [{"S": "insert"}],
        },
        {
            "Statement": f"UPDATE \"{PLAIN}\" SET c = c + 1 SET d = set_add(d, <<1>>) REMOVE e[0]"
            " WHERE pk = 'a' RETURNING ALL NEW *"
        },
        {
            "Statement": f"DELETE FROM \"{PLAIN}\" WHERE pk = 'insert'"
            " AND (begins_with(a, 'x') OR NOT attribute_type(n, 'S'))"
        },
        {
            "Statement": f'SELECT * FROM "{PLAIN}" WHERE size(note) BETWEEN 1 AND 9'
            " OR a IS MISSING ORDER BY pk"
        },
    ],
    "BatchExecuteStatement": [
        {
            "Statements": [
                {"Statement": f"SELECT * FROM \"{PLAIN}\" WHERE pk = 'a'", "ConsistentRead": True},
                {"Statement": f'SELECT * FROM "{PLAIN}" WHERE pk = ?', "Parameters": [{"S": "b"}]},
            ]
        },
    ],
    "ExecuteTransaction": [
        {
            "TransactStatements": [
                {"Statement": f"UPDATE \"{PLAIN}\" SET n = 5 WHERE pk = 'a'"},
                {"Statement": f"INSERT INTO \"{PLAIN}\" VALUE {{'pk': 'trx'}}"},
                {"Statement": f"EXISTS(SELECT * FROM \"{PLAIN}\" WHERE pk = 'b' AND n = 5)"},
            ],
            "ClientRequestToken": "token-2",
        },
    ],
    "CreateTable": [CREATE_MAIN, CREATE_PLAIN, CREATE_OTHER, {**CREATE_OTHER, "TableName": "hostile_new"}],
    "DescribeTable": [
        {"TableName": MAIN},
        {"TableName": f"arn:aws:dynamodb:us-east-1:000000000000:table/{MAIN}"},
    ],
    "ListTables": [{"Limit": 5, "ExclusiveStartTableName": "hostile_a"}],
    "DeleteTable": [{"TableName": OTHER}, {"TableName": "hostile_new"}],
    "UpdateTable": [
        {
            "TableName": OTHER,
            "AttributeDefinitions": _typed(pk="S", g="N", h="S"),
            "GlobalSecondaryIndexUpdates": [
                {
                    "Create": {
                        "IndexName": "by-h",
                        "KeySchema": _key(("h", "HASH")),
                        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]},
                        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
                    }
                }
            ],
        },
        {"TableName": OTHER, "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-g"}}]},
        {"TableName": PLAIN, "ProvisionedThroughput": {"ReadCapacityUnits": 6, "WriteCapacityUnits": 6}},
        {"TableName": OTHER, "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}},
        {"TableName": OTHER, "ReplicaUpdates": [{"Create": {"RegionName": BACKUP_REGION}}]},
        {"TableName": OTHER, "BillingMode": "PAY_PER_REQUEST", "DeletionProtectionEnabled": False},
    ],
    "UpdateTimeToLive": [
        {"TableName": PLAIN, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"}},
        {"TableName": PLAIN, "TimeToLiveSpecification": {"Enabled": False, "AttributeName": "ttl"}},
    ],
    "DescribeTimeToLive": [{"TableName": PLAIN}],
    "DescribeContinuousBackups": [{"TableName": PLAIN}],
    "UpdateContinuousBackups": [
        {
            "TableName": PLAIN,
            "PointInTimeRecoverySpecification": {
                "PointInTimeRecoveryEnabled": True,
                "RecoveryPeriodInDays": 2,
            },
        },
        {"TableName": OTHER, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}},
    ],
    "RestoreTableToPointInTime": [
        {
            "SourceTableName": PLAIN,
            "TargetTableName": "restored",
            "UseLatestRestorableTime": True,
            "BillingModeOverride": "PAY_PER_REQUEST",
            "OnDemandThroughputOverride": {"MaxReadRequestUnits": 5},
            "GlobalSecondaryIndexOverride": [],
            "SSESpecificationOverride": {"Enabled": True},
        },
        {
            "SourceTableArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{OTHER}",
            "TargetTableName": "restored-too",
            "RestoreDateTime": 1_700_000_000,
            "LocalSecondaryIndexOverride": [
                {
                    "IndexName": "local",
                    "KeySchema": _key(("h", "HASH"), ("g", "RANGE")),
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        },
    ],
    "ImportTable": [
        {
            "ClientToken": "token",
            "S3BucketSource": {"S3Bucket": "a-bucket", "S3BucketOwner": "000000000000", "S3KeyPrefix": "a/"},
            "InputFormat": "CSV",
            "InputFormatOptions": {"Csv": {"Delimiter": ";", "HeaderList": ["pk", "value"]}},
            "InputCompressionType": "GZIP",
            "TableCreationParameters": {
                "TableName": "hostile_imported",
                "AttributeDefinitions": _typed(pk="S", g="N"),
                "KeySchema": _key(("pk", "HASH")),
                "BillingMode": "PAY_PER_REQUEST",
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "by-g",
                        "KeySchema": _key(("g", "HASH")),
                        "Projection": {"ProjectionType": "ALL"},
                    }
                ],
            },
        }
    ],
    "DescribeImport": [{"ImportArn": f"{_ARN}:table/{MAIN}/import/01791506763707-476754e8"}],
    "ListImports": [{"TableArn": f"{_ARN}:table/{MAIN}", "PageSize": 3, "NextToken": "30" * 56}],
    "StartBulkPutItems": [
        {
            "ClientToken": "token",
            "InputS3Configuration": {
                "S3Bucket": "a-bucket",
                "S3BucketOwner": "000000000000",
                "S3KeyPrefix": "a/",
                "InputFormat": "ION",
                "InputCompressionType": "ZSTD",
            },
            "OutputS3Configuration": {
                "S3Bucket": "a-bucket",
                "S3BucketOwner": "000000000000",
                "S3KeyPrefix": "b/",
                "S3SseAlgorithm": "KMS",
                "S3SseKmsKeyId": "a-key",
                "OutputType": ["ERROR", "CONDITION_CHECK_FAILURE"],
            },
            "TableName": MAIN,
            "MaxWriteRequestUnits": 2048,
            "PerformanceTier": "ACCELERATED",
        }
    ],
    "DescribeBulkOperation": [
        {"BulkOperationArn": f"{_ARN}:table/{MAIN}/bulk-operation/01791506763707-476754e8"}
    ],
    "CancelBulkOperation": [
        {"BulkOperationArn": f"{_ARN}:table/{MAIN}/bulk-operation/01791506763707-476754e8"}
    ],
    "ListBulkOperations": [{"MaxResults": 3, "NextToken": "30" * 24}],
    "CreateBackup": [{"TableName": MAIN, "BackupName": "nightly"}],
    "DescribeBackup": [{"BackupArn": f"{_ARN}:table/{MAIN}/backup/01791506763707-476754e8"}],
    "DeleteBackup": [{"BackupArn": f"{_ARN}:table/{MAIN}/backup/01791506763707-476754e8"}],
    "ListBackups": [
        {
            "TableName": MAIN,
            "Limit": 3,
            "TimeRangeLowerBound": 1_700_000_000,
            "TimeRangeUpperBound": 1_800_000_000.5,
            "ExclusiveStartBackupArn": f"{_ARN}:table/{MAIN}/backup/01791506763707-476754e8",
            "BackupType": "ALL",
        }
    ],
    "RestoreTableFromBackup": [
        {
            "TargetTableName": "hostile_restored",
            "BackupArn": f"{_ARN}:table/{MAIN}/backup/01791506763707-476754e8",
            "BillingModeOverride": "PROVISIONED",
            "ProvisionedThroughputOverride": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
            "SSESpecificationOverride": {"Enabled": True},
        }
    ],
    "ExportTableToPointInTime": [
        {
            "TableArn": f"{_ARN}:table/{OTHER}",
            "S3Bucket": "a-bucket",
            "S3Prefix": "a/",
            "ClientToken": "token",
            "ExportFormat": "ION",
            "FilterSpecification": {
                "FilterExpression": "#a = :a",
                "ProjectionExpression": "#a, b[1].c",
                "ExpressionAttributeNames": {"#a": "a"},
                "ExpressionAttributeValues": {":a": {"N": "1"}},
            },
        },
        {
            "TableArn": f"{_ARN}:table/{PLAIN}",
            "S3Bucket": "a-bucket",
            "ExportType": "INCREMENTAL_EXPORT",
            "IncrementalExportSpecification": {
                "ExportFromTime": 1_700_000_000,
                "ExportToTime": 1_700_003_600,
                "ExportViewType": "NEW_IMAGE",
            },
        },
    ],
    "DescribeExport": [{"ExportArn": f"{_ARN}:table/{MAIN}/export/01791506763707-476754e8"}],
    "ListExports": [{"TableArn": f"{_ARN}:table/{MAIN}", "MaxResults": 3, "NextToken": "30" * 12}],
    "TagResource": [
        {
            "ResourceArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{MAIN}",
            "Tags": [{"Key": "a", "Value": "b"}, {"Key": "c", "Value": ""}],
        }
    ],
    "UntagResource": [
        {"ResourceArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{MAIN}", "TagKeys": ["a", "x"]}
    ],
    "ListTagsOfResource": [{"ResourceArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{MAIN}"}],
    "PutResourcePolicy": [
        {"ResourceArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{MAIN}", "Policy": POLICY},
    ],
    "GetResourcePolicy": [{"ResourceArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{MAIN}"}],
    "DeleteResourcePolicy": [{"ResourceArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{MAIN}"}],
    **feature_seeds.of(MAIN),
    "CreateGlobalTable": [{"GlobalTableName": MAIN, "ReplicationGroup": [{"RegionName": "eu-west-1"}]}],
    "DescribeGlobalTable": [{"GlobalTableName": MAIN}],
    "DescribeGlobalTableSettings": [{"GlobalTableName": MAIN}],
    "ListGlobalTables": [{"Limit": 10}],
    "UpdateGlobalTable": [
        {"GlobalTableName": MAIN, "ReplicaUpdates": [{"Delete": {"RegionName": "eu-west-1"}}]},
    ],
    "UpdateGlobalTableSettings": [
        {"GlobalTableName": MAIN, "GlobalTableProvisionedWriteCapacityUnits": 5},
    ],
    "DescribeEndpoints": [{}],
    "DescribeLimits": [{}],
    "ListStreams": [{"TableName": MAIN, "Limit": 2}],
}


def stream_requests(ask: Ask) -> dict[str, list[Json]]:
    """Requests that read the stream of MAIN, with the ARN, shards and iterators that it has now."""
    arn = ask("DescribeTable", {"TableName": MAIN})["Table"]["LatestStreamArn"]
    for shown in ask("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]:
        shard = shown["ShardId"]
        where = {"StreamArn": arn, "ShardId": shard}
        iterator = ask("GetShardIterator", {**where, "ShardIteratorType": "TRIM_HORIZON"})["ShardIterator"]
        records = ask("GetRecords", {"ShardIterator": iterator})["Records"]
        if records:
            break
    number = records[0]["dynamodb"]["SequenceNumber"]
    return {
        "DescribeStream": [{"StreamArn": arn, "Limit": 10, "ExclusiveStartShardId": shard}],
        "GetShardIterator": [
            {**where, "ShardIteratorType": "TRIM_HORIZON"},
            {**where, "ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": number},
        ],
        "GetRecords": [{"ShardIterator": iterator, "Limit": 10}],
    }


def golden_requests() -> dict[str, list[bytes]]:
    """The requests of the golden scripts, encoded, each once."""
    found: dict[str, dict[bytes, None]] = defaultdict(dict)
    for script in SCRIPTS:
        for _, _, lines in steps(script.read_text(encoding="utf-8")):
            if lines and lines[0].partition(" ")[0] not in _CONTROL_WORDS:
                operation, request = request_of(lines)
                encoded = orjson.dumps(request)
                if len(encoded) <= _REQUEST_BYTES_MAX:
                    found[operation][encoded] = None
                    # The scripts have tables of their own, which do not exist here.
                    table = b'"TableName":"%b"' % (MAIN if b'"sk"' in encoded else PLAIN).encode()
                    found[operation][_TABLE_NAME.sub(table, encoded)] = None
    return {operation: list(requests) for operation, requests in found.items()}


class Seeds:
    """The requests to break, encoded as JSON, by operation."""

    def __init__(self) -> None:
        self._golden = golden_requests()
        self.own: dict[str, list[bytes]] = {}
        self.set_streams({})

    def set_streams(self, streams: dict[str, list[Json]]) -> None:
        """Set the requests that read streams; they change each time that a table is made."""
        everything = {**REQUESTS, **streams}
        self.own = {name: [orjson.dumps(one) for one in requests] for name, requests in everything.items()}
        self.operations = sorted(self.own)

    def golden(self, operation: str) -> list[bytes]:
        """The golden scripts' requests of an operation; its own where they have none."""
        return self._golden.get(operation) or self.own[operation]


def missing_operations() -> set[str]:
    """The operations that no request here calls, except those that need a stream."""
    return set(REGISTRY) - set(REQUESTS) - {"DescribeStream", "GetShardIterator", "GetRecords"}
