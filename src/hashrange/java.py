"""What shows that DynamoDB is written in Java: it prints sets and maps in the order of their hash codes.

Refuses to know: which sets, and how many buckets they were made with; reports say so, where they are printed.
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
    """Texts in the order of a `java.util.HashMap` of that many buckets, a power of two; those that share a
    bucket as they were put in."""

    def bucket(text: str) -> int:
        code = hash_code(text)
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(texts, key=bucket)
