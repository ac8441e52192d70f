"""A newspaper that its readers write: people who post, follow and scroll, and workers behind."""

from __future__ import annotations

import random
import secrets
import threading
from typing import Any

from hashrange_patterns import Feeds, Table

TABLE = Table("news-feed")
PULL_ABOVE = 8  # an author with more followers than this is read, not written: few, so that one sees both
PEOPLE = ["ada", "bruno", "clara", "dario", "elif", "femi", "greta", "hana", "ivo", "jun", "kaja", "leo"]
STAR = "ada"
WORDS = {
    "who": ["The harbour", "A neighbour", "The night train", "Our baker", "The lighthouse", "Somebody"],
    "does": ["is early today", "found the map", "hums again", "lost a glove", "says hello", "waits for rain"],
    "where": ["by the old bridge", "in the fog", "behind the station", "at the market", "up north", ""],
}


class Newspaper:
    """What people do, and what workers do for them."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.feeds = Feeds(client, TABLE, _secret(client), pull_above=PULL_ABOVE)

    def begin(self) -> None:
        """Let people follow each other: everybody the star, who is read then, and some others."""
        chance = random.Random(4)
        for reader in PEOPLE:
            for author in {STAR, *chance.sample(PEOPLE, 4)} - {reader}:
                self.feeds.follow(reader, author)
        while self.feeds.work():
            pass
        self.burst(24, chance)
        while self.feeds.work():
            pass

    def burst(self, number: int, chance: random.Random | None = None) -> list[str]:
        """Posts of many people, as fast as they can be written; their ids."""
        chance = chance or random.Random()
        return [self.feeds.post(chance.choice(PEOPLE), sentence(chance)).id for _ in range(number)]


def sentence(chance: random.Random) -> str:
    """Something to post."""
    return " ".join(chance.choice(words) for words in WORDS.values()).strip() + "."


def _secret(client: Any) -> bytes:
    """The secret that signs cursors: one for all servers of the program, kept in the table."""
    key = {"PK": {"S": "SECRET"}, "SK": {"S": "SECRET"}}
    item: dict[str, Any] = {**key, "secret": {"B": secrets.token_bytes(32)}}
    try:
        client.put_item(TableName=TABLE.name, Item=item, ConditionExpression="attribute_not_exists(PK)")
    except client.exceptions.ConditionalCheckFailedException:
        item = client.get_item(TableName=TABLE.name, Key=key, ConsistentRead=True)["Item"]
    secret: bytes = bytes(item["secret"]["B"])
    return secret


class Workers:
    """Threads that bring posts to the feeds of followers, until they are stopped."""

    def __init__(self, newspaper: Newspaper, number: int = 2) -> None:
        self._feeds = newspaper.feeds
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(number)]

    def __enter__(self) -> Workers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            if not self._feeds.work():
                self._stop.wait(0.2)
