"""Requests of bulk operations."""

from typing import Final

from hashrange.shapes.members import LONG_ARN, TABLE_ARN
from hashrange.shapes.vocabulary import List, String, Structure, enum, integer, long, required

_BUCKET_PATTERN: Final = r"^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$"

INPUT_S3_CONFIGURATION: Final = Structure(
    "InputS3Configuration",
    {
        "S3BucketOwner": String(pattern="[0-9]{12}"),
        "S3Bucket": required(String(maximum=255, pattern=_BUCKET_PATTERN)),
        "S3KeyPrefix": String(maximum=1024),
        "InputFormat": required(enum("DYNAMODB_JSON", "ION")),
        "InputCompressionType": enum("GZIP", "ZSTD", "NONE"),
    },
)

OUTPUT_S3_CONFIGURATION: Final = Structure(
    "OutputS3Configuration",
    {
        "S3BucketOwner": String(pattern="[0-9]{12}"),
        "S3Bucket": String(maximum=255, pattern=_BUCKET_PATTERN),
        "S3KeyPrefix": String(maximum=1024),
        "S3SseAlgorithm": enum("AES256", "KMS"),
        "S3SseKmsKeyId": String(1, 2048),
        "OutputType": required(List(enum("ERROR", "CONDITION_CHECK_FAILURE"))),
    },
)

START_BULK_PUT_ITEMS: Final = Structure(
    "StartBulkPutItemsInput",
    {
        "ClientToken": String(pattern=r"^[^\$]+$"),
        "InputS3Configuration": required(INPUT_S3_CONFIGURATION),
        "OutputS3Configuration": required(OUTPUT_S3_CONFIGURATION),
        "TableName": required(TABLE_ARN),
        "MaxWriteRequestUnits": long(1024),
        "PerformanceTier": enum("STANDARD", "ACCELERATED"),
    },
)

DESCRIBE_BULK_OPERATION: Final = Structure(
    "DescribeBulkOperationInput", {"BulkOperationArn": required(LONG_ARN)}
)
CANCEL_BULK_OPERATION: Final = Structure("CancelBulkOperationInput", {"BulkOperationArn": required(LONG_ARN)})
LIST_BULK_OPERATIONS: Final = Structure(
    "ListBulkOperationsInput",
    {"MaxResults": integer(1, 25), "NextToken": String(1, 1024, "([0-9a-f]{16})+")},
)

OPERATIONS: Final = {
    "StartBulkPutItems": START_BULK_PUT_ITEMS,
    "DescribeBulkOperation": DESCRIBE_BULK_OPERATION,
    "CancelBulkOperation": CANCEL_BULK_OPERATION,
    "ListBulkOperations": LIST_BULK_OPERATIONS,
}
