"""Signature Version 4: botocore's signer judges the verifier. `test_signature_cases` has AWS's own cases."""

from __future__ import annotations

import hmac
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from forgeries.genuine import HOST, KEY, SESSION, TARGET, Sent, presigned, read, signed
from hashrange import errors
from hashrange_access.signatures import Key, Verifier


def verified(sent: Sent, later: float = 0.0, **options: Any) -> Key:
    keys = {key.id: key for key in (KEY, SESSION)}
    now = sent.signed_at + later
    return Verifier(keys, lambda: now, **options).verify(*sent.parts)


def refused(sent: Sent, later: float = 0.0) -> errors.ServiceError:
    with pytest.raises(errors.ServiceError) as raised:
        verified(sent, later)
    return raised.value


def changed(sent: Sent, **headers: str) -> Sent:
    """The request with other headers; their names have `_` for `-`."""
    made = {name.replace("_", "-").encode(): value.encode("latin-1") for name, value in headers.items()}
    return replace(sent, headers=sent.headers | made)


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
    assert refused(replace(sent, body=body + b" ")).code == "InvalidSignatureException"
    assert refused(replace(sent, method=b"GET")).code == "InvalidSignatureException"
    assert refused(replace(sent, target=sent.target + b"?x=1")).code == "InvalidSignatureException"


@pytest.mark.parametrize("key", [KEY, SESSION])
def test_a_presigned_request(key: Key) -> None:
    sent = presigned(b'{"Limit":1}', 60, key)
    keys = {key.id: key}

    def verify(sent: Sent, later: float) -> Key:
        return Verifier(keys, lambda: sent.signed_at + later).verify(*sent.parts)

    assert verify(sent, 0) is key
    assert verify(sent, 60) is key
    with pytest.raises(errors.InvalidSignatureException, match=r"^Signature expired: .* - 1 min\.\)$"):
        verify(sent, 61)
    with pytest.raises(errors.InvalidSignatureException, match="does not match"):
        verify(replace(sent, body=b'{"Limit":2}'), 0)


def test_a_presigned_request_is_valid_for_a_week_at_most() -> None:
    sent = presigned(b"", 604_801)
    with pytest.raises(errors.IncompleteSignatureException, match="X-Amz-Expires must be a number"):
        Verifier({KEY.id: KEY}, lambda: sent.signed_at).verify(*sent.parts)


def test_the_example_of_the_user_guide() -> None:
    """IAM User Guide, "Create a signed AWS API request"."""
    headers = {
        b"content-type": b"application/x-www-form-urlencoded; charset=utf-8",
        b"host": b"iam.amazonaws.com",
        b"x-amz-date": b"20150830T123600Z",
    }
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={KEY.id}/20150830/us-east-1/iam/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date, "
        "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    )
    headers[b"authorization"] = authorization.encode()
    sent = Sent(b"GET", b"/?Action=ListUsers&Version=2010-05-08", headers)
    assert verified(sent, service="iam") is KEY


def test_the_clock_of_the_client_may_be_five_minutes_wrong() -> None:
    sent = changed(signed(), x_amz_date="20260101T120000Z")
    scope = f"{KEY.id}/20260101/us-east-1/dynamodb/aws4_request"
    headers = sent.headers | {
        b"authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date;x-amz-target, "
        "Signature=00".encode()
    }
    sent = replace(sent, headers=headers)
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
    sent = changed(signed(), x_amz_date="20260101T120000Z", date="Thu, 01 Jan 2026 12:00:00 GMT")
    headers, now = sent.headers, sent.signed_at
    del headers[b"x-amz-date"]
    scope = f"{KEY.id}/20260101/us-east-1/dynamodb/aws4_request"
    names = "date;host;x-amz-target"
    headers[b"authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={names}, Signature=00".encode()
    )
    verifier = Verifier({KEY.id: KEY}, lambda: now)
    with pytest.raises(errors.InvalidSignatureException, match="does not match"):
        verifier.verify(*sent.parts)
    headers[b"date"] = b"yesterday"
    with pytest.raises(errors.IncompleteSignatureException, match="Got 'yesterday'"):
        verifier.verify(*sent.parts)


UNKNOWN = "The security token included in the request is invalid."


def test_an_unknown_key_and_a_wrong_token_are_refused() -> None:
    stranger = Key("AKIDSTRANGER", KEY.secret)
    for key in (stranger, Key(SESSION.id, SESSION.secret, "other")):
        error = refused(signed(key=key))
        assert (error.code, error.message) == ("UnrecognizedClientException", UNKNOWN)
    # [report] extenddb, measured on September 16, 2026: a key without a session has no full stop here
    error = refused(signed(key=Key(KEY.id, KEY.secret, "a token")))
    assert (error.code, error.message) == ("UnrecognizedClientException", UNKNOWN.removesuffix("."))
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
        Verifier({SESSION.id: SESSION}, lambda: 2_000_000_000.0).verify(*sent.parts)


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
    authorization = sent.headers[b"authorization"].decode()
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
    assert "does not match" in str(refused(read(request, "", b"{}")))


def test_a_changed_signed_header_is_noticed() -> None:
    sent = changed(signed(), x_amz_target="DynamoDB_20120810.DeleteTable")
    assert refused(sent).code == "InvalidSignatureException"


def test_a_parameter_that_is_given_twice_is_refused() -> None:
    """Otherwise it would depend on the reader which of the two is meant."""
    sent = signed()
    authorization = sent.headers[b"authorization"].decode()
    twice = authorization.replace("Credential=", "Credential=AKIDOTHER/20260101/eu-west-1/s3/x, Credential=")
    assert "'Credential' parameter only once" in str(refused(changed(sent, authorization=twice)))
    presigned_twice = presigned(b"", 60)
    for more in (b"X-Amz-Signature=00", b"X-Amz-Expires=604800"):
        again = replace(presigned_twice, target=presigned_twice.target.replace(b"?", b"?" + more + b"&"))
        assert "must not be repeated" in str(refused(again))


def test_only_ascii_white_space_disappears() -> None:
    sent = signed(x_own="a b")
    assert verified(replace(sent, headers=sent.headers | {b"x_own": b" a \t b\t"})) is KEY
    for value in (b"a b\xa0", b"a\x85b", b"a b\x1c", b"a\x00b"):
        assert refused(replace(sent, headers=sent.headers | {b"x_own": value})).code == (
            "InvalidSignatureException"
        )


def test_no_two_queries_have_the_same_signature() -> None:
    sent = signed(query="?a=%EF%BF%BD")
    assert verified(sent) is KEY
    for query in (b"?a=%FF", b"?a=%FE", b"?a=%C3"):
        assert refused(replace(sent, target=b"/" + query)).code == "InvalidSignatureException"


def test_a_key_that_is_not_known_costs_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a key exists must not show in the time that a refusal takes. `bench.signatures` measures it."""
    hashed: list[str] = []

    def counted(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            hashed.append(function.__name__)
            return function(*arguments)

        return call

    monkeypatch.setattr(hmac.HMAC, "copy", counted(hmac.HMAC.copy))
    monkeypatch.setattr(hmac, "digest", counted(hmac.digest))
    work = []
    for sent in (
        changed(signed(), x_amz_target="DynamoDB_20120810.Scan"),
        signed(key=Key("AKIDNOBODY", "any-secret")),
        signed(key=replace(SESSION, token="another")),
        signed(key=replace(KEY, token="none")),
    ):
        hashed.clear()
        refused(sent)
        work.append(list(hashed))
    # Four to derive the signing key, and one for the signature.
    assert work == [["digest"] * 4 + ["copy"]] * 4


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
