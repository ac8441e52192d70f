"""ClientRequestToken: a request that is repeated with its token within ten minutes has no second effect.

    ("token", digest of account and token) → expiry time (8 bytes), digest of the request, and the sizes of
                                             the items written (4 bytes each)
    and a queue by time of the digests (`queues`), in which the sweep finds expired tokens

A token is valid for requests whose time is before its expiry time. Requests do not commit in the order of
their times: a request with an earlier time may commit after a sweep with a later one. So the sweep keeps a
token for `BEHIND_SECONDS_MAX` after its expiry. After the clock was set back, a token may be valid for longer
than ten minutes. It is not removed at once, because a repeated request would then run twice: the sweep makes
it valid for ten minutes from the current time.

Source: API reference, TransactWriteItems, ClientRequestToken.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from itertools import islice

from hashrange.clock import BEHIND_SECONDS_MAX, has_come
from hashrange.errors import IdempotentParameterMismatchException, TransactionInProgressException
from hashrange.limits import CLIENT_REQUEST_TOKEN_SECONDS
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.spaces import TOKEN_SPACE
from hashrange.tables.writes import queues

IN_PROGRESS = "Transaction from previous request is still in progress"
_TOKEN = b"token"
_TIME_BYTES = 8
_DIGEST_BYTES = 24
_SIZE_BYTES = 4


def _name(account_id: str, token: str) -> bytes:
    return blake2b(f"{account_id}\x00{token}".encode(), digest_size=_DIGEST_BYTES).digest()


def claim(
    txn: Transaction, account_id: str, token: str, request: bytes, now: float, in_flight_seconds: float
) -> bool:
    """Whether this request is the first with its token. If it is, the token is stored.

    `in_flight_seconds` is how long a transaction counts as still running. Raises
    `IdempotentParameterMismatchException` if the token was used with a different request, and
    `TransactionInProgressException` if that request is still running.
    """
    name = _name(account_id, token)
    digest = blake2b(request, digest_size=_DIGEST_BYTES).digest()
    stored = txn.get(TOKEN_SPACE, _TOKEN, name)
    if stored is not None and int.from_bytes(stored[:_TIME_BYTES]) > now:
        if stored[_TIME_BYTES : _TIME_BYTES + _DIGEST_BYTES] != digest:
            raise IdempotentParameterMismatchException(
                "An error occurred (IdempotentParameterMismatchException)"
            )
        claimed = int.from_bytes(stored[:_TIME_BYTES]) - CLIENT_REQUEST_TOKEN_SECONDS
        if not has_come(claimed + in_flight_seconds, now, in_flight_seconds):
            # [report] aws-sdk-java-v2 issue 2518
            raise TransactionInProgressException(IN_PROGRESS)
        return False
    expires = int(now) + CLIENT_REQUEST_TOKEN_SECONDS
    txn.put(TOKEN_SPACE, _TOKEN, name, expires.to_bytes(_TIME_BYTES) + digest)
    queues.add(txn, TOKEN_SPACE, expires, name)
    return True


def keep_sizes(txn: Transaction, account_id: str, token: str, sizes: Iterable[int]) -> None:
    """Store the sizes of the written items with a token, because a repeated request costs as much as reading
    these items."""
    name = _name(account_id, token)
    stored = txn.get(TOKEN_SPACE, _TOKEN, name)
    if stored is not None:
        packed_sizes = b"".join(size.to_bytes(_SIZE_BYTES) for size in sizes)
        txn.put(TOKEN_SPACE, _TOKEN, name, stored + packed_sizes)


def sizes(reader: Reader, account_id: str, token: str) -> list[int]:
    """The sizes that were stored with a token."""
    stored = reader.get(TOKEN_SPACE, _TOKEN, _name(account_id, token)) or b""
    starts = range(_TIME_BYTES + _DIGEST_BYTES, len(stored), _SIZE_BYTES)
    return [int.from_bytes(stored[start : start + _SIZE_BYTES]) for start in starts]


def any_expired(reader: Reader, now: float) -> bool:
    """Whether any token is no longer valid for any request."""
    return any(True for _ in queues.due(reader, TOKEN_SPACE, _over(now)))


def forget_expired(txn: Transaction, now: float, limit: int) -> int:
    """Remove up to `limit` tokens that are no longer valid for any request; returns how many."""
    expired = list(islice(queues.due(txn, TOKEN_SPACE, _over(now)), limit))
    for seconds, name in expired:
        stored = txn.get(TOKEN_SPACE, _TOKEN, name)
        if stored is not None and int.from_bytes(stored[:_TIME_BYTES]) == seconds:
            txn.delete(TOKEN_SPACE, _TOKEN, name)
        queues.remove(txn, TOKEN_SPACE, seconds, name)
    if expired:
        queues.done(txn, TOKEN_SPACE, _over(now), *expired[-1])
    return len(expired)


def any_ahead(reader: Reader, now: float) -> bool:
    """Whether any token is valid for longer than ten minutes, because the clock was set back."""
    return next(queues.ahead(reader, TOKEN_SPACE, _latest(now)), None) is not None


def shorten(txn: Transaction, now: float, limit: int) -> int:
    """Shorten up to `limit` tokens that are valid for too long to ten minutes from `now`; returns how
    many."""
    too_long = list(islice(queues.ahead(txn, TOKEN_SPACE, _latest(now)), limit))
    expires = int(now) + CLIENT_REQUEST_TOKEN_SECONDS
    for seconds, name in too_long:
        stored = txn.get(TOKEN_SPACE, _TOKEN, name)
        if stored is not None and int.from_bytes(stored[:_TIME_BYTES]) == seconds:
            txn.put(TOKEN_SPACE, _TOKEN, name, expires.to_bytes(_TIME_BYTES) + stored[_TIME_BYTES:])
            queues.add(txn, TOKEN_SPACE, expires, name)
        queues.remove(txn, TOKEN_SPACE, seconds, name)
    return len(too_long)


def _over(now: float) -> int:
    """The last second at which a token may expire for a sweep at `now` to remove it."""
    return int(now) - 1 - int(BEHIND_SECONDS_MAX)


def _latest(now: float) -> int:
    """The last second in which a token that was used at `now` can be valid."""
    return int(now) + CLIENT_REQUEST_TOKEN_SECONDS + int(BEHIND_SECONDS_MAX)
