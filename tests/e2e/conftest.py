"""The browsers, which are started once for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from console_browsing import Browsers


@pytest.fixture(scope="module")
def browsers() -> Iterator[Browsers]:
    # Imported here, because most of the tests beside it need no browser.
    from playwright.sync_api import sync_playwright

    from console_browsing import Browsers

    with sync_playwright() as playwright:
        browsers = Browsers(playwright)
        yield browsers
        browsers.close()
