"""The classes of entities that the tests use: those of the photo application, and some with every type."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Literal, NewType
from uuid import UUID

import pydantic

from hashrange_patterns.entities import Entity, Expires
from hashrange_patterns.tables import Index

INVERTED = Index("inverted", "SK", "PK")
CITIES = Index("cities", "city_key", "joined_key")


@dataclass
class Joined:
    """What several classes have in common; it is not a class of items itself."""

    joined_at: datetime


class User(
    Joined,
    Entity[str],
    pk="USER#{username}",
    sk="#METADATA#{username}",
    unique=["EMAIL#{email}"],
    indexed={"city_key": "CITY#{city}", "joined_key": "{joined_at}"},
):
    username: str
    email: str
    name: str = ""
    city: str | None = None
    followers: int = 0
    interests: set[str] = field(default_factory=set)


class Photo(Entity[str, datetime], pk="USER#{username}", sk="PHOTO#{username}#{taken_at}"):
    username: str
    taken_at: datetime
    title: str = ""
    likes: int = 0


class Reaction(
    Entity[str, str, str, datetime],
    pk="REACTION#{reacting}#{type}",
    sk="PHOTO#{username}#{taken_at}",
):
    reacting: str
    type: str
    username: str
    taken_at: datetime


@dataclass
class Profile:
    """A user, and what lies beside."""

    user: User
    photos: list[Photo]


@dataclass
class PhotoAndReactions:
    """A photo with what others think of it, from the inverted index."""

    photo: Photo | None
    reactions: list[Reaction]


class Color(enum.Enum):
    """An enum with texts."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """An enum with numbers."""

    LOW = 1
    HIGH = 10


class Odd(enum.Enum):
    """An enum whose values are of several types: its names are written."""

    TEXT = "text"
    NUMBER = 2.5


@dataclass
class Tree:
    """A dataclass that holds others of its kind."""

    name: str
    children: list[Tree] = field(default_factory=list)
    sizes: dict[str, Decimal] = field(default_factory=dict)


class Address(pydantic.BaseModel):
    """A pydantic model."""

    street: str
    number: int
    since: date | None = None
    tags: set[str] = set()


Score = NewType("Score", int)


class Everything(Entity[UUID, int], pk="EVERYTHING#{identifier}", sk="{serial:010}"):
    """A field of every type."""

    identifier: UUID
    serial: int
    text: str
    number: int
    exact: Decimal
    fast: float
    data: bytes
    flag: bool
    moment: datetime
    day: date
    hour: time
    color: Color
    level: Level
    odd: Odd
    choice: Literal["a", "b"]
    score: Score
    maybe: int | None
    maybe_not: str | None = "default"
    words: set[str] = field(default_factory=set)
    numbers: frozenset[int] = frozenset()
    exacts: set[Decimal] = field(default_factory=lambda: {Decimal(1)})
    blobs: set[bytes] = field(default_factory=set)
    colors: set[Color] = field(default_factory=set)
    identifiers: set[UUID] | None = None
    items: list[str | None] = field(default_factory=list)
    pair: tuple[int, str] = (0, "")
    many: tuple[date, ...] = ()
    tree: Tree = field(default_factory=lambda: Tree("root"))
    trees: dict[str, Tree] = field(default_factory=dict)
    address: Address | None = None
    anything: object = None
    whatever: Any = None
    expires_at: Expires | None = None
