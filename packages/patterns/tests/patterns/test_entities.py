"""Entities: what each call does, over HTTP and in process."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from hashrange_patterns import Jobs, Runtime, Table
from hashrange_patterns.entities import (
    AlreadyExists,
    AsyncEntities,
    Changed,
    Entities,
    Entity,
    Missing,
    NotUnique,
    Unreadable,
    add,
    create,
    delete,
    exists,
    key_of,
    update,
    version_of,
)
from patterns.asynchronous import asynchronous
from patterns.entity_classes import CITIES, INVERTED, Photo, PhotoAndReactions, Profile, Reaction, User
from patterns.faults import Intercepted, noting

NOON = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


@pytest.fixture
def table(client: Any, name_table: Callable[..., str]) -> Table:
    """A table with the indexes of the classes."""
    table = Table(name_table("entities"))
    client.create_table(**table.definition(INVERTED, CITIES))
    client.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1})
    return table


@pytest.fixture
def store(client: Any, table: Table) -> Entities:
    return Entities(client, table)


def user(name: str, **fields: Any) -> User:
    return User(NOON, name, f"{name}@example.org", **fields)


def replaced(photo: Photo, **fields: Any) -> Photo:
    """The photo with other values, remembered as it was read."""
    other = copy.copy(photo)
    vars(other).update(fields)
    return other


def raw(client: Any, table: Table, pk: str, sk: str) -> dict[str, Any]:
    key = {"PK": {"S": pk}, "SK": {"S": sk}}
    item: dict[str, Any] = client.get_item(TableName=table.name, Key=key, ConsistentRead=True).get("Item", {})
    return item


def test_an_entity_is_created_read_changed_and_deleted(store: Entities) -> None:
    alice = user("alice", interests={"cats"})
    assert store.get(User.key("alice")) is None
    store.create(alice)
    with pytest.raises(AlreadyExists, match="alice"):
        store.create(user("alice"))
    read = store.get(User.key("alice"), consistent=True)
    assert read == alice
    assert version_of(alice) == version_of(read)
    assert read is not None
    read.name = "Alice"
    read.interests.add("dogs")
    assert store.update(read)
    assert not store.update(read)
    alice.name = "Other"
    with pytest.raises(Changed):
        store.update(alice)
    with pytest.raises(Changed):
        store.delete(alice)
    assert store.get(User.key("alice"), consistent=True) == read
    twin = store.get(User.key("alice"), consistent=True)
    assert store.delete(read)
    assert twin is not None
    with pytest.raises(Changed):
        store.delete(twin)
    assert store.get(User.key("alice"), consistent=True) is None
    assert not store.delete(User.key("alice"))
    store.create(user("alice"))
    assert store.delete(User.key("alice"))


def test_an_update_writes_only_what_changed(client: Any, table: Table) -> None:
    through, noted = noting(client)
    asked: list[dict[str, Any]] = []

    class Listening(Intercepted):
        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            if operation == "update_item":
                asked.append(parameters)
            return super().perform(operation, parameters)

    store = Entities(cast(Any, Listening(through)), table)
    photo = Photo("alice", NOON, "Sea", likes=3)
    store.create(photo)
    photo.title = "The sea"
    store.update(photo)
    [update_asked] = asked
    names = update_asked["ExpressionAttributeNames"]
    assert [names[part.split(" = ")[0]] for part in update_asked["UpdateExpression"][4:].split(", ")] == [
        "title",
        "_version",
    ]
    assert store.get(key_of(photo), consistent=True) == Photo("alice", NOON, "The sea", likes=3)
    assert noted.requests["update_item"] == 1


def test_an_addition_by_another_program_is_not_overwritten_unseen(store: Entities) -> None:
    photo = Photo("alice", NOON, "Sea", likes=3)
    store.create(photo)
    versions = {version_of(photo)}
    store.add(key_of(photo), likes=2)
    for change in ({"likes": 10}, {"title": "The sea"}):
        with pytest.raises(Changed):
            store.update(replaced(photo, **change))
    read = store.get(key_of(photo), consistent=True)
    assert read == Photo("alice", NOON, "Sea", likes=5)
    assert read is not None
    versions.add(version_of(read))
    store.transact(add(photo, likes=1))
    versions.add(version_of(store.modify(key_of(photo), lambda photo: None)))
    assert len(versions) == 3
    more = store.modify(key_of(photo), lambda photo: setattr(photo, "likes", photo.likes + 1))
    assert more.likes == 7


def test_a_repeated_add_counts_once(client: Any, table: Table) -> None:
    """The first answer is lost, and the client or this package repeats the request."""

    class Repeating(Intercepted):
        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            super().perform(operation, parameters)
            return super().perform(operation, parameters)

    photo = Photo("alice", NOON)
    Entities(client, table).create(photo)
    Entities(cast(Any, Repeating(client)), table).add(photo, likes=1)
    read = Entities(client, table).get(key_of(photo), consistent=True)
    assert read is not None
    assert read.likes == 1


def test_a_write_by_key_meets_only_its_own_class(client: Any, table: Table, store: Entities) -> None:
    class Note(Entity[str, str], pk="NOTE#{user}", sk="{text}"):
        user: str
        text: str
        likes: int = 0

    class Page(Entity[str, str], pk="NOTE#{user}", sk="{text}"):
        user: str
        text: str
        likes: int = 0

    store.create(Note("alice", "a"))
    for write in (add(Page.key("alice", "a"), likes=1), exists(Page.key("alice", "a"))):
        with pytest.raises(Missing):
            store.transact(write)
    store.transact(add(Note.key("alice", "a"), likes=1))
    assert store.get(Note.key("alice", "a"), consistent=True) == Note("alice", "a", 1)


def test_a_default_that_was_read_is_not_written_over_what_others_counted(
    client: Any, table: Table, store: Entities
) -> None:
    item = {"PK": {"S": "USER#alice"}, "SK": {"S": "PHOTO#alice#2026-11-22T12:00:00.000000Z"}}
    attributes = {"username": {"S": "alice"}, "taken_at": {"S": "2026-11-22T12:00:00"}}
    client.put_item(TableName=table.name, Item={**item, **attributes})
    photo = store.get(Photo.key("alice", NOON), consistent=True)
    assert photo == Photo("alice", NOON)
    photo.title = "Sea"
    store.update(photo)
    assert "likes" not in raw(client, table, *(item[name]["S"] for name in ("PK", "SK")))
    store.add(Photo.key("alice", NOON), likes=1)
    assert store.get(key_of(photo), consistent=True) == Photo("alice", NOON, "Sea", 1)


def test_a_key_does_not_change(store: Entities) -> None:
    photo = Photo("alice", NOON)
    store.create(photo)
    photo.taken_at += timedelta(seconds=1)
    with pytest.raises(ValueError, match="would be another item"):
        store.update(photo)


def test_no_two_entities_have_the_same_unique_value(client: Any, table: Table, store: Entities) -> None:
    alice = user("alice")
    store.create(alice)
    impostor = User(NOON, "bob", "alice@example.org")
    with pytest.raises(NotUnique, match="alice@example"):
        store.create(impostor)
    assert store.get(User.key("bob"), consistent=True) is None
    impostor.email = "bob@example.org"
    store.create(impostor)
    impostor.email = "alice@example.org"
    with pytest.raises(NotUnique):
        store.update(impostor)
    alice.email = "new@example.org"
    store.update(alice)
    store.update(impostor)
    assert not raw(client, table, "UNIQUE#User#EMAIL#bob@example.org", "UNIQUE")
    store.delete(User.key("alice"))
    store.create(User(NOON, "carol", "new@example.org"))
    with pytest.raises(ValueError, match="unique values"):
        store.put_all([user("dave")])
    with pytest.raises(ValueError, match="unique values"):
        store.delete_all([User.key("carol")])


def test_transactions_do_all_or_nothing(client: Any, table: Table, store: Entities) -> None:
    store.create(user("alice"))
    photo = Photo("alice", NOON)
    jobs = Jobs(client, table, "mail")
    store.transact(create(photo), exists(User.key("alice")), jobs.member("thank alice"))
    reaction = Reaction("bob", "heart", "alice", NOON)
    store.transact(create(reaction), add(photo, likes=1))
    with pytest.raises(AlreadyExists):
        store.transact(create(Reaction("bob", "heart", "alice", NOON)), add(photo, likes=1))
    with pytest.raises(Missing):
        store.transact(create(Photo("dave", NOON)), exists(User.key("dave")))
    assert store.get(Photo.key("dave", NOON), consistent=True) is None
    read = store.get(key_of(photo), consistent=True)
    assert read is not None
    assert read.likes == 1
    read.title = "Sea"
    store.transact(update(read), delete(reaction))
    photo.title = "Late"
    with pytest.raises(Changed):
        store.transact(update(photo), add(User.key("alice"), followers=1))
    assert store.get(key_of(reaction), consistent=True) is None
    job = jobs.take()
    assert job is not None
    with pytest.raises(ClientError, match="TransactionCanceledException"):
        store.transact(
            add(read, likes=1),
            {
                "Put": {
                    "TableName": table.name,
                    "Item": {"PK": {"S": "UNIQUE#User#EMAIL#alice@example.org"}, "SK": {"S": "UNIQUE"}},
                    "ConditionExpression": "attribute_not_exists(PK)",
                }
            },
        )
    store.transact()


def test_additions(store: Entities) -> None:
    photo = Photo("alice", NOON)
    with pytest.raises(Missing):
        store.add(photo, likes=1)
    store.create(photo)
    store.add(photo, likes=2)
    store.add(Photo.key("alice", NOON), likes=-1)
    read = store.get(key_of(photo), consistent=True)
    assert read is not None
    assert read.likes == 1
    for wrong in ({"title": 1}, {"loves": 1}, {}):
        with pytest.raises(ValueError):
            store.add(photo, **cast(Any, wrong))


def test_collections_come_in_one_query(client: Any, table: Table) -> None:
    through, noted = noting(client)
    store = Entities(through, table)
    photos = [Photo("alice", NOON + timedelta(days=day)) for day in range(3)]
    store.create(user("alice"))
    store.put_all([*photos, Photo("alicia", NOON), Reaction("bob", "heart", "alice", NOON)])
    client.put_item(TableName=table.name, Item={"PK": {"S": "USER#alice"}, "SK": {"S": "#NOTE"}})
    noted.requests.clear()
    assert store.collect(Profile, "alice") == Profile(user("alice"), photos)
    assert noted.requests == {"query": 1}
    assert store.collect(Profile, "bob") is None
    store.put_all([Reaction("carol", "wow", "alice", NOON)])
    found = store.collect(PhotoAndReactions, "alice", NOON, index=INVERTED)
    assert found is not None
    assert found.photo == photos[0]
    assert {reaction.reacting for reaction in found.reactions} == {"bob", "carol"}
    assert store.collect(PhotoAndReactions, "dave", NOON, index=INVERTED) == PhotoAndReactions(None, [])

    with pytest.raises(ValueError, match="are not in one partition"):
        store.collect(Apart, "alice")
    with pytest.raises(ValueError, match="takes one Photo, and there are 3"):
        store.collect(Single, "alice")
    with pytest.raises(TypeError, match="takes username"):
        store.collect(Profile)


@dataclass
class Apart:
    user: User
    reactions: list[Reaction]


@dataclass
class Single:
    photo: Photo


def test_queries_by_range_and_page(store: Entities) -> None:
    photos = [Photo("alice", NOON + timedelta(days=day)) for day in range(10)]
    store.put_all([*photos, Photo("alicia", NOON)])
    assert store.query(Photo, "alice") == photos
    assert store.query(Photo, "alice", newest_first=True, limit=3) == photos[:-4:-1]
    assert store.query(Photo, "alice", low=photos[2].taken_at, high=photos[4].taken_at) == photos[2:5]
    assert store.query(Photo, "alice", low=photos[7].taken_at) == photos[7:]
    assert store.query(Photo, "alice", high=photos[1].taken_at) == photos[:2]
    assert store.query(Photo, "alice", photos[5].taken_at) == [photos[5]]
    seen: list[Photo] = []
    while page := store.query(Photo, "alice", limit=4, after=seen[-1] if seen else None):
        seen += page
    assert seen == photos
    assert store.query(Photo, "alice", after=Photo.key("alice", photos[7].taken_at)) == photos[8:]
    assert store.query(Photo, "bob") == []


def test_a_query_passes_over_other_kinds(store: Entities) -> None:
    store.put_all([Photo("alice", NOON + timedelta(days=day)) for day in range(3)])
    store.put_all([Reaction("bob", "heart", "alice", NOON + timedelta(days=day)) for day in range(3)])
    assert len(store.query(Reaction, "alice", NOON, index=INVERTED, limit=5)) == 1
    assert len(store.query(Photo, "alice", NOON, index=INVERTED, limit=5)) == 1


def test_a_sparse_index_holds_whom_it_is_about(store: Entities) -> None:
    people = {"alice": "Riga", "bob": None, "carol": "Riga", "dave": "Oslo"}
    for number, (name, city) in enumerate(people.items()):
        store.create(User(NOON + timedelta(days=number), name, f"{name}@x", city=city))
    names = [one.username for one in store.query(User, "Riga", index=CITIES)]
    assert names == ["alice", "carol"]
    [first] = store.query(User, "Riga", index=CITIES, limit=1)
    [second] = store.query(User, "Riga", index=CITIES, limit=1, after=first)
    assert second.username == "carol"
    with pytest.raises(ValueError, match="in an index only an entity"):
        store.query(User, "Riga", index=CITIES, after=User.key("alice"))
    second.city = None
    store.update(second)
    assert [one.username for one in store.query(User, "Riga", index=CITIES)] == ["alice"]
    with pytest.raises(ValueError, match="is not in the index"):
        store.query(User, "Riga", index=CITIES, after=second)
    second.city = "Oslo"
    store.update(second)
    assert [one.username for one in store.query(User, "Oslo", index=CITIES)] == ["carol", "dave"]
    low = NOON + timedelta(days=3)
    assert [one.username for one in store.query(User, "Oslo", index=CITIES, low=low)] == ["dave"]


def test_batches(store: Entities) -> None:
    photos = [Photo("alice", NOON + timedelta(minutes=minute)) for minute in range(120)]
    store.put_all(photos)
    keys = [key_of(photo) for photo in reversed(photos)]
    found = store.get_all([*keys, Photo.key("bob", NOON)])
    assert list(found) == keys
    assert list(found.values()) == photos[::-1]
    photos[0].title = "Sea"
    assert store.update(photos[0])
    together = store.get_together(keys[0], keys[-1], Photo.key("bob", NOON))
    assert list(together.values()) == [photos[-1], photos[0]]
    store.delete_all(keys[1:])
    assert store.query(Photo, "alice") == photos[-1:]


def test_modify_goes_again_when_others_are_faster(client: Any, table: Table, store: Entities) -> None:
    store.create(user("alice"))
    calls: list[int] = []

    def change(alice: User) -> None:
        if not calls:
            store.modify(User.key("alice"), lambda other: other.interests.add("other"))
        calls.append(1)
        alice.interests.add("mine")

    assert store.modify(User.key("alice"), change).interests == {"mine", "other"}
    assert len(calls) == 2
    with pytest.raises(Missing):
        store.modify(User.key("bob"), change)

    def race(alice: User) -> None:
        store.modify(User.key("alice"), lambda other: setattr(other, "followers", other.followers + 1))
        alice.name = "slow"

    impatient = Entities(client, table, runtime=Runtime(attempts_max=2, pause_seconds=0))
    with pytest.raises(Changed, match="2 times"):
        impatient.modify(User.key("alice"), race)


class Losing(Intercepted):
    """Performs every write, lets `between` happen, and loses the answer of the first one."""

    def __init__(self, client: Any, between: Callable[[], object] = lambda: None) -> None:
        super().__init__(client)
        self.between: Callable[[], object] | None = between

    def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
        answer = super().perform(operation, parameters)
        if self.between and operation in {"put_item", "update_item", "delete_item", "transact_write_items"}:
            between, self.between = self.between, None
            between()
            raise ReadTimeoutError(endpoint_url="https://dynamodb.invalid")
        return answer


def test_a_write_whose_answer_was_lost_is_recognised(client: Any, table: Table, store: Entities) -> None:
    def losing(between: Callable[[], object] = lambda: None) -> Entities:
        return Entities(cast(Any, Losing(client, between)), table)

    photo = Photo("alice", NOON)
    losing().create(photo)
    photo.title = "Sea"
    losing().update(photo)
    losing(lambda: store.add(photo, likes=1)).add(photo, likes=1)
    read = store.get(key_of(photo), consistent=True)
    assert read == Photo("alice", NOON, "Sea", 2)
    assert losing().delete(read)
    # Somebody else wrote between: nobody can tell any more, and the error says so.
    for other_write in (
        lambda: store.modify(key_of(photo), lambda other: setattr(other, "title", "theirs")),
        lambda: store.add(photo, likes=1),
    ):
        store.delete(key_of(photo))
        with pytest.raises(ReadTimeoutError):
            losing(other_write).create(Photo("alice", NOON))
    again = store.get(key_of(photo), consistent=True)
    assert again is not None
    again.likes = 7
    with pytest.raises(ReadTimeoutError):
        losing(lambda: store.modify(key_of(photo), lambda other: setattr(other, "title", "x"))).update(again)
    assert store.modify(key_of(photo), lambda other: None).likes == 7


def first_shape(values: dict[str, Any]) -> dict[str, Any]:
    first, _, last = values.pop("fullname").partition(" ")
    return {**values, "first": first, "last": last}


def second_shape(values: dict[str, Any]) -> dict[str, Any]:
    values["ages"] = {values.pop("age")}
    return values


class Old(Entity[str], pk="PERSON#{username}", sk="PERSON", name="Person"):
    username: str
    fullname: str
    age: int


class Person(
    Entity[str],
    pk="PERSON#{username}",
    sk="PERSON",
    migrations=[first_shape, second_shape],
    indexed={"city_key": "NAME#{last}", "joined_key": "{first}"},
):
    username: str
    first: str
    last: str
    ages: set[int]
    note: str = ""


def test_old_shapes_are_read_and_written_in_the_new_shape(client: Any, table: Table, store: Entities) -> None:
    store.create(Old("alice", "Alice Doe", 30))
    person = store.get(Person.key("alice"))
    assert person == Person("alice", "Alice", "Doe", {30})
    assert "fullname" in raw(client, table, "PERSON#alice", "PERSON")
    assert store.update(person)
    item = raw(client, table, "PERSON#alice", "PERSON")
    assert {"fullname", "age"} & item.keys() == set()
    assert item["first"] == {"S": "Alice"}
    assert item["ages"] == {"NS": ["30"]}
    assert item["city_key"] == {"S": "NAME#Doe"}
    assert not store.update(person)
    assert store.query(Person, "Doe", index=CITIES) == [person]
    with pytest.raises(Unreadable, match=r"shape 2 of Person, .* knows 0"):
        store.get(Old.key("alice"))


def test_attributes_that_a_class_does_not_know_are_kept(client: Any, table: Table, store: Entities) -> None:
    photo = Photo("alice", NOON)
    store.create(photo)
    client.update_item(
        TableName=table.name,
        Key=table.key(key_of(photo).address),
        UpdateExpression="SET newer = :x",
        ExpressionAttributeValues={":x": {"S": "x"}},
    )
    photo.title = "Sea"
    store.update(photo)
    address = key_of(photo).address
    assert raw(client, table, address.partition, address.sort)["newer"] == {"S": "x"}


def test_an_item_of_another_class_is_no_entity(client: Any, table: Table, store: Entities) -> None:
    store.create(Old("alice", "Alice Doe", 30))

    class Other(Entity[str], pk="PERSON#{username}", sk="PERSON"):
        username: str

    schema_error = pytest.raises(ValueError, match="is no Other")
    with schema_error:
        store.get(Other.key("alice"))


def test_the_asynchronous_twin(client: Any, table: Table) -> None:
    async def tour() -> None:
        store = AsyncEntities(asynchronous(client), table)
        await store.create(user("alice"))
        await store.transact(create(Photo("alice", NOON)), add(User.key("alice"), followers=1))
        profile = await store.collect(Profile, "alice")
        assert profile is not None
        assert profile.user.followers == 1
        profile.user.name = "Alice"
        await store.update(profile.user)
        assert (await store.modify(User.key("alice"), lambda alice: None)).name == "Alice"
        assert await store.delete(User.key("alice"))

    asyncio.run(tour())
