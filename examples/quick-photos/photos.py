"""Users, photos, reactions and friendships: one table, an inverted index, every access pattern."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hashrange_patterns import Entities, Entity, Index, Table
from hashrange_patterns.entities import AlreadyExists, add, create, delete

TABLE = Table("quick-photos")
INVERTED = Index("inverted", "SK", "PK")
REACTIONS = {"heart": "❤️", "smiley": "😊", "wow": "😮", "thumbsup": "👍"}


class User(Entity[str], pk="USER#{username}", sk="#METADATA#{username}", unique=["EMAIL#{email}"]):
    username: str
    name: str
    email: str
    city: str
    interests: set[str] = field(default_factory=set)
    followers: int = 0
    following: int = 0
    photos: int = 0


class Photo(Entity[str, datetime], pk="USER#{username}", sk="PHOTO#{username}#{taken_at}"):
    username: str
    taken_at: datetime
    title: str
    place: str
    reactions: int = 0


class Reaction(
    Entity[str, str, str, datetime], pk="REACTION#{reacting}#{type}", sk="PHOTO#{username}#{taken_at}"
):
    reacting: str
    type: str
    username: str
    taken_at: datetime


class Friendship(Entity[str, str], pk="USER#{followed}", sk="#FRIEND#{follower}"):
    """`follower` sees the photos of `followed`."""

    followed: str
    follower: str
    since: datetime


@dataclass
class Profile:
    """A user and the photos: they lie side by side, and one Query reads them."""

    user: User
    photos: list[Photo]


@dataclass
class PhotoAndReactions:
    """A photo and what others think of it: side by side in the inverted index."""

    photo: Photo
    reactions: list[Reaction]


class Photos:
    """The access patterns."""

    def __init__(self, client: Any) -> None:
        self.store = Entities(client, TABLE)

    def join(self, user: User) -> None:
        """Create a user. Raises AlreadyExists and NotUnique."""
        self.store.create(user)

    def change(self, username: str, name: str, city: str) -> User:
        """Change a user's profile."""

        def to_this(user: User) -> None:
            user.name, user.city = name, city

        return self.store.modify(User.key(username), to_this)

    def profile(self, username: str) -> Profile | None:
        """A user with all photos."""
        return self.store.collect(Profile, username)

    def upload(self, photo: Photo) -> None:
        """Add a photo of a user. Raises Missing if there is no such user."""
        self.store.transact(create(photo), add(User.key(photo.username), photos=1))

    def photo(self, username: str, taken_at: datetime) -> PhotoAndReactions | None:
        """A photo with its reactions."""
        return self.store.collect(PhotoAndReactions, username, taken_at, index=INVERTED)

    def react(self, reaction: Reaction) -> bool:
        """React to a photo; False if there was this reaction, which is taken back then."""
        photo = Photo.key(reaction.username, reaction.taken_at)
        there = self.store.get(
            Reaction.key(reaction.reacting, reaction.type, reaction.username, reaction.taken_at),
            consistent=True,
        )
        if there is None:
            self.store.transact(create(reaction), add(photo, reactions=1))
        else:
            self.store.transact(delete(there), add(photo, reactions=-1))
        return there is None

    def follow(self, follower: str, followed: str) -> bool:
        """Follow a user; False if that was so. Raises Missing if there is no such user."""
        if follower == followed:
            raise ValueError(f"{follower} cannot follow {follower}")
        friendship = Friendship(followed, follower, datetime.now(UTC))
        try:
            self.store.transact(
                create(friendship),
                add(User.key(followed), followers=1),
                add(User.key(follower), following=1),
            )
        except AlreadyExists:
            return False
        return True

    def unfollow(self, follower: str, followed: str) -> bool:
        """Stop following a user; False if the user was not followed."""
        there = self.store.get(Friendship.key(followed, follower), consistent=True)
        if there is None:
            return False
        self.store.transact(
            delete(there), add(User.key(followed), followers=-1), add(User.key(follower), following=-1)
        )
        return True

    def followers(self, username: str) -> list[User]:
        """Who follows a user: items of the user's own partition, and then their profiles."""
        friendships = self.store.query(Friendship, username)
        return list(self.store.get_all(User.key(one.follower) for one in friendships).values())

    def following(self, username: str) -> list[User]:
        """Whom a user follows: the same items, by the inverted index."""
        friendships = self.store.query(Friendship, username, index=INVERTED)
        return list(self.store.get_all(User.key(one.followed) for one in friendships).values())
