"""The published cases of Signature Version 4, each verified, and refused with another signature.

The facts are those of AWS's signing test suite, as aws-c-auth and the AWS SDK for JavaScript publish them:
requests of 2015 with the example key. botocore signs each case as well, so that a mistake in this table
would show. Left out are the cases of "normalized" paths: DynamoDB has only the path `/`, and the verifier
takes a path as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import botocore.auth
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from forgeries.genuine import KEY, Sent
from hashrange import errors
from hashrange_access.signatures import Verifier

DATE = "20150830T123600Z"
NOW = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
HOST = "example.amazonaws.com"
SCOPE = f"{KEY.id}/20150830/us-east-1/service/aws4_request"
UNRESERVED = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
STS_TOKEN = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD"
    "8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6"
    "q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJa"
    "bIQwj2ICCR/oLxBA=="
)
OWN_TOKEN = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Case:
    """A request that is signed in its header. `headers` are those beside Host and X-Amz-Date."""

    name: str
    signature: str
    target: str = "/"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def method(self) -> str:
        return self.name.partition("-")[0].upper()

    @property
    def token(self) -> str:
        return self.headers.get("x-amz-security-token", "")

    def sent(self, signature: str) -> Sent:
        headers = {"host": HOST, "x-amz-date": DATE} | self.headers
        names = ";".join(sorted(headers))
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={SCOPE}, SignedHeaders={names}, Signature={signature}"
        )
        made = {name.encode(): value.encode() for name, value in headers.items()}
        return Sent(self.method.encode(), self.target.encode(), made, self.body)


CASES = [
    Case("get-vanilla", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    Case("get-header-key-duplicate", "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
         headers={"my-header1": "value2,value2,value1"}),
    Case("get-header-value-multiline", "ba17b383a53190154eb5fa66a1b836cc297cc0a3d70a5d00705980573d8ff790",
         headers={"my-header1": "value1,value2,value3"}),
    Case("get-header-value-order", "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
         headers={"my-header1": "value4,value1,value3,value2"}),
    Case("get-header-value-trim", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
         headers={"my-header1": " value1", "my-header2": ' "a   b   c"'}),
    Case("get-unreserved", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
         f"/{UNRESERVED}"),
    Case("get-utf8", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85", "/ሴ"),
    Case("get-space-unnormalized", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
         "/example space/"),
    Case("get-slashes-unnormalized", "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5",
         "//example//"),
    Case("get-relative-unnormalized", "eca7ead57bb5aa5c8e28007acd4ff04e1ff9a0ff3b237ec1554a184887ff9282",
         "/example/.."),
    Case("get-slash-pointless-dot-unnormalized",
         "beb03f223f7deae4146464f06e29eebbee9c8afbe15c290cf07aa8b119e14cff", "/./example"),
    Case("get-vanilla-empty-query-key", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
         "/?Param1=value1"),
    Case("get-vanilla-query", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31", "/?"),
    Case("get-vanilla-query-order-key-case",
         "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500", "/?Param2=value2&Param1=value1"),
    Case("get-vanilla-query-order-encoded",
         "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
         "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1"),
    Case("get-vanilla-query-unreserved",
         "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197", f"/?{UNRESERVED}={UNRESERVED}"),
    Case("get-vanilla-utf8-query", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
         "/?ሴ=bar"),
    Case("get-vanilla-with-session-token",
         "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
         headers={"x-amz-security-token": OWN_TOKEN}),
    Case("post-header-key-case", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    Case("post-header-key-sort", "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
         headers={"my-header1": "value1"}),
    Case("post-header-value-case", "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
         headers={"my-header1": "VALUE1"}),
    Case("post-sts-header-after", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    Case("post-sts-header-before", "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
         headers={"x-amz-security-token": STS_TOKEN}),
    Case("post-vanilla", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    Case("post-vanilla-empty-query-value",
         "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11", "/?Param1=value1"),
    Case("post-vanilla-query", "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
         "/?Param1=value1"),
    Case("post-vanilla-query-nonunreserved",
         "66c82657c86e26fb25238d0e69f011edc4c6df5ae71119d7cb98ed9b87393c1e",
         "/?%40%23%24%25%5E=&%2B=%2F%2C%3F%3E%3C%60%22%3B%3A%5C%7C%5D%5B%7B%7D"),
    Case("post-vanilla-query-space", "e71688addb58a26418614085fb730ba3faa623b461c17f48f2fbdb9361b94a9b",
         "/?p="),
    Case("post-x-www-form-urlencoded", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
         headers={"content-type": FORM}, body=b"Param1=value1"),
    Case("post-x-www-form-urlencoded-parameters",
         "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe",
         headers={"content-type": f"{FORM}; charset=utf8"}, body=b"Param1=value1"),
]  # fmt: skip

PRESIGNED = [
    ("get-vanilla-query-order-encoded", "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1&", {},
     "c5f1848ceec943ac2ca68ee720460c23aaae30a2300586597ada94c4a65e4787"),
    ("get-vanilla-query-unreserved", f"/?{UNRESERVED}={UNRESERVED}&", {},
     "8e76a88a7433637b12778d5592799b29ad21ecd6cf6325051c21d86f0acda2bf"),
    ("get-utf8", "/ሴ?", {}, "10eae3f14a260bd3911cc6d008d3c576d143b05b62f09782a7a4b37f52178e44"),
    ("get-header-value-trim", "/?", {"my-header1": " value1", "my-header2": ' "a   b   c"'},
     "e7bb0fd515e125e1aec2ecc4c0c17484fb06f6846b927c35e46005dd3df3acd4"),
]  # fmt: skip


def verified(sent: Sent, token: str = "") -> None:
    keys = {KEY.id: replace(KEY, token=token)}
    Verifier(keys, NOW.timestamp, service="service").verify(*sent.parts)


def another(signature: str) -> str:
    return f"{int(signature, 16) ^ 1:064x}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_request_that_is_signed_in_its_header(case: Case) -> None:
    verified(case.sent(case.signature), case.token)
    with pytest.raises(errors.InvalidSignatureException, match="does not match"):
        verified(case.sent(another(case.signature)), case.token)


@pytest.mark.parametrize(
    ("name", "target", "headers", "signature"), PRESIGNED, ids=[case[0] for case in PRESIGNED]
)
def test_a_request_that_is_signed_in_its_query(
    name: str, target: str, headers: dict[str, str], signature: str
) -> None:
    names = "%3B".join(["host", *headers])
    credential = SCOPE.replace("/", "%2F")
    made = {name.encode(): value.encode() for name, value in ({"host": HOST} | headers).items()}

    def sent(signature: str) -> Sent:
        query = (
            f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}&X-Amz-Date={DATE}"
            f"&X-Amz-SignedHeaders={names}&X-Amz-Expires=3600&X-Amz-Signature={signature}"
        )
        return Sent(b"GET", f"{target}{query}".encode(), made)

    verified(sent(signature))
    with pytest.raises(errors.InvalidSignatureException, match="does not match"):
        verified(sent(another(signature)))


SIGNER: Any = botocore.auth.SigV4Auth


class _Signer(S3SigV4Auth):
    """botocore's signer, with paths as they are, and without the header that it adds for S3."""

    def _modify_request_before_signing(self, request: Any) -> None:
        SIGNER._modify_request_before_signing(self, request)

    def payload(self, request: Any) -> str:
        return str(SIGNER.payload(self, request))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_botocore_signs_the_case_alike(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: NOW.replace(tzinfo=None))
    headers = {name: value for name, value in case.headers.items() if name != "x-amz-security-token"}
    # botocore signs URLs whose characters are all encoded.
    url = f"https://{HOST}{case.target.replace(' ', '%20').replace('ሴ', quote('ሴ'))}"
    request = AWSRequest(case.method, url, headers={"Host": HOST} | headers, data=case.body)
    _Signer(Credentials(KEY.id, KEY.secret, case.token or None), "service", "us-east-1").add_auth(request)
    assert request.headers["Authorization"].endswith(case.signature)
