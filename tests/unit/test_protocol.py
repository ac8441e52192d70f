"""The wire protocol: which requests become calls, and the exact answers to those that do not."""

from __future__ import annotations

import os
import re
import zlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange import errors, protocol
from hashrange.database import Caller
from hashrange.operations.context import NOTHING
from hashrange.protocol import Call, Response, Wire

AUTHORIZATION = (
    b"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/eu-west-1/dynamodb/aws4_request, "
    b"SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=" + b"0a" * 32
)
HEADERS = {
    b"content-type": b"application/x-amz-json-1.0",
    b"x-amz-target": b"DynamoDB_20120810.ListTables",
    b"x-amz-date": b"20260101T000000Z",
    b"authorization": AUTHORIZATION,
}


def wire(**settings: Any) -> Wire:
    return Wire(region="us-east-1", account_id="000000000000", **settings)


def read(
    body: bytes = b"{}",
    *,
    method: bytes = b"POST",
    target: bytes = b"/",
    without: bytes = b"",
    operations: frozenset[str] | None = None,
    **changes: bytes,
) -> Call | Response:
    headers = {name: value for name, value in HEADERS.items() if name != without}
    headers |= {name.replace("_", "-").encode(): value for name, value in changes.items()}
    return wire(operations=operations).read(method, target, headers, body)


def refusal(answer: Call | Response) -> dict[str, Any]:
    assert isinstance(answer, Response)
    assert answer.status == 400
    body = orjson.loads(answer.body)
    assert isinstance(body, dict)
    return body


def test_a_call_is_its_operation_its_parameters_and_its_caller() -> None:
    call = read(b'{"Limit": 3}')
    assert isinstance(call, Call)
    assert (call.operation, call.request, call.form) == ("ListTables", {"Limit": 3}, None)
    assert call.caller == Caller("eu-west-1", "000000000000", "AKIDEXAMPLE")


def test_a_twelve_digit_access_key_is_the_account() -> None:
    call = read(authorization=AUTHORIZATION.replace(b"AKIDEXAMPLE", b"123456789012"))
    assert isinstance(call, Call)
    assert call.caller == Caller("eu-west-1", "123456789012", "123456789012")


def test_a_scope_without_a_region_takes_the_configured_one() -> None:
    call = read(authorization=AUTHORIZATION.replace(b"/eu-west-1/", b"/EU WEST/").replace(b"EU WEST", b"E_W"))
    assert isinstance(call, Call)
    assert call.caller.region == "us-east-1"


def test_a_caller_is_read_once_and_not_confused_with_another() -> None:
    reader = wire()
    first = reader.read(b"POST", b"/", HEADERS, b"{}")
    again = reader.read(b"POST", b"/", HEADERS | {b"authorization": AUTHORIZATION[:-2] + b"ff"}, b"{}")
    third = reader.read(b"POST", b"/", HEADERS | {b"authorization": AUTHORIZATION[:-2] + b"ee"}, b"{}")
    assert isinstance(first, Call)
    assert isinstance(again, Call)
    assert isinstance(third, Call)
    assert first.caller is again.caller is third.caller
    for key in (b"A", b"B", b"A"):
        other = AUTHORIZATION.replace(b"Credential=", b"Credential=" + key)
        call = reader.read(b"POST", b"/", HEADERS | {b"authorization": other}, b"{}")
        assert isinstance(call, Call)
        assert call.caller.access_key.startswith(key.decode())
        # What begins as the header before, but goes on behind the signature.
        longer = reader.read(b"POST", b"/", HEADERS | {b"authorization": other + b", Credential=C/d"}, b"{}")
        assert not isinstance(longer, Call) or longer.caller is not call.caller
    for key in (b"A", b"B"):
        # The credential behind the signature: the part before it says nothing of the caller.
        turned = b"AWS4-HMAC-SHA256 Signature=ab, SignedHeaders=host, Credential=%b/d/r-1/dynamodb/x" % key
        call = reader.read(b"POST", b"/", HEADERS | {b"authorization": turned}, b"{}")
        assert isinstance(call, Call)
        assert call.caller.access_key == key.decode()


def test_a_known_sender_needs_no_credentials() -> None:
    caller = Caller("r", "a", "k")
    headers = {name: HEADERS[name] for name in (b"content-type", b"x-amz-target")}
    call = wire().read(b"POST", b"/", headers, b"{}", caller=caller)
    assert isinstance(call, Call)
    assert call.caller is caller


def test_a_presigned_query_names_the_caller() -> None:
    target = (
        b"/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20260101%2Fap-south-1%2Fdynamodb"
        b"%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-SignedHeaders=host&X-Amz-Signature=00"
    )
    call = read(target=target, without=b"authorization")
    assert isinstance(call, Call)
    assert call.caller == Caller("ap-south-1", "000000000000", "AKID")


@pytest.mark.parametrize(
    "content_type", [b"application/x-amz-json-1.0", b"application/json", b"Application/JSON; charset=UTF-8"]
)
def test_content_types_that_are_read(content_type: bytes) -> None:
    assert isinstance(read(content_type=content_type), Call)


@pytest.mark.parametrize(
    ("method", "target", "content_type"),
    [
        (b"POST", b"/", b"text/plain"),
        (b"POST", b"/", b"application/x-amz-json-1.1"),  # [report] github.com/rusoto/rusoto/issues/215
        (b"POST", b"/table", b"application/x-amz-json-1.0"),
        (b"PUT", b"/", b"application/x-amz-json-1.0"),
        (b"GET", b"/health", b""),
    ],
)
def test_what_is_not_the_api_is_an_unknown_operation(
    method: bytes, target: bytes, content_type: bytes
) -> None:
    answer = read(method=method, target=target, content_type=content_type)
    assert isinstance(answer, Response)
    assert (answer.status, answer.body) == (404, b"<UnknownOperationException/>\n")  # [report]
    assert (answer.content_type, answer.headers) == (b"", ())
    assert answer.error == "UnknownOperationException"


def test_get_tells_that_the_endpoint_is_healthy() -> None:
    answer = wire().read(b"GET", b"/", {}, b"")
    healthy = b"healthy: dynamodb.us-east-1.amazonaws.com "
    assert answer == Response(200, healthy, b"text/plain", ((b"X-Hashrange-Admin", b"none"),))  # [report]


@pytest.mark.parametrize(
    "body", [b"hello", b"[]", b"3", b'"x"', b"null", b"{", b'{"a": NaN}', b"\xff", b"[" * 5000]
)
def test_bad_json_comes_before_target_and_authentication(body: bytes) -> None:
    answer = wire().read(b"POST", b"/", {b"content-type": protocol.JSON_TYPE}, body)
    # [report] github.com/amazon-archives/aws-sdk-unity/issues/54
    assert refusal(answer) == {"__type": "com.amazon.coral.service#SerializationException"}


@pytest.mark.parametrize("body", [b"hi", b"{}", b"{", b"a" * 2**24])
@pytest.mark.parametrize("content_type", [b"", b"; charset=utf-8", None])
@pytest.mark.parametrize("target", [b"", HEADERS[b"x-amz-target"]])
def test_a_body_without_a_content_type_is_no_operation(
    body: bytes, content_type: bytes | None, target: bytes
) -> None:
    headers = HEADERS | {b"content-type": content_type or b"", b"x-amz-target": target}
    if content_type is None:
        del headers[b"content-type"]
    answer = wire().read(b"POST", b"/", headers, body)
    # [report] dynalite's recordings, of `hi` and of 16 MB without a type; [assumed] for JSON
    assert isinstance(answer, Response)
    assert (answer.status, answer.body) == (404, b"<UnknownOperationException/>\n")


@pytest.mark.parametrize("target", [None, b"", b"Nothing", b"DynamoDB_20120810.Nothing"])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("origin", [False, True])
def test_who_sends_nothing_to_no_operation_hears_that_there_is_none(
    target: bytes | None, signed: bool, origin: bool
) -> None:
    # [report] dynalite's recordings; that a signed request without an Origin is the same is [assumed]
    headers = dict(HEADERS)
    del headers[b"x-amz-target"]
    if target is not None:
        headers[b"x-amz-target"] = target
    if not signed:
        del headers[b"authorization"]
    if origin:
        headers[b"origin"] = b"https://page.example"
    reader = Wire(region="us-east-1", account_id="000000000000", operations=frozenset({"GetItem"}))
    answer = reader.read(b"POST", b"/", headers, b"")
    assert isinstance(answer, Response)
    assert (answer.status, answer.error) == (400, "UnknownOperationException")


def test_who_sends_nothing_is_asked_who_he_is() -> None:
    # [report] Alternator's authors
    missing = {
        "__type": "com.amazon.coral.service#MissingAuthenticationTokenException",
        "message": "Request is missing Authentication Token",
    }
    target = HEADERS[b"x-amz-target"]
    for content_type, shown in ((b"", b"application/json"), (protocol.JSON_TYPE, protocol.JSON_TYPE)):
        answer = wire().read(b"POST", b"/", {b"content-type": content_type, b"x-amz-target": target}, b"")
        assert isinstance(answer, Response)
        assert (answer.status, answer.content_type) == (400, shown)
        assert refusal(answer) == missing
    # [assumed] who says so has sent no JSON
    assert refusal(read(body=b"")) == {"__type": "com.amazon.coral.service#SerializationException"}


def test_an_operation_without_output_has_an_empty_body() -> None:
    # [report] Alternator's authors, of TagResource and UntagResource
    assert protocol.encode_result(NOTHING) == b""
    assert protocol.encode_result({}) == b"{}"
    assert protocol.answer(NOTHING, None).body == b""


@pytest.mark.parametrize(
    "target",
    [
        b"",
        b"ListTables",
        b"DynamoDB_20111205.ListTables",
        b"DynamoDB_20120810.Nothing",
        b"DynamoDB_20120810.GetRecords",
        b"DynamoDBStreams_20120810.ListTables",
        b"DynamoDB_20120810.\xff",
    ],
)
def test_an_unknown_target_comes_before_authentication(target: bytes) -> None:
    known = frozenset({"ListTables", "GetRecords"})
    answer = read(x_amz_target=target, without=b"authorization", operations=known)
    # [report] github.com/aws/aws-sdk-go/issues/3689: no message
    assert refusal(answer) == {"__type": "com.amazon.coral.service#UnknownOperationException"}


def test_the_streams_prefix_reaches_the_streams_operations() -> None:
    call = read(x_amz_target=b"DynamoDBStreams_20120810.GetRecords")
    assert isinstance(call, Call)
    assert call.operation == "GetRecords"


@pytest.mark.parametrize("authorization", [None, b"", b"Bearer x", b"AWS AKID:signature"])
def test_a_missing_token(authorization: bytes | None) -> None:
    answer = read(without=b"authorization") if authorization is None else read(authorization=authorization)
    assert refusal(answer) == {
        "__type": "com.amazon.coral.service#MissingAuthenticationTokenException",
        "message": "Request is missing Authentication Token",  # [report]
    }


def test_an_incomplete_header_lists_all_that_is_missing() -> None:
    answer = read(authorization=b"AWS4-HMAC-SHA256", without=b"x-amz-date")
    assert refusal(answer) == {
        "__type": "com.amazon.coral.service#IncompleteSignatureException",
        # [report] github.com/bKash-developer/webhook-endpoint-php/issues/3, and of many services
        "message": "Authorization header requires 'Credential' parameter. "
        "Authorization header requires 'Signature' parameter. "
        "Authorization header requires 'SignedHeaders' parameter. "
        "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
        "Authorization=AWS4-HMAC-SHA256",
    }


def test_a_header_with_a_part_that_is_no_pair() -> None:
    header = b"AWS4-HMAC-SHA256 Credential=a /b/aws4_request, Signature=00"
    # [report] github.com/awslabs/fhir-works-on-aws-deployment/issues/379, from DynamoDB
    assert refusal(read(authorization=header))["message"] == (
        "'/b/aws4_request' not a valid key=value pair (missing equal-sign) in Authorization header: "
        "'AWS4-HMAC-SHA256 Credential=a /b/aws4_request, Signature=00'."
    )


def test_an_incomplete_query_lists_all_that_is_missing() -> None:
    answer = read(target=b"/?X-Amz-Algorithm=&X-Amz-Date=x", without=b"authorization")
    assert refusal(answer) == {
        "__type": "com.amazon.coral.service#IncompleteSignatureException",
        "message": "AWS query-string parameters must include 'X-Amz-Algorithm'. "
        "AWS query-string parameters must include 'X-Amz-Credential'. "
        "AWS query-string parameters must include 'X-Amz-Signature'. "
        "AWS query-string parameters must include 'X-Amz-SignedHeaders'. "
        "Re-examine the query-string parameters.",  # [report]
    }


def test_two_kinds_of_credentials_are_one_too_many() -> None:
    assert refusal(read(target=b"/?X-Amz-Algorithm=AWS4-HMAC-SHA256")) == {
        "__type": "com.amazon.coral.service#InvalidSignatureException",
        "message": "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
    }  # [report]


def test_a_query_that_signs_nothing_is_ignored() -> None:
    assert isinstance(read(target=b"/?x=1"), Call)


def test_the_preflight_of_a_browser_allows_what_it_asks() -> None:
    answer = wire().read(
        b"OPTIONS",
        b"/",
        {
            b"origin": b"https://example.com",
            b"access-control-request-headers": b"x-amz-target",
            b"access-control-request-method": b"POST",
        },
        b"",
    )
    assert isinstance(answer, Response)
    assert answer.status == 200
    headers = dict(answer.headers)
    assert headers[b"Access-Control-Allow-Origin"] == b"*"
    assert headers[b"Access-Control-Allow-Headers"] == b"x-amz-target"
    assert headers[b"Access-Control-Allow-Methods"] == b"POST"
    assert headers[b"Access-Control-Max-Age"] == b"172800"


def test_options_without_an_origin_is_no_preflight() -> None:
    answer = wire().read(b"OPTIONS", b"/", {b"host": b"localhost"}, b"")
    assert isinstance(answer, Response)
    assert (answer.status, answer.headers) == (404, ())


def test_errors_to_a_browser_can_be_read_by_it() -> None:
    answer = read(b"", origin=b"https://example.com")
    assert isinstance(answer, Response)
    assert (b"Access-Control-Allow-Origin", b"*") in answer.headers


def test_an_error_is_its_envelope() -> None:
    answer = protocol.answer(None, errors.ConditionalCheckFailedException("no", Item={"a": {"S": "x"}}))
    assert refusal(answer) == {
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "message": "no",
        "Item": {"a": {"S": "x"}},
    }


@pytest.mark.parametrize("outcome", [(None, ZeroDivisionError("secret")), ({"a": object()}, None)])
def test_a_fault_of_ours_is_logged_and_tells_nothing(
    outcome: tuple[dict[str, Any] | None, Exception | None], caplog: pytest.LogCaptureFixture
) -> None:
    answer = protocol.answer(*outcome, operation="PutItem")
    assert answer.status == 500
    assert orjson.loads(answer.body) == {
        "__type": "com.amazonaws.dynamodb.v20120810#InternalServerError",
        "message": "Internal server error",
    }
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info
    assert logged(caplog, answer) == ("ERROR", "PutItem", "InternalServerError")


def logged(caplog: pytest.LogCaptureFixture, answer: Call | Response) -> tuple[str, str, str]:
    """Level, operation and error of the one log line, which has the id that the client gets."""
    assert isinstance(answer, Response)
    (record,) = caplog.records
    fields = record.__dict__["fields"]
    assert fields["request_id"].encode() == dict(protocol.response_headers(answer))[b"x-amzn-RequestId"]
    assert fields["error"] == answer.error
    return record.levelname, fields["operation"], fields["error"]


def test_a_failed_request_can_be_found_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    answer = protocol.answer(None, errors.ServiceUnavailable("later"), operation="PutItem")
    assert logged(caplog, answer) == ("ERROR", "PutItem", "ServiceUnavailable")
    assert not caplog.records[0].exc_info


@pytest.mark.parametrize(
    ("target", "authorization", "code"),
    [
        (b"DynamoDB_20120810.Eat", b"AWS4-HMAC-SHA256 ", "UnknownOperationException"),
        (b"Kinesis.PutRecord", b"AWS4-HMAC-SHA256 ", "UnknownOperationException"),
        (b"DynamoDB_20120810.GetItem", b"Basic x", "MissingAuthenticationTokenException"),
        (b"DynamoDB_20120810.GetItem", b"AWS4-HMAC-SHA256 x=y", "IncompleteSignatureException"),
    ],
)
def test_a_client_that_is_not_set_up_for_this_server_leaves_a_trace(
    target: bytes, authorization: bytes, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    operations = frozenset({"GetItem"})
    answer = read(b"{}", operations=operations, x_amz_target=target, authorization=authorization)
    assert logged(caplog, answer) == ("WARNING", target.decode(), code)


def test_a_request_of_no_operation_leaves_a_trace_without_its_query(caplog: pytest.LogCaptureFixture) -> None:
    answer = read(method=b"GET", target=b"/console?X-Amz-Signature=secret")
    assert isinstance(answer, Response)
    (record,) = caplog.records
    fields = record.__dict__["fields"]
    assert (fields["method"], fields["path"]) == ("GET", "/console")
    assert fields["request_id"].encode() == answer.request_id


@pytest.mark.parametrize(
    "error", [errors.ConditionalCheckFailedException("x"), errors.ValidationException("x"), None]
)
def test_what_a_program_does_all_day_is_not_logged(
    error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    protocol.answer({} if error is None else None, error, operation="PutItem")
    read(b"not json")
    assert caplog.records == []


def test_stored_bytes_are_spliced_into_a_result() -> None:
    answer = protocol.answer({"Item": orjson.Fragment(b'{"a":{"S":"x"}}')}, None)
    assert answer == Response(200, b'{"Item":{"a":{"S":"x"}}}')


def test_every_answer_carries_an_id_and_its_checksum() -> None:
    headers = dict(protocol.response_headers(Response(200, b"{}")))
    assert headers[b"x-amz-crc32"] == b"%d" % zlib.crc32(b"{}")
    assert headers[b"Content-Type"] == b"application/x-amz-json-1.0"
    assert re.fullmatch(rb"[0-9A-V]{52}", headers[b"x-amzn-RequestId"])


def test_request_ids_do_not_repeat_if_two_threads_draw_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are framed on worker threads, too."""
    ids: list[bytes] = []
    urandom = os.urandom

    def drawn(count: int) -> bytes:
        monkeypatch.setattr(os, "urandom", urandom)
        ids.append(protocol.request_id())  # as another thread does
        monkeypatch.setattr(os, "urandom", drawn)
        return urandom(count)

    monkeypatch.setattr(os, "urandom", drawn)
    ids += [protocol.request_id() for _ in range(5_000)]
    assert len(set(ids)) == len(ids)


def test_request_ids_do_not_repeat() -> None:
    ids = {protocol.request_id() for _ in range(100_000)}
    assert len(ids) == 100_000
    assert {len(request_id) for request_id in ids} == {52}


@given(
    st.binary(max_size=40),
    st.sampled_from([b"/", b"/?", b"/?X-Amz-Algorithm=%ff&%", b"*", b""]),
    st.dictionaries(st.sampled_from(sorted(HEADERS)), st.binary(max_size=60)),
    st.one_of(st.binary(max_size=40), st.just(b"{}")),
)
def test_whatever_arrives_is_a_call_or_a_refusal(
    method: bytes, target: bytes, headers: dict[bytes, bytes], body: bytes
) -> None:
    for verb in (method, b"POST"):
        for changed in (headers, HEADERS | headers):
            answer = wire().read(verb, target, changed, body)
            assert isinstance(answer, Call) or answer.status in (200, 400, 404)
