"""Members that several families of operations share, under the names of the API model."""

from typing import Final

from hashrange import limits
from hashrange.shapes.vocabulary import (
    ATTRIBUTE_VALUE,
    NAME_PATTERN,
    TEXT,
    List,
    Map,
    String,
    Structure,
    enum,
    integer,
    long,
)

TABLE_ARN: Final = String(1, 1024, names_table=True)
# For operations that make and describe tables, an empty name breaks the rules of names as well.
# [report] ack-api-quirks DDB-TABLE-457, terraform-provider-aws issue 45903
OWN_TABLE_ARN: Final = String(1, 1024, names_table=True, empty_is_name=True)
TABLE_NAME: Final = String(limits.NAME_CHARS_MIN, limits.NAME_CHARS_MAX, NAME_PATTERN)
# [report] ack-api-quirks DDB-TABLE-457 for the order
INDEX_NAME: Final = String(limits.NAME_CHARS_MIN, limits.NAME_CHARS_MAX, NAME_PATTERN, length_first=True)
RESOURCE_ARN: Final = String(1, 1283)
LONG_ARN: Final = String(37, 1024)  # backups, exports, imports, streams: the shortest possible is 37

ATTRIBUTE_NAME: Final = String(maximum=limits.ATTRIBUTE_NAME_BYTES_MAX)
KEY_ATTRIBUTE_NAME: Final = String(1, limits.KEY_ATTRIBUTE_NAME_BYTES_MAX)
ATTRIBUTE_VALUES: Final = List(ATTRIBUTE_VALUE)

# Attribute names that are too long are refused later, with their own error.
# [report] extenddb issue 365; Alternator's authors, of AttributesToGet
ITEM: Final = Map(TEXT, ATTRIBUTE_VALUE)
KEY: Final = ITEM
ATTRIBUTE_NAMES: Final = List(TEXT, 1)
EXPRESSION_NAMES: Final = Map(TEXT, TEXT)
EXPRESSION_VALUES: Final = Map(TEXT, ATTRIBUTE_VALUE)

POSITIVE_INTEGER: Final = integer(1)
POSITIVE_LONG: Final = long(1)
CLIENT_REQUEST_TOKEN: Final = String(1, 36)

RETURN_CONSUMED_CAPACITY: Final = enum("INDEXES", "TOTAL", "NONE")
RETURN_ITEM_COLLECTION_METRICS: Final = enum("SIZE", "NONE")
RETURN_VALUES: Final = enum("NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW")
RETURN_VALUES_ON_FAILURE: Final = enum("ALL_OLD", "NONE")

# The rules of tags in the API model are checked later. [report] ack-api-quirks DDB-TABLE-107
TAG_KEY: Final = TEXT
TAG: Final = Structure("Tag", {"Key": TEXT, "Value": TEXT})
