"""The limits of DynamoDB, in one place; names end in their unit.

Source: Amazon DynamoDB Developer Guide, "Service, account, and table quotas" and "Constraints in
Amazon DynamoDB", and the API reference of each operation.
"""

from typing import Final

ITEM_BYTES_MAX: Final = 409_600
NESTING_LEVELS_MAX: Final = 32
# A value with more levels than this is answered like text that is not JSON [assumed]. The service has been
# observed to read 100 levels and then to apply its rules. A level takes two levels of JSON, and orjson writes
# up to 254 of these.
READABLE_LEVELS_MAX: Final = 112
PARTITION_KEY_BYTES_MAX: Final = 2_048
SORT_KEY_BYTES_MAX: Final = 1_024
ATTRIBUTE_NAME_BYTES_MAX: Final = 65_535
KEY_ATTRIBUTE_NAME_BYTES_MAX: Final = 255
NAME_CHARS_MIN: Final = 3
NAME_CHARS_MAX: Final = 255

NUMBER_DIGITS_MAX: Final = 38
NUMBER_EXPONENT_MAX: Final = 125
NUMBER_EXPONENT_MIN: Final = -130

EXPRESSION_BYTES_MAX: Final = 4_096
EXPRESSION_TOKEN_BYTES_MAX: Final = 255
EXPRESSION_SUBSTITUTION_BYTES_MAX: Final = 2 * 1024 * 1024
EXPRESSION_OPERATORS_MAX: Final = 300
EXPRESSION_IN_OPERANDS_MAX: Final = 100

PAGE_BYTES_MAX: Final = 1024 * 1024
BATCH_GET_KEYS_MAX: Final = 100
BATCH_GET_BYTES_MAX: Final = 16 * 1024 * 1024
BATCH_WRITE_ITEMS_MAX: Final = 25
TRANSACT_ITEMS_MAX: Final = 100
TRANSACT_BYTES_MAX: Final = 4 * 1024 * 1024
CLIENT_REQUEST_TOKEN_SECONDS: Final = 600
PARTIQL_IN_KEYS_MAX: Final = 50
PARTIQL_IN_PAGE_ITEMS_MAX: Final = 10
# The most partitions that a page of a SELECT reads if OR binds the partition key. The service's own limit is
# unknown.
PARTIQL_PAGE_PARTITIONS_MAX: Final = 250
SCAN_SEGMENTS_MAX: Final = 1_000_000

# For a table's throughput; the limits of accounts are lower.
UNITS_MAX: Final = 1_000_000_000_000
GSI_MAX: Final = 20
DECREASES_FREELY_MAX: Final = 4
DECREASE_INTERVAL_SECONDS: Final = 3_600
LSI_MAX: Final = 5
GSI_KEY_ATTRIBUTES_MAX: Final = 4
INDEX_NON_KEY_ATTRIBUTES_MAX: Final = 100
ITEM_COLLECTION_BYTES_MAX: Final = 10 * 1024 * 1024 * 1024

READ_UNIT_BYTES: Final = 4_096
WRITE_UNIT_BYTES: Final = 1_024

VECTOR_INDEXES_MAX: Final = 5
VECTOR_DIMENSIONS_MAX: Final = 4_096
VECTOR_FILTERS_MAX: Final = 18
VECTOR_RESULTS_MAX: Final = 100
VECTOR_ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
VECTOR_REQUEST_BYTES_MIN: Final = 1_024

REQUEST_BODY_BYTES_MAX: Final = 16 * 1024 * 1024
# The longest part of a request that an error's text shows, and the longest text of an error. The service's
# own limits are unknown.
SHOWN_CHARS_MAX: Final = 32 * 1024
MESSAGE_CHARS_MAX: Final = 128 * 1024
TABLES_MAX: Final = 2_500
CHANGING_TABLES_MAX: Final = 500
LIST_TABLES_MAX: Final = 100
LIST_IMPORTS_PAGE_MAX: Final = 10
IMPORTS_MAX: Final = 50
LIST_EXPORTS_PAGE_MAX: Final = 10
EXPORTS_MAX: Final = 300
LIST_BULK_OPERATIONS_PAGE_MAX: Final = 10
BULK_TOKEN_SECONDS: Final = 8 * 3600
EXPORT_TOKEN_SECONDS: Final = 8 * 3600
INCREMENTAL_EXPORT_SECONDS_MIN: Final = 15 * 60
INCREMENTAL_EXPORT_SECONDS_MAX: Final = 24 * 3600
LIST_BACKUPS_MAX: Final = 100
RESTORES_MAX: Final = 50
IMPORT_TOKEN_SECONDS: Final = 8 * 3600
TAGS_MAX: Final = 50
POLICY_BYTES_MAX: Final = 20 * 1024
TTL_PAST_SECONDS_MAX: Final = 5 * 365 * 24 * 3600

INSIGHT_RULES_MAX: Final = 100
"""The rules of contributor insights in a region: two for each table or index, four if it has a sort key.
Source: CloudWatch User Guide, "Contributor Insights quotas"."""
LIST_INSIGHTS_PAGE_MAX: Final = 100

# Of one partition of a table or an index, in units per second: reads and writes are counted apart.
PARTITION_READ_UNITS_MAX: Final = 3_000
PARTITION_WRITE_UNITS_MAX: Final = 1_000
PARTITION_BYTES_MAX: Final = 10 * 1024**3
# Of one table or index on demand, unless it has a maximum of its own; an account can have it raised.
ACCOUNT_UNITS_MAX: Final = 40_000
BURST_SECONDS: Final = 300
PEAK_SECONDS: Final = 1_800
