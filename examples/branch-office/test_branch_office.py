"""No sale is lost by an outage: both offices agree, and stock is what was there less what was sold."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from broken import refused
from browsing import browser_at, served
from playwright.sync_api import expect
from shop import STOCK, Shop, SoldOut
from units import consumed, documented

from hashrange_sync import Unavailable

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_DIR", "")


def test_no_sale_is_lost_by_outages() -> None:
    with Shop() as shop, ThreadPoolExecutor(4) as threads:
        offices = list(shop.offices.values())
        sold: list[str] = []
        for cut in (False, True, True, False):
            selling = [threads.submit(office.rush, 15) for office in offices for _ in range(2)]
            shop.line.cut(cut)
            if cut:
                with pytest.raises(Unavailable):
                    shop.sync.once()
            else:
                shop.sync.once()
            sold += [order for one in selling for order in one.result()]
        shop.line.cut(False)
        shop.sync.once()
        head, branch = (office.state() for office in offices)
        assert head == branch
        assert sum(product["sold"] for product in head.values()) == len(set(sold)) == 4 * 4 * 15
        assert all(product["stock"] == STOCK - product["sold"] for product in head.values())
        assert shop.state()["conflicts"] == []


def test_a_price_that_both_change_is_in_the_log() -> None:
    with Shop() as shop:
        head, branch = shop.offices.values()
        shop.line.cut()
        head.set_price("tea", "3.50")
        branch.set_price("tea", "2.90")
        branch.set_price("honey", "6.50")
        shop.line.cut(False)
        shop.sync.once()
        assert head.state() == branch.state()
        assert [product["price"] for product in head.state().values()] == ["4.5", "6.5", "3.5"]
        [conflict] = shop.state()["conflicts"]
        assert (conflict["product"], conflict["head"], conflict["branch"]) == ("tea", "3.5", "2.9")


def test_the_last_piece_is_sold_once_in_each_office() -> None:
    with Shop() as shop:
        head, branch = shop.offices.values()
        for _ in range(STOCK - 1):
            head.sell("tea")
        shop.sync.once()
        for office in (head, branch):
            office.sell("tea")
            with pytest.raises(SoldOut):
                office.sell("tea")
        shop.sync.once()
        assert [office.state()["tea"]["stock"] for office in (head, branch)] == [-1, -1]


def test_the_readme_names_the_units() -> None:
    with Shop() as shop:
        head = shop.offices["head"]
        assert documented(HERE) == {
            "sell a piece": f"{consumed(head.database, lambda: head.sell('tea')):g}",
            "change a price": f"{consumed(head.database, lambda: head.set_price('tea', '3')):g}",
        }


def test_the_page_shows_an_outage_and_its_end() -> None:
    with served(HERE) as url, browser_at(url) as page:
        head, branch = page.locator("#head"), page.locator("#branch")
        branch.locator("[data-sell=tea]").click()
        expect(head.locator("[data-product=tea] .stock")).to_have_text("199", timeout=20_000)
        page.get_by_role("button", name="Cut the line").click()
        expect(page.get_by_role("status")).to_have_text("cut")
        for office in (head, branch):
            office.get_by_role("button", name="20 sales").click()
        for office, price in ((head, "3.50"), (branch, "2.90")):
            office.get_by_label("Price of tea").fill(price)
            office.get_by_label("Price of tea").press("Enter")
        expect(page.locator("#equal")).to_have_text("The offices differ")
        page.screenshot(path=str(HERE / "cut.png"))
        page.get_by_role("button", name="Mend the line").click()
        expect(page.locator("#equal")).to_have_text("Both offices agree", timeout=30_000)
        expect(page.locator(".conflict")).to_contain_text("the head office’s 3.50 won, the branch’s 2.90")
        expect(page.locator("#ledger b.bad")).to_have_count(0)
        sold = [int(text) for text in head.locator(".sold").all_inner_texts()]
        assert sum(sold) == 41
        page.screenshot(path=str(HERE / "page.png"))


def test_bad_input_is_refused_in_words() -> None:
    posts = {
        "/sell": ["office", "product"],
        "/rush": ["office"],
        "/price": ["office", "product", "price"],
        "/line": ["cut"],
    }
    with served(HERE) as url:
        assert refused(url, [], posts)
