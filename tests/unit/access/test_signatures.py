"""Signature Version 4: botocore's signer judges the verifier, and so do AWS's published examples."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from hashrange import errors
from hashrange.access.signatures import Key, Verifier

KEY = Key("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SESSION = Key("ASIDEXAMPLE", "another-secret", "a/session+token==", 2_000_000_000.0)
HOST = "dynamodb.us-east-1.amazonaws.com"
TARGET = "DynamoDB_20120810.ListTables"

Sent = tuple[bytes, bytes, dict[bytes, bytes], bytes]


def signed(
    body: bytes = b"{}",
    key: Key = KEY,
    region: str = "us-east-1",
    query: str = "",
    service: str = "dynamodb",
    **headers: str,
) -> Sent:
    """A request that botocore has signed."""
    sent = {"Host": HOST, "X-Amz-Target": TARGET} | headers
    request = AWSRequest("POST", f"https://{HOST}/{query}", headers=sent, data=body)
    SigV4Auth(Credentials(key.id, key.secret, key.token or None), service, region).add_auth(request)
    return _raw(request, query, body)


def _raw(request: Any, query: str, body: bytes) -> Sent:
    made = {name.lower().encode(): _bytes(value) for name, value in request.headers.items()}
    return b"POST", b"/" + query.encode(), made, body


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


def moment(sent: Sent) -> float:
    stamp = datetime.strptime(sent[2][b"x-amz-date"].decode(), "%Y%m%dT%H%M%SZ")
    return stamp.replace(tzinfo=UTC).timestamp()


def verified(sent: Sent, later: float = 0.0, **options: Any) -> Key:
    keys = {key.id: key for key in (KEY, SESSION)}
    now = moment(sent) + later
    return Verifier(keys, lambda: now, **options).verify(*sent)


def refused(sent: Sent, later: float = 0.0) -> errors.ServiceError:
    with pytest.raises(errors.ServiceError) as raised:
        verified(sent, later)
    return raised.value


def changed(sent: Sent, **headers: str) -> Sent:
    """The request with other headers; their names have `_` for `-`."""
    made = {name.replace("_", "-").encode(): value.encode("latin-1") for name, value in headers.items()}
    return sent[0], sent[1], sent[2] | made, sent[3]


TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
VALUES = st.lists(TEXT, max_size=4).flatmap(
    lambda words: st.sampled_from([" ", "  ", "   "]).map(lambda gap: gap.join(words))
)
NAMES = st.from_regex(r"x-own-[a-z]{1,8}", fullmatch=True)


@settings(max_examples=80, deadline=None)
@given(
    body=st.binary(max_size=200),
    headers=st.dictionaries(NAMES, VALUES, max_size=4),
    parameters=st.lists(st.tuples(st.text(min_size=1, max_size=6), st.text(max_size=6)), max_size=4),
    region=st.sampled_from(["us-east-1", "eu-west-3", "local"]),
    key=st.sampled_from([KEY, SESSION]),
)
def test_what_botocore_signs_is_verified(
    body: bytes, headers: dict[str, str], parameters: list[tuple[str, str]], region: str, key: Key
) -> None:
    encoded = [(quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parameters]
    query = "?" + "&".join(f"{name}={value}" for name, value in encoded) if encoded else ""
    sent = signed(body, key, region, query, **headers)
    assert verified(sent) is key
    assert refused((*sent[:3], body + b" ")).code == "InvalidSignatureException"
    assert refused((b"GET", *sent[1:])).code == "InvalidSignatureException"
    assert refused((sent[0], sent[1] + b"?x=1", *sent[2:])).code == "InvalidSignatureException"


class _WithBody(SigV4QueryAuth):
    """Presigns a request whose body is signed too, as DynamoDB needs it; botocore presigns empty ones."""

    body = b""

    def payload(self, request: Any) -> str:
        return hashlib.sha256(self.body).hexdigest()


def presigned(body: bytes, expires: int, key: Key = KEY) -> Sent:
    request = AWSRequest("POST", f"https://{HOST}/", headers={"Host": HOST, "X-Amz-Target": TARGET})
    signer = _WithBody(Credentials(key.id, key.secret, key.token or None), "dynamodb", "us-east-1", expires)
    signer.body = body
    signer.add_auth(request)
    query = "?" + str(request.url).partition("?")[2]
    return _raw(request, query, body)


def at(sent: Sent) -> float:
    stamp = sent[1].decode().partition("X-Amz-Date=")[2][:16]
    return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize("key", [KEY, SESSION])
def test_a_presigned_request(key: Key) -> None:
    sent = presigned(b'{"Limit":1}', 60, key)
    keys = {key.id: key}

    def verify(sent: Sent, later: float) -> Key:
        return Verifier(keys, lambda: at(sent) + later).verify(*sent)

    assert verify(sent, 0) is key
    assert verify(sent, 60) is key
    with pytest.raises(errors.InvalidSignatureException, match=r"^Signature expired: .* - 1 min\.\)$"):
        verify(sent, 61)
    with pytest.raises(errors.InvalidSignatureException, match="does not match"):
        verify((*sent[:3], b'{"Limit":2}'), 0)


def test_a_presigned_request_is_valid_for_a_week_at_most() -> None:
    sent = presigned(b"", 604_801)
    with pytest.raises(errors.IncompleteSignatureException, match="X-Amz-Expires must be a number"):
        Verifier({KEY.id: KEY}, lambda: at(sent)).verify(*sent)


EXAMPLE_SCOPE = "AKIDEXAMPLE/20150830/us-east-1/{}/aws4_request"


@pytest.mark.parametrize(
    ("method", "target", "service", "headers", "signature"),
    [
        # IAM User Guide, "Create a signed AWS API request".
        (
            b"GET",
            b"/?Action=ListUsers&Version=2010-05-08",
            "iam",
            {"content-type": "application/x-www-form-urlencoded; charset=utf-8", "host": "iam.amazonaws.com"},
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
        ),
        # The examples "get-vanilla", "post-vanilla" and "get-vanilla-query-order-key-case".
        (
            b"GET",
            b"/",
            "service",
            {"host": "example.amazonaws.com"},
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            b"POST",
            b"/",
            "service",
            {"host": "example.amazonaws.com"},
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            b"GET",
            b"/?Param2=value2&Param1=value1",
            "service",
            {"host": "example.amazonaws.com"},
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
    ],
)
def test_published_examples(
    method: bytes, target: bytes, service: str, headers: dict[str, str], signature: str
) -> None:
    headers = headers | {"x-amz-date": "20150830T123600Z"}
    made = {name.encode(): value.encode() for name, value in headers.items()}
    names = ";".join(sorted(headers))

    def sent(signature: str) -> Sent:
        authorization = (
            f"AWS4-HMAC-SHA256 Credential={EXAMPLE_SCOPE.format(service)}, SignedHeaders={names}, "
            f"Signature={signature}"
        )
        return method, target, made | {b"authorization": authorization.encode()}, b""

    assert verified(sent(signature), service=service) is KEY
    with pytest.raises(errors.InvalidSignatureException):
        verified(sent(f"{int(signature, 16) ^ 1:064x}"), service=service)


def test_the_clock_of_the_client_may_be_five_minutes_wrong() -> None:
    sent = changed(signed(), x_amz_date="20260101T120000Z")
    scope = f"{KEY.id}/20260101/us-east-1/dynamodb/aws4_request"
    headers = sent[2] | {
        b"authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date;x-amz-target, "
        "Signature=00".encode()
    }
    sent = (*sent[:2], headers, sent[3])
    assert "does not match" in str(refused(sent, 300))
    assert "does not match" in str(refused(sent, -300))
    assert refused(sent, 301).message == (
        "Signature expired: 20260101T120000Z is now earlier than 20260101T120001Z (20260101T120501Z - 5 min.)"
    )
    assert refused(sent, -301).message == (
        "Signature not yet current: 20260101T120000Z is still later than 20260101T115959Z "
        "(20260101T115459Z + 5 min.)"
    )


def test_a_date_header_takes_the_place_of_x_amz_date() -> None:
    method, target, headers, body = changed(signed(), x_amz_date="20260101T120000Z")
    headers[b"date"] = b"Thu, 01 Jan 2026 12:00:00 GMT"
    now = moment((method, target, headers, body))
    del headers[b"x-amz-date"]
    scope = f"{KEY.id}/20260101/us-east-1/dynamodb/aws4_request"
    names = "date;host;x-amz-target"
    headers[b"authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={names}, Signature=00".encode()
    )
    verifier = Verifier({KEY.id: KEY}, lambda: now)
    with pytest.raises(errors.InvalidSignatureException, match="does not match"):
        verifier.verify(method, target, headers, body)
    headers[b"date"] = b"yesterday"
    with pytest.raises(errors.IncompleteSignatureException, match="Got 'yesterday'"):
        verifier.verify(method, target, headers, body)


UNKNOWN = "The security token included in the request is invalid."


def test_an_unknown_key_and_a_wrong_token_are_refused() -> None:
    stranger = Key("AKIDSTRANGER", KEY.secret)
    for key in (stranger, Key(KEY.id, KEY.secret, "a token"), Key(SESSION.id, SESSION.secret, "other")):
        error = refused(signed(key=key))
        assert (error.code, error.message) == ("UnrecognizedClientException", UNKNOWN)
    without_token = Key(SESSION.id, SESSION.secret)
    assert refused(signed(key=without_token)).code == "UnrecognizedClientException"


def test_a_wrong_secret_is_refused() -> None:
    error = refused(signed(key=Key(KEY.id, "wrong")))
    assert error.code == "InvalidSignatureException"
    assert error.message == (
        "The request signature we calculated does not match the signature you provided. Check your AWS "
        "Secret Access Key and signing method. Consult the service documentation for details."
    )


def test_an_expired_token_is_refused() -> None:
    sent = signed(key=SESSION)
    with pytest.raises(errors.ExpiredTokenException, match="is expired"):
        Verifier({SESSION.id: SESSION}, lambda: 2_000_000_000.0).verify(*sent)


@pytest.mark.parametrize(
    ("old", "new", "code", "text"),
    [
        ("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256", "IncompleteSignatureException", "4A"),
        ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1", "IncompleteSignatureException", "Unsupported AWS 'algorithm'"),
        ("AWS4-HMAC-SHA256", "Bearer", "MissingAuthenticationTokenException", "is missing"),
        ("Signature=", "Signature=0", "InvalidSignatureException", "does not match"),
        ("Signature=", "Other=", "IncompleteSignatureException", "requires 'Signature' parameter"),
        ("/dynamodb/", "/s3/", "InvalidSignatureException", "scoped to correct service: 'dynamodb'. "),
        ("/aws4_request", "/aws4", "InvalidSignatureException", "valid terminator: 'aws4_request', not"),
        ("/us-east-1/", "/US/", "InvalidSignatureException", "scoped to a valid region, not 'US'. "),
        ("/us-east-1/", "/", "IncompleteSignatureException", "exactly 5 slash-delimited elements"),
        ("AKIDEXAMPLE/2", "AKIDEXAMPLE/3", "InvalidSignatureException", "Date in Credential scope does not"),
        ("host;", "", "InvalidSignatureException", "'Host' or ':authority' must be a 'SignedHeader'"),
        (";x-amz-target", "", "InvalidSignatureException", "'x-amz-target' must be a 'SignedHeader'"),
        ("host;", "host;x-other;", "InvalidSignatureException", "the request has no such header"),
    ],
)
def test_a_wrong_authorization(old: str, new: str, code: str, text: str) -> None:
    sent = signed()
    authorization = sent[2][b"authorization"].decode()
    assert old in authorization
    error = refused(changed(sent, authorization=authorization.replace(old, new)))
    assert error.code == code
    assert text in str(error)


def test_an_unsigned_body_is_not_taken() -> None:
    request = AWSRequest(
        "POST", f"https://{HOST}/", headers={"Host": HOST, "X-Amz-Target": TARGET}, data=b"{}"
    )
    request.headers["X-Amz-Content-SHA256"] = "UNSIGNED-PAYLOAD"
    SigV4Auth(Credentials(KEY.id, KEY.secret), "dynamodb", "us-east-1").add_auth(request)
    assert "does not match" in str(refused(_raw(request, "", b"{}")))


def test_a_changed_signed_header_is_noticed() -> None:
    sent = changed(signed(), x_amz_target="DynamoDB_20120810.DeleteTable")
    assert refused(sent).code == "InvalidSignatureException"


VALID = {
    "Algorithm": b"AWS4-HMAC-SHA256",
    "Credential": f"{KEY.id}/20260101/us-east-1/dynamodb/aws4_request".encode(),
    "SignedHeaders": b"host",
    "Signature": b"00",
    "Date": b"20260101T000000Z",
    "Security-Token": b"",
    "Expires": b"60",
}
ODD = st.one_of(
    st.sampled_from(["", "é", "€", "\x00", "0" * 300, "-", ";;", "host;é", "host;€", "٣"]),
    st.sampled_from(["99991231T235959Z", "Mon, 01 Jan 1000 00:00:00 +9999", "1 Jan"]),
    st.just("AKID/é/us-east-1/dynamodb/aws4_request"),
    st.text(max_size=12),
).map(str.encode) | st.binary(max_size=6)


@settings(max_examples=400, deadline=None)
@given(
    odd=st.dictionaries(st.sampled_from(sorted(VALID)), ODD, min_size=1, max_size=2),
    in_query=st.booleans(),
)
def test_whatever_is_sent_gets_an_error_of_the_api(odd: dict[str, bytes], in_query: bool) -> None:
    parts = VALID | odd
    headers = {b"host": HOST.encode()}
    target = b"/"
    if in_query:
        target += b"?" + "&".join(f"X-Amz-{name}={quote(value)}" for name, value in parts.items()).encode()
    else:
        pairs = [name.encode() + b"=" + parts[name] for name in ("Credential", "SignedHeaders", "Signature")]
        headers[b"authorization"] = parts["Algorithm"] + b" " + b", ".join(pairs)
        headers[b"x-amz-date"] = parts["Date"]
        headers[b"x-amz-security-token"] = parts["Security-Token"]
    with pytest.raises(errors.ServiceError) as raised:
        Verifier({KEY.id: KEY}, lambda: 1_767_225_600.0).verify(b"POST", target, headers, b"{}")
    orjson.dumps(raised.value.wire())


def test_no_secret_is_shown() -> None:
    assert KEY.secret not in repr(KEY)
    assert SESSION.token not in repr({"key": SESSION})
