"""The stored keys.

    (ACCESS_SPACE, "key", id)       → a `StoredKey`, as JSON
    (ACCESS_SPACE, "version", "")   → a number that grows with each change

The version lets other servers over the store see cheaply that they have to read the keys again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hashrange.storage.api import Reader, Transaction
from hashrange.tables.spaces import ACCESS_SPACE

_KEY: Final = b"key"
_VERSION: Final = b"version"


class StoredKey(msgspec.Struct, frozen=True, kw_only=True):
    """A stored key. `user` is the name of its user, "" for the root user of the account. `policy` is the
    document, in JSON, of a user who stands in no users file; "" for others. `sealed` is the encrypted secret.
    Times are epoch seconds; from `ends` on the key counts no longer (None: it has no end)."""

    id: str
    account: str
    user: str
    policy: str = ""
    created: float
    enabled: bool = True
    ends: float | None = None
    sealed: bytes = b""

    @property
    def about(self) -> bytes:
        """What the sealed secret is bound to: a writer of the store cannot give the secret to another user
        or another policy."""
        return msgspec.json.encode((self.id, self.account, self.user, self.policy))


_DECODER: Final = msgspec.json.Decoder(StoredKey)
_ENCODER: Final = msgspec.json.Encoder()


def every(reader: Reader) -> list[StoredKey]:
    """All keys, in the order of their ids. Raises msgspec.MsgspecError for damaged records."""
    return [_DECODER.decode(stored) for _, stored in reader.scan(ACCESS_SPACE, _KEY)]


def find(reader: Reader, id_: str) -> StoredKey | None:
    """The key with this id, or None."""
    stored = reader.get(ACCESS_SPACE, _KEY, id_.encode())
    return _DECODER.decode(stored) if stored is not None else None


def version(reader: Reader) -> int:
    """How often the keys were changed."""
    return int(reader.get(ACCESS_SPACE, _VERSION, b"") or 0)


def save(txn: Transaction, key: StoredKey) -> None:
    """Store a key, new or changed."""
    txn.put(ACCESS_SPACE, _KEY, key.id.encode(), _ENCODER.encode(key))
    _grow(txn)


def forget(txn: Transaction, key: StoredKey) -> None:
    """Remove a key."""
    txn.delete(ACCESS_SPACE, _KEY, key.id.encode())
    _grow(txn)


def _grow(txn: Transaction) -> None:
    txn.put(ACCESS_SPACE, _VERSION, b"", str(version(txn) + 1).encode())
