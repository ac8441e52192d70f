"""Requests about the past of tables: recovery, backups and restores."""

from typing import Final

from hashrange.limits import LIST_BACKUPS_MAX
from hashrange.shapes.members import LONG_ARN, TABLE_ARN, TABLE_NAME
from hashrange.shapes.table_parts import (
    BILLING_MODE,
    GLOBAL_SECONDARY_INDEX_LIST,
    LOCAL_SECONDARY_INDEX_LIST,
    ON_DEMAND_THROUGHPUT,
    PROVISIONED_THROUGHPUT,
    SSE_SPECIFICATION,
    VECTOR_INDEX_LIST,
)
from hashrange.shapes.vocabulary import (
    BOOLEAN,
    NAME_PATTERN,
    TIMESTAMP,
    Members,
    String,
    Structure,
    enum,
    integer,
    requests,
    required,
)

_RECOVERY: Final = Structure(
    "PointInTimeRecoverySpecification",
    {"PointInTimeRecoveryEnabled": required(BOOLEAN), "RecoveryPeriodInDays": integer(1, 35)},
)
_OVERRIDES: Final[Members] = {
    "BillingModeOverride": BILLING_MODE,
    "GlobalSecondaryIndexOverride": GLOBAL_SECONDARY_INDEX_LIST,
    "LocalSecondaryIndexOverride": LOCAL_SECONDARY_INDEX_LIST,
    "ProvisionedThroughputOverride": PROVISIONED_THROUGHPUT,
    "OnDemandThroughputOverride": ON_DEMAND_THROUGHPUT,
    "SSESpecificationOverride": SSE_SPECIFICATION,
    "VectorIndexOverride": VECTOR_INDEX_LIST,
}

OPERATIONS: Final = requests(
    {
        "CreateBackup": {
            "TableName": required(TABLE_ARN),
            "BackupName": required(String(3, 255, NAME_PATTERN)),
        },
        "DeleteBackup": {"BackupArn": required(LONG_ARN)},
        "DescribeBackup": {"BackupArn": required(LONG_ARN)},
        "DescribeContinuousBackups": {"TableName": required(TABLE_ARN)},
        "ListBackups": {
            "TableName": TABLE_ARN,
            "Limit": integer(1, LIST_BACKUPS_MAX),
            "TimeRangeLowerBound": TIMESTAMP,
            "TimeRangeUpperBound": TIMESTAMP,
            "ExclusiveStartBackupArn": LONG_ARN,
            "BackupType": enum("USER", "SYSTEM", "AWS_BACKUP", "ALL"),
        },
        "RestoreTableFromBackup": {
            "TargetTableName": required(TABLE_NAME),
            "BackupArn": required(LONG_ARN),
            **_OVERRIDES,
        },
        "RestoreTableToPointInTime": {
            "SourceTableArn": String(1, 1024),
            "SourceTableName": TABLE_NAME,
            "TargetTableName": required(TABLE_NAME),
            "UseLatestRestorableTime": BOOLEAN,
            "RestoreDateTime": TIMESTAMP,
            **_OVERRIDES,
        },
        "UpdateContinuousBackups": {
            "TableName": required(TABLE_ARN),
            "PointInTimeRecoverySpecification": required(_RECOVERY),
        },
    }
)
