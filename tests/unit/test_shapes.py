"""Request shapes: the messages a bad request gets, and the agreement of the quick and the exact walk."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange import shapes
from hashrange.errors import SerializationException, ServiceError, ValidationException
from hashrange.limits import MESSAGE_CHARS_MAX
from hashrange.settings import waves
from hashrange.shapes import constraints, quick, wire_types
from hashrange.shapes.vocabulary import (
    ATTRIBUTE_VALUE,
    AttributeValue,
    Blob,
    Boolean,
    List,
    Map,
    Number,
    Shape,
    String,
    Structure,
    Timestamp,
    enum_order,
)

KEY = {"pk": {"S": "a"}}
TABLE: dict[str, Any] = {
    "TableName": "music",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
WRITES_RULE = (
    "Map value must satisfy constraint: "
    "[Member must have length less than or equal to 25, Member must have length greater than or equal to 1]"
)
NAME_RULE = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"


def refused(operation: str, request: Any, words: str = waves.DEFAULT) -> str:
    with pytest.raises(ValidationException) as caught:
        shapes.check(operation, request, waves.newer(words))
    assert caught.value.message is not None
    return caught.value.message


def one(value: str, path: str, rule: str) -> str:
    return f"1 validation error detected: Value {value} at '{path}' failed to satisfy constraint: {rule}"


# ------------------------------------------------------------------------------------ good requests


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("GetItem", {"TableName": "music", "Key": KEY}),
        ("GetItem", {"TableName": "arn:aws:dynamodb:us-east-1:000000000000:table/music", "Key": KEY}),
        ("GetItem", {"TableName": "music", "Key": KEY, "NoSuchMember": 5, "AttributesToGet": None}),
        ("PutItem", {"TableName": "a.b-c_D9", "Item": {}, "ReturnValues": "ALL_OLD"}),
        ("Query", {"TableName": "music", "Limit": 1, "ScanIndexForward": False, "Select": "COUNT"}),
        ("CreateTable", TABLE),
        ("ListTables", {}),
        ("DescribeEndpoints", {}),
        (
            "UpdateTimeToLive",
            {"TableName": "abc", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "t"}},
        ),
        (
            "GetShardIterator",
            {
                "StreamArn": "a" * 37,
                "ShardId": "s" * 28,
                "ShardIteratorType": "AT_TIMESTAMP",
                "Timestamp": 1.5,
            },
        ),
    ],
)
def test_accepts(operation: str, request_: dict[str, Any]) -> None:
    shapes.check(operation, request_)


def test_null_members_are_removed() -> None:
    request: dict[str, Any] = {
        "TransactItems": [{"Put": {"TableName": "music", "Item": {"a": None}, "ConditionExpression": None}}],
        "ClientRequestToken": None,
    }
    shapes.check("TransactWriteItems", request)
    assert request == {"TransactItems": [{"Put": {"TableName": "music", "Item": {"a": None}}}]}


def test_leaves_attribute_values_to_values() -> None:
    shapes.check("PutItem", {"TableName": "music", "Item": {"pk": {"S": 5}}})


# -------------------------------------------------------------------------------------- table names


EMPTY_NAME = (
    "1 validation error detected: Value at 'TableName' failed to satisfy constraint: "
    "Member must have length greater than or equal to 1"
)
RETURN_VALUES = (
    "Failed to satisfy constraint: Member must satisfy enum value set: "
    "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
)


@pytest.mark.parametrize(
    ("operation", "needed"),
    [
        ("PutItem", {"Item": {}}),
        ("UpdateItem", {"Key": {}}),
        ("DeleteItem", {"Key": {}}),
        ("GetItem", {"Key": {}}),
    ],
)
def test_empty_table_name_is_reported_alone(operation: str, needed: dict[str, Any]) -> None:
    # [report] paritysuite, captures of September 2026; of GetItem [assumed]
    assert refused(operation, {"TableName": "", **needed, "ReturnConsumedCapacity": "SOME"}) == EMPTY_NAME


def test_a_request_that_lacks_its_key_is_left_to_the_older_layer() -> None:
    # [report] paritysuite, captures of 2026
    wrong = {"TableName": "", "ReturnValues": "SOME", "ReturnConsumedCapacity": "YES"}
    message = refused("UpdateItem", wrong)
    assert message.startswith("4 validation errors detected: Value 'YES' at 'returnConsumedCapacity'")
    places = [part.partition("'")[0] for part in message.split(" at '")[1:]]
    assert places == ["returnConsumedCapacity", "tableName", "returnValues", "key"]


def test_an_update_reports_its_first_violation_only() -> None:
    # [report] paritysuite, captures of 2026; a put reports all
    wrong = {"ReturnValues": "SOME", "ReturnConsumedCapacity": "YES"}
    assert refused("UpdateItem", {"TableName": "music", "Key": {}, **wrong}) == (
        f"1 validation error detected: {RETURN_VALUES}"
    )
    capacity = "Value 'YES' at 'returnConsumedCapacity' failed to satisfy constraint: "
    capacity += "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
    assert refused("PutItem", {"TableName": "music", "Item": {}, **wrong}) == (
        f"2 validation errors detected: {capacity}; {RETURN_VALUES}"
    )
    assert refused("DeleteItem", {"TableName": "music", "Key": {}, **wrong}) == (
        f"2 validation errors detected: {capacity}; {RETURN_VALUES}"
    )


def test_a_deep_request_is_left_to_the_older_layer() -> None:
    # [report] paritysuite: beyond about 62 levels
    def deep(levels: int) -> dict[str, Any]:
        value: dict[str, Any] = {"S": "x"}
        for _ in range(levels):
            value = {"L": [value]}
        return {"TableName": "music", "Item": {"a": value}, "ReturnValues": "SOME"}

    assert refused("PutItem", deep(60)) == f"1 validation error detected: {RETURN_VALUES}"
    assert refused("PutItem", deep(64)).startswith(
        "1 validation error detected: Value 'SOME' at 'returnValues'"
    )


def test_older_words_are_those_of_the_older_layer_everywhere() -> None:
    # [report] paritysuite: eu-south-2 in October 2026
    message = refused("PutItem", {"TableName": "", "Item": {}, "ReturnValues": "INVALID"}, waves.OLDEST)
    assert message == (
        "2 validation errors detected: Value 'INVALID' at 'returnValues' failed to satisfy constraint: "
        "Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]; Value '' at "
        "'tableName' failed to satisfy constraint: Member must have length greater than or equal to 1"
    )


@pytest.mark.parametrize("operation", ["GetItem", "CreateTable", "DescribeTable", "Query"])
def test_short_and_long_table_names_are_reported_alone(operation: str) -> None:
    # [report] extenddb pull 14
    assert refused(operation, {"TableName": "ab", "Limit": 0}) == one(
        "'ab'", "tableName", "Member must have length greater than or equal to 3"
    )
    assert refused(operation, {"TableName": "a" * 256}) == one(
        f"'{'a' * 256}'", "tableName", "Member must have length less than or equal to 255"
    )


def test_table_name_of_wrong_characters() -> None:
    # [report] aws-cli issue 790, scylladb pull 12608
    assert refused("GetItem", {"TableName": "non!existent", "Key": KEY}) == one(
        "'non!existent'", "tableName", NAME_RULE
    )


def test_missing_table_name() -> None:
    # [report] Netflix iep-apps pull 527
    assert refused("GetItem", {"Key": KEY}) == one("null", "tableName", "Member must not be null")
    # [report] aws-sdk-java issue 977
    assert (
        refused("DescribeTable", {})
        == "The parameter 'TableName' is required but was not present in the request"
    )


def test_arn_too_long() -> None:
    # [assumed]
    arn = "arn:" + "a" * 1021
    assert refused("GetItem", {"TableName": arn, "Key": KEY}) == one(
        f"'{arn}'", "tableName", "Member must have length less than or equal to 1024"
    )


# ------------------------------------------------------------------------------------- constraints


def test_required_members_are_counted_and_joined() -> None:
    # [report] the form; [assumed] the order, which is the model's
    null = "failed to satisfy constraint: Member must not be null"
    assert refused("CreateTable", {"TableName": "music"}) == (
        f"2 validation errors detected: Value null at 'attributeDefinitions' {null}; "
        f"Value null at 'keySchema' {null}"
    )


@pytest.mark.parametrize(
    ("operation", "member", "words"),
    [
        # [report] dynalite's captures and bug reports quote these orders
        ("PutItem", "ReturnConsumedCapacity", "[INDEXES, TOTAL, NONE]"),
        ("PutItem", "ReturnItemCollectionMetrics", "[SIZE, NONE]"),
        ("PutItem", "ReturnValues", "[ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"),
        ("PutItem", "ConditionalOperator", "[OR, AND]"),
        ("Query", "Select", "[SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]"),
    ],
)
def test_enums_are_printed_in_dynamodbs_order(operation: str, member: str, words: str) -> None:
    request: dict[str, Any] = {"TableName": "music", "Item": {}, member: "hi"}
    path = member[0].lower() + member[1:]
    assert refused(operation, request, waves.OLDEST) == one(
        "'hi'", path, f"Member must satisfy enum value set: {words}"
    )


def test_enum_order_of_comparison_operators() -> None:
    # [report]
    operators = "EQ NE IN LE LT GE GT BETWEEN NOT_NULL NULL CONTAINS NOT_CONTAINS BEGINS_WITH"
    wanted = "IN NULL BETWEEN LT NOT_CONTAINS EQ GT NOT_NULL NE LE BEGINS_WITH GE CONTAINS"
    assert enum_order(tuple(operators.split())) == tuple(wanted.split())


def test_paths_into_lists_count_from_one() -> None:
    # [report] serverless issue 4728
    attributes = [{"AttributeName": "a", "AttributeType": "S"}, {"AttributeName": "b", "AttributeType": "SS"}]
    assert refused("CreateTable", {**TABLE, "AttributeDefinitions": attributes}) == one(
        "'SS'", "attributeDefinitions.2.member.attributeType", "Member must satisfy enum value set: [B, N, S]"
    )


def test_structures_are_printed_like_java() -> None:
    # [report] dynoxide issue 11
    schema = [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
        {"AttributeName": "extra", "KeyType": "RANGE"},
    ]
    assert refused("CreateTable", {**TABLE, "KeySchema": schema}) == one(
        "'[KeySchemaElement(attributeName=pk, keyType=HASH), "
        "KeySchemaElement(attributeName=sk, keyType=RANGE), "
        "KeySchemaElement(attributeName=extra, keyType=RANGE)]'",
        "keySchema",
        "Member must have length less than or equal to 2",
    )


def test_bounds_of_numbers() -> None:
    # [report] dynoxide issue 31 for the segment
    scan = {"TableName": "music"}
    assert refused("Scan", {**scan, "Segment": -1}) == one(
        "'-1'", "segment", "Member must have value greater than or equal to 0"
    )
    assert refused("Scan", {**scan, "TotalSegments": 1_000_001}) == one(
        "'1000001'", "totalSegments", "Member must have value less than or equal to 1000000"
    )
    assert refused("Scan", {**scan, "Limit": 0}) == one(
        "'0'", "limit", "Member must have value greater than or equal to 1"
    )


def test_pattern_is_reported_before_length() -> None:
    # [assumed]
    assert refused("ListTables", {"ExclusiveStartTableName": "!"}) == (
        "2 validation errors detected: "
        f"Value '!' at 'exclusiveStartTableName' failed to satisfy constraint: {NAME_RULE}; "
        "Value '!' at 'exclusiveStartTableName' failed to satisfy constraint: "
        "Member must have length greater than or equal to 3"
    )


def test_ten_violations_at_most() -> None:
    # [report]
    attributes = [{"AttributeName": "a", "AttributeType": "X"}] * 12
    message = refused("CreateTable", {**TABLE, "AttributeDefinitions": attributes})
    assert message.startswith("10 validation errors detected: ")
    assert message.count("; ") == 9


# ------------------------------------------------------------------------- batches and transactions


def test_empty_batches_have_their_own_words() -> None:
    # [report] dynoxide pull 198, for both
    assert refused("BatchGetItem", {"RequestItems": {}}) == (
        "1 validation error detected: Value at 'RequestItems' failed to satisfy constraint: "
        "Member must have length greater than or equal to 1"
    )
    assert (
        refused("BatchWriteItem", {"RequestItems": {}})
        == "The requestItems parameter is required for BatchWriteItem"
    )


@pytest.mark.parametrize("operation", ["BatchGetItem", "BatchWriteItem"])
def test_a_batch_needs_its_member(operation: str) -> None:
    # [assumed]
    assert refused(operation, {}) == one("null", "requestItems", "Member must not be null")


def test_too_many_writes_are_reported_at_the_map() -> None:
    # [report] risingwave issue 17572 (structures with their members), boto3 issue 483 (the rule)
    message = refused("BatchWriteItem", {"RequestItems": {"music": [{"DeleteRequest": {"Key": KEY}}] * 26}})
    write = (
        "WriteRequest(putRequest=null, deleteRequest=DeleteRequest(key={pk=com.amazonaws.dynamodb.v20120810."
    )
    assert message.startswith(f"1 validation error detected: Value '{{music=[{write}AttributeValue@")
    assert message.endswith(f"]}}' at 'requestItems' failed to satisfy constraint: {WRITES_RULE}")


def test_no_writes_for_a_table() -> None:
    # [report] aws-cdk-dynamodb-seeder issue 3
    assert refused("BatchWriteItem", {"RequestItems": {"test-table": []}}) == one(
        "'{test-table=[]}'",
        "requestItems",
        WRITES_RULE,
    )


def test_too_many_and_no_keys() -> None:
    # [report] dynoxide issue 18: no value, and the API's path
    path = "RequestItems.mu.sic.member.Keys"
    at = f"1 validation error detected: Value at '{path}' failed to satisfy constraint: "
    assert refused("BatchGetItem", {"RequestItems": {"mu.sic": {"Keys": [KEY] * 101}}}) == (
        f"{at}Member must have length less than or equal to 100"
    )
    # [assumed] the same form
    assert refused("BatchGetItem", {"RequestItems": {"mu.sic": {"Keys": []}}}) == (
        f"{at}Member must have length greater than or equal to 1"
    )


def test_missing_parts_of_a_batch() -> None:
    # [report] the form of the path
    assert refused("BatchWriteItem", {"RequestItems": {"music": [{"DeleteRequest": {}}]}}) == one(
        "null", "requestItems.music.member.1.member.deleteRequest.key", "Member must not be null"
    )


def test_bad_table_name_in_a_batch() -> None:
    # [assumed]
    message = refused("BatchGetItem", {"RequestItems": {"a!": {"Keys": [KEY]}}})
    assert "at 'requestItems' failed to satisfy constraint: Map keys must satisfy constraint: [" in message


def test_sizes_of_transactions() -> None:
    # [report] extenddb pull 16
    assert refused("TransactWriteItems", {"TransactItems": []}) == one(
        "'[]'", "transactItems", "Member must have length greater than or equal to 1"
    )
    get = {"Get": {"TableName": "music", "Key": KEY}}
    message = refused("TransactGetItems", {"TransactItems": [get] * 101})
    assert message.startswith("1 validation error detected: Value '[TransactGetItem(get=Get(key={pk=")
    assert message.endswith(
        ")]' at 'transactItems' failed to satisfy constraint: "
        "Member must have length less than or equal to 100"
    )


def test_null_in_a_list() -> None:
    # [assumed]
    assert refused("CreateTable", {**TABLE, "KeySchema": [None]}) == one(
        "null", "keySchema.1.member", "Member must not be null"
    )


# -------------------------------------------------------------------------------------------- order


def test_types_come_before_constraints_and_attribute_values_count() -> None:
    with pytest.raises(SerializationException):
        shapes.check("PutItem", {"TableName": "", "Item": {"pk": {"S": 5}}})
    with pytest.raises(SerializationException):
        shapes.check_types("PutItem", {"TableName": "music", "Item": {"pk": {"S": 5}}})
    shapes.check_types("PutItem", {"TableName": "", "Item": {"pk": {"S": "x", "N": "1"}}})


def test_a_list_where_an_enums_word_belongs() -> None:
    with pytest.raises(SerializationException):
        shapes.check("PutItem", {"TableName": "music", "Item": {}, "ReturnValues": ["NONE"]})


def test_a_request_that_is_not_a_structure() -> None:
    with pytest.raises(SerializationException):
        shapes.check("PutItem", [])  # type: ignore[arg-type]
    with pytest.raises(SerializationException):
        shapes.check("ListTables", None)  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------- properties

JUNK = st.sampled_from(
    [None, True, 0, 1, -1, 1.5, "", "x", "a" * 300, "arn:x", "!", [], {}, [None], {"a": None}]
)


def values_for(shape: Shape, depth: int = 3) -> st.SearchStrategy[Any]:
    """Mostly good values for a shape, with junk among them."""
    good: st.SearchStrategy[Any]
    match shape:
        case String():
            good = st.sampled_from([*shape.words, "abc", "a" * 40])
        case Number():
            good = st.sampled_from([0, 1, 100])
        case Boolean():
            good = st.booleans()
        case AttributeValue():
            good = st.just({"S": "x"})
        case Timestamp():
            good = st.just(1.5)
        case Blob():
            good = st.just("")
        case List():
            good = st.lists(values_for(shape.member, depth - 1), max_size=2) if depth else st.just([])
        case Map():
            good = (
                st.dictionaries(st.sampled_from(["abc", "!"]), values_for(shape.value, depth - 1), max_size=2)
                if depth
                else st.just({})
            )
        case Structure():
            if not depth:
                return st.just({})
            members = {name: values_for(member, depth - 1) for name, member in shape.members.items()}
            needed = {name: member for name, member in members.items() if name in shape.needed}
            rest = {name: member for name, member in members.items() if name not in shape.needed}
            good = st.fixed_dictionaries(needed, optional=rest)
    return st.integers(0, 30).flatmap(lambda dice: JUNK if dice == 0 else good)


@given(st.data())
def test_quick_says_yes_only_where_the_exact_walk_finds_nothing(data: st.DataObject) -> None:
    operation = data.draw(
        st.sampled_from(["PutItem", "Query", "CreateTable", "BatchGetItem", "TransactWriteItems"])
    )
    shape = shapes.OPERATIONS[operation]
    request = data.draw(values_for(shape))
    exact = list(_exact_errors(shape, request))
    try:
        is_good = bool(quick.structure_test(shape)(request))
    except TypeError:
        is_good = False
    if is_good:
        assert exact == []
    if exact == []:
        shapes.check(operation, _without_attribute_values(request))


def _exact_errors(shape: Structure, request: Any) -> Any:
    try:
        wire_types.check_request(shape, _without_attribute_values(request))
    except SerializationException as error:
        yield error
        return
    yield from constraints.violations(shape, request)


def _without_attribute_values(request: Any) -> Any:
    """The quick walk does not look into attribute values; neither may the comparison."""
    if type(request) is not dict:
        return request
    hidden = {"Item", "Key", "ExclusiveStartKey", "ExpressionAttributeValues"}
    return {
        name: ({} if name in hidden and type(value) is dict else value) for name, value in request.items()
    }


@given(st.recursive(JUNK, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)))
def test_any_json_gives_an_answer(request: Any) -> None:
    for operation in ("PutItem", "BatchWriteItem", "TransactWriteItems", "CreateTable"):
        name = next(iter(shapes.OPERATIONS[operation].needed))
        try:
            shapes.check(operation, {name: request, "TableName": "abc"})
        except ServiceError as error:
            assert error.message


def test_any_attribute_value_is_one_shape() -> None:
    assert (
        wire_types.java_type(List(ATTRIBUTE_VALUE))
        == "java.util.List<com.amazonaws.dynamodb.v20120810.AttributeValue>"
    )


# ------------------------------------------------------------------------------- much that is wrong


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("TransactWriteItems", {"TransactItems": [{}] * 100_000}),
        ("TransactGetItems", {"TransactItems": [{"Get": {}}] * 100_000}),
        ("BatchGetItem", {"RequestItems": {f"?{number}": {"Keys": []} for number in range(100_000)}}),
        ("BatchWriteItem", {"RequestItems": {"music": [None] * 100_000}}),
        ("CreateTable", {**TABLE, "KeySchema": [{}] * 100_000}),
        ("PutItem", {"TableName": "music", "Item": KEY, "ReturnValues": "x" * 5_000_000}),
    ],
)
def test_a_message_is_made_no_longer_than_it_is_shown(operation: str, request_: dict[str, Any]) -> None:
    tracemalloc.start()
    try:
        message = refused(operation, request_)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(message) <= MESSAGE_CHARS_MAX
    assert int(message.split()[0]) <= constraints.VIOLATIONS_MAX
    assert peak < 8 * MESSAGE_CHARS_MAX


def test_the_rule_follows_a_value_that_is_cut() -> None:
    message = refused("TransactWriteItems", {"TransactItems": [{}] * 10_000})
    assert message.startswith("1 validation error detected: Value '[TransactWriteItem(")
    assert "…' at 'transactItems' failed to satisfy constraint: Member must have length less" in message
