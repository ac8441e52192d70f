"""Feeds by example. Histories of calls at once are in `test_feed_histories`."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from hashrange_patterns import AsyncFeeds, Feeds, InvalidCursor, Jobs, Page, Runtime, Table
from patterns.asynchronous import asynchronous
from patterns.faults import Intercepted, answer_of
from patterns.steps import Outcome, Steps

SECRET = b"0123456789abcdef"
NOW = float(int(time.time()) + 86_400)  # (a server under test deletes what expired by the real time)


class Hand:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = NOW

    def runtime(self) -> Runtime:
        return Runtime(now=lambda: self.time)


@pytest.fixture
def feeds(client: Any, table: Table) -> Feeds:
    return Feeds(client, table, SECRET)


def work(feeds: Feeds) -> None:
    while feeds.work():
        pass


def contents(page: Page) -> list[str]:
    return [post.content for post in page.posts]


def test_a_post_reaches_the_followers_and_its_author(feeds: Feeds) -> None:
    assert feeds.follow("bob", "alice")
    assert not feeds.follow("bob", "alice")
    work(feeds)
    post = feeds.post("alice", "hello")
    assert contents(feeds.posts("alice")) == ["hello"]
    assert contents(feeds.home("alice")) == ["hello"]
    assert contents(feeds.home("bob")) == []
    work(feeds)
    assert feeds.home("bob").posts == (post,)
    assert contents(feeds.home("carol")) == []
    assert feeds.following("bob") == ["alice"]
    assert feeds.followers("alice") == ["bob"]


def test_who_follows_gets_the_newest_at_once(client: Any, table: Table) -> None:
    feeds = Feeds(client, table, SECRET, backfilled=2)
    for number in range(4):
        feeds.post("alice", str(number))
    work(feeds)
    feeds.follow("bob", "alice")
    work(feeds)
    assert contents(feeds.home("bob")) == ["3", "2"]


def test_edits_deletes_and_unfollowing_are_seen_at_once(feeds: Feeds) -> None:
    feeds.follow("bob", "alice")
    posts = [feeds.post("alice", str(number)) for number in range(4)]
    work(feeds)
    assert feeds.edit("alice", posts[3].id, "three")
    feeds.delete("alice", posts[1].id)
    page = feeds.home("bob")
    assert contents(page) == ["three", "2", "0"]
    assert page.posts[0].edited_at is not None
    assert not feeds.edit("alice", posts[1].id, "nothing")
    assert feeds.unfollow("bob", "alice")
    assert not feeds.unfollow("bob", "alice")
    assert contents(feeds.home("bob")) == []
    assert feeds.following("bob") == []
    assert feeds.followers("alice") == []


def test_pages_forth_and_back(feeds: Feeds) -> None:
    feeds.follow("bob", "alice")
    for number in range(10):
        feeds.post("alice", str(number))
    work(feeds)
    first = feeds.home("bob", limit=4)
    feeds.post("alice", "new")
    work(feeds)
    second = feeds.home("bob", limit=4, cursor=first.older)
    third = feeds.home("bob", limit=4, cursor=second.older)
    assert [contents(page) for page in (first, second, third)] == [
        ["9", "8", "7", "6"],
        ["5", "4", "3", "2"],
        ["1", "0"],
    ]
    assert third.older is None
    back = feeds.home("bob", limit=4, cursor=third.newer)
    assert contents(back) == contents(second)
    assert contents(feeds.home("bob", limit=4, cursor=first.newer)) == ["new"]
    nothing = feeds.home("bob", cursor=feeds.home("bob").newer)
    assert contents(nothing) == []
    feeds.post("alice", "newer")
    work(feeds)
    assert contents(feeds.home("bob", cursor=nothing.newer)) == ["newer"]


def test_a_page_is_filled_up_where_posts_are_gone(feeds: Feeds) -> None:
    feeds.follow("bob", "alice")
    posts = [feeds.post("alice", str(number)) for number in range(12)]
    work(feeds)
    for post in posts[2:11]:
        feeds.delete("alice", post.id)
    page = feeds.home("bob", limit=3)
    assert contents(page) == ["11", "1", "0"]
    assert page.older is None


def test_a_cursor_of_another_feed_is_refused(feeds: Feeds) -> None:
    feeds.post("alice", "1")
    cursor = feeds.home("alice").newer
    with pytest.raises(InvalidCursor):
        feeds.home("bob", cursor=cursor)
    with pytest.raises(InvalidCursor):
        feeds.posts("alice", cursor=cursor)
    with pytest.raises(ValueError, match="from 1 to 100"):
        feeds.home("bob", limit=0)


def test_an_author_with_many_followers_is_read_instead(client: Any, table: Table) -> None:
    feeds = Feeds(client, table, SECRET, pull_above=2)
    for reader in ("bob", "carol"):
        feeds.follow(reader, "alice")
    feeds.post("alice", "written")
    work(feeds)
    feeds.follow("dave", "alice")
    work(feeds)
    feeds.post("alice", "read")
    # No worker has run yet, and all readers see the post.
    assert [contents(feeds.home(reader)) for reader in ("bob", "carol", "dave")] == [["read", "written"]] * 3
    assert feeds.following("bob") == ["alice"]
    assert feeds.unfollow("bob", "alice")
    assert contents(feeds.home("bob")) == []
    feeds.follow("eve", "alice")
    assert contents(feeds.home("eve")) == ["read", "written"]
    work(feeds)
    assert contents(feeds.home("eve", limit=1)) == ["read"]


def test_a_post_during_the_switch_of_an_author_reaches_everybody(client: Any, table: Table) -> None:
    feeds = Feeds(client, table, SECRET, pull_above=1)
    for reader in ("bob", "carol"):
        feeds.follow(reader, "alice")
        feeds.work()
    switch = Jobs(client, table, "FEEDS").take()
    assert switch is not None
    assert switch.payload.startswith("switch")
    # The worker that has the switch is slow.
    feeds.post("alice", "meanwhile")
    work(feeds)
    assert [contents(feeds.home(reader)) for reader in ("bob", "carol")] == [["meanwhile"]] * 2


def test_who_follows_while_an_author_is_switched_is_not_forgotten(client: Any, table: Table) -> None:
    feeds = Feeds(client, table, SECRET, pull_above=1)
    steps, outcomes = Steps(client), list[Outcome]()
    steps.start(feeds._flows.follow("dave", "alice"), outcomes.append)
    steps.step(steps.running[0])  # alice's posts are written
    for reader in ("bob", "carol"):
        feeds.follow(reader, "alice")
    work(feeds)
    # dave was about to be written to, and alice is read by now.
    steps.finish()
    assert outcomes[0].result
    work(feeds)
    feeds.post("alice", "hello")
    work(feeds)
    assert contents(feeds.home("dave")) == ["hello"]


def test_an_author_s_posts_keep_their_order_when_clocks_do_not(client: Any, table: Table) -> None:
    ahead, behind = Hand(), Hand()
    behind.time -= 3600
    processes = [Feeds(client, table, SECRET, runtime=hand.runtime()) for hand in (ahead, behind)]
    for number in range(6):
        processes[number % 2].post("alice", str(number))
    assert contents(processes[0].posts("alice")) == ["5", "4", "3", "2", "1", "0"]


def test_posts_expire(client: Any, table: Table) -> None:
    hand = Hand()
    feeds = Feeds(client, table, SECRET, kept_seconds=60, runtime=hand.runtime())
    feeds.follow("bob", "alice")
    feeds.post("alice", "old")
    work(feeds)
    item = client.query(
        TableName=table.name,
        KeyConditionExpression="PK = :pk",
        ExpressionAttributeValues={":pk": {"S": "HOME#bob"}},
        ConsistentRead=True,
    )["Items"]
    assert [one["expires_at"]["N"] for one in item] == [str(int(NOW) + 60)]
    hand.time += 60
    feeds.post("alice", "new")
    work(feeds)
    assert contents(feeds.home("bob")) == ["new"]
    assert contents(feeds.posts("alice")) == ["new"]


def test_names_may_be_anything(feeds: Feeds) -> None:
    feeds.follow("b o#b\n", "álice #\n%20")
    feeds.post("álice #\n%20", "hello")
    work(feeds)
    assert contents(feeds.home("b o#b\n")) == ["hello"]


def test_what_fails_is_put_aside(client: Any, table: Table) -> None:
    class Broken(Intercepted):
        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            if operation == "batch_write_item":
                raise KeyError("broken")
            return super().perform(operation, parameters)

    hand = Hand()
    feeds = Feeds(cast(Any, Broken(client)), table, SECRET, runtime=hand.runtime())
    feeds.post("alice", "1")
    feeds.follow("bob", "alice")
    for _ in range(40):
        feeds.work()
        hand.time += 60
    jobs = Jobs(client, table, "FEEDS", runtime=hand.runtime())
    dead = jobs.dead()
    assert [one.reason for one in dead] == ["KeyError('broken')"] * 2
    for one in dead:
        assert jobs.replay(one)
    mended = Feeds(client, table, SECRET, runtime=hand.runtime())
    work(mended)
    assert contents(mended.home("bob")) == ["1"]


def test_a_long_throttled_table_costs_no_attempts(client: Any, table: Table) -> None:
    class Throttled(Intercepted):
        left = 300

        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            if operation == "batch_write_item" and self.left:
                self.left -= 1
                raise answer_of("ProvisionedThroughputExceededException")
            return super().perform(operation, parameters)

    through: Any = Throttled(client)
    feeds = Feeds(through, table, SECRET, runtime=Runtime(pause_seconds=0.0, attempts_max=3))
    feeds.follow("bob", "alice")
    feeds.post("alice", "1")
    raised = 0
    for _ in range(80):
        try:
            if not feeds.work():
                break
        except ClientError:
            raised += 1
    assert raised > 10
    assert Jobs(client, table, "FEEDS").dead() == []
    assert contents(feeds.home("bob")) == ["1"]


def test_a_post_with_a_key_is_published_once(client: Any, table: Table) -> None:
    class Losing(Intercepted):
        lost = 0

        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            answer = super().perform(operation, parameters)
            if operation == "transact_write_items" and not self.lost:
                self.lost += 1
                raise answer_of("InternalServerError", status=500)
            return answer

    runtime = Runtime(pause_seconds=0.0, attempts_max=1)
    through: Any = Losing(client)
    feeds = Feeds(through, table, SECRET, runtime=runtime)
    with pytest.raises(ClientError):
        feeds.post("alice", "1", key="draft-1")
    again = feeds.post("alice", "1", key="draft-1")
    assert feeds.post("alice", "1", key="draft-1") == again
    other = feeds.post("alice", "1", key="draft-2")
    third = feeds.post("bob", "1", key="draft-1")
    assert [post.id for post in feeds.posts("alice").posts] == [other.id, again.id]
    assert [post.id for post in feeds.posts("bob").posts] == [third.id]


def test_the_asynchronous_twin(client: Any, table: Table) -> None:
    async def tour() -> None:
        feeds = AsyncFeeds(asynchronous(client), table, SECRET)
        await feeds.follow("bob", "alice")
        await feeds.post("alice", "hello")
        while await feeds.work():
            pass
        assert contents(await feeds.home("bob")) == ["hello"]

    asyncio.run(tour())


@pytest.mark.parametrize("backfilled", [0, 101])
def test_mistakes_are_refused(backfilled: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 100"):
        Feeds(cast(Any, None), "t", SECRET, backfilled=backfilled)
