"""The stored records of long jobs, as imports and exports are: a space for each kind of job.

    (job, scope / id)             → the job, as JSON
    (part, scope / id / number)   → a part of a job, as JSON: an error of an import, an object of an export
    (token, digest of a token)    → the id of the job that had the token last

An id begins with the time of its request, so that the jobs of a scope lie in the order of their times.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from hashrange.encoding import successor
from hashrange.storage.api import Reader, Transaction

_DIGEST_BYTES: Final = 24
_NUMBER_BYTES: Final = 8
_ENCODE: Final = msgspec.json.Encoder()


class Job(Protocol):
    """What is stored: a `msgspec.Struct` with these members."""

    @property
    def id(self) -> str: ...

    @property
    def scope(self) -> str: ...

    @property
    def account_id(self) -> str: ...

    @property
    def token(self) -> str | None: ...


J = TypeVar("J", bound=Job)


class JobRecords(Generic[J]):
    """The jobs of one kind, in `space`. `job`, `part` and `token` are the partitions of their records."""

    def __init__(self, space: int, kind: type[J], *, job: bytes, part: bytes, token: bytes) -> None:
        self._space = space
        self._decoder = msgspec.json.Decoder(kind)
        self._job = job
        self._part = part
        self._token = token

    def find(self, reader: Reader, scope: str, id_: str) -> J | None:
        """The job with this id, or None."""
        stored = reader.get(self._space, self._job, _sort(scope, id_))
        return self._decoder.decode(stored) if stored is not None else None

    def save(self, txn: Transaction, job: J) -> None:
        """Store a job, new or changed."""
        txn.put(self._space, self._job, _sort(job.scope, job.id), _ENCODE.encode(job))

    def newest_first(self, reader: Reader, scope: str, before: str | None = None) -> Iterator[J]:
        """The jobs of a scope, the newest first, from the one before the id `before` on."""
        low = f"{scope}/".encode()
        high = _sort(scope, before) if before is not None else successor(low)
        for _, stored in reader.scan(self._space, self._job, low, high, reverse=True):
            with suppress(msgspec.MsgspecError):  # `damaged` tells of it
                yield self._decoder.decode(stored)

    def every(self, reader: Reader) -> Iterator[J]:
        """The jobs of all scopes, without those of `damaged`."""
        for _, stored in reader.scan(self._space, self._job):
            with suppress(msgspec.MsgspecError):
                yield self._decoder.decode(stored)

    def damaged(self, reader: Reader) -> Iterator[tuple[str, Exception]]:
        """The jobs whose records cannot be decoded: scope and id, and the error."""
        for sort, stored in reader.scan(self._space, self._job):
            try:
                self._decoder.decode(stored)
            except msgspec.MsgspecError as error:
                yield sort.decode(errors="backslashreplace"), error

    def forget(self, txn: Transaction, job: J) -> None:
        """Remove a job with its parts and its token."""
        txn.delete(self._space, self._job, _sort(job.scope, job.id))
        prefix = _sort(job.scope, job.id) + b"/"
        for sort in [sort for sort, _ in txn.scan(self._space, self._part, prefix, successor(prefix))]:
            txn.delete(self._space, self._part, sort)
        if job.token is not None:
            name = _digest(job.scope, job.account_id, job.token)
            if txn.get(self._space, self._token, name) == job.id.encode():
                txn.delete(self._space, self._token, name)

    def keep_part(self, txn: Transaction, job: J, number: int, part: Any) -> None:
        """Store part `number` of a job."""
        sort = _sort(job.scope, job.id) + b"/" + number.to_bytes(_NUMBER_BYTES)
        txn.put(self._space, self._part, sort, _ENCODE.encode(part))

    def parts(self, reader: Reader, job: J, first: int = 0) -> Iterator[bytes]:
        """The stored parts of a job, in their order, from number `first` on."""
        prefix = _sort(job.scope, job.id) + b"/"
        low = prefix + min(first, 2**63).to_bytes(_NUMBER_BYTES)
        for _, stored in reader.scan(self._space, self._part, low, successor(prefix)):
            yield stored

    def by_token(self, reader: Reader, scope: str, account_id: str, token: str) -> J | None:
        """The job that was begun with a token, or None."""
        stored = reader.get(self._space, self._token, _digest(scope, account_id, token))
        return self.find(reader, scope, stored.decode()) if stored is not None else None

    def keep_token(self, txn: Transaction, job: J) -> None:
        """Remember the token of a job."""
        if job.token is not None:
            name = _digest(job.scope, job.account_id, job.token)
            txn.put(self._space, self._token, name, job.id.encode())


def _sort(scope: str, id_: str) -> bytes:
    return f"{scope}/{id_}".encode()


def _digest(scope: str, account_id: str, token: str) -> bytes:
    return blake2b(f"{scope}\x00{account_id}\x00{token}".encode(), digest_size=_DIGEST_BYTES).digest()
