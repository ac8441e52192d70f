"""Every view counts once, every reader once per page; and the page shows it."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from broken import refused
from browsing import browser_at, served
from playwright.sync_api import expect
from running import make_table
from units import consumed, documented
from views import PAGES, TABLE, Page, Views

from hashrange.client import connect
from hashrange.database import Database
from hashrange_patterns import QueueFull, TableEvents

HERE = Path(__file__).parent


def test_every_view_counts_once_and_every_reader_once_per_page() -> None:
    chance = random.Random(1)
    with Database.in_memory() as database:
        client = connect(database)
        assert make_table(client, TABLE)
        assert not make_table(client, TABLE)
        views = Views(client)
        views.pages.put_all(PAGES)
        sent = [
            {
                "id": f"view{number}",
                "page": chance.choice(PAGES).path,
                "reader": f"reader{chance.randrange(9)}",
                "at": datetime.now(UTC).isoformat(),
            }
            for number in range(150)
        ]
        twice = [*sent, *chance.sample(sent, 60)]
        chance.shuffle(twice)
        views.take_in(twice)
        while views.worker().step(threading.Event()):
            pass
        for page in views.statistics():
            of_page = [view for view in sent if view["page"] == page["path"]]
            assert page["views"] == len(of_page) == sum(page["minutes"])
            assert page["readers"] == len({view["reader"] for view in of_page})


def test_a_full_queue_says_so() -> None:
    with Database.in_memory() as database:
        client = connect(database)
        make_table(client, TABLE)
        views = Views(client)
        views.queue = TableEvents(client, TABLE, "views", waiting_max=1)
        view = {"id": "1", "page": "tides", "reader": "a", "at": datetime.now(UTC).isoformat()}
        views.take_in([view])
        with pytest.raises(QueueFull):
            views.take_in([view])


def test_the_readme_names_the_units() -> None:
    with Database.in_memory() as database:
        client = connect(database)
        make_table(client, TABLE)
        views = Views(client)
        views.pages.put_all(PAGES)

        def view(number: int) -> dict[str, str]:
            at = datetime.now(UTC).isoformat()
            return {"id": f"view{number}", "page": "tides", "reader": f"reader{number}", "at": at}

        def work() -> None:
            assert views.worker().step(threading.Event()) == 30

        def take_in(first: int) -> None:
            for number in range(first, first + 30):
                views.take_in([view(number)])

        take_in(0)
        work()
        views.take_in([])
        taken = consumed(database, lambda: take_in(30)) / 30
        counted = consumed(database, work) / 30
        counts = consumed(database, lambda: views.pages.get_all([Page.key(page.path) for page in PAGES]))
        everything = consumed(database, views.statistics)
        assert documented(HERE) == {
            # The queue looks now and then how many wait, which costs a unit: perhaps in between.
            "take a view in": f"{taken:.0f}",
            "take, and count a batch of 30 views": f"{int(counted)} to {int(counted) + 1} a view",
            "the counts of all pages": f"{counts / len(PAGES):g} a page",
            "the last half hour of a page": f"{(everything - counts) / len(PAGES):g}",
        }


def test_the_page_counts_what_is_clicked() -> None:
    with served(HERE) as url, browser_at(url) as page:
        tides = page.locator("article[data-path=tides]")
        expect(tides.locator(".views")).to_have_text("0")
        for _ in range(3):
            tides.click()
        expect(tides.locator(".views")).to_have_text("3", timeout=20_000)
        expect(tides.locator(".readers")).to_have_text("1")
        page.get_by_role("button", name="another reader").click()
        page.locator("article[data-path=tides]").click()
        expect(tides.locator(".views")).to_have_text("4", timeout=20_000)
        expect(tides.locator(".readers")).to_have_text("2")
        page.get_by_role("button", name="200 views").click()
        expect(page.get_by_role("status")).to_have_text("204 sent, 204 counted", timeout=60_000)
        page.screenshot(path=str(HERE / "page.png"))


def test_what_is_no_view_is_refused() -> None:
    with served(HERE) as url, browser_at(url) as page:
        for body, status in (("{", 400), ("[{}]", 400), ('[{"id":1,"page":"none","reader":"a"}]', 404)):
            answer = page.request.post(
                f"{url}/views", data=body, headers={"Content-Type": "application/json"}
            )
            assert answer.status == status


def test_bad_input_is_refused_in_words() -> None:
    gets = ["/statistics?{}"]
    posts: dict[str, list[str]] = {"/views": []}
    with served(HERE) as url:
        assert refused(url, gets, posts)
