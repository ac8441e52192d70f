"""Java's order of hash codes: DynamoDB is written in Java, and some of its errors list names in this order.

Refuses to know which lists have this order, and how many buckets their maps have. The modules that print such
lists know both from reports.
"""

from __future__ import annotations

from collections.abc import Iterable


def hash_code(text: str) -> int:
    """`String.hashCode` of a text, unsigned."""
    result = 0
    for character in text:
        result = (31 * result + ord(character)) & 0xFFFFFFFF
    return result


def in_hash_order(texts: Iterable[str], buckets: int) -> list[str]:
    """Texts in the order of a `java.util.HashMap` with this many buckets (a power of two). Texts of the same
    bucket keep their order."""

    def bucket(text: str) -> int:
        code = hash_code(text)
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(texts, key=bucket)
