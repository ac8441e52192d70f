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
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, quote, unquote

from hashrange.access.authorization import MISSING_TOKEN, check_query_parameters, header_parameters
from hashrange.errors import (
    ExpiredTokenException,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    UnrecognizedClientException,
)

ALGORITHM: Final = "AWS4-HMAC-SHA256"
_ASYMMETRIC: Final = "AWS4-ECDSA-P256-SHA256"
SERVICE: Final = "dynamodb"
TERMINATOR: Final = "aws4_request"

SKEW_SECONDS: Final = 300
_EXPIRES_SECONDS_MAX: Final = 7 * 24 * 3_600
_SIGNING_KEYS_MAX: Final = 1_000
_MUST_BE_SIGNED: Final = ("x-amz-target", "x-amz-security-token")

_MISMATCH: Final = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
    "Access Key and signing method. Consult the service documentation for details."
)
_UNKNOWN: Final = "The security token included in the request is invalid."
_EXPIRED: Final = "The security token included in the request is expired"
_REGION: Final = re.compile(r"[a-z0-9-]{1,64}")
_BASIC: Final = "%Y%m%dT%H%M%SZ"
_BASIC_FORM: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_SPACES: Final = re.compile(r" +")

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


class Keys(Protocol):
    """The known keys: a dict of keys by their ids, or what looks them up elsewhere."""

    def get(self, key_id: str, /) -> Key | None: ...


Sessions = Callable[[str, str], "Key | None"]
"""The key of a session that is not stored anywhere, by its key id and its token; None if there is none."""


@dataclass(frozen=True, slots=True)
class _Signed:
    """A request's authorization: the parts of its signature, and the canonical query that it covers."""

    algorithm: str
    credential: str
    signed_headers: str
    signature: str
    stamp: str
    token: str
    query: str
    expires_seconds: int | None


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
        self._signing_keys: dict[tuple[str, str, str, str], bytes] = {}

    def verify(self, method: bytes, target: bytes, headers: Headers, body: bytes | bytearray) -> Key:
        """The key that has signed a request. `headers` have names in lower case.

        Raises MissingAuthenticationTokenException, IncompleteSignatureException, InvalidSignatureException,
        UnrecognizedClientException or ExpiredTokenException.
        """
        signed = _read(target, headers)
        if signed.algorithm != ALGORITHM:
            raise _unsupported(signed.algorithm)
        moment = _moment(signed.stamp)
        stamp = moment.strftime(_BASIC)
        key_id, date, region = _scope(signed.credential, stamp, self._service)
        names = signed.signed_headers.split(";")
        _check_names(names, headers)
        now = self._now()
        key = self._known(key_id, signed.token, now)
        _check_time(moment.timestamp(), now, signed.expires_seconds)
        canonical = "\n".join((
            method.decode("latin-1"),
            _path(target),
            signed.query,
            *(f"{name}:{_value(headers[name.encode()])}" for name in names),
            "",
            signed.signed_headers,
            hashlib.sha256(body).hexdigest(),
        ))
        scope = f"{date}/{region}/{self._service}/{TERMINATOR}"
        digest = hashlib.sha256(canonical.encode("latin-1")).hexdigest()
        to_sign = f"{ALGORITHM}\n{stamp}\n{scope}\n{digest}"
        own = hmac.new(self._signing_key(key, date, region), to_sign.encode(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(own.encode(), signed.signature.encode()):
            raise InvalidSignatureException(_MISMATCH)
        return key

    def _known(self, key_id: str, token: str, now: float) -> Key:
        key = self._keys.get(key_id)
        if key is None and token and self._sessions is not None:
            key = self._sessions(key_id, token)
        if key is None or not hmac.compare_digest(key.token.encode(), token.encode()):
            raise UnrecognizedClientException(_UNKNOWN)
        if key.expires is not None and now >= key.expires:
            if key.token:
                raise ExpiredTokenException(_EXPIRED)
            raise UnrecognizedClientException(_UNKNOWN)  # as for a key that does not exist any more
        return key

    def _signing_key(self, key: Key, date: str, region: str) -> bytes:
        """The key that signs a day's requests to a region. Clients use one all day, so it is cached."""
        # The secret is in the name, because another key may get the same id when the keys change.
        name = key.id, key.secret, date, region
        made = self._signing_keys.get(name)
        if made is None:
            made = f"AWS4{key.secret}".encode()
            for part in (date, region, self._service, TERMINATOR):
                made = hmac.digest(made, part.encode(), "sha256")
            if len(self._signing_keys) >= _SIGNING_KEYS_MAX:
                self._signing_keys.clear()
            self._signing_keys[name] = made
        return made


def _read(target: bytes, headers: Headers) -> _Signed:
    """The authorization of a request, from its query if that has a signature, otherwise from its header."""
    query = target.partition(b"?")[2].decode("latin-1")
    pairs = parse_qsl(query, keep_blank_values=True, encoding="utf-8", errors="replace")
    parameters = dict(pairs)
    if "X-Amz-Algorithm" not in parameters:
        authorization = headers.get(b"authorization")
        if authorization is None:
            raise MissingAuthenticationTokenException(MISSING_TOKEN)
        parts = header_parameters(authorization, headers)
        return _Signed(
            parts["Algorithm"],
            parts["Credential"],
            parts["SignedHeaders"],
            parts["Signature"],
            headers.get(b"x-amz-date", headers.get(b"date", b"")).decode("latin-1"),
            headers.get(b"x-amz-security-token", b"").decode("latin-1"),
            _canonical_query(pairs),
            None,
        )
    check_query_parameters(parameters)
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


def _unsupported(algorithm: str) -> IncompleteSignatureException:
    """[assumed]"""
    if algorithm == _ASYMMETRIC:
        return IncompleteSignatureException(
            f"Signature Version 4A ({_ASYMMETRIC}) is not supported. Sign the request with {ALGORITHM}."
        )
    return IncompleteSignatureException(f"Unsupported AWS 'algorithm': '{algorithm}'.")


def _moment(stamp: str) -> datetime:
    """The time of X-Amz-Date or Date."""
    try:
        if _BASIC_FORM.fullmatch(stamp):
            return datetime.strptime(stamp, _BASIC).replace(tzinfo=UTC)
        moment = parsedate_to_datetime(stamp)
        return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (ValueError, TypeError, IndexError, OverflowError):  # whatever the parser meets in such a text
        raise IncompleteSignatureException(
            f"Date must be in ISO-8601 'basic format'. Got '{stamp}'. See http://en.wikipedia.org/wiki/ISO_8601"
        ) from None


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


def _check_names(names: list[str], headers: Headers) -> None:
    """Check that the signature covers what the request is made of. The texts except the first are
    [assumed]."""
    if "host" not in names:
        raise InvalidSignatureException(
            "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."
        )
    for name in names:
        if not name.isascii() or name.encode() not in headers:
            raise InvalidSignatureException(
                f"'{name}' is a 'SignedHeader' in the AWS Authorization, but the request has no such header."
            )
    for name in _MUST_BE_SIGNED:
        if name.encode() in headers and name not in names:
            raise InvalidSignatureException(f"'{name}' must be a 'SignedHeader' in the AWS Authorization.")


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


def _path(target: bytes) -> str:
    """The canonical path. A request to DynamoDB has the path `/`."""
    return quote(unquote(target.partition(b"?")[0].decode("latin-1")), safe="/-_.~")


def _canonical_query(pairs: list[tuple[str, str]]) -> str:
    encoded = sorted((_encoded(name), _encoded(value)) for name, value in pairs)
    return "&".join(f"{name}={value}" for name, value in encoded)


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


def _value(value: bytes) -> str:
    """A header's value as it is signed: without outer spaces, and with single spaces inside."""
    return _SPACES.sub(" ", value.decode("latin-1").strip())
