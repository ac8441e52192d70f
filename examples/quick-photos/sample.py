"""A thousand items, made up: always the same ones."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

from photos import REACTIONS, Friendship, Photo, Photos, Reaction, User

NAMES = [
    "Ada", "Bruno", "Clara", "Dario", "Elif", "Femi", "Greta", "Hana", "Ivo", "Jun",
    "Kaja", "Leo", "Mina", "Nils", "Olga", "Paulo", "Quinn", "Rosa", "Sami", "Tove",
]  # fmt: skip
PLACES = ["Riga", "Porto", "Osaka", "Tromsø", "Cuzco", "Hobart", "Fez", "Bergen"]
THINGS = ["Harbour", "Ridge", "Dunes", "Old town", "Forest", "Glacier", "Market", "Cape"]
TIMES = ["at dawn", "in the rain", "after the storm", "before the snow", "by night", "in May"]
INTERESTS = ["hiking", "trains", "birds", "bread", "maps", "tides"]


def load(photos: Photos) -> int:
    """Put the items into the table, and say how many there are."""
    chance = random.Random(2018)
    users = [
        User(
            name.lower(),
            name,
            f"{name.lower()}@example.org",
            chance.choice(PLACES),
            set(chance.sample(INTERESTS, 2)),
        )
        for name in NAMES
    ]
    begin = datetime(2025, 1, 1, tzinfo=UTC)
    shots = [
        Photo(
            user.username,
            begin + timedelta(minutes=chance.randrange(500_000)),
            f"{chance.choice(THINGS)} {chance.choice(TIMES)}",
            chance.choice(PLACES),
        )
        for user in users
        for _ in range(12)
    ]
    friendships = [
        Friendship(followed.username, follower.username, begin)
        for followed in users
        for follower in chance.sample(users, 9)
        if follower is not followed
    ]
    reactions = [
        Reaction(who.username, kind, shot.username, shot.taken_at)
        for shot in shots
        for who in chance.sample(users, chance.randrange(5))
        for kind in [chance.choice(list(REACTIONS))]
    ]
    by_photo = Counter((one.username, one.taken_at) for one in reactions)
    for shot in shots:
        shot.reactions = by_photo[shot.username, shot.taken_at]
    for user in users:
        user.photos = sum(shot.username == user.username for shot in shots)
        user.followers = sum(one.followed == user.username for one in friendships)
        user.following = sum(one.follower == user.username for one in friendships)
        photos.join(user)  # (not in a batch: their e-mail addresses are unique)
    photos.store.put_all([*shots, *friendships, *reactions])
    return 2 * len(users) + len(shots) + len(friendships) + len(reactions)
