"""The values, words, tokens, headers and bytes that mutations put into wrong places."""

from __future__ import annotations

from typing import Any

_LONG_TEXT = "x" * 70_000

AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=" + "0123456789abcdef" * 4
)
JUNK: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 1.5, 1e300, "", " ", "x", ":v", "#n",
    "a.b[0]",
    "((a = :v", "SET a = :v REMOVE a", "SELECT * FROM t", "arn:aws:dynamodb:x", "\u0000", "ä\U0001f600",
    "\ud800",
    "x" * 3_000, _LONG_TEXT, [], [None], {}, {"S": "x"}, {"S": 5}, {"S": None}, {"N": "1e999"},
    {"N": "00.10"},
    {"N": ""}, {"N": "NaN"}, {"N": "1" * 60}, {"N": "-0"}, {"N": "1e-131"}, {"N": "\u0661"}, {"B": "AA="},
    {"B": "é"},
    {"B": ""}, {"M": {}}, {"M": {"": {"S": ""}}}, {"L": [{}]}, {"L": []}, {"NS": ["1", "1.0"]}, {"SS": []},
    {"SS": [""]}, {"SS": ["a", "a"]}, {"BS": ["AA=="]}, {"BOOL": "x"}, {"BOOL": None}, {"NULL": False},
    {"X": {}},
    {"S": "a", "N": "1"}, {"S": "\ud800"}, [[[[]]]], {"": {"": {}}}, "NONE", "ALL_OLD", "INDEXES", "SIZE",
    "TOTAL",
    {"S": "a"}, {"N": "1"}, {"N": "9" * 38}, {"N": "1e125"}, {"S": "x" * 2_049}, {"L": [{"N": "1"}] * 500},
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 25, 100, 101, 1_000_000, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63]
WORDS = [
    "AND", "OR", "NOT", "IN", "BETWEEN", "SET", "REMOVE", "ADD", "DELETE", "(", ")", "((", "[", "]", "[0]",
    "[99999999999]",
    ".", ",", "=", "<>", "<=", "+", "-", ":a", ":b", "#n", "#m", "pk", "sk", "list", "list[1]", "map.a",
    "size(", "contains(",
    "begins_with(", "attribute_exists(", "attribute_type(", "if_not_exists(", "list_append(", "SELECT",
    "FROM", "WHERE",
    "VALUE", "'", '"', "?", "<<", ">>", "{", "}", "NULL", "MISSING", "IS", "1e400", "-1", "''", "*",
    "ORDER BY", "RETURNING",
    "\u0000", "\n", "é", "\U0001f600", "EXISTS(", "set_add(", "1" * 50, "x" * 300, "/*", "--",
]  # fmt: skip
TOKENS: list[bytes] = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b'""', b"\\", b"\\u0000", b"\\ud800", b"\\udc00", b"\\x",
    b"NaN", b"Infinity",
    b"-", b"1e999", b"-0", b"01", b"1.", b"1" * 400, b"null", b"true", b"nul",
    b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"\x00", b"\t", b"\n", b" ", b"/**/", b"{}", b"[]", b'"a":1,', b"[" * 200, b'{"a":' * 200, b"[" * 2_000,
    b'{"M":' * 400,
]  # fmt: skip
LEVELS = (1, 1, 1, 1, 2, 2, 2, 3, 5, 10, 28, 30, 31, 32, 33, 34, 64, 100, 330, 500, 900, 1_500)
HEADERS: list[tuple[str, tuple[str | None, ...]]] = [
    ("X_Amz_Target", (None, "", "DynamoDB_20120810.", "DynamoDB_20120810.Nothing",
    "DynamoDB_20111205.GetItem",
                      "DynamoDBStreams_20120810.GetItem", "DynamoDB_20120810.GetRecords", "GetItem",
                      "x" * 5_000, "é")),
    ("Content_Type", (None, "", "application/json", "application/json; charset=utf-8", "text/plain", "\xff")),
    ("Authorization", (None, "", "AWS4-HMAC-SHA256", "Basic x", "AWS4-HMAC-SHA256 Credential=a",
    "AWS4-HMAC-SHA256 =,=,",
                       AUTHORIZATION.replace("us-east-1", "eu-west-1"),
                       AUTHORIZATION.replace("AKIAIOSFODNN7EXAMPLE", "123456789012"),
                       AUTHORIZATION.replace("/", ""), AUTHORIZATION + "," + "x=y," * 300)),
    ("X_Amz_Date", (None, "", "yesterday")),
    ("Origin", ("http://evil.example", "null", "")),
    ("Accept_Encoding", ("gzip", "x" * 10_000)),
    ("X_Unknown", ("y" * 20_000, "\xe9", "")),
    ("line", ("POST /?X-Amz-Algorithm=AWS4-HMAC-SHA256 HTTP/1.1",
    "POST /?a=%ff&X-Amz-Credential=%00 HTTP/1.1",
              "POST /other HTTP/1.1", "PUT / HTTP/1.1", "DELETE / HTTP/1.1", "PATCH / HTTP/1.1",
              "POST //?& HTTP/1.1", "GET / HTTP/1.1", "OPTIONS / HTTP/1.1", "GET /tables HTTP/1.1",
              "POST /?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a&X-Amz-Signature=b"
              "&X-Amz-SignedHeaders=c&X-Amz-Date=d HTTP/1.1")),
]  # fmt: skip
FRAMING: list[bytes] = [
    b"\r\n", b"\n", b"\r", b"\x00", b":", b" ", b"\t", b"\r\n\r\n", b"HTTP/1.1", b"POST / HTTP/1.1\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n", b"Content-Length: 0x10\r\n",
    b"Content-Length: +2\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n",
    b"transfer-encoding: chunked, chunked\r\n",
    b"Expect: 100-continue\r\n", b"Expect: x\r\n", b"Upgrade: h2c\r\nConnection: Upgrade\r\n",
    b"Connection: close\r\n",
    b"Host: other\r\n", b" folded: line\r\n", b"X: " + b"y" * 70_000 + b"\r\n", b"X: y\r\n" * 120,
    b"5\r\nhello\r\n0\r\n\r\n",
    b"ffffffffffffffff\r\n", b"GET http://a/b HTTP/1.0\r\n", b"CONNECT a:1 HTTP/1.1\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\xff\xfe", b"\x16\x03\x01\x02\x00", b"Content-Encoding: gzip\r\n", b"Trailer: X\r\n",
    b"X-Amz-Target\r\n",
]  # fmt: skip
