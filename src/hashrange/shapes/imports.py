"""Requests of imports."""

from typing import Final

from hashrange.shapes.members import LONG_ARN, TABLE_ARN, TABLE_NAME
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
from hashrange.shapes.vocabulary import List, String, Structure, enum, integer, required

S3_BUCKET_SOURCE: Final = Structure(
    "S3BucketSource",
    {
        "S3BucketOwner": String(pattern="[0-9]{12}"),
        "S3Bucket": required(String(maximum=255, pattern=r"^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$")),
        "S3KeyPrefix": String(maximum=1024),
    },
)

CSV_OPTIONS: Final = Structure(
    "CsvOptions",
    {
        "Delimiter": String(1, 1, r"[,;:|\t ]"),
        "HeaderList": List(String(1, 65_536, r"[\x20-\x21\x23-\x2B\x2D-\x7E]*"), 1, 255),
    },
)

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
        "ClientToken": String(pattern=r"^[^\$]+$"),
        "S3BucketSource": required(S3_BUCKET_SOURCE),
        "InputFormat": required(enum("DYNAMODB_JSON", "ION", "CSV")),
        "InputFormatOptions": Structure("InputFormatOptions", {"Csv": CSV_OPTIONS}),
        "InputCompressionType": enum("GZIP", "ZSTD", "NONE"),
        "TableCreationParameters": required(TABLE_CREATION_PARAMETERS),
    },
)

DESCRIBE_IMPORT: Final = Structure("DescribeImportInput", {"ImportArn": required(LONG_ARN)})
LIST_IMPORTS: Final = Structure(
    "ListImportsInput",
    {
        "TableArn": TABLE_ARN,
        "PageSize": integer(1, 25),
        "NextToken": String(112, 1024, "([0-9a-f]{16})+"),
    },
)

OPERATIONS: Final = {
    "ImportTable": IMPORT_TABLE,
    "DescribeImport": DESCRIBE_IMPORT,
    "ListImports": LIST_IMPORTS,
}
