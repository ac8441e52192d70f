"""Requests that move items between tables and buckets: exports, imports, bulk operations."""

from typing import Final

from hashrange.shapes.members import EXPRESSION_NAMES, EXPRESSION_VALUES, LONG_ARN, TABLE_ARN, TABLE_NAME
from hashrange.shapes.table_parts import (
    ATTRIBUTE_DEFINITIONS,
    BILLING_MODE,
    GLOBAL_SECONDARY_INDEX_LIST,
    KEY_SCHEMA,
    ON_DEMAND_THROUGHPUT,
    PROVISIONED_THROUGHPUT,
    SSE_SPECIFICATION,
    VECTOR_INDEX_LIST,
)
from hashrange.shapes.vocabulary import (
    TEXT,
    TIMESTAMP,
    List,
    Members,
    String,
    Structure,
    enum,
    integer,
    long,
    requests,
    required,
)

_TOKEN: Final = String(pattern=r"^[^\$]+$")
_OWNER: Final = String(pattern="[0-9]{12}")
_BUCKET: Final = String(maximum=255, pattern=r"^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$")
_PREFIX: Final = String(maximum=1024)
_COMPRESSION: Final = enum("GZIP", "ZSTD", "NONE")
_ENCRYPTION: Final[Members] = {"S3SseAlgorithm": enum("AES256", "KMS"), "S3SseKmsKeyId": String(1, 2048)}

# ---------------------------------------------------------------------------------------- exports

_INCREMENTAL: Final = Structure(
    "IncrementalExportSpecification",
    {
        "ExportFromTime": TIMESTAMP,
        "ExportToTime": TIMESTAMP,
        "ExportViewType": enum("NEW_IMAGE", "NEW_AND_OLD_IMAGES"),
    },
)
_FILTER: Final = Structure(
    "FilterSpecification",
    {
        "FilterExpression": TEXT,
        "ProjectionExpression": TEXT,
        "KeyConditionExpression": TEXT,
        "ExpressionAttributeNames": EXPRESSION_NAMES,
        "ExpressionAttributeValues": EXPRESSION_VALUES,
    },
)

# ---------------------------------------------------------------------------------------- imports

_SOURCE: Final = Structure(
    "S3BucketSource",
    {"S3BucketOwner": _OWNER, "S3Bucket": required(_BUCKET), "S3KeyPrefix": _PREFIX},
)
_CSV: Final = Structure(
    "CsvOptions",
    {
        "Delimiter": String(1, 1, r"[,;:|\t ]"),
        "HeaderList": List(String(1, 65_536, r"[\x20-\x21\x23-\x2B\x2D-\x7E]*"), 1, 255),
    },
)
_TABLE: Final = Structure(
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

# -------------------------------------------------------------------------------- bulk operations

_INPUT: Final = Structure(
    "InputS3Configuration",
    {
        "S3BucketOwner": _OWNER,
        "S3Bucket": required(_BUCKET),
        "S3KeyPrefix": _PREFIX,
        "InputFormat": required(enum("DYNAMODB_JSON", "ION")),
        "InputCompressionType": _COMPRESSION,
    },
)
_OUTPUT: Final = Structure(
    "OutputS3Configuration",
    {
        "S3BucketOwner": _OWNER,
        "S3Bucket": _BUCKET,
        "S3KeyPrefix": _PREFIX,
        **_ENCRYPTION,
        "OutputType": required(List(enum("ERROR", "CONDITION_CHECK_FAILURE"))),
    },
)

OPERATIONS: Final = requests(
    {
        "ExportTableToPointInTime": {
            # The form of an ARN is checked later. [report] ack-api-quirks DDB-EXPORT-001
            "TableArn": required(String(1, 1024)),
            "ExportTime": TIMESTAMP,
            "ClientToken": _TOKEN,
            "S3Bucket": required(_BUCKET),
            "S3BucketOwner": _OWNER,
            "S3Prefix": _PREFIX,
            **_ENCRYPTION,
            "ExportFormat": enum("DYNAMODB_JSON", "ION"),
            "ExportType": enum("FULL_EXPORT", "INCREMENTAL_EXPORT"),
            "IncrementalExportSpecification": _INCREMENTAL,
            "FilterSpecification": _FILTER,
        },
        "DescribeExport": {"ExportArn": required(LONG_ARN)},
        "ListExports": {"TableArn": TABLE_ARN, "MaxResults": integer(1, 25), "NextToken": TEXT},
        "ImportTable": {
            "ClientToken": _TOKEN,
            "S3BucketSource": required(_SOURCE),
            "InputFormat": required(enum("DYNAMODB_JSON", "ION", "CSV")),
            "InputFormatOptions": Structure("InputFormatOptions", {"Csv": _CSV}),
            "InputCompressionType": _COMPRESSION,
            "TableCreationParameters": required(_TABLE),
        },
        "DescribeImport": {"ImportArn": required(LONG_ARN)},
        "ListImports": {
            "TableArn": TABLE_ARN,
            "PageSize": integer(1, 25),
            "NextToken": String(112, 1024, "([0-9a-f]{16})+"),
        },
        "StartBulkPutItems": {
            "ClientToken": _TOKEN,
            "InputS3Configuration": required(_INPUT),
            "OutputS3Configuration": required(_OUTPUT),
            "TableName": required(TABLE_ARN),
            "MaxWriteRequestUnits": long(1024),
            "PerformanceTier": enum("STANDARD", "ACCELERATED"),
        },
        "DescribeBulkOperation": {"BulkOperationArn": required(LONG_ARN)},
        "CancelBulkOperation": {"BulkOperationArn": required(LONG_ARN)},
        "ListBulkOperations": {
            "MaxResults": integer(1, 25),
            "NextToken": String(1, 1024, "([0-9a-f]{16})+"),
        },
    }
)
