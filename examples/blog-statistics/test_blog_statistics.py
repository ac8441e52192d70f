"""Who is right stays right under all trouble, and the page shows who is not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broken import refused
from browsing import browser_at, served
from lanes import TABLE, Blog, add_one, copied_transaction, once, put_then_add
from playwright.sync_api import expect
from running import make_table
from units import consumed, documented

from hashrange.client import connect
from hashrange.database import Database

HERE = Path(__file__).parent
EVENTS = 60


@pytest.fixture
def blog() -> Iterator[Blog]:
    with Database.in_memory() as database:
        client = connect(database)
        make_table(client, TABLE)
        yield Blog(client, seed=1)


def work(blog: Blog) -> None:
    while blog.worker().step(threading.Event()):
        pass


def test_without_trouble_all_are_right(blog: Blog) -> None:
    blog.send(20)
    work(blog)
    found = blog.counts()
    # (but for real conflicts among the senders, which the copied transaction loses)
    assert found.pop("transaction") <= 20
    assert set(found.values()) == {20}


@pytest.mark.parametrize(
    ("trouble", "wrong"),
    [
        ("duplicates", {"add": 1}),
        ("crashes", {"add": 1, "put": -1}),
        ("conflicts", {"transaction": -1}),
    ],
)
def test_each_trouble_shows_who_is_wrong(blog: Blog, trouble: str, wrong: dict[str, int]) -> None:
    setattr(blog.trouble, trouble, 0.3)
    blog.send(EVENTS)
    work(blog)
    found = blog.counts()
    for lane, direction in wrong.items():
        assert (found[lane] - EVENTS) * direction > 0, found
    assert found["once"] == found["queue"] == EVENTS


def test_all_at_once(blog: Blog) -> None:
    blog.trouble.duplicates = blog.trouble.crashes = blog.trouble.conflicts = 0.2
    blog.send(EVENTS)
    work(blog)
    assert blog.counts()["once"] == blog.counts()["queue"] == EVENTS


def test_the_readme_names_the_units() -> None:
    with Database.in_memory() as database:
        client = connect(database)
        make_table(client, TABLE)
        blog = Blog(client, seed=1)

        def an_event(count: Callable[[Any, str], None]) -> str:
            count(client, "first")
            return f"{consumed(database, lambda: count(client, 'second')):g}"

        def by_queue() -> None:
            blog.send(30)
            work(blog)

        by_queue()
        blog._lanes = blog._lanes[-1:]
        queued = consumed(database, by_queue) / 30
        assert documented(HERE) == {
            "add one": an_event(add_one),
            "put, then add": an_event(put_then_add),
            "a transaction": an_event(copied_transaction),
            "`Counters.once`": an_event(once),
            "queue and worker": f"{int(queued)} to {int(queued) + 1}, in batches of 30",
            "read a count": f"{consumed(database, blog.counts) / 5:g}",
        }


def test_the_page_shows_who_miscounts() -> None:
    with served(HERE) as url, browser_at(url) as page:
        for name in ("Duplicates", "Crashes", "Conflicts"):
            page.get_by_role("button", name=name).click()
            expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
        for sent in (50, 100):
            page.get_by_role("button", name="Send 50 views").click()
            expect(page.get_by_role("status")).to_have_text(f"{sent} sent", timeout=60_000)
        for lane in ("once", "queue"):
            expect(page.locator(f"tr[data-lane={lane}] .counted")).to_have_text("100", timeout=60_000)
        expect(page.locator("tr[data-lane=add] .counted")).not_to_have_text("100")
        # The heads end where their numbers do. Asked all at once, since columns move.
        ends = page.evaluate("""() => [2, 3].map(column =>
            ["th", "tr[data-lane=once] td", "tr[data-lane=add] td"].map(cell => {
                const range = document.createRange()
                range.selectNodeContents(document.querySelector(`${cell}:nth-child(${column})`))
                return range.getBoundingClientRect().right
            }))""")
        assert all(max(column) - min(column) < 1 for column in ends), ends
        page.screenshot(path=str(HERE / "page.png"))


def test_bad_input_is_refused_in_words() -> None:
    gets = ["/state?{}"]
    paths = ["/send?events=-1", "/send?events=x", "/send?events=501", "/trouble/none"]
    posts: dict[str, list[str]] = {path: [] for path in paths}
    with served(HERE) as url:
        assert refused(url, gets, posts)
