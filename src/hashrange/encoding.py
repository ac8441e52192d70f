"""Order-preserving key bytes: the address of an item or an index entry in the store.

Partition (`partition_of`): the first 8 bytes of an MD5, then 16 bytes of a BLAKE2b, both of the key's bytes.
The MD5 is DynamoDB's: of the word `Outliers` and the bytes, so that scans have its order and its segments.
BLAKE2b makes crafted collisions impossible. The key's bytes are the UTF-8 text of S and the bytes of B; for N
they are the packed bytes below in BLAKE2b, and the bytes of Oracle's NUMBER in MD5. The components of a
multi-attribute key are packed as in an index sort and joined.

    {"S": "3635"}  MD5 of 4f75746c69657273 33363335      0008… segment 0 of 4,096
    {"N": "251"}   MD5 of 4f75746c69657273 c20334        001c… segment 1 of 4,096

Oracle's NUMBER (`oracle_number`): zero is 80. A positive number is its exponent to the base 100 + 193 in one
byte, and its digits to the base 100, each + 1. A negative number is 62 - that exponent, the digits taken
from 101 each, and 66 at the end where there are fewer than 20.

Sort of a base table (`pack_sort`): one component and nothing after it, so it needs no terminator.

    S  the UTF-8 bytes            {"S": "ab"}  61 62
    B  the bytes                  {"B": "AP8="}  00 ff
    N  packed number, below       {"N": "1"}  c0 82 0b 00

Sort of an index entry (`pack_index_sort`): each component made self-delimiting, then a tie-break: the
first 64 bytes of the base item's sort, delimited, and a 16-byte digest of its address. Entries with equal
index keys are distinct, in the order of the base sort key, and no address outgrows an engine's key limit.

    S, B  00 is written 00 ff; the end is 00 01      {"S": "ab"}  61 62 00 01
    N     packed number (self-delimiting already)

Packed number: zero is 80. A positive number is c0, the exponent of its first digit + 130 in one byte, its
digits two by two (each pair + 1, the last filled with 0), and 00. A negative number is 40, then all of
that inverted, with ff at the end.

    1 → c0 82 0b 00      10 → c0 83 0b 00      12 → c0 82+1 0d 00      -1 → 40 7d f4 ff

Property-tested: packed order = value order. Knows nothing of tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b, md5
from typing import Final

from hashrange.limits import NUMBER_EXPONENT_MIN
from hashrange.values import AttributeValue, decode_binary

PLACE_BYTES: Final = 8
_UNIQUE_BYTES: Final = 16
PARTITION_BYTES: Final = PLACE_BYTES + _UNIQUE_BYTES
TIE_BYTES: Final = 64

_KEPT_MAX: Final = 16_384
"""The partitions of this many keys of each type are kept, because to compute one takes two digests."""

_PAIRS: Final = {f"{pair:02}": pair + 1 for pair in range(100)}
_INVERT: Final = bytes(255 - byte for byte in range(256))
_ZERO: Final = b"\x80"

_SALT: Final = b"Outliers"
_ORACLE_DIGITS_MAX: Final = 20


def pack_number(text: str) -> bytes:
    """The order-preserving bytes of a number in normal form."""
    if text == "0":
        return _ZERO
    negative = text[0] == "-"
    digits, exponent = _digits(text[1:] if negative else text)
    body = bytes((exponent - NUMBER_EXPONENT_MIN, *_pairs(digits), 0))
    return b"\x40" + body.translate(_INVERT) if negative else b"\xc0" + body


def _digits(text: str) -> tuple[str, int]:
    """The digits of a positive number, without leading and trailing zeros, and the exponent of the first
    digit."""
    whole, _, fraction = text.partition(".")
    if whole == "0":
        digits = fraction.lstrip("0")
        return digits, len(digits) - len(fraction) - 1
    return whole + fraction if fraction else whole.rstrip("0"), len(whole) - 1


def _pairs(digits: str) -> list[int]:
    """The digits two by two, each pair + 1."""
    if len(digits) % 2:
        digits += "0"
    return [_PAIRS[digits[at : at + 2]] for at in range(0, len(digits), 2)]


def pack_sort(value: AttributeValue) -> bytes:
    """The sort bytes of a base table's sort key value (S, N or B)."""
    for name, content in value.items():
        if name == "S":
            return content.encode()  # type: ignore[no-any-return]
        if name == "N":
            return pack_number(content)
        return decode_binary(content)
    raise ValueError("an attribute value without a type")


def pack_component(value: AttributeValue) -> bytes:
    """The self-delimiting bytes of one component of an index key."""
    packed = pack_sort(value)
    return packed if "N" in value else escape(packed) + b"\x00\x01"


def escape(packed: bytes) -> bytes:
    """The bytes with each 00 written as 00 ff, so that the terminator 00 01 is unique. Keeps their order."""
    return packed.replace(b"\x00", b"\x00\xff")


def pack_index_sort(components: Sequence[AttributeValue], partition: bytes, sort: bytes) -> bytes:
    """The sort bytes of an index entry: its sort key components, then the tie-break of the base item's
    `partition` and `sort`."""
    tie = escape(sort[:TIE_BYTES]) + b"\x00\x01" + blake2b(partition + sort, digest_size=16).digest()
    return b"".join(map(pack_component, components)) + tie


def partition_of(components: Sequence[AttributeValue]) -> bytes:
    """The partition of a key with these partition key values, 24 bytes."""
    if len(components) == 1:
        return partition_of_one(components[0])
    return _digest(b"".join(map(pack_component, components)))


def partition_of_one(value: AttributeValue) -> bytes:
    """Like `partition_of`, for a key with one partition key value, as those of base tables are."""
    for name, content in value.items():
        if name == "S":
            kept = _of_texts.get(content)
            return kept if kept is not None else _keep(_of_texts, content, _digest(content.encode()))
        if name == "N":
            kept = _of_numbers.get(content)
            return kept if kept is not None else _keep(_of_numbers, content, _number_digest(content))
        kept = _of_binaries.get(content)
        return kept if kept is not None else _keep(_of_binaries, content, _digest(decode_binary(content)))
    raise ValueError("an attribute value without a type")


_of_texts: Final[dict[str, bytes]] = {}
_of_numbers: Final[dict[str, bytes]] = {}
_of_binaries: Final[dict[str, bytes]] = {}


def _keep(partitions: dict[str, bytes], content: str, partition: bytes) -> bytes:
    if len(partitions) >= _KEPT_MAX:
        partitions.clear()
    partitions[content] = partition
    return partition


def _digest(key: bytes) -> bytes:
    return _place(key) + blake2b(key, digest_size=_UNIQUE_BYTES).digest()


def _number_digest(text: str) -> bytes:
    return _place(oracle_number(text)) + blake2b(pack_number(text), digest_size=_UNIQUE_BYTES).digest()


def _place(key: bytes) -> bytes:
    """The place of a partition in DynamoDB's order.

    Recordings of the live service, of scans in 4,096 segments, show this for strings and positive numbers.
    [assumed] for negative numbers, binary values, and keys of several attributes, which only indexes have.
    """
    return md5(_SALT + key, usedforsecurity=False).digest()[:PLACE_BYTES]


def oracle_number(text: str) -> bytes:
    """The bytes of Oracle's NUMBER for a number in normal form."""
    if text == "0":
        return _ZERO
    negative = text[0] == "-"
    digits, exponent = _digits(text[1:] if negative else text)
    # An even exponent leaves the first digit to the base 100 one decimal digit only.
    pairs = _pairs(digits if exponent % 2 else "0" + digits)
    if not negative:
        return bytes((exponent // 2 + 193, *pairs))
    end = (0x66,) if len(pairs) < _ORACLE_DIGITS_MAX else ()
    return bytes((62 - exponent // 2, *[102 - pair for pair in pairs], *end))


def successor(prefix: bytes) -> bytes | None:
    """The lowest bytes above everything that starts with `prefix`; None if there is no end."""
    trimmed = prefix.rstrip(b"\xff")
    if not trimmed:
        return None
    return trimmed[:-1] + bytes((trimmed[-1] + 1,))
