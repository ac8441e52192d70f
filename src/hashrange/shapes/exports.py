"""Requests of exports."""

from typing import Final

from hashrange.shapes.members import EXPRESSION_NAMES, EXPRESSION_VALUES, LONG_ARN, TABLE_ARN
from hashrange.shapes.vocabulary import TEXT, TIMESTAMP, String, Structure, enum, integer, required

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

EXPORT_TABLE: Final = Structure(
    "ExportTableToPointInTimeInput",
    {
        # The form of an ARN is checked later. [report] ack-api-quirks DDB-EXPORT-001
        "TableArn": required(String(1, 1024)),
        "ExportTime": TIMESTAMP,
        "ClientToken": String(pattern=r"^[^\$]+$"),
        "S3Bucket": required(String(maximum=255, pattern=r"^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$")),
        "S3BucketOwner": String(pattern="[0-9]{12}"),
        "S3Prefix": String(maximum=1024),
        "S3SseAlgorithm": enum("AES256", "KMS"),
        "S3SseKmsKeyId": String(1, 2048),
        "ExportFormat": enum("DYNAMODB_JSON", "ION"),
        "ExportType": enum("FULL_EXPORT", "INCREMENTAL_EXPORT"),
        "IncrementalExportSpecification": INCREMENTAL_EXPORT_SPECIFICATION,
        "FilterSpecification": FILTER_SPECIFICATION,
    },
)

DESCRIBE_EXPORT: Final = Structure("DescribeExportInput", {"ExportArn": required(LONG_ARN)})
LIST_EXPORTS: Final = Structure(
    "ListExportsInput",
    {
        "TableArn": TABLE_ARN,
        "MaxResults": integer(1, 25),
        "NextToken": TEXT,
    },
)

OPERATIONS: Final = {
    "ExportTableToPointInTime": EXPORT_TABLE,
    "DescribeExport": DESCRIBE_EXPORT,
    "ListExports": LIST_EXPORTS,
}
