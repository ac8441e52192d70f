"""PynamoDB, as its README and tutorial use it: models, indexes, conditions, batches, transactions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from pynamodb.attributes import (
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    TTLAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)
from pynamodb.connection import Connection
from pynamodb.exceptions import DoesNotExist, PutError, TransactWriteError, UpdateError
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex, KeysOnlyProjection, LocalSecondaryIndex
from pynamodb.models import Model
from pynamodb.transactions import TransactGet, TransactWrite

from endpoints import ON_AWS, REGION

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient


class ViewIndex(GlobalSecondaryIndex["Thread"]):  # type: ignore[no-untyped-call]
    """Threads by their number of views."""

    class Meta:
        index_name = "view-index"
        projection = AllProjection()

    views = NumberAttribute(hash_key=True)
    subject = UnicodeAttribute(range_key=True)


class LastPostIndex(LocalSecondaryIndex["Thread"]):  # type: ignore[no-untyped-call]
    """The threads of a forum by the time of their last post."""

    class Meta:
        index_name = "last-post-index"
        projection = KeysOnlyProjection()

    forum_name = UnicodeAttribute(hash_key=True)
    last_post = UTCDateTimeAttribute(range_key=True)


class Thread(Model):
    """The tutorial's threads of a forum."""

    class Meta:
        table_name = "Thread"
        billing_mode = "PAY_PER_REQUEST"

    forum_name = UnicodeAttribute(hash_key=True)
    subject = UnicodeAttribute(range_key=True)
    views = NumberAttribute(default=0)
    last_post = UTCDateTimeAttribute(null=True)
    tags = UnicodeSetAttribute(null=True)
    notes: ListAttribute[Any] = ListAttribute(null=True)
    details: MapAttribute[str, Any] = MapAttribute(null=True)  # type: ignore[no-untyped-call]
    expires = TTLAttribute(null=True)
    version = VersionAttribute()
    view_index = ViewIndex()
    last_post_index = LastPostIndex()


@pytest.fixture
def threads(
    endpoint: str,
    http_client: DynamoDBClient,
    name_table: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> type[Thread]:
    """The table of threads, created by its model."""
    if not ON_AWS:
        monkeypatch.setattr(Thread.Meta, "host", endpoint, raising=False)
        monkeypatch.setattr(Thread.Meta, "region", REGION, raising=False)
        monkeypatch.setattr(Thread.Meta, "aws_access_key_id", "any", raising=False)
        monkeypatch.setattr(Thread.Meta, "aws_secret_access_key", "any", raising=False)
    monkeypatch.setattr(Thread.Meta, "table_name", name_table("Thread", http_client))
    # A model keeps its connection; the next test's has another table.
    monkeypatch.setattr(Thread, "_connection", None)
    Thread.create_table(wait=True)
    return Thread


def test_table(threads: type[Thread], http_client: DynamoDBClient) -> None:
    assert threads.exists()
    described = threads.describe_table()
    assert described["TableStatus"] == "ACTIVE"
    assert [index["IndexName"] for index in described["GlobalSecondaryIndexes"]] == ["view-index"]
    # The model has a TTLAttribute: creating the table enabled it.
    time_to_live = http_client.describe_time_to_live(TableName=threads.Meta.table_name)
    assert time_to_live["TimeToLiveDescription"]["AttributeName"] == "expires"
    threads.delete_table()


def test_save_get_refresh_delete(threads: type[Thread]) -> None:
    posted = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    thread = threads(
        "forum", "subject", last_post=posted, tags={"a", "b"}, notes=[1, "two", None],
        details={"answered": True, "by": {"name": "ada"}},
    )  # fmt: skip
    thread.save()
    same = threads.get("forum", "subject", consistent_read=True)
    assert same.attribute_values.keys() == thread.attribute_values.keys()
    assert same.last_post == posted
    assert same.tags == {"a", "b"}
    assert same.notes == [1, "two", None]
    assert (same.details["answered"], same.details["by"]["name"]) == (True, "ada")
    assert same.version == 1
    same.views = 3
    same.save()
    thread.refresh()
    assert (thread.views, thread.version) == (3, 2)
    thread.delete()
    with pytest.raises(DoesNotExist):
        threads.get("forum", "subject")


def test_updates_and_conditions(threads: type[Thread]) -> None:
    thread = threads("forum", "subject", views=0, notes=[1])
    thread.save(threads.forum_name.does_not_exist())
    again = threads("forum", "subject")
    with pytest.raises(PutError) as refused:
        again.save(threads.forum_name.does_not_exist())
    assert refused.value.cause_response_code == "ConditionalCheckFailedException"
    thread.update(
        actions=[
            threads.views.set(threads.views + 5),
            threads.notes.set(threads.notes.append([2])),
            threads.tags.add({"x"}),
        ],
        condition=(threads.views < 5) & threads.tags.does_not_exist(),
    )
    assert (thread.views, thread.notes, thread.tags, thread.version) == (5, [1, 2], {"x"}, 2)
    stale = threads("forum", "subject", version=1)
    with pytest.raises(UpdateError):
        stale.update(actions=[threads.views.set(9)])
    thread.update(actions=[threads.notes.remove(), threads.tags.delete({"x"})])
    assert {"notes", "tags"}.isdisjoint(thread.attribute_values)


def test_queries(threads: type[Thread]) -> None:
    with threads.batch_write() as batch:
        for number in range(30):
            batch.save(
                threads(
                    "forum", f"subject {number:02}", views=number % 3,
                    last_post=datetime(2026, 1, 30 - number, tzinfo=UTC),
                )
            )  # fmt: skip
    assert threads.count("forum") == 30
    found = threads.query("forum", threads.subject.startswith("subject 1"), page_size=4, limit=7)
    assert [thread.subject for thread in found] == [f"subject {number}" for number in range(10, 17)]
    rest = threads.query("forum", threads.subject > "subject 14", last_evaluated_key=found.last_evaluated_key)
    assert [thread.subject for thread in rest] == [f"subject {number}" for number in range(17, 30)]
    filtered = threads.query("forum", filter_condition=threads.views.is_in(1, 2), scan_index_forward=False)
    assert len(list(filtered)) == 20
    assert threads.view_index.count(1) == 10
    between = threads.subject.between("subject 04", "subject 10")
    viewed = threads.view_index.query(1, between, page_size=1)
    assert [thread.subject for thread in viewed] == ["subject 04", "subject 07", "subject 10"]
    early = threads.last_post_index.query("forum", threads.last_post < datetime(2026, 1, 3, tzinfo=UTC))
    assert [thread.subject for thread in early] == ["subject 29", "subject 28"]
    assert sum(1 for segment in range(2) for _ in threads.scan(segment=segment, total_segments=2)) == 30
    keys = [("forum", f"subject {number:02}") for number in range(0, 30, 2)]
    assert {thread.subject for thread in threads.batch_get(keys)} == {subject for _, subject in keys}


def test_transactions(threads: type[Thread], endpoint: str) -> None:
    connection = Connection() if ON_AWS else Connection(host=endpoint, region=REGION)
    if not ON_AWS:
        connection.session.set_credentials("any", "any")
    first, second = threads("forum", "first"), threads("forum", "second")
    with TransactWrite(connection=connection, client_request_token=str(uuid4())) as transaction:
        transaction.save(first, condition=threads.forum_name.does_not_exist())
        transaction.save(second)
    with TransactGet(connection=connection) as reading:
        futures = [reading.get(threads, "forum", "first"), reading.get(threads, "forum", "absent")]
    assert futures[0].get().subject == "first"
    with pytest.raises(DoesNotExist):
        futures[1].get()
    transaction = TransactWrite(connection=connection)
    transaction.condition_check(threads, "forum", "second", condition=threads.views == 7)
    transaction.delete(first)
    with pytest.raises(TransactWriteError) as canceled, transaction:
        pass
    reasons = [reason and reason.code for reason in canceled.value.cancellation_reasons]
    assert reasons == ["ConditionalCheckFailed", None]
    assert threads.count("forum") == 2
