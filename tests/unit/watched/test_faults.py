"""What a program sees of each fault, in process and over HTTP: the exceptions, retries and loops of boto3."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from hashrange.clock import VirtualClock
from hashrange.database import Database
from hashrange.faults import (
    Rule,
    cancel,
    conflict,
    expire_iterator,
    in_progress,
    internal_error,
    latency,
    lose_answer,
    throttle,
    trim,
    unprocessed,
)
from watched import Clients, create

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"
KEY = {"pk": {"S": "a"}, "sk": {"N": "1"}}
PUT = {"TableName": "orders", "Item": KEY}
GET = {"TableName": "orders", "Key": KEY}
TABLE_EXCEEDED = (
    "The level of configured provisioned throughput for the table was exceeded. "
    "Consider increasing your provisioning level with the UpdateTable API."
)


def key(number: int, pk: str = "a") -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"N": str(number)}}


def items(client: Any, table: str = "orders") -> int:
    count: int = client.scan(TableName=table)["Count"]
    return count


def error_of(client: Any, operation: str, **parameters: Any) -> dict[str, Any]:
    """The error answer to a request: its code, its text, its status and its members."""
    with pytest.raises(ClientError) as caught:
        getattr(client, operation)(**parameters)
    answer: dict[str, Any] = dict(caught.value.response)
    code = answer["Error"]["Code"]
    # botocore has no class of its own for this one.
    assert type(caught.value).__name__ == ("ClientError" if code == "ValidationException" else code)
    answer["status"] = answer.pop("ResponseMetadata")["HTTPStatusCode"]
    answer.pop("message", None)
    answer.pop("Message", None)
    return answer


# -- throttling --


@pytest.mark.parametrize(
    ("limit", "exception", "member", "text"),
    [
        ("ProvisionedThroughputExceeded", "ProvisionedThroughputExceededException", "T", TABLE_EXCEEDED),
        ("KeyRangeThroughputExceeded", "ProvisionedThroughputExceededException", "T", TABLE_EXCEEDED),
        ("MaxOnDemandThroughputExceeded", "ThrottlingException", "t", "Throughput exceeds the maximum"),
        ("AccountLimitExceeded", "RequestLimitExceeded", "T", "Throughput exceeds the current throughput"),
    ],
)
def test_a_throttled_request_gets_the_exception_and_its_reasons(
    client: Any, database: Database, limit: str, exception: str, member: str, text: str
) -> None:
    for operation, parameters, kind in (("put_item", PUT, "Write"), ("get_item", GET, "Read")):
        with database.faults(throttle(table="orders", limit=limit)):
            error = error_of(client, operation, **parameters)
        assert error["status"] == 400
        assert error["Error"]["Code"] == exception
        assert error["Error"]["Message"].startswith(text)
        reason = {"reason": f"Table{kind}{limit}", "resource": ARN}
        assert error[f"{member}hrottlingReasons"] == [reason]
    assert items(client) == 0


def test_an_index_that_throttles(client: Any, database: Database) -> None:
    query = {
        "TableName": "orders",
        "KeyConditionExpression": "#d = :d",
        "ExpressionAttributeNames": {"#d": "date"},
        "ExpressionAttributeValues": {":d": {"S": "x"}},
    }
    with database.faults(throttle("Query", "PutItem", index="by-date")) as [throttled]:
        read = error_of(client, "query", **query, IndexName="by-date")
        assert client.query(**(query | {"ExpressionAttributeNames": {"#d": "pk"}}))["Count"] == 0
        written = error_of(client, "put_item", **PUT)
    assert throttled.fired == 2
    assert read["ThrottlingReasons"] == [
        {"reason": "IndexReadProvisionedThroughputExceeded", "resource": f"{ARN}/index/by-date"}
    ]
    assert written["ThrottlingReasons"] == [
        {"reason": "IndexWriteProvisionedThroughputExceeded", "resource": f"{ARN}/index/by-date"}
    ]
    assert "for one or more global secondary indexes of the table was exceeded" in written["Error"]["Message"]


def test_the_exception_may_be_chosen(client: Any, database: Database) -> None:
    rule = throttle("PutItem", limit="KeyRangeThroughputExceeded", exception="ThrottlingException")
    with database.faults(rule):
        error = error_of(client, "put_item", **PUT)
    assert error["Error"]["Code"] == "ThrottlingException"
    assert "check if you have a hot key" in error["Error"]["Message"]
    assert error["throttlingReasons"][0]["reason"] == "TableWriteKeyRangeThroughputExceeded"


@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
def test_boto3_repeats_a_throttled_request(
    client: Any, clients: Clients, database: Database, mode: str
) -> None:
    patient = clients(attempts=5, mode=mode)
    with database.faults(throttle("PutItem", table="orders").at_most(3)) as [throttled]:
        answer = patient.put_item(**PUT)
    assert answer["ResponseMetadata"]["RetryAttempts"] == 3
    assert (throttled.matched, throttled.fired) == (4, 3)
    assert items(client) == 1


def test_requests_that_consume_nothing_are_throttled_in_other_words(
    client: Any, clients: Clients, database: Database
) -> None:
    with database.faults(throttle()):
        described = error_of(client, "describe_table", TableName="orders")
        streams = error_of(clients(service="dynamodbstreams"), "list_streams")
    assert described == {
        "Error": {
            "Code": "ThrottlingException",
            "Message": "Rate of requests exceeds the allowed throughput.",
        },
        "status": 400,
    }
    assert streams["Error"]["Code"] == "LimitExceededException"


# -- errors --


@pytest.mark.parametrize("performed", [False, True])
def test_an_internal_error_leaves_open_whether_the_request_was_performed(
    client: Any, database: Database, performed: bool
) -> None:
    with database.faults(internal_error("PutItem", performed=performed)):
        error = error_of(client, "put_item", **PUT)
    assert error == {
        "Error": {"Code": "InternalServerError", "Message": "Internal server error"},
        "status": 500,
    }
    assert items(client) == performed


def test_boto3_repeats_after_an_internal_error(client: Any, clients: Clients, database: Database) -> None:
    with database.faults(internal_error("PutItem").on_call(1, 2)) as [failed]:
        clients(attempts=3).put_item(**PUT)
    assert failed.fired == 2
    assert items(client) == 1


# -- transactions --


def transaction(*numbers: int, **further: Any) -> dict[str, Any]:
    puts = [{"Put": {"TableName": "orders", "Item": key(number)}} for number in numbers]
    return {"TransactItems": puts, **further}


@pytest.mark.parametrize(
    ("rule", "code", "text"),
    [
        (conflict(key={"sk": 2}), "TransactionConflict", "Transaction is ongoing for the item"),
        (cancel(key={"sk": 2}), "ConditionalCheckFailed", "The conditional request failed"),
        (cancel(key={"sk": 2}, code="ThrottlingError"), "ThrottlingError", "Throughput exceeds the current"),
        (throttle(key={"sk": 2}), "ProvisionedThroughputExceeded", TABLE_EXCEEDED),
        (
            throttle(key={"sk": 2}, limit="MaxOnDemandThroughputExceeded"),
            "ThrottlingError",
            "Throughput exceeds the maximum",
        ),
    ],
)
def test_a_cancelled_transaction_has_a_reason_for_each_member(
    client: Any, database: Database, rule: Rule, code: str, text: str
) -> None:
    client.put_item(**PUT)
    reads = {"TransactItems": [{"Get": {"TableName": "orders", "Key": key(number)}} for number in (1, 2, 3)]}
    with database.faults(rule):
        for operation, parameters in (
            ("transact_write_items", transaction(1, 2, 3)),
            ("transact_get_items", reads),
        ):
            error = error_of(client, operation, **parameters)
            assert error["Error"]["Code"] == "TransactionCanceledException"
            assert error["Error"]["Message"].endswith(f"[None, {code}, None]")
            none, reason, last = error["CancellationReasons"]
            assert none == last == {"Code": "None"}
            assert reason["Code"] == code
            assert reason["Message"].startswith(text)
        client.transact_write_items(**transaction(3, 4))
    assert items(client) == 3


def test_a_statement_of_a_transaction_conflicts(client: Any, database: Database) -> None:
    create(client, "others")
    statements = [
        {"Statement": f"INSERT INTO \"{table}\" VALUE {{'pk': 'a', 'sk': 1}}"}
        for table in ("orders", "others")
    ]
    with database.faults(conflict("ExecuteTransaction", table="others")):
        error = error_of(client, "execute_transaction", TransactStatements=statements)
    assert [one["Code"] for one in error["CancellationReasons"]] == ["None", "TransactionConflict"]
    assert items(client) == items(client, "others") == 0


def test_a_single_write_conflicts(client: Any, database: Database) -> None:
    select = {"Statement": "SELECT * FROM \"orders\" WHERE pk = 'a'"}
    insert = {"Statement": "INSERT INTO \"orders\" VALUE {'pk': 'a', 'sk': 1}"}
    with database.faults(conflict(table="orders")) as [conflicted]:
        for operation, parameters in (("put_item", PUT), ("delete_item", GET), ("execute_statement", insert)):
            error = error_of(client, operation, **parameters)
            assert error["Error"] == {
                "Code": "TransactionConflictException",
                "Message": "Transaction is ongoing for the item",
            }
        # Reads of single items do not conflict.
        client.get_item(**GET)
        client.execute_statement(**select)
    assert conflicted.fired == 3


def test_a_transaction_in_progress_ends_when_it_is_repeated(
    client: Any, clients: Clients, database: Database
) -> None:
    with database.faults(in_progress().on_call(2)) as [waited]:
        client.transact_write_items(**transaction(1, ClientRequestToken="once"))
        again = clients(attempts=2).transact_write_items(**transaction(1, ClientRequestToken="once"))
    assert again["ResponseMetadata"]["RetryAttempts"] == 1
    assert waited.fired == 1


# -- lost answers --


def test_an_answer_is_lost_after_the_commit(client: Any, database: Database) -> None:
    with (
        database.faults(lose_answer("PutItem")),
        pytest.raises(ConnectionClosedError, match="Connection was closed before we received"),
    ):
        client.put_item(**PUT)
    assert items(client) == 1


def test_an_answer_is_lost_and_nothing_was_done(client: Any, database: Database) -> None:
    with database.faults(lose_answer("PutItem", performed=False)), pytest.raises(ConnectionClosedError):
        client.put_item(**PUT)
    assert items(client) == 0


def test_a_repeated_request_meets_its_own_effect(client: Any, clients: Clients, database: Database) -> None:
    with database.faults(lose_answer("PutItem").on_call(1)) as [lost]:
        error = error_of(
            clients(attempts=2), "put_item", **PUT, ConditionExpression="attribute_not_exists(pk)"
        )
    assert error["Error"]["Code"] == "ConditionalCheckFailedException"
    assert (lost.matched, items(client)) == (2, 1)


def test_a_token_makes_a_lost_answer_harmless(client: Any, clients: Clients, database: Database) -> None:
    count = {
        "TableName": "orders",
        "Key": KEY,
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    patient = clients(attempts=3)
    with database.faults(lose_answer("UpdateItem", "TransactWriteItems").on_call(1, 3)) as [lost]:
        patient.update_item(**count)
        assert client.get_item(**GET)["Item"]["n"] == {"N": "2"}
        # boto3 makes a token for each call, and repeats the request with it.
        patient.transact_write_items(TransactItems=[{"Update": count}])
    assert (lost.matched, lost.fired) == (4, 2)
    assert client.get_item(**GET)["Item"]["n"] == {"N": "3"}


def test_a_lost_answer_hides_an_error_too(client: Any, database: Database) -> None:
    with database.faults(lose_answer("PutItem")), pytest.raises(ConnectionClosedError):
        client.put_item(**PUT, ConditionExpression="attribute_exists(pk)")


# -- batches --


def puts(*numbers: int, pk: str = "a", table: str = "orders") -> dict[str, Any]:
    return {table: [{"PutRequest": {"Item": key(number, pk)}} for number in numbers]}


def test_a_part_of_a_batch_stays_unprocessed(client: Any, database: Database) -> None:
    with database.faults(unprocessed(share=0.5)):
        written = client.batch_write_item(RequestItems=puts(1, 2, 3, 4, 5), ReturnConsumedCapacity="TOTAL")
        assert written["UnprocessedItems"] == puts(3, 4, 5)
        assert items(client) == 2
        assert written["ConsumedCapacity"] == [{"TableName": "orders", "CapacityUnits": 2.0}]
        wanted = {"orders": {"Keys": [key(2), key(1)], "ConsistentRead": True}}
        read = client.batch_get_item(RequestItems=wanted)
    assert read["Responses"] == {"orders": [key(2)]}
    assert read["UnprocessedKeys"] == {"orders": {"Keys": [key(1)], "ConsistentRead": True}}


def test_a_loop_over_what_is_unprocessed_ends(client: Any, database: Database) -> None:
    with database.faults(unprocessed(share=1)) as [left]:
        wanted, rounds = puts(*range(5)), 0
        while wanted:
            wanted = client.batch_write_item(RequestItems=wanted)["UnprocessedItems"]
            rounds += 1
    assert (rounds, items(client)) == (5, 5)
    assert (left.matched, left.fired) == (5, 4)


def test_the_batch_writer_of_boto3_writes_all(client: Any, clients: Clients, database: Database) -> None:
    from boto3.dynamodb.table import BatchWriter

    with (
        database.faults(unprocessed("BatchWriteItem").with_probability(0.5, seed=1)) as [left],
        BatchWriter("orders", clients(), flush_amount=5) as writer,
    ):
        for number in range(40):
            writer.put_item(Item=key(number))
    assert left.fired > 0
    assert items(client) == 40


@pytest.mark.parametrize("rule", [unprocessed(key={"pk": "hot"}), throttle(key={"pk": "hot"})])
def test_the_members_of_a_key_stay_unprocessed(client: Any, database: Database, rule: Rule) -> None:
    create(client, "others")
    hot = puts(1, 2, pk="hot")
    mixed = {"orders": [*puts(1)["orders"], *hot["orders"]], **puts(1, table="others")}
    with database.faults(rule):
        assert client.batch_write_item(RequestItems=mixed)["UnprocessedItems"] == hot
        keys = {"Keys": [key(1, "hot"), key(1)]}
        read = client.batch_get_item(RequestItems={"orders": keys, "others": {"Keys": [key(1)]}})
        assert read["UnprocessedKeys"] == {"orders": {"Keys": [key(1, "hot")]}}
        assert read["Responses"] == {"orders": [key(1)], "others": [key(1)]}
        # As on the service: if nothing can be processed, the request is throttled.
        error = error_of(client, "batch_write_item", RequestItems=hot)
    assert error["Error"]["Code"] == "ProvisionedThroughputExceededException"
    assert error["ThrottlingReasons"][0]["resource"] == ARN
    assert items(client) == items(client, "others") == 1


def test_a_conflict_leaves_members_of_a_batch(client: Any, database: Database) -> None:
    with database.faults(conflict(key={"sk": 1})):
        answer = client.batch_write_item(RequestItems=puts(1, 2))
    assert answer["UnprocessedItems"] == puts(1)


def test_a_wrong_batch_is_refused_whatever_stays_unprocessed(client: Any, database: Database) -> None:
    with database.faults(unprocessed()) as [left]:
        for wrong in (puts(*range(26)), puts(1, 2, 1)):
            assert error_of(client, "batch_write_item", RequestItems=wrong)["Error"]["Code"] == (
                "ValidationException"
            )
    assert left.matched == 1  # duplicates are found when the table is known
    assert items(client) == 0


# -- streams --


def test_iterators_expire_and_records_are_trimmed(client: Any, clients: Clients, database: Database) -> None:
    streams = clients(service="dynamodbstreams")
    create(client, "others")
    iterators = {}
    for table in ("orders", "others"):
        client.put_item(TableName=table, Item=KEY)
        arn = client.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        [shard] = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        place = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterators[table] = streams.get_shard_iterator(**place)["ShardIterator"]
    with database.faults(expire_iterator(table="others")) as [expired]:
        error = error_of(streams, "get_records", ShardIterator=iterators["others"])
        assert len(streams.get_records(ShardIterator=iterators["orders"])["Records"]) == 1
    assert error["Error"]["Code"] == "ExpiredIteratorException"
    assert error["Error"]["Message"].startswith("Iterator expired. The iterator was created at time")
    assert expired.matched == 1
    with database.faults(trim(table="others")):
        for operation, parameters in (
            ("get_shard_iterator", place),
            ("get_records", {"ShardIterator": iterators["others"]}),
        ):
            error = error_of(streams, operation, **parameters)
            assert error["Error"] == {
                "Code": "TrimmedDataAccessException",
                "Message": "The data you are trying to access has been trimmed",
            }


# -- latency --


def test_latency_moves_a_virtual_clock(client: Any, database: Database) -> None:
    before = database.clock.now()
    with database.faults(latency("PutItem", seconds=900, virtual=True)):
        client.put_item(**PUT)
        client.get_item(**GET)
    assert database.clock.now() - before == 900


def test_latency_and_an_error_may_meet(client: Any, database: Database) -> None:
    before = database.clock.now()
    rules = [latency(seconds=5, virtual=True), throttle("PutItem"), internal_error("PutItem")]
    with database.faults(*rules, latency(seconds=2, virtual=True)):
        error = error_of(client, "put_item", **PUT)
    assert error["Error"]["Code"] == "ProvisionedThroughputExceededException"
    assert database.clock.now() - before == 7


# -- which requests --


def test_only_matching_requests_count(client: Any, database: Database) -> None:
    create(client, "others")
    with database.faults(throttle("PutItem", table="orders", key={"pk": "a", "sk": 1}).on_call(2)) as [hit]:
        client.put_item(TableName="others", Item=KEY)
        client.put_item(TableName="orders", Item=key(2))
        client.get_item(**GET)
        client.put_item(**PUT)
        assert (hit.matched, hit.fired) == (1, 0)
        # The number in another form, and the table by its ARN.
        assert error_of(client, "put_item", TableName=ARN, Item=KEY | {"sk": {"N": "1.0"}})
        client.put_item(**PUT)
    assert (hit.matched, hit.fired) == (3, 1)


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        (
            "query",
            {
                "KeyConditionExpression": "pk = :p AND sk = :s",
                "ExpressionAttributeValues": {":p": {"S": "a"}, ":s": {"N": "1"}},
            },
        ),
        (
            "query",
            {"KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}}},
        ),
        ("update_item", {"Key": KEY}),
    ],
)
def test_a_key_matches_in_every_operation_that_names_one(
    client: Any, database: Database, operation: str, parameters: dict[str, Any]
) -> None:
    with database.faults(throttle(key={"pk": "a"})), database.faults(internal_error(key={"pk": "b"})):
        error = error_of(client, operation, TableName="orders", **parameters)
        assert error["Error"]["Code"] == "ProvisionedThroughputExceededException"


def test_statements_match_by_table_and_index(client: Any, database: Database) -> None:
    by_index = 'SELECT * FROM "orders"."by-date" WHERE "date" = \'x\''
    with database.faults(throttle("ExecuteStatement", table="orders", index="by-date")) as [hit]:
        assert error_of(client, "execute_statement", Statement=by_index)
        client.execute_statement(Statement="SELECT * FROM \"orders\" WHERE pk = 'a'")
    assert (hit.matched, hit.fired) == (1, 1)


def test_a_wrong_request_meets_no_fault(client: Any, database: Database) -> None:
    with database.faults(throttle()) as [hit]:
        error = error_of(client, "put_item", TableName="orders", Item={"pk": {"N": "not a number"}})
    assert error["Error"]["Code"] == "ValidationException"
    assert hit.matched == 0


def test_chance_is_the_same_in_each_run(client: Any, database: Database) -> None:
    def failures(seed: int) -> list[int]:
        failed = []
        with database.faults(throttle("GetItem").with_probability(0.3, seed=seed)):
            for number in range(40):
                try:
                    client.get_item(**GET)
                except client.exceptions.ProvisionedThroughputExceededException:
                    failed.append(number)
        return failed

    first = failures(7)
    assert 3 < len(first) < 25
    assert failures(7) == first != failures(8)


def test_rules_end_with_their_block_and_requests_are_no_longer_watched(
    client: Any, database: Database
) -> None:
    with database.faults(throttle("GetItem").after_calls(1)) as [outer]:
        with database.faults("PutItem internal-error") as [inner]:
            assert [one.number for one in database.faults] == [outer.number, inner.number]
            assert error_of(client, "put_item", **PUT)
        client.put_item(**PUT)
        client.get_item(**GET)
        assert error_of(client, "get_item", **GET)
    client.get_item(**GET)
    assert len(database.faults) == 0
    assert database.observers.active is None


def test_a_large_request_meets_faults_too(client: Any, clients: Clients, database: Database) -> None:
    large = KEY | {"text": {"S": "x" * 100_000}}
    with database.faults(throttle("PutItem").on_call(1), lose_answer("PutItem").on_call(2)):
        answer = clients(attempts=3).put_item(TableName="orders", Item=large)
    assert answer["ResponseMetadata"]["RetryAttempts"] == 2
    assert client.get_item(**GET)["Item"] == large


def test_virtual_latency_needs_a_virtual_clock() -> None:
    with Database.in_memory() as database:
        with pytest.raises(ValueError, match="hashrange serve --virtual-clock"):
            database.faults.add(latency(seconds=1, virtual=True))
        assert len(database.faults) == 0
    with Database.in_memory(clock=VirtualClock()) as database:
        database.faults.add(latency(seconds=1, virtual=True))
