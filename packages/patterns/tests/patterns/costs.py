"""What the patterns cost, measured: the rows of the tables in packages/patterns/docs/costs.md.

Each row is a call and what came before it; its cost are the requests that it makes and the capacity units
that their answers report. `test_costs` compares with the page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from hashrange_patterns import (
    Counters,
    Event,
    Feeds,
    Idempotency,
    Jobs,
    Locks,
    Rates,
    Sessions,
    ShardedCounters,
    Table,
    TimedEvent,
    UniqueVisitors,
    WindowedCounters,
)
from hashrange_patterns.entities import Entities, Entity, Key, add, create
from hashrange_patterns.flows import Client
from patterns.faults import Noting, noting

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
SECRET = b"0123456789abcdef"


class Row(NamedTuple):
    """A row of a table: what is called, after what, and for how many events."""

    text: str
    call: Callable[[Client, Table], object]
    before: Callable[[Client, Table], object] = lambda client, table: None
    events: int = 1


def seed_counter(client: Any, table: Table) -> None:
    client.update_item(
        TableName=table.name,
        Key={"PK": {"S": "URL#/"}, "SK": {"S": "STATISTICS"}},
        UpdateExpression="SET #views = if_not_exists(#views, :init) + :inc",
        ExpressionAttributeNames={"#views": "views"},
        ExpressionAttributeValues={":init": {"N": "0"}, ":inc": {"N": "1"}},
    )


def seed_put_then_add(client: Any, table: Table) -> None:
    client.put_item(
        TableName=table.name,
        Item={"PK": {"S": "page_user"}, "SK": {"S": "VIEW"}},
        ConditionExpression="attribute_not_exists(PK)",
    )
    seed_counter(client, table)


def events(number: int, names: list[str]) -> list[Event]:
    return [Event(f"e{serial}", {names[serial % len(names)]: 1}) for serial in range(number)]


def timed(number: int) -> list[TimedEvent]:
    return [TimedEvent(f"e{serial}", NOON + timedelta(seconds=serial), {"/": 1}) for serial in range(number)]


def year(client: Client, table: Table) -> None:
    days = [TimedEvent(f"e{day}", NOON - timedelta(days=day), {"/": 1}) for day in range(365)]
    WindowedCounters(client, table).count(days)


def sharded(client: Client, table: Table) -> None:
    ShardedCounters(client, table, 10).add("/")


COUNTER_ROWS = [
    Row("often copied: `SET views = if_not_exists(…) + 1`; counts duplicates", seed_counter),
    Row("often copied: put the event, then add; loses what dies between", seed_put_then_add),
    Row("`Counters.add`", lambda c, t: Counters(c, t).add("/")),
    Row("`Counters.once`", lambda c, t: Counters(c, t).once("/", event_id="e")),
    Row(
        "`Counters.count`, 99 events of one counter",
        lambda c, t: Counters(c, t).count(events(99, ["/"])),
        events=99,
    ),
    Row(
        "`Counters.count`, 99 events of ten counters",
        lambda c, t: Counters(c, t).count(events(99, [f"/{number}" for number in range(10)])),
        events=99,
    ),
    Row("`Counters.value`", lambda c, t: Counters(c, t).value("/"), seed_counter),
    Row("`ShardedCounters.add`, the layout known", lambda c, t: None),
    Row(
        "`ShardedCounters.value`, ten shards",
        lambda c, t: ShardedCounters(c, t, 10).value("/"),
        sharded,
    ),
    Row("`reshard` from 10 to 20", lambda c, t: ShardedCounters(c, t, 10).reshard("/", 20), sharded),
    Row("`reshard` from 10 to 5", lambda c, t: ShardedCounters(c, t, 10).reshard("/", 5), sharded),
    Row("`WindowedCounters.once`", lambda c, t: WindowedCounters(c, t).once("/", NOON, event_id="e")),
    Row(
        "`WindowedCounters.count`, 98 events of one counter and hour",
        lambda c, t: WindowedCounters(c, t).count(timed(98)),
        events=98,
    ),
    Row(
        "`WindowedCounters.total`, 365 days of one event each",
        lambda c, t: WindowedCounters(c, t).total(
            "/", NOON.replace(hour=0) - timedelta(days=365), NOON.replace(hour=0)
        ),
        year,
    ),
    Row(
        "`WindowedCounters.total`, 30 days of one event each, to the minute",
        lambda c, t: WindowedCounters(c, t).total(
            "/", NOON - timedelta(days=30, minutes=7), NOON + timedelta(minutes=7)
        ),
        year,
    ),
    Row("`UniqueVisitors.seen`, a new one", lambda c, t: UniqueVisitors(c, t).seen("/", "a", NOON)),
    Row(
        "`UniqueVisitors.seen`, again",
        lambda c, t: UniqueVisitors(c, t).seen("/", "a", NOON),
        lambda c, t: UniqueVisitors(c, t).seen("/", "a", NOON),
    ),
    Row("`UniqueVisitors.count`", lambda c, t: UniqueVisitors(c, t).count("/", NOON.date())),
]


def followed(readers: int) -> Callable[[Client, Table], object]:
    """An author with some followers, and nothing left to do."""

    def before(client: Client, table: Table) -> None:
        feeds = Feeds(client, table, SECRET)
        for number in range(readers):
            feeds.follow(f"reader{number}", "alice")
        done(client, table)

    return before


def done(client: Client, table: Table) -> None:
    while Feeds(client, table, SECRET).work():
        pass


def posted(posts: int, pull_above: int = 1_000) -> Callable[[Client, Table], object]:
    """A reader with posts of alice in the feed: written, or with `pull_above=0` read."""

    def before(client: Client, table: Table) -> None:
        feeds = Feeds(client, table, SECRET, pull_above=pull_above)
        feeds.follow("bob", "alice")
        while feeds.work():
            pass
        for number in range(posts):
            feeds.post("alice", f"post {number}")
        while feeds.work():
            pass

    return before


def copied_feed(client: Any, table: Table) -> None:
    for number in range(20):
        item = {"PK": {"S": f"reader{number}"}, "SK": {"S": "tick"}, "content": {"S": "hello"}}
        client.put_item(TableName=table.name, Item=item)


FEED_ROWS = [
    Row("often copied: put the post into each feed, 20 followers; no edits", copied_feed),
    Row("`Feeds.post`", lambda c, t: Feeds(c, t, SECRET).post("alice", "hello")),
    Row(
        "`Feeds.work` on a post, 20 followers",
        lambda c, t: Feeds(c, t, SECRET).work(),
        lambda c, t: (followed(20)(c, t), Feeds(c, t, SECRET).post("alice", "hello")),
        events=20,
    ),
    Row("`Feeds.edit`", lambda c, t: Feeds(c, t, SECRET).edit("alice", newest(c, t), "x"), posted(1)),
    Row("`Feeds.delete`", lambda c, t: Feeds(c, t, SECRET).delete("alice", newest(c, t)), posted(1)),
    Row("`Feeds.follow`", lambda c, t: Feeds(c, t, SECRET).follow("bob", "alice")),
    Row("`Feeds.unfollow`", lambda c, t: Feeds(c, t, SECRET).unfollow("bob", "alice"), posted(1)),
    Row("`Feeds.posts`, a page of 20", lambda c, t: Feeds(c, t, SECRET).posts("alice"), posted(25)),
    Row(
        "`Feeds.home`, a page of 20 of one author, written",
        lambda c, t: Feeds(c, t, SECRET).home("bob"),
        posted(25),
    ),
    Row(
        "`Feeds.home`, a page of 20 of one author, read",
        lambda c, t: Feeds(c, t, SECRET).home("bob"),
        posted(25, pull_above=0),
    ),
    Row("`Jobs.put`", lambda c, t: Jobs(c, t, "mail").put("x")),
    Row("`Jobs.take`", lambda c, t: Jobs(c, t, "mail").take(), lambda c, t: Jobs(c, t, "mail").put("x")),
    Row("`Jobs.take`, none there", lambda c, t: Jobs(c, t, "mail").take()),
    Row("`Jobs.done`", lambda c, t: None),
]


def abandoned_lock(client: Client, table: Table) -> None:
    Locks(client, table).acquire("report")


def finished_request(client: Client, table: Table) -> None:
    store = Idempotency(client, table)
    store.finish(store.begin("k"), "done")


class Member(Entity[str], pk="USER#{name}", sk="#METADATA#{name}"):
    name: str
    title: str = ""
    likes: int = 0


class UniqueMember(Entity[str], pk="USER#{name}", sk="#METADATA#{name}", unique=["EMAIL#{email}"]):
    name: str
    email: str


class Picture(Entity[str, int], pk="USER#{name}", sk="PHOTO#{number:05}"):
    name: str
    number: int


@dataclass
class Album:
    member: Member
    pictures: list[Picture]


ALICE = Member.key("alice")


def member(client: Client, table: Table) -> Entities:
    store = Entities(client, table)
    store.create(Member("alice"))
    return store


def album(client: Client, table: Table) -> None:
    member(client, table).put_all([Picture("alice", number) for number in range(20)])


def stored(client: Any, table: Table) -> Member:
    """The member, read without being counted."""
    found = Entities(client.unnoted, table).get(ALICE)
    assert found is not None
    found.title = "new"
    return found


def copied_update(client: Any, table: Table) -> None:
    key = table.key(ALICE.address)
    item = client.get_item(TableName=table.name, Key=key)["Item"]
    client.put_item(TableName=table.name, Item=item | {"title": {"S": "new"}})


def copied_album(client: Any, table: Table) -> None:
    client.get_item(TableName=table.name, Key=table.key(ALICE.address))
    client.query(
        TableName=table.name,
        KeyConditionExpression="PK = :pk AND begins_with(SK, :photo)",
        ExpressionAttributeValues={":pk": {"S": "USER#alice"}, ":photo": {"S": "PHOTO#"}},
    )


ENTITY_ROWS = [
    Row("often copied: read, change, put; loses what others wrote", copied_update, member),
    Row("`Entities.update`, of what was read", lambda c, t: Entities(c, t).update(stored(c, t)), member),
    Row(
        "`Entities.modify`",
        lambda c, t: Entities(c, t).modify(ALICE, lambda one: setattr(one, "title", "new")),
        member,
    ),
    Row("`Entities.create`", lambda c, t: Entities(c, t).create(Member("alice"))),
    Row(
        "`Entities.create`, one unique value",
        lambda c, t: Entities(c, t).create(UniqueMember("alice", "alice@example.org")),
    ),
    Row("`Entities.get`", lambda c, t: Entities(c, t).get(ALICE), member),
    Row("`Entities.add`", lambda c, t: Entities(c, t).add(ALICE, likes=1), member),
    Row("`Entities.delete`, of what was read", lambda c, t: Entities(c, t).delete(stored(c, t)), member),
    Row(
        "`Entities.transact`, a create and an add",
        lambda c, t: Entities(c, t).transact(create(Picture("alice", 1)), add(ALICE, likes=1)),
        member,
    ),
    Row("often copied: the user, then the photos, 20", copied_album, album, 20),
    Row(
        "`Entities.collect`, a user and 20 photos",
        lambda c, t: Entities(c, t).collect(Album, "alice"),
        album,
        20,
    ),
    Row("`Entities.get_all`, 20", lambda c, t: Entities(c, t).get_all(pictures()), album, 20),
    Row(
        "`Entities.put_all`, 100",
        lambda c, t: Entities(c, t).put_all(Picture("alice", number) for number in range(100)),
        events=100,
    ),
]


def pictures() -> list[Key[Picture]]:
    return [Picture.key("alice", number) for number in range(20)]


GUARD_ROWS = [
    Row("`Locks.acquire`, free", lambda c, t: Locks(c, t).acquire("report")),
    Row("`Locks.acquire`, held by another", lambda c, t: Locks(c, t).acquire("report"), abandoned_lock),
    Row("`Sessions.begin`", lambda c, t: Sessions(c, t).begin("alice")),
    Row("`Sessions.get`", lambda c, t: Sessions(c, t).get(signed_in(c, t))),
    Row("`Sessions.end`", lambda c, t: Sessions(c, t).end(signed_in(c, t))),
    Row("`Idempotency.begin` and `finish`", finished_request),
    Row(
        "`Rates.allow`, within a burst",
        lambda c, t: spent(c, t).allow("k"),
        lambda c, t: spent(c, t).allow("k"),
    ),
]


def signed_in(client: Any, table: Table) -> str:
    """A session that begins without being counted."""
    return Sessions(client.unnoted, table).begin("alice")


def spent(client: Client, table: Table) -> Rates:
    return Rates(client, table, per_second=0.001, burst=10)


def newest(client: Any, table: Table) -> str:
    """The id of alice's newest post, asked without being counted."""
    return Feeds(client.unnoted, table, SECRET).posts("alice").posts[0].id


def finished_job(client: Any, table: Table) -> Noting:
    """`Jobs.done`, of a job that was taken before."""
    Jobs(client, table, "mail").put("x")
    job = Jobs(client, table, "mail").take()
    assert job is not None
    through, noted = noting(client)
    Jobs(through, table, "mail").done(job)
    return noted


def known_layout(client: Any, table: Table) -> Noting:
    """`ShardedCounters.add` by a process that knows the layout."""
    through, noted = noting(client)
    counters = ShardedCounters(through, table, 10)
    counters.add("/")
    noted.requests.clear()
    noted.units = 0.0
    counters.add("/")
    return noted


def measure(client: Any, table: Table, row: Row) -> Noting:
    """The requests and units of a row's call."""
    if "layout known" in row.text:
        return known_layout(client, table)
    if row.text == "`Jobs.done`":
        return finished_job(client, table)
    row.before(client, table)
    through, noted = noting(client)
    row.call(through, table)
    return noted


def line(row: Row, noted: Noting) -> str:
    """A row as the page has it."""
    requests = ", ".join(
        f"{number} {operation}" if number > 1 else operation
        for operation, number in sorted(noted.requests.items())
    )
    each = f"{noted.units / row.events:.2f}".rstrip("0").rstrip(".")
    units = f"{noted.units:g}"
    return (
        f"| {row.text} | {requests} | {units} | {each} |"
        if row.events > 1
        else f"| {row.text} | {requests} | {units} | |"
    )
