"""Requests about copies of tables: backups, point-in-time recovery, export, import, bulk operations."""

from typing import Final

from hashrange.shapes.members import (
    CLIENT_TOKEN,
    EXPRESSION_NAMES,
    EXPRESSION_VALUES,
    LONG_ARN,
    TABLE_ARN,
    TABLE_NAME,
)
from hashrange.shapes.table_parts import (
    ATTRIBUTE_DEFINITIONS,
    BILLING_MODE,
    GLOBAL_SECONDARY_INDEX_LIST,
    KEY_SCHEMA,
    LOCAL_SECONDARY_INDEX_LIST,
    ON_DEMAND_THROUGHPUT,
    PROVISIONED_THROUGHPUT,
    SSE_SPECIFICATION,
    VECTOR_INDEX_LIST,
)
from hashrange.shapes.vocabulary import (
    BOOLEAN,
    TEXT,
    TIMESTAMP,
    List,
    String,
    Structure,
    enum,
    integer,
    long,
    required,
)

CANCEL_BULK_OPERATION: Final = Structure("CancelBulkOperationInput", {"BulkOperationArn": required(LONG_ARN)})
CREATE_BACKUP: Final = Structure(
    "CreateBackupInput",
    {
        "TableName": required(TABLE_ARN),
        "BackupName": required(String(3, 255, pattern=r"[a-zA-Z0-9_.-]+")),
    },
)

DELETE_BACKUP: Final = Structure("DeleteBackupInput", {"BackupArn": required(LONG_ARN)})
DESCRIBE_BACKUP: Final = Structure("DescribeBackupInput", {"BackupArn": required(LONG_ARN)})
DESCRIBE_BULK_OPERATION: Final = Structure(
    "DescribeBulkOperationInput",
    {
        "BulkOperationArn": required(LONG_ARN),
    },
)

DESCRIBE_CONTINUOUS_BACKUPS: Final = Structure(
    "DescribeContinuousBackupsInput",
    {
        "TableName": required(TABLE_ARN),
    },
)

DESCRIBE_EXPORT: Final = Structure("DescribeExportInput", {"ExportArn": required(LONG_ARN)})
DESCRIBE_IMPORT: Final = Structure("DescribeImportInput", {"ImportArn": required(LONG_ARN)})

S3_BUCKET: Final = String(maximum=255, pattern=r"^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$")

S3_BUCKET_OWNER: Final = String(pattern=r"[0-9]{12}")

S3_PREFIX: Final = String(maximum=1024)

S3_SSE_ALGORITHM: Final = enum("AES256", "KMS")

S3_SSE_KMS_KEY_ID: Final = String(1, 2048)

INCREMENTAL_EXPORT_SPECIFICATION: Final = Structure(
    "IncrementalExportSpecification",
    {
        "ExportFromTime": TIMESTAMP,
        "ExportToTime": TIMESTAMP,
        "ExportViewType": enum("NEW_IMAGE", "NEW_AND_OLD_IMAGES"),
    },
)

FILTER_SPECIFICATION: Final = Structure(
    "FilterSpecification",
    {
        "FilterExpression": TEXT,
        "ProjectionExpression": TEXT,
        "KeyConditionExpression": TEXT,
        "ExpressionAttributeNames": EXPRESSION_NAMES,
        "ExpressionAttributeValues": EXPRESSION_VALUES,
    },
)

EXPORT_TABLE_TO_POINT_IN_TIME: Final = Structure(
    "ExportTableToPointInTimeInput",
    {
        "TableArn": required(TABLE_ARN),
        "ExportTime": TIMESTAMP,
        "ClientToken": CLIENT_TOKEN,
        "S3Bucket": required(S3_BUCKET),
        "S3BucketOwner": S3_BUCKET_OWNER,
        "S3Prefix": S3_PREFIX,
        "S3SseAlgorithm": S3_SSE_ALGORITHM,
        "S3SseKmsKeyId": S3_SSE_KMS_KEY_ID,
        "ExportFormat": enum("DYNAMODB_JSON", "ION"),
        "ExportType": enum("FULL_EXPORT", "INCREMENTAL_EXPORT"),
        "IncrementalExportSpecification": INCREMENTAL_EXPORT_SPECIFICATION,
        "FilterSpecification": FILTER_SPECIFICATION,
    },
)

S3_BUCKET_SOURCE: Final = Structure(
    "S3BucketSource",
    {
        "S3BucketOwner": S3_BUCKET_OWNER,
        "S3Bucket": required(S3_BUCKET),
        "S3KeyPrefix": S3_PREFIX,
    },
)

CSV_OPTIONS: Final = Structure(
    "CsvOptions",
    {
        "Delimiter": String(1, 1, pattern=r"[,;:|\t ]"),
        "HeaderList": List(String(1, 65536, pattern=r"[\x20-\x21\x23-\x2B\x2D-\x7E]*"), 1, 255),
    },
)

INPUT_FORMAT_OPTIONS: Final = Structure("InputFormatOptions", {"Csv": CSV_OPTIONS})
INPUT_COMPRESSION_TYPE: Final = enum("GZIP", "ZSTD", "NONE")
TABLE_CREATION_PARAMETERS: Final = Structure(
    "TableCreationParameters",
    {
        "TableName": required(TABLE_NAME),
        "AttributeDefinitions": required(ATTRIBUTE_DEFINITIONS),
        "KeySchema": required(KEY_SCHEMA),
        "BillingMode": BILLING_MODE,
        "ProvisionedThroughput": PROVISIONED_THROUGHPUT,
        "OnDemandThroughput": ON_DEMAND_THROUGHPUT,
        "SSESpecification": SSE_SPECIFICATION,
        "GlobalSecondaryIndexes": GLOBAL_SECONDARY_INDEX_LIST,
        "VectorIndexes": VECTOR_INDEX_LIST,
    },
)

IMPORT_TABLE: Final = Structure(
    "ImportTableInput",
    {
        "ClientToken": CLIENT_TOKEN,
        "S3BucketSource": required(S3_BUCKET_SOURCE),
        "InputFormat": required(enum("DYNAMODB_JSON", "ION", "CSV")),
        "InputFormatOptions": INPUT_FORMAT_OPTIONS,
        "InputCompressionType": INPUT_COMPRESSION_TYPE,
        "TableCreationParameters": required(TABLE_CREATION_PARAMETERS),
    },
)

LIST_BACKUPS: Final = Structure(
    "ListBackupsInput",
    {
        "TableName": TABLE_ARN,
        "Limit": integer(1, 100),
        "TimeRangeLowerBound": TIMESTAMP,
        "TimeRangeUpperBound": TIMESTAMP,
        "ExclusiveStartBackupArn": LONG_ARN,
        "BackupType": enum("USER", "SYSTEM", "AWS_BACKUP", "ALL"),
    },
)

LIST_BULK_OPERATIONS: Final = Structure(
    "ListBulkOperationsInput",
    {
        "MaxResults": integer(1, 25),
        "NextToken": String(1, 1024, pattern=r"([0-9a-f]{16})+"),
    },
)

LIST_EXPORTS: Final = Structure(
    "ListExportsInput",
    {
        "TableArn": TABLE_ARN,
        "MaxResults": integer(1, 25),
        "NextToken": TEXT,
    },
)

LIST_IMPORTS: Final = Structure(
    "ListImportsInput",
    {
        "TableArn": TABLE_ARN,
        "PageSize": integer(1, 25),
        "NextToken": String(112, 1024, pattern=r"([0-9a-f]{16})+"),
    },
)

RESTORE_TABLE_FROM_BACKUP: Final = Structure(
    "RestoreTableFromBackupInput",
    {
        "TargetTableName": required(TABLE_NAME),
        "BackupArn": required(LONG_ARN),
        "BillingModeOverride": BILLING_MODE,
        "GlobalSecondaryIndexOverride": GLOBAL_SECONDARY_INDEX_LIST,
        "LocalSecondaryIndexOverride": LOCAL_SECONDARY_INDEX_LIST,
        "ProvisionedThroughputOverride": PROVISIONED_THROUGHPUT,
        "OnDemandThroughputOverride": ON_DEMAND_THROUGHPUT,
        "SSESpecificationOverride": SSE_SPECIFICATION,
        "VectorIndexOverride": VECTOR_INDEX_LIST,
    },
)

RESTORE_TABLE_TO_POINT_IN_TIME: Final = Structure(
    "RestoreTableToPointInTimeInput",
    {
        "SourceTableArn": TABLE_ARN,
        "SourceTableName": TABLE_NAME,
        "TargetTableName": required(TABLE_NAME),
        "UseLatestRestorableTime": BOOLEAN,
        "RestoreDateTime": TIMESTAMP,
        "BillingModeOverride": BILLING_MODE,
        "GlobalSecondaryIndexOverride": GLOBAL_SECONDARY_INDEX_LIST,
        "LocalSecondaryIndexOverride": LOCAL_SECONDARY_INDEX_LIST,
        "ProvisionedThroughputOverride": PROVISIONED_THROUGHPUT,
        "OnDemandThroughputOverride": ON_DEMAND_THROUGHPUT,
        "SSESpecificationOverride": SSE_SPECIFICATION,
        "VectorIndexOverride": VECTOR_INDEX_LIST,
    },
)

INPUT_S3_CONFIGURATION: Final = Structure(
    "InputS3Configuration",
    {
        "S3BucketOwner": S3_BUCKET_OWNER,
        "S3Bucket": required(S3_BUCKET),
        "S3KeyPrefix": S3_PREFIX,
        "InputFormat": required(enum("DYNAMODB_JSON", "ION")),
        "InputCompressionType": INPUT_COMPRESSION_TYPE,
    },
)

OUTPUT_S3_CONFIGURATION: Final = Structure(
    "OutputS3Configuration",
    {
        "S3BucketOwner": S3_BUCKET_OWNER,
        "S3Bucket": S3_BUCKET,
        "S3KeyPrefix": S3_PREFIX,
        "S3SseAlgorithm": S3_SSE_ALGORITHM,
        "S3SseKmsKeyId": S3_SSE_KMS_KEY_ID,
        "OutputType": required(List(enum("ERROR", "CONDITION_CHECK_FAILURE"))),
    },
)

START_BULK_PUT_ITEMS: Final = Structure(
    "StartBulkPutItemsInput",
    {
        "ClientToken": CLIENT_TOKEN,
        "InputS3Configuration": required(INPUT_S3_CONFIGURATION),
        "OutputS3Configuration": required(OUTPUT_S3_CONFIGURATION),
        "TableName": required(TABLE_ARN),
        "MaxWriteRequestUnits": long(1024),
        "PerformanceTier": enum("STANDARD", "ACCELERATED"),
    },
)

POINT_IN_TIME_RECOVERY_SPECIFICATION: Final = Structure(
    "PointInTimeRecoverySpecification",
    {
        "PointInTimeRecoveryEnabled": required(BOOLEAN),
        "RecoveryPeriodInDays": integer(1, 35),
    },
)

UPDATE_CONTINUOUS_BACKUPS: Final = Structure(
    "UpdateContinuousBackupsInput",
    {
        "TableName": required(TABLE_ARN),
        "PointInTimeRecoverySpecification": required(POINT_IN_TIME_RECOVERY_SPECIFICATION),
    },
)

OPERATIONS: Final = {
    "CancelBulkOperation": CANCEL_BULK_OPERATION,
    "CreateBackup": CREATE_BACKUP,
    "DeleteBackup": DELETE_BACKUP,
    "DescribeBackup": DESCRIBE_BACKUP,
    "DescribeBulkOperation": DESCRIBE_BULK_OPERATION,
    "DescribeContinuousBackups": DESCRIBE_CONTINUOUS_BACKUPS,
    "DescribeExport": DESCRIBE_EXPORT,
    "DescribeImport": DESCRIBE_IMPORT,
    "ExportTableToPointInTime": EXPORT_TABLE_TO_POINT_IN_TIME,
    "ImportTable": IMPORT_TABLE,
    "ListBackups": LIST_BACKUPS,
    "ListBulkOperations": LIST_BULK_OPERATIONS,
    "ListExports": LIST_EXPORTS,
    "ListImports": LIST_IMPORTS,
    "RestoreTableFromBackup": RESTORE_TABLE_FROM_BACKUP,
    "RestoreTableToPointInTime": RESTORE_TABLE_TO_POINT_IN_TIME,
    "StartBulkPutItems": START_BULK_PUT_ITEMS,
    "UpdateContinuousBackups": UPDATE_CONTINUOUS_BACKUPS,
}
