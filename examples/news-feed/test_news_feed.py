"""Every post of those whom one follows, once, newest first, however many come in between; and the page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from broken import refused
from browsing import browser_at, served
from newspaper import PEOPLE, STAR, TABLE, Newspaper, Workers
from playwright.sync_api import expect
from running import make_table
from units import consumed, documented

from hashrange.client import connect
from hashrange.database import Database
from hashrange_patterns import Feeds

HERE = Path(__file__).parent


@pytest.fixture
def newspaper() -> Iterator[Newspaper]:
    with Database.in_memory() as database:
        client = connect(database)
        make_table(client, TABLE)
        newspaper = Newspaper(client)
        newspaper.begin()
        yield newspaper


def scrolled(newspaper: Newspaper, reader: str) -> list[str]:
    """All posts of a feed, page by page."""
    page = newspaper.feeds.home(reader, limit=7, consistent=True)
    ids = [post.id for post in page.posts]
    while page.older:
        page = newspaper.feeds.home(reader, limit=7, cursor=page.older, consistent=True)
        ids += [post.id for post in page.posts]
    return ids


def written(newspaper: Newspaper, author: str) -> list[str]:
    return [post.id for post in newspaper.feeds.posts(author, limit=100, consistent=True).posts]


def test_each_reader_has_each_post_once(newspaper: Newspaper) -> None:
    with Workers(newspaper, 2):
        bursts = [threading.Thread(target=newspaper.burst, args=(20,)) for _ in range(3)]
        for burst in bursts:
            burst.start()
        for burst in bursts:
            burst.join()
    while newspaper.feeds.work():
        pass
    for reader in PEOPLE:
        authors = {reader, *newspaper.feeds.following(reader)}
        expected = sorted((one for author in authors for one in written(newspaper, author)), reverse=True)
        assert scrolled(newspaper, reader) == expected


def test_the_star_is_read_and_the_others_are_written(newspaper: Newspaper) -> None:
    followers = {name: len(newspaper.feeds.followers(name)) for name in PEOPLE}
    assert followers[STAR] == len(PEOPLE) - 1
    post = newspaper.feeds.post(STAR, "no worker needed")
    assert scrolled(newspaper, "jun")[0] == post.id


def test_two_servers_share_the_secret(newspaper: Newspaper) -> None:
    older = newspaper.feeds.home("bruno", limit=3).older
    assert older is not None
    assert Newspaper(newspaper.client).feeds.home("bruno", limit=3, cursor=older).posts


def test_the_readme_names_the_units() -> None:
    with Database.in_memory() as database:
        client = connect(database)
        make_table(client, TABLE)
        feeds = Feeds(client, TABLE, b"secret" * 6, pull_above=20)

        def of(action: Callable[[], object]) -> str:
            return f"{consumed(database, action):g}"

        def post(author: str, number: int) -> None:
            for serial in range(number):
                feeds.post(author, f"post {serial}")
            while feeds.work():
                pass

        units = {"follow": of(lambda: feeds.follow("clara", "bruno"))}
        for number in range(19):
            feeds.follow(f"reader{number}", "bruno")
        post("bruno", 20)
        units["post"] = of(lambda: feeds.post("bruno", "new"))
        units["bring a post to 20 followers"] = of(feeds.work)
        written = of(lambda: feeds.home("clara", limit=20))
        for number in range(21):
            feeds.follow(f"reader{number}", "ada")
        feeds.follow("dario", "ada")
        post("ada", 20)
        units["a page of 20, written / read"] = f"{written} / {of(lambda: feeds.home('dario', limit=20))}"
        units["unfollow"] = of(lambda: feeds.unfollow("clara", "bruno"))
        newest = feeds.posts("ada", limit=1).posts[0]
        units["delete"] = of(lambda: feeds.delete(newest.author, newest.id))
        assert documented(HERE) == units


def test_the_page_scrolls_posts_and_grows() -> None:
    with served(HERE) as url, browser_at(url) as page:
        articles = page.locator("article")
        expect(articles).to_have_count(8, timeout=30_000)
        page.get_by_label("What is new?").fill("Hello <b>everybody</b>")
        page.get_by_role("button", name="Post", exact=True).click()
        expect(articles.first).to_contain_text("Hello <b>everybody</b>", timeout=20_000)
        page.get_by_role("button", name="Everybody posts").click()
        expect(page.locator("#new")).to_be_visible(timeout=30_000)
        page.screenshot(path=str(HERE / "page.png"))
        page.locator("#new").click()
        for _ in range(40):
            page.mouse.wheel(0, 3_000)
            page.wait_for_timeout(50)
        expect(page.locator("#end")).to_have_text("This is the beginning.", timeout=30_000)
        ids = articles.evaluate_all("all => all.map(one => one.dataset.id)")
        assert len(ids) == len(set(ids))
        articles.first.scroll_into_view_if_needed()
        page.locator("[data-delete]").first.click()
        answer = page.request.get(f"{url}/home/bruno?cursor=forged")
        assert answer.status == 400


def test_bad_input_is_refused_in_words() -> None:
    gets = ["/home/{}", "/home/ada?cursor={}", "/people/{}"]
    posts = {"/post": ["as", "content"], "/follow": ["as", "author"], "/delete": ["as", "id"]}
    with served(HERE) as url:
        assert refused(url, gets, posts)
