"""Every access pattern; and the page in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from broken import refused
from browsing import browser_at, served
from photos import INVERTED, TABLE, Photo, Photos, Reaction, User
from playwright.sync_api import Dialog, expect
from running import make_table
from sample import NAMES, load
from units import consumed, documented

from hashrange.client import connect
from hashrange.database import Database
from hashrange_patterns.entities import AlreadyExists, Missing, NotUnique

HERE = Path(__file__).parent
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


@pytest.fixture
def photos() -> Iterator[Photos]:
    with Database.in_memory() as database:
        client = connect(database)
        make_table(client, TABLE, INVERTED)
        photos = Photos(client)
        assert 900 < load(photos) == client.scan(TableName=TABLE.name, Select="COUNT")["Count"]
        yield photos


def test_users_join_and_change(photos: Photos) -> None:
    zoe = User("zoe", "Zoe", "zoe@example.org", "Riga")
    photos.join(zoe)
    with pytest.raises(AlreadyExists):
        photos.join(User("zoe", "Other", "other@example.org", "Riga"))
    with pytest.raises(NotUnique):
        photos.join(User("other", "Other", "zoe@example.org", "Riga"))
    assert photos.change("zoe", "Zoë", "Oslo").city == "Oslo"
    with pytest.raises(Missing):
        photos.change("nobody", "x", "y")


def test_a_profile_comes_with_its_photos_newest_last(photos: Photos) -> None:
    photo = Photo("ada", NOW, "Harbour", "Riga")
    photos.upload(photo)
    profile = photos.profile("ada")
    assert profile is not None
    assert profile.user.photos == len(profile.photos) == 13
    assert profile.photos[-1] == photo
    assert profile.photos == sorted(profile.photos, key=lambda one: one.taken_at)
    assert photos.profile("nobody") is None
    with pytest.raises(Missing):
        photos.upload(Photo("nobody", NOW, "", ""))
    assert photos.photo("nobody", NOW) is None


def test_reactions_count_and_come_with_the_photo(photos: Photos) -> None:
    photos.upload(Photo("ada", NOW, "Harbour", "Riga"))
    for who in ("bruno", "clara"):
        assert photos.react(Reaction(who, "heart", "ada", NOW))
    assert photos.react(Reaction("bruno", "wow", "ada", NOW))
    assert not photos.react(Reaction("bruno", "heart", "ada", NOW))
    found = photos.photo("ada", NOW)
    assert found is not None
    assert {(one.reacting, one.type) for one in found.reactions} == {("clara", "heart"), ("bruno", "wow")}
    assert found.photo.reactions == 2
    with pytest.raises(Missing):
        photos.react(Reaction("bruno", "heart", "ada", NOW.replace(year=2030)))


def test_friendships_are_seen_from_both_sides(photos: Photos) -> None:
    photos.join(User("zoe", "Zoe", "zoe@example.org", "Riga"))
    assert photos.follow("zoe", "ada")
    assert not photos.follow("zoe", "ada")
    assert photos.follow("ada", "zoe")
    assert [user.username for user in photos.following("zoe")] == ["ada"]
    assert "zoe" in [user.username for user in photos.followers("ada")]
    [zoe] = photos.followers("zoe")
    assert zoe.username == "ada"
    assert photos.unfollow("zoe", "ada")
    assert not photos.unfollow("zoe", "ada")
    assert photos.following("zoe") == []
    with pytest.raises(Missing):
        photos.follow("zoe", "nobody")
    with pytest.raises(ValueError, match="cannot follow"):
        photos.follow("zoe", "zoe")


def test_the_counts_of_the_sample_are_right(photos: Photos) -> None:
    for name in NAMES:
        profile = photos.profile(name.lower())
        assert profile is not None
        assert profile.user.followers == len(photos.followers(name.lower()))
        assert profile.user.following == len(photos.following(name.lower()))
        for photo in profile.photos:
            found = photos.photo(photo.username, photo.taken_at)
            assert found is not None
            assert photo.reactions == len(found.reactions)


def test_the_readme_names_the_units() -> None:
    with Database.in_memory() as database:
        client = connect(database)
        make_table(client, TABLE, INVERTED)
        photos = Photos(client)
        photo, heart = Photo("ada", NOW, "Harbour", "Riga"), Reaction("bruno", "heart", "ada", NOW)

        def of(action: Callable[[], object]) -> str:
            return f"{consumed(database, action):g}"

        def of_three(action: Callable[[], object]) -> str:
            """Of a query that finds three, and of the profile of each."""
            query = 0.5
            return f"{query:g} and {(consumed(database, action) - query) / 3:g} each"

        for name in ("ada", "clara", "dario"):
            photos.join(User(name, name.title(), f"{name}@example.org", "Riga"))
        units = {
            "create a user": of(lambda: photos.join(User("bruno", "Bruno", "bruno@example.org", "Riga"))),
            "change a profile": of(lambda: photos.change("ada", "Ada", "Oslo")),
            "upload a photo": of(lambda: photos.upload(photo)),
            "a profile with its photos": of(lambda: photos.profile("ada")),
            "react": of(lambda: photos.react(heart)),
            "a photo with its reactions": of(lambda: photos.photo("ada", NOW)),
            "take a reaction back": of(lambda: photos.react(heart)),
            "follow": of(lambda: photos.follow("bruno", "ada")),
        }
        for name in ("clara", "dario"):
            photos.follow(name, "ada")
            photos.follow("bruno", name)
        units["who follows ada"] = of_three(lambda: photos.followers("ada"))
        units["whom bruno follows"] = of_three(lambda: photos.following("bruno"))
        units["unfollow"] = of(lambda: photos.unfollow("bruno", "ada"))
        assert documented(HERE) == units


def test_the_page_shows_follows_and_reacts() -> None:
    with served(HERE) as url, browser_at(url) as page:
        expect(page.get_by_role("heading", name="Ada")).to_be_visible(timeout=20_000)
        expect(page.locator("figure")).to_have_count(12)
        page.screenshot(path=str(HERE / "page.png"))
        before = int(page.locator("#n-followers").inner_text())
        label = page.locator("#follow").inner_text()
        page.locator("#follow").click()
        step = 1 if label == "Follow" else -1
        expect(page.locator("#n-followers")).to_have_text(str(before + step))
        page.locator("figure").first.click()
        wow = page.locator("dialog button[data-kind=wow] b")
        count = int(wow.inner_text())
        wow.click()
        expect(wow).not_to_have_text(str(count))
        page.screenshot(path=str(HERE / "photo.png"))
        page.mouse.click(5, 5)

        def answer(dialog: Dialog) -> None:
            dialog.accept("<b>Harbour</b>")

        page.on("dialog", answer)
        page.get_by_role("button", name="Upload").click()
        expect(page.get_by_role("heading", name="Bruno")).to_be_visible()
        expect(page.locator("figcaption").first).to_contain_text("<b>Harbour</b>")
        expect(page.locator("#n-photos")).to_have_text("13")


def test_bad_input_is_refused_in_words() -> None:
    gets = ["/profiles/{}", "/photos/ada/{}", "/photos/{}/2026-11-22T12:00:00Z", "/pictures/ada/{}"]
    posts = {
        "/react": ["as", "type", "username", "taken_at"],
        "/follow": ["as", "username"],
        "/upload": ["as", "title", "place"],
        "/change": ["as", "name", "city"],
    }
    with served(HERE) as url:
        assert refused(url, gets, posts)
