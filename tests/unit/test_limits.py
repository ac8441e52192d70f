"""The limits are DynamoDB's.

[docs] Developer Guide, "Quotas in Amazon DynamoDB", and the API reference of each operation.
"""

from __future__ import annotations

import pytest

from hashrange import limits


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("ITEM_BYTES_MAX", 400 * 1024),
        ("NESTING_LEVELS_MAX", 32),
        ("PARTITION_KEY_BYTES_MAX", 2048),
        ("SORT_KEY_BYTES_MAX", 1024),
        ("NAME_CHARS_MIN", 3),
        ("NAME_CHARS_MAX", 255),
        ("NUMBER_DIGITS_MAX", 38),
        ("EXPRESSION_BYTES_MAX", 4 * 1024),
        ("EXPRESSION_OPERATORS_MAX", 300),
        ("EXPRESSION_IN_OPERANDS_MAX", 100),
        ("PAGE_BYTES_MAX", 1024**2),
        ("BATCH_GET_KEYS_MAX", 100),
        ("BATCH_GET_BYTES_MAX", 16 * 1024**2),
        ("BATCH_WRITE_ITEMS_MAX", 25),
        ("TRANSACT_ITEMS_MAX", 100),
        ("TRANSACT_BYTES_MAX", 4 * 1024**2),
        ("CLIENT_REQUEST_TOKEN_SECONDS", 10 * 60),
        ("GSI_MAX", 20),
        ("LSI_MAX", 5),
        ("INDEX_NON_KEY_ATTRIBUTES_MAX", 100),
        ("ITEM_COLLECTION_BYTES_MAX", 10 * 1024**3),
        ("READ_UNIT_BYTES", 4 * 1024),
        ("WRITE_UNIT_BYTES", 1024),
        ("LIST_TABLES_MAX", 100),
        ("TAGS_MAX", 50),
    ],
)
def test_limit(limit: str, value: int) -> None:
    assert getattr(limits, limit) == value


def test_names_end_in_what_they_bound() -> None:
    names = [name for name in vars(limits) if name.isupper()]
    endings = ("_MAX", "_MIN", "_SECONDS", "_BYTES")
    assert [name for name in names if not name.endswith(endings)] == []
