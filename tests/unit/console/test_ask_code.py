"""Requests as code in Go: what a compiler makes of it is the request again."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consoles import CREATE, EVERY_TYPE
from hashrange.operations import REGISTRY
from hashrange.shapes import OPERATIONS
from hashrange_console import code
from hashrange_console.golang import go

TOKEN = re.compile(r'\s*("(?:[^"\\\n]|\\.)*"|[\w.]+|\[\]|[&{}()\[\]:,])')
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\"}


class Reader:
    """Reads the literal of a request, in the part of Go that the console writes."""

    def __init__(self, text: str) -> None:
        self.tokens = [found[1] for found in TOKEN.finditer(text)]
        self.place = 0

    def take(self, *expected: str) -> str:
        token = self.tokens[self.place]
        assert not expected or token in expected, (token, expected)
        self.place += 1
        return token

    def value(self) -> Any:
        if (token := self.tokens[self.place]) == "{":
            return self.members("")
        token = self.take()
        if token.startswith('"'):
            return unescaped(token[1:-1])
        if token == "&" or token == "[]" or token == "map":
            return self.composite(token)
        if self.tokens[self.place] == "(":
            self.take("(")
            inner = self.value()
            self.take(")")
            return inner
        return {"true": True, "false": False}.get(token, token if not token.isdecimal() else int(token))

    def composite(self, token: str) -> Any:
        """A literal whose type comes first."""
        name = token if token != "&" else ""
        while self.tokens[self.place] not in ("{", "("):
            name += self.take()
        if name == "[]byte":
            self.take("(")
            text = self.take()[1:-1]
            self.take(")")
            assert re.fullmatch(r"(?:\\x[0-9a-f]{2})*", text)
            return base64.b64encode(bytes.fromhex(text.replace("\\x", ""))).decode()
        inner = self.members(name)
        if kind := re.fullmatch(r"types\.AttributeValueMember([A-Z]+)", name):
            return {kind[1]: inner["Value"]}
        return inner

    def members(self, name: str) -> Any:
        self.take("{")
        rows: list[Any] = []
        pairs: dict[str, Any] = {}
        while self.tokens[self.place] != "}":
            first = self.value()
            if self.tokens[self.place] == ":":
                self.take(":")
                pairs[first] = self.value()
            else:
                rows.append(first)
            if self.take(",", "}") == "}":
                self.place -= 1
        self.take("}")
        return rows if name.startswith("[]") else pairs


def unescaped(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        return chr(int(found[0][2:], 16)) if found[0][1] == "u" else ESCAPES[found[0][1]]

    return re.sub(r"\\(?:u[0-9a-f]{4}|.)", one, text)


def request_of(operation: str, text: str) -> Any:
    """The request of a program."""
    begin = text.index(f"client.{operation}(ctx, ") + len(f"client.{operation}(ctx, ")
    return Reader(text[begin:]).value()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
binary = st.binary(max_size=12).map(lambda body: base64.b64encode(body).decode())
numbers = st.integers(-(10**38) + 1, 10**38 - 1).map(str)
scalars = st.one_of(
    st.builds(lambda text: {"S": text}, texts),
    st.builds(lambda text: {"N": text}, numbers),
    st.builds(lambda text: {"B": text}, binary),
    st.booleans().map(lambda word: {"BOOL": word}),
    st.just({"NULL": True}),
    st.lists(texts, min_size=1, max_size=3).map(lambda members: {"SS": members}),
    st.lists(numbers, min_size=1, max_size=3).map(lambda members: {"NS": members}),
    st.lists(binary, min_size=1, max_size=3).map(lambda members: {"BS": members}),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda members: {"L": members}),
        st.dictionaries(texts, inner, max_size=3).map(lambda members: {"M": members}),
    ),
    max_leaves=8,
)


@settings(max_examples=100)
@given(item=st.dictionaries(texts, values, max_size=5), names=st.dictionaries(texts, texts, max_size=2))
def test_a_request_in_go_is_the_request(item: dict[str, Any], names: dict[str, str]) -> None:
    requests: dict[str, dict[str, Any]] = {
        "PutItem": {"TableName": "t", "Item": item, "ExpressionAttributeNames": names},
        "Query": {"TableName": "types.x", "ExclusiveStartKey": item, "Limit": 50, "ScanIndexForward": False},
        "ExecuteStatement": {"Statement": "SELECT", "Parameters": [*item.values()]},
        "TransactGetItems": {"TransactItems": [{"Get": {"TableName": "t", "Key": item}}]},
        "BatchGetItem": {"RequestItems": {"t": {"Keys": [item, item], "ConsistentRead": True}}},
    }
    for operation, request in requests.items():
        program = go(operation, request, "http://127.0.0.1:8000")
        assert request_of(operation, program) == request
        assert "\ufeff" not in program
        used = re.sub(r'"(?:[^"\\]|\\.)*"', "", program)
        assert ("/types" in program.partition(")")[0]) == ("types." in used)


def test_other_requests_in_go() -> None:
    assert request_of("CreateTable", go("CreateTable", CREATE, "http://x")) == CREATE
    assert request_of("ListTables", go("ListTables", {}, "http://x")) == {}
    program = go("PutItem", {"TableName": "orders", "Item": EVERY_TYPE}, "http://x")
    assert request_of("PutItem", program) == {"TableName": "orders", "Item": EVERY_TYPE}
    program = go("UpdateTable", {"TableName": "t", "TableClass": "STANDARD", "BillingMode": None}, "http://x")
    assert 'TableClass: "STANDARD"' in program
    assert "BillingMode" not in program
    moment = {"SourceTableName": "a", "TargetTableName": "b", "RestoreDateTime": 1767225600.25}
    program = go("RestoreTableToPointInTime", moment, "http://x")
    assert "RestoreDateTime: aws.Time(time.Unix(1767225600, 250000000))" in program
    assert '\t"time"\n' in program


def test_every_operation_has_code_in_every_language() -> None:
    assert set(REGISTRY) <= set(OPERATIONS)
    for operation in REGISTRY:
        assert len(code.snippets(operation, {}, "http://x")) == 4


def test_an_account_and_a_region_in_go() -> None:
    program = go("ListTables", {}, "http://x", "111111111111", "eu-west-1")
    assert 'config.LoadDefaultConfig(ctx, config.WithRegion("eu-west-1"),\n' in program
    assert 'credentials.NewStaticCredentialsProvider("111111111111", "any", "")' in program
    assert '\t"github.com/aws/aws-sdk-go-v2/credentials"\n' in program
    assert "LoadDefaultConfig(ctx)" in go("ListTables", {}, "http://x")


@pytest.mark.parametrize("operation", ["ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"])
def test_requests_of_streams_use_the_clients_of_streams(operation: str) -> None:
    texts = dict(code.snippets(operation, {}, "http://127.0.0.1:8000"))
    assert 'boto3.client("dynamodbstreams"' in texts["boto3 (Python)"]
    assert "aws dynamodbstreams " in texts["AWS CLI"]
    assert '"@aws-sdk/client-dynamodb-streams"' in texts["AWS SDK for JavaScript v3"]
    assert "new DynamoDBStreamsClient(" in texts["AWS SDK for JavaScript v3"]
    assert f"&dynamodbstreams.{operation}Input" in texts["AWS SDK for Go v2"]
    assert "aws-sdk-go-v2/service/dynamodbstreams" in texts["AWS SDK for Go v2"]
