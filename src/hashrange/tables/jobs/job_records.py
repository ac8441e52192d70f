"""The stored records of long work: backups (`Records`), and jobs such as imports and exports (`JobRecords`).

Each kind of jobs has a space:

    (job, scope / id)             → the job, as JSON
    (part, scope / id / number)   → a part of a job, as JSON: an error of an import, an object of an export
    (token, digest of a token)    → the id of the last job with the token

An id begins with the time of its request, so that the records of a scope lie in the order of their times.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

import msgspec

from hashrange.encoding import successor
from hashrange.storage.api import Reader, Transaction

_DIGEST_BYTES: Final = 24
_NUMBER_BYTES: Final = 8
_ENCODE: Final = msgspec.json.Encoder()


Status = Literal["IN_PROGRESS", "COMPLETED", "COMPLETED_WITH_ERRORS", "CANCELLING", "CANCELLED", "FAILED"]
UNDER_WAY: Final = ("IN_PROGRESS", "CANCELLING")


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a job: the members that all kinds have.

    `request` is the request that started it, without its token. Times are epoch seconds. `stalled`: its steps
    have been failing, by something that may pass.
    """

    id: str
    scope: str
    region: str
    account_id: str
    token: str | None
    request: dict[str, Any]
    table_name: str
    table_id: str
    started: float
    status: Status = "IN_PROGRESS"
    ended: float | None = None
    failure_code: str | None = None
    failure_message: str | None = None
    stalled: bool = False

    @property
    def table_full_name(self) -> str:
        """The table's unique name, with its scope."""
        return f"{self.scope}/{self.table_name}" if self.scope else self.table_name


class Stored(Protocol):
    """The records in `Records`: a `msgspec.Struct` with these members."""

    @property
    def id(self) -> str: ...

    @property
    def scope(self) -> str: ...


S = TypeVar("S", bound=Stored)
J = TypeVar("J", bound=Job)


class Records(Generic[S]):
    """The records of a kind, in a partition of `space`, in the order of their scopes and ids."""

    def __init__(self, space: int, kind: type[S], partition: bytes) -> None:
        self._space = space
        self._decoder = msgspec.json.Decoder(kind)
        self._partition = partition

    def find(self, reader: Reader, scope: str, id_: str) -> S | None:
        """The record with this id, or None."""
        stored = reader.get(self._space, self._partition, _sort(scope, id_))
        return self._decoder.decode(stored) if stored is not None else None

    def save(self, txn: Transaction, record: S) -> None:
        """Store a record, new or changed."""
        txn.put(self._space, self._partition, _sort(record.scope, record.id), _ENCODE.encode(record))

    def forget(self, txn: Transaction, record: S) -> None:
        """Remove a record."""
        txn.delete(self._space, self._partition, _sort(record.scope, record.id))

    def every(self, reader: Reader) -> Iterator[S]:
        """The records of all scopes, except `damaged` records."""
        for _, stored in reader.scan(self._space, self._partition):
            with suppress(msgspec.MsgspecError):
                yield self._decoder.decode(stored)

    def damaged(self, reader: Reader) -> Iterator[tuple[str, Exception]]:
        """The records that cannot be decoded: scope and id, and the error."""
        for sort, stored in reader.scan(self._space, self._partition):
            try:
                self._decoder.decode(stored)
            except msgspec.MsgspecError as error:
                yield sort.decode(errors="backslashreplace"), error

    def oldest_first(self, reader: Reader, scope: str, after: str = "") -> Iterator[S]:
        """The records of a scope in the order of their ids, starting after the id `after`."""
        prefix = f"{scope}/".encode()
        low = _sort(scope, after) + b"\x00" if after else prefix
        for _, stored in reader.scan(self._space, self._partition, low, successor(prefix)):
            with suppress(msgspec.MsgspecError):  # `damaged` reports the error
                yield self._decoder.decode(stored)

    def newest_first(self, reader: Reader, scope: str, before: str | None = None) -> Iterator[S]:
        """The records of a scope in the opposite order, starting before the id `before`."""
        low = f"{scope}/".encode()
        high = _sort(scope, before) if before is not None else successor(low)
        for _, stored in reader.scan(self._space, self._partition, low, high, reverse=True):
            with suppress(msgspec.MsgspecError):
                yield self._decoder.decode(stored)


class JobRecords(Records[J]):
    """The jobs of a kind, with their parts and tokens. `job`, `part` and `token` are the partitions."""

    def __init__(self, space: int, kind: type[J], *, job: bytes, part: bytes, token: bytes) -> None:
        super().__init__(space, kind, job)
        self._part = part
        self._token = token

    def forget(self, txn: Transaction, record: J) -> None:
        """Remove a job with its parts and its token."""
        super().forget(txn, record)
        self.forget_parts(txn, record)
        if record.token is not None:
            name = _digest(record.scope, record.account_id, record.token)
            if txn.get(self._space, self._token, name) == record.id.encode():
                txn.delete(self._space, self._token, name)

    def keep_part(self, txn: Transaction, job: J, number: int, part: Any) -> None:
        """Store part `number` of a job."""
        sort = _sort(job.scope, job.id) + b"/" + number.to_bytes(_NUMBER_BYTES)
        txn.put(self._space, self._part, sort, _ENCODE.encode(part))

    def forget_parts(self, txn: Transaction, job: J, until: int | None = None) -> None:
        """Remove the parts of a job, or only those before number `until`."""
        low = _sort(job.scope, job.id) + b"/"
        high = low + until.to_bytes(_NUMBER_BYTES) if until is not None else successor(low)
        for sort in [sort for sort, _ in txn.scan(self._space, self._part, low, high)]:
            txn.delete(self._space, self._part, sort)

    def parts(self, reader: Reader, job: J, first: int = 0) -> Iterator[bytes]:
        """The stored parts of a job, in their order, from number `first` on."""
        prefix = _sort(job.scope, job.id) + b"/"
        low = prefix + min(first, 2**63).to_bytes(_NUMBER_BYTES)
        for _, stored in reader.scan(self._space, self._part, low, successor(prefix)):
            yield stored

    def by_token(self, reader: Reader, scope: str, account_id: str, token: str) -> J | None:
        """The job that was started with a token, or None."""
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
