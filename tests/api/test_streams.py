"""DynamoDB Streams from the outside, over HTTP and in process: errors, paging, iterators, view types.

What depends on time is in unit/test_streams.py, on a clock that stands still.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from worlds import table_of

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodbstreams.client import DynamoDBStreamsClient

NO_SHARD = "shardId-00000000000000000000-00000000"


def create(client: DynamoDBClient, table: str, view: Any = "NEW_AND_OLD_IMAGES") -> str:
    """Create a table with a stream (or without, for no view); the stream's ARN."""
    specification: Any = {"StreamEnabled": True, "StreamViewType": view} if view else {"StreamEnabled": False}
    described = client.create_table(**table_of(table, "id, n:N", StreamSpecification=specification))[
        "TableDescription"
    ]
    client.get_waiter("table_exists").wait(TableName=table)
    return described.get("LatestStreamArn", "")


def put(client: DynamoDBClient, table: str, id_: str, **attributes: Any) -> None:
    client.put_item(TableName=table, Item={"id": {"S": id_}, "n": {"N": "1"}, **attributes})


def shards(streams: DynamoDBStreamsClient, arn: str) -> list[Any]:
    return list(streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"])


def records(streams: DynamoDBStreamsClient, arn: str) -> list[Any]:
    """All records, in order."""
    found: list[Any] = []
    for shard in shards(streams, arn):
        start = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )
        iterator: str | None = start["ShardIterator"]
        while iterator:
            page = streams.get_records(ShardIterator=iterator)
            found += page["Records"]
            iterator = page.get("NextShardIterator") if page["Records"] else None
    return sorted(found, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))


def refused(call: Callable[..., Any], **request: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**request)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


@pytest.mark.parametrize(
    ("view", "images"),
    [
        ("KEYS_ONLY", set()),
        ("NEW_IMAGE", {"NewImage"}),
        ("OLD_IMAGE", {"OldImage"}),
        ("NEW_AND_OLD_IMAGES", {"NewImage", "OldImage"}),
    ],
)
def test_a_view_type_says_which_images_a_record_has(
    client: DynamoDBClient,
    streams: DynamoDBStreamsClient,
    name_table: Callable[..., str],
    view: str,
    images: set[str],
) -> None:
    table = name_table("view")
    arn = create(client, table, view)
    put(client, table, "1", a={"S": "old"})
    put(client, table, "1", a={"S": "new"})
    client.delete_item(TableName=table, Key={"id": {"S": "1"}, "n": {"N": "1"}})
    changes = [(record["eventName"], record["dynamodb"]) for record in records(streams, arn)]
    assert [name for name, _ in changes] == ["INSERT", "MODIFY", "REMOVE"]
    for name, change in changes:
        there = {"NewImage", "OldImage"} & change.keys()
        possible = {"INSERT": {"NewImage"}, "REMOVE": {"OldImage"}}.get(name, {"NewImage", "OldImage"})
        assert there == images & possible
        assert change["Keys"] == {"id": {"S": "1"}, "n": {"N": "1"}}
        assert change["StreamViewType"] == view
    # Names and values of the keys (id: 2 + 1, n: 1 + 2) and of the images (9 or more) are counted. [assumed]
    sizes = [change["SizeBytes"] for _, change in changes]
    assert all(
        size >= 6 + 9 * len({"NewImage", "OldImage"} & change.keys())
        for size, (_, change) in zip(sizes, changes, strict=True)
    )


def test_writes_that_change_nothing_leave_no_record(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, name_table: Callable[..., str]
) -> None:
    table = name_table("quiet")
    arn = create(client, table)
    put(
        client,
        table,
        "1",
        s={"SS": ["a", "b"]},
        c={"N": "1.50"},
        m={"M": {"x": {"NS": ["1", "2"]}, "y": {"S": ""}}},
    )
    key: Any = {"id": {"S": "1"}, "n": {"N": "1"}}
    # The same item: sets in another order, numbers written otherwise, members in another order.
    put(
        client,
        table,
        "1",
        m={"M": {"y": {"S": ""}, "x": {"NS": ["2.0", "1"]}}},
        c={"N": "1.5"},
        s={"SS": ["b", "a"]},
    )
    client.update_item(TableName=table, Key=key)
    client.update_item(
        TableName=table,
        Key=key,
        UpdateExpression="SET c = :c REMOVE absent",
        ExpressionAttributeValues={":c": {"N": "15E-1"}},
    )
    client.delete_item(TableName=table, Key={"id": {"S": "absent"}, "n": {"N": "1"}})
    client.transact_write_items(
        TransactItems=[
            {
                "ConditionCheck": {
                    "TableName": table,
                    "Key": key,
                    "ConditionExpression": "attribute_exists(id)",
                }
            }
        ]
    )
    with pytest.raises(client.exceptions.ConditionalCheckFailedException):
        client.put_item(
            TableName=table, Item={**key, "a": {"S": "x"}}, ConditionExpression="attribute_not_exists(id)"
        )
    assert [record["eventName"] for record in records(streams, arn)] == ["INSERT"]
    # Another type with an equal text, and an order of a list, are changes.
    put(client, table, "1", c={"S": "1.5"})
    assert len(records(streams, arn)) == 2


def test_every_write_path_leaves_records(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, name_table: Callable[..., str]
) -> None:
    table = name_table("paths")
    arn = create(client, table)
    client.batch_write_item(
        RequestItems={
            table: [{"PutRequest": {"Item": {"id": {"S": id_}, "n": {"N": "1"}}}} for id_ in ("a", "b", "c")]
        }
    )
    client.update_item(
        TableName=table,
        Key={"id": {"S": "d"}, "n": {"N": "1"}},
        UpdateExpression="SET x = :x",
        ExpressionAttributeValues={":x": {"N": "1"}},
    )
    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": table, "Item": {"id": {"S": "e"}, "n": {"N": "1"}}}},
            {"Delete": {"TableName": table, "Key": {"id": {"S": "a"}, "n": {"N": "1"}}}},
            {
                "Update": {
                    "TableName": table,
                    "Key": {"id": {"S": "b"}, "n": {"N": "1"}},
                    "UpdateExpression": "SET y = :y",
                    "ExpressionAttributeValues": {":y": {"N": "2"}},
                }
            },
        ]
    )
    seen = [(record["eventName"], record["dynamodb"]["Keys"]["id"]["S"]) for record in records(streams, arn)]
    assert sorted(seen[:3]) == [("INSERT", "a"), ("INSERT", "b"), ("INSERT", "c")]
    assert seen[3] == ("INSERT", "d")
    assert sorted(seen[4:]) == [("INSERT", "e"), ("MODIFY", "b"), ("REMOVE", "a")]


def test_a_stream_is_described(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, name_table: Callable[..., str]
) -> None:
    table = name_table("described")
    arn = create(client, table)
    description = streams.describe_stream(StreamArn=arn)["StreamDescription"]
    assert description["StreamArn"] == arn
    assert arn.endswith(f":table/{table}/stream/{description['StreamLabel']}")
    assert description["StreamStatus"] == "ENABLED"
    assert description["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert description["TableName"] == table
    assert description["KeySchema"] == [
        {"AttributeName": "id", "KeyType": "HASH"},
        {"AttributeName": "n", "KeyType": "RANGE"},
    ]
    assert description["CreationRequestDateTime"].timestamp() > 0
    for shard in description["Shards"]:
        assert 28 <= len(shard["ShardId"]) <= 65  # [docs] API reference, Shard
        assert 21 <= len(shard["SequenceNumberRange"]["StartingSequenceNumber"]) <= 40
        assert "EndingSequenceNumber" not in shard["SequenceNumberRange"]
    child_filter: Any = {"Type": "CHILD_SHARDS", "ShardId": description["Shards"][0]["ShardId"]}
    children = streams.describe_stream(StreamArn=arn, ShardFilter=child_filter)["StreamDescription"]["Shards"]
    assert children == []
    after = streams.describe_stream(StreamArn=arn, ExclusiveStartShardId=description["Shards"][-1]["ShardId"])
    assert after["StreamDescription"]["Shards"] == []


def test_streams_are_listed_by_table_and_by_page(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, name_table: Callable[..., str]
) -> None:
    arns = [create(client, name_table(f"listed{number}")) for number in range(3)]
    create(client, name_table("unlisted"), view=None)
    found: list[str] = []
    start: dict[str, Any] = {}
    while True:
        page: Any = streams.list_streams(Limit=1, **start)
        assert len(page["Streams"]) <= 1
        found += [stream["StreamArn"] for stream in page["Streams"]]
        if "LastEvaluatedStreamArn" not in page:
            break
        start = {"ExclusiveStartStreamArn": page["LastEvaluatedStreamArn"]}
    assert set(arns) <= set(found)
    assert len(found) == len(set(found))
    table = arns[1].split("/")[1]
    (only,) = streams.list_streams(TableName=table)["Streams"]
    assert only == {"StreamArn": arns[1], "TableName": table, "StreamLabel": arns[1].rpartition("/")[2]}
    assert streams.list_streams(TableName="no-such-table-anywhere")["Streams"] == []


def test_pages_end_at_the_limit_and_at_a_megabyte(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, name_table: Callable[..., str]
) -> None:
    table = name_table("pages")
    arn = create(client, table, "NEW_IMAGE")
    for number in range(7):
        put(client, table, "same-shard", n={"N": str(number)}, fill={"S": "x" * 300_000})
    (shard,) = [one for one in shards(streams, arn) if _has_records(streams, arn, one["ShardId"])]
    start = streams.get_shard_iterator(
        StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )
    sizes = []
    iterator = start["ShardIterator"]
    while (page := streams.get_records(ShardIterator=iterator))["Records"]:
        sizes.append(len(page["Records"]))
        assert sum(record["dynamodb"]["SizeBytes"] for record in page["Records"]) <= 1024 * 1024
        iterator = page["NextShardIterator"]
    assert sizes == [3, 3, 1]
    assert len(streams.get_records(ShardIterator=start["ShardIterator"], Limit=2)["Records"]) == 2


def _has_records(streams: DynamoDBStreamsClient, arn: str, shard: str) -> bool:
    start = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    return bool(streams.get_records(ShardIterator=start["ShardIterator"], Limit=1)["Records"])


def test_an_iterator_may_be_used_again(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, name_table: Callable[..., str]
) -> None:
    table = name_table("again")
    arn = create(client, table)
    put(client, table, "1")
    for shard in shards(streams, arn):
        start = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )
        first, second = (streams.get_records(ShardIterator=start["ShardIterator"]) for _ in range(2))
        assert first["Records"] == second["Records"]
        assert len(start["ShardIterator"]) <= 2048  # [docs] API reference, GetShardIterator


def test_what_is_not_there_is_not_found(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, name_table: Callable[..., str]
) -> None:
    arn = create(client, name_table("there"))
    gone = arn[:-3] + ("000" if arn[-3:] != "000" else "001")
    # [report] lambda-maven-plugin issue 121
    expected = ("ResourceNotFoundException", f"Requested resource not found: Stream: {gone} not found")
    assert refused(streams.describe_stream, StreamArn=gone) == expected
    iterator: Any = {"ShardId": NO_SHARD, "ShardIteratorType": "LATEST"}
    assert refused(streams.get_shard_iterator, StreamArn=gone, **iterator) == expected
    # [report] node-dynamodb-stream issue 16
    assert refused(streams.get_shard_iterator, StreamArn=arn, **iterator) == (
        "ResourceNotFoundException",
        "Requested resource not found: Shard does not exist",
    )


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:dynamodb:us-east-1:000000000000:table/without-a-stream",
        "arn:aws:kinesis:us-east-1:000000000000:stream/some-other-service",
        "no ARN at all, but as long as one would be",
    ],
)
def test_an_arn_of_something_else_is_invalid(streams: DynamoDBStreamsClient, arn: str) -> None:
    code, message = refused(streams.describe_stream, StreamArn=arn)
    assert code == "ValidationException"
    assert message == f"Invalid StreamArn: {arn}"  # [assumed]


def test_iterators_by_sequence_number_are_checked(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, name_table: Callable[..., str]
) -> None:
    table = name_table("checked")
    arn = create(client, table)
    put(client, table, "1")
    put(client, table, "1", a={"S": "x"})
    shard = next(one["ShardId"] for one in shards(streams, arn) if _has_records(streams, arn, one["ShardId"]))
    first, second = (record["dynamodb"]["SequenceNumber"] for record in records(streams, arn))
    place: Any = {"StreamArn": arn, "ShardId": shard}

    def read(**request: Any) -> list[str]:
        start = streams.get_shard_iterator(**place, **request)["ShardIterator"]
        return [r["dynamodb"]["SequenceNumber"] for r in streams.get_records(ShardIterator=start)["Records"]]

    assert read(ShardIteratorType="AT_SEQUENCE_NUMBER", SequenceNumber=first) == [first, second]
    assert read(ShardIteratorType="AFTER_SEQUENCE_NUMBER", SequenceNumber=first) == [second]
    assert read(ShardIteratorType="AFTER_SEQUENCE_NUMBER", SequenceNumber=second) == []
    begin = shards(streams, arn)[0]["SequenceNumberRange"]["StartingSequenceNumber"]
    assert read(ShardIteratorType="AT_SEQUENCE_NUMBER", SequenceNumber=begin) == [first, second]
    # The messages: [assumed] as DynamoDB Local
    for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
        assert (
            refused(streams.get_shard_iterator, **place, ShardIteratorType=kind)[0] == "ValidationException"
        )
        for wrong in ("9" * 21, "1" + "0" * 20, "not a number, yet long"):
            code, message = refused(
                streams.get_shard_iterator, **place, ShardIteratorType=kind, SequenceNumber=wrong
            )
            assert code == "ValidationException"
            assert "Invalid SequenceNumber" in message
    assert (
        refused(streams.get_shard_iterator, **place, ShardIteratorType="AT_TIMESTAMP")[0]
        == "ValidationException"
    )


@pytest.mark.parametrize(
    "iterator", ["x", "arn|1|x", "é" * 10, "arn:aws:dynamodb:us-east-1:0|1|WyJhIiwxLDFd"]
)
def test_a_text_that_is_no_iterator_is_refused(streams: DynamoDBStreamsClient, iterator: str) -> None:
    # [assumed]
    assert refused(streams.get_records, ShardIterator=iterator) == (
        "ValidationException",
        "Invalid ShardIterator",
    )


def test_a_disabled_stream_stays_readable_and_a_new_one_gets_another_arn(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, name_table: Callable[..., str]
) -> None:
    table = name_table("twice")
    arn = create(client, table)
    put(client, table, "1")
    place: Any = {"StreamArn": arn, "ShardId": shards(streams, arn)[0]["ShardId"]}
    latest = streams.get_shard_iterator(**place, ShardIteratorType="LATEST")["ShardIterator"]
    off = client.update_table(TableName=table, StreamSpecification={"StreamEnabled": False})[
        "TableDescription"
    ]
    assert "StreamSpecification" not in off
    assert off["LatestStreamArn"] == arn
    client.get_waiter("table_exists").wait(TableName=table)
    put(client, table, "2")
    description = streams.describe_stream(StreamArn=arn)["StreamDescription"]
    assert description["StreamStatus"] == "DISABLED"
    assert all("EndingSequenceNumber" in shard["SequenceNumberRange"] for shard in description["Shards"])
    # An iterator from before works on, and the closed shard ends.
    closed: Any = streams.get_records(ShardIterator=latest)
    assert closed["Records"] == []
    assert "NextShardIterator" not in closed
    assert [record["dynamodb"]["Keys"]["id"]["S"] for record in records(streams, arn)] == ["1"]

    view: Any = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    on = client.update_table(TableName=table, StreamSpecification=view)["TableDescription"]
    assert on["LatestStreamArn"] != arn
    assert on["StreamSpecification"] == view
    listed = [stream["StreamArn"] for stream in streams.list_streams(TableName=table)["Streams"]]
    assert listed == [arn, on["LatestStreamArn"]]
    client.get_waiter("table_exists").wait(TableName=table)
    put(client, table, "3")
    assert len(records(streams, arn)) == 1
    assert [r["dynamodb"]["Keys"]["id"]["S"] for r in records(streams, on["LatestStreamArn"])] == ["3"]


def test_the_stream_of_a_deleted_table_stays_readable(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, name_table: Callable[..., str]
) -> None:
    table = name_table("deleted")
    arn = create(client, table)
    put(client, table, "1")
    client.delete_table(TableName=table)
    client.get_waiter("table_not_exists").wait(TableName=table)
    assert [record["eventName"] for record in records(streams, arn)] == ["INSERT"]
    description = streams.describe_stream(StreamArn=arn)["StreamDescription"]
    assert description["StreamStatus"] == "DISABLED"
    assert [key["AttributeName"] for key in description["KeySchema"]] == ["id", "n"]


def test_stream_specifications_are_checked(client: DynamoDBClient, name_table: Callable[..., str]) -> None:
    table = name_table("specified")
    create(client, table)
    invalid = "One or more parameter values were invalid: "
    view: Any = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    # [report] scylladb issue 6939
    assert refused(client.update_table, TableName=table, StreamSpecification=view) == (
        "ValidationException",
        f"Table already has an enabled stream: TableName: {table}",
    )
    client.update_table(TableName=table, StreamSpecification={"StreamEnabled": False})
    client.get_waiter("table_exists").wait(TableName=table)
    # [docs] Developer Guide, "Enabling a stream": a ValidationException; the text is [assumed].
    code, _ = refused(client.update_table, TableName=table, StreamSpecification={"StreamEnabled": False})
    assert code == "ValidationException"
    new: Any = table_of(name_table("new"), "id")
    # [report] dynoxide issue 115
    assert refused(client.create_table, **new, StreamSpecification={**view, "StreamEnabled": False}) == (
        "ValidationException",
        f"{invalid}Table is being created with a stream disabled, UpdateViewType should not be specified",
    )
    code, message = refused(client.create_table, **new, StreamSpecification={"StreamEnabled": True})
    assert code == "ValidationException"
    assert message.startswith(invalid)  # the rest is [assumed]
