"""Verifies Signature Version 4: `Verifier.verify`, a function of a request's bytes, the keys and the time.

A request is signed in its Authorization header or, presigned, in its query. What is verified: the scope of
the credential, the access key and its session token, the time, and the signature over the method, the path,
the query, the signed headers and the SHA-256 of the body. DynamoDB takes no unsigned body: a request that was
signed as UNSIGNED-PAYLOAD has another signature than the one that is computed here. Signature Version 4A is
refused.

Source: IAM User Guide, "AWS Signature Version 4 for API requests". The texts are those that clients of AWS
report (issues of aws-sdk-js 254 and 4002, artillery-dino 2, awsbeats 48, sigv4 15); those without a report
are [assumed].
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import parse_qsl, quote, unquote

from hashrange.credentials import MISSING_TOKEN, check_query_parameters, header_parameters
from hashrange.errors import (
    ExpiredTokenException,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    ServiceError,
    UnrecognizedClientException,
)

ALGORITHM: Final = "AWS4-HMAC-SHA256"
_ASYMMETRIC: Final = "AWS4-ECDSA-P256-SHA256"
SERVICE: Final = "dynamodb"
TERMINATOR: Final = "aws4_request"

SKEW_SECONDS: Final = 300
_EXPIRES_SECONDS_MAX: Final = 7 * 24 * 3_600
_SIGNING_KEYS_MAX: Final = 1_000
_AT_MOST_ONCE: Final = frozenset({
    "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-Security-Token",
    "X-Amz-Signature", "X-Amz-SignedHeaders",
})  # fmt: skip
_MUST_BE_SIGNED: Final = (b"x-amz-target", b"x-amz-security-token")

_MISMATCH: Final = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
    "Access Key and signing method. Consult the service documentation for details."
)
_UNKNOWN: Final = "The security token included in the request is invalid."
_EXPIRED: Final = "The security token included in the request is expired"
_REGION: Final = re.compile(r"[a-z0-9-]{1,64}")
_BASIC: Final = "%Y%m%dT%H%M%SZ"
_BASIC_FORM: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_MOMENTS_MAX: Final = 1_000
_PARTS_MAX: Final = 1_000
_PARTS_BYTES_MAX: Final = 2_048

Headers = Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Key:
    """An access key. `token` is the session token that belongs to it ("": none). It expires at `expires`
    (epoch seconds; None: never). `owner` is who has the key, which this module only hands on."""

    id: str
    secret: str
    token: str = ""
    expires: float | None = None
    owner: Any = field(default=None, compare=False)

    def __repr__(self) -> str:
        """Without the secret, so that no log or traceback shows it."""
        return f"Key(id={self.id!r})"


_NOBODY: Final = Key("", "")
"""In place of a key that is not known. `verify` always refuses it."""
_NO_SESSION: Final = Key("", "")
"""In place of a key that has no session, and came with a session token. `verify` always refuses it."""


class Keys(Protocol):
    """The known keys: a dict of keys by their ids, or what looks them up elsewhere."""

    def get(self, key_id: str, /) -> Key | None: ...


Sessions = Callable[[str, str], "Key | None"]
"""The key of a session that is not stored anywhere, by its key id and its token; None if there is none."""


class _Signed(NamedTuple):
    """A request's authorization: the parts of its signature, and the canonical query that it covers. A named
    tuple, because each request makes one."""

    algorithm: str
    credential: str
    signed_headers: str
    signature: str
    stamp: str
    token: str
    query: str = ""
    expires_seconds: int | None = None


class Verifier:
    """Verifies signatures with `keys` and the keys of `sessions`. `now` is the time in epoch seconds: that of
    the machine, as clients sign with theirs. `service` is the service of the credentials' scope.
    Thread-safe."""

    def __init__(
        self,
        keys: Keys,
        now: Callable[[], float],
        *,
        service: str = SERVICE,
        sessions: Sessions | None = None,
    ) -> None:
        self._keys = keys
        self._now = now
        self._service = service
        self._sessions = sessions
        self._signing_keys: dict[tuple[str, str, str, str], hmac.HMAC] = {}

    def verify(self, method: bytes, target: bytes, headers: Headers, body: bytes | bytearray) -> Key:
        """The key that has signed a request. `headers` have names in lower case.

        Raises MissingAuthenticationTokenException, IncompleteSignatureException, InvalidSignatureException,
        UnrecognizedClientException or ExpiredTokenException.
        """
        signed = _read(target, headers)
        if signed.algorithm != ALGORITHM:
            raise _unsupported(signed.algorithm)
        stamp, signed_at = _moment(signed.stamp)
        scope = _right_scope(signed.credential, stamp[:8], self._service)
        key_id, date, region = scope or _scope(signed.credential, stamp, self._service)
        names = _names(signed.signed_headers, headers)
        now = self._now()
        key = self._known(key_id, signed.token, now)
        canonical = b"\n".join((
            method,
            _path(target),
            signed.query.encode(),
            *[b"%b:%b" % (name, _value(headers[name])) for name in names],
            b"",
            signed.signed_headers.encode("latin-1"),
            hashlib.sha256(body).hexdigest().encode(),
        ))
        digest = hashlib.sha256(canonical).hexdigest()
        to_sign = f"{ALGORITHM}\n{stamp}\n{date}/{region}/{self._service}/{TERMINATOR}\n{digest}"
        code = self._signing_key(key, date, region).copy()
        code.update(to_sign.encode())
        own = code.hexdigest()
        # Unknown keys are refused after the same work as known ones with a wrong signature.
        if key is _NOBODY:
            raise UnrecognizedClientException(_UNKNOWN)
        if key is _NO_SESSION:
            # [report] extenddb, measured on September 16, 2026: the same text without a full stop
            raise UnrecognizedClientException(_UNKNOWN[:-1])
        if key.expires is not None and now >= key.expires:
            raise ExpiredTokenException(_EXPIRED)
        _check_time(signed_at, now, signed.expires_seconds)
        if not hmac.compare_digest(own.encode(), signed.signature.encode()):
            raise InvalidSignatureException(_MISMATCH)
        return key

    def _known(self, key_id: str, token: str, now: float) -> Key:
        """The key with this id and session token; `_NOBODY` or `_NO_SESSION` if there is none."""
        key = self._keys.get(key_id)
        if key is None and token and self._sessions is not None:
            key = self._sessions(key_id, token)
        if key is None or not hmac.compare_digest(key.token.encode(), token.encode()):
            return _NOBODY if key is None or key.token else _NO_SESSION
        if key.expires is not None and now >= key.expires and not key.token:
            return _NOBODY  # as for a key that does not exist any more
        return key

    def _signing_key(self, key: Key, date: str, region: str) -> hmac.HMAC:
        """The key that signs a day's requests to a region, as a code to copy and continue. Clients use one
        all day, so it is cached."""
        # The secret is in the name, because another key may get the same id when the keys change.
        name = key.id, key.secret, date, region
        code = self._signing_keys.get(name)
        if code is None:
            made = f"AWS4{key.secret}".encode()
            for part in (date, region, self._service, TERMINATOR):
                made = hmac.digest(made, part.encode(), "sha256")
            code = hmac.new(made, digestmod="sha256")
            if len(self._signing_keys) >= _SIGNING_KEYS_MAX:
                self._signing_keys.clear()
            self._signing_keys[name] = code
        return code


def _read(target: bytes, headers: Headers) -> _Signed:
    """The authorization of a request, from its query if that has a signature, otherwise from its header."""
    query = target.partition(b"?")[2].decode("latin-1")
    # Bytes become characters and bytes again, so that no two queries have the same canonical form.
    pairs = parse_qsl(query, keep_blank_values=True, encoding="latin-1") if query else []
    parameters = dict(pairs)
    if "X-Amz-Algorithm" not in parameters:
        authorization = headers.get(b"authorization")
        if authorization is None:
            raise MissingAuthenticationTokenException(MISSING_TOKEN)
        return _Signed(
            *_header_parts(authorization, headers),
            headers.get(b"x-amz-date", headers.get(b"date", b"")).decode("latin-1"),
            headers.get(b"x-amz-security-token", b"").decode("latin-1"),
            _canonical_query(pairs) if pairs else "",
        )
    check_query_parameters(parameters)
    if sum(name in _AT_MOST_ONCE for name, _ in pairs) > len(_AT_MOST_ONCE & parameters.keys()):
        raise IncompleteSignatureException(
            "AWS query-string parameters must not be repeated. Re-examine the query-string parameters."
        )
    expires = parameters.get("X-Amz-Expires", str(SKEW_SECONDS))
    if not re.fullmatch(r"[0-9]{1,6}", expires) or not 0 < int(expires) <= _EXPIRES_SECONDS_MAX:
        raise IncompleteSignatureException(
            f"X-Amz-Expires must be a number of seconds from 1 to {_EXPIRES_SECONDS_MAX}. Got '{expires}'."
        )
    return _Signed(
        parameters["X-Amz-Algorithm"],
        parameters["X-Amz-Credential"],
        parameters["X-Amz-SignedHeaders"],
        parameters["X-Amz-Signature"],
        parameters["X-Amz-Date"],
        parameters.get("X-Amz-Security-Token", headers.get(b"x-amz-security-token", b"").decode("latin-1")),
        _canonical_query([pair for pair in pairs if pair[0] != "X-Amz-Signature"]),
        int(expires),
    )


def _header_parts(authorization: bytes, headers: Headers) -> tuple[str, str, str, str]:
    """The algorithm, the credential, the signed headers and the signature of an Authorization header."""
    start, _, signature = authorization.rpartition(b"Signature=")
    if signature.isalnum() and len(start) <= _PARTS_BYTES_MAX:
        try:
            return *_parts(start, b"x-amz-date" in headers or b"date" in headers), signature.decode()
        except ServiceError:
            pass  # the text of the error has to name the whole header, as below
    parts = header_parameters(authorization, headers)
    return parts["Algorithm"], parts["Credential"], parts["SignedHeaders"], parts["Signature"]


@lru_cache(_PARTS_MAX)
def _parts(start: bytes, has_date: bool) -> tuple[str, str, str]:
    """The parts of an Authorization header that ends in a signature. Cached, because a client sends them all
    day."""
    parts = header_parameters(start + b"Signature=0", {b"date": b""} if has_date else {})
    return parts["Algorithm"], parts["Credential"], parts["SignedHeaders"]


def _unsupported(algorithm: str) -> IncompleteSignatureException:
    """[assumed]"""
    if algorithm == _ASYMMETRIC:
        return IncompleteSignatureException(
            f"Signature Version 4A ({_ASYMMETRIC}) is not supported. Sign the request with {ALGORITHM}."
        )
    return IncompleteSignatureException(f"Unsupported AWS 'algorithm': '{algorithm}'.")


def _moment(stamp: str) -> tuple[str, float]:
    """The time of X-Amz-Date or Date: in the basic form, and in epoch seconds."""
    try:
        if _BASIC_FORM.fullmatch(stamp):
            return stamp, _seconds(stamp)
        moment = parsedate_to_datetime(stamp)
        moment = moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return moment.strftime(_BASIC), moment.timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):  # whatever the parser meets in such a text
        raise IncompleteSignatureException(
            f"Date must be in ISO-8601 'basic format'. Got '{stamp}'. See http://en.wikipedia.org/wiki/ISO_8601"
        ) from None


@lru_cache(_MOMENTS_MAX)
def _seconds(stamp: str) -> float:
    """Epoch seconds of a time in the basic form. Cached, because many requests have the same second."""
    return datetime.strptime(stamp, _BASIC).replace(tzinfo=UTC).timestamp()


@lru_cache(_PARTS_MAX)
def _right_scope(credential: str, date: str, service: str) -> tuple[str, str, str] | None:
    """As `_scope`; None if the scope is wrong or very long. Cached, because a client sends it all day."""
    if len(credential) > _PARTS_BYTES_MAX:
        return None
    try:
        return _scope(credential, date, service)
    except ServiceError:
        return None  # the text of the error has to name the whole time


def _scope(credential: str, stamp: str, service: str) -> tuple[str, str, str]:
    """The key id, the date and the region of a credential."""
    parts = credential.split("/")
    if len(parts) != 5:
        raise IncompleteSignatureException(
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, "
            f"got '{credential}'"
        )
    key_id, date, region, scoped_service, terminator = parts
    wrong = []
    if not _REGION.fullmatch(region):
        wrong.append(f"Credential should be scoped to a valid region, not '{region}'. ")
    if scoped_service != service:
        wrong.append(f"Credential should be scoped to correct service: '{service}'. ")
    if terminator != TERMINATOR:
        wrong.append(
            f"Credential should be scoped with a valid terminator: '{TERMINATOR}', not '{terminator}'. "
        )
    if date != stamp[:8]:
        wrong.append(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
            f"'{date}' != '{stamp[:8]}', from '{stamp}'."
        )
    if wrong:
        raise InvalidSignatureException("".join(wrong))
    return key_id, date, region


def _names(signed_headers: str, headers: Headers) -> list[bytes]:
    """The names of the signed headers. Checks that the signature covers what the request is made of. The
    texts except the first are [assumed]."""
    names = signed_headers.encode("latin-1").split(b";")
    if b"host" not in names:
        raise InvalidSignatureException(
            "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."
        )
    for name in names:
        if name not in headers:
            raise InvalidSignatureException(
                f"'{name.decode('latin-1')}' is a 'SignedHeader' in the AWS Authorization, but the request "
                "has no such header."
            )
    for required in _MUST_BE_SIGNED:
        if required in headers and required not in names:
            raise InvalidSignatureException(
                f"'{required.decode()}' must be a 'SignedHeader' in the AWS Authorization."
            )
    return names


def _check_time(signed_at: float, now: float, expires_seconds: int | None) -> None:
    """Check that a request was signed lately: at most `SKEW_SECONDS` before or after `now`, or, presigned, at
    most as long ago as it says."""
    valid_seconds = SKEW_SECONDS if expires_seconds is None else expires_seconds
    if signed_at < now - valid_seconds:
        raise InvalidSignatureException(
            f"Signature expired: {_shown(signed_at)} is now earlier than {_shown(now - valid_seconds)} "
            f"({_shown(now)} - {valid_seconds / 60:g} min.)"
        )
    latest = now + SKEW_SECONDS
    if signed_at > latest:
        raise InvalidSignatureException(
            f"Signature not yet current: {_shown(signed_at)} is still later than {_shown(latest)} "
            f"({_shown(now)} + {SKEW_SECONDS / 60:g} min.)"
        )


def _shown(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime(_BASIC)


def _path(target: bytes) -> bytes:
    """The canonical path. DynamoDB has only the path `/`, so `.`, `..` and empty segments stay: less that
    differs then counts as equal."""
    path = target.partition(b"?")[0]
    if path == b"/":
        return path
    decoded = unquote(path.decode("latin-1"), encoding="latin-1")
    return quote(decoded, safe="/-_.~", encoding="latin-1").encode()


def _canonical_query(pairs: list[tuple[str, str]]) -> str:
    encoded = sorted((_encoded(name), _encoded(value)) for name, value in pairs)
    return "&".join(f"{name}={value}" for name, value in encoded)


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~", encoding="latin-1")


def _value(value: bytes) -> bytes:
    """A header's value as it is signed: without white space around it, and with single spaces inside.

    Only ASCII's white space is meant: another character, such as a no-break space, must not disappear from
    what is signed."""
    return b" ".join(value.split())
