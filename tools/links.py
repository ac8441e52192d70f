"""Check that every link of a built site leads to a file that is there, and to an anchor that it has.

    python tools/links.py FOLDER

It reads the pages as a browser does, so it also finds what the builder's own check cannot know: pictures in
HTML, links of the theme, and anchors that the builder made. It asks no other server. A page that loads
anything from elsewhere is an error, too: the site works without a network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_LOADING: Final = ("script", "img", "link", "source", "iframe")
# What a `link` may name without the browser loading it.
_NOT_LOADED: Final = ("canonical", "prev", "next", "alternate")


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        loads = tag in _LOADING and given.get("rel", "") not in _NOT_LOADED
        for name in ("href", "src", "srcset"):
            if name in given:
                self.links.append(("loaded" if loads else "link", given[name]))


def problems(folder: Path) -> Iterator[str]:
    """What is wrong with the links of the pages in a folder."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        for kind, link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("mailto", "data", "javascript"):
                continue
            if parts.scheme or parts.netloc:
                if kind == "loaded":
                    yield f"{path.relative_to(folder)} loads {link}"
                continue
            root = folder if parts.path.startswith("/") else path.parent
            target = (root / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                # The page for what is not found stands at every address, so its links begin at the root.
                if path.name != "404.html":
                    yield f"{path.relative_to(folder)}: {link} leads nowhere"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{path.relative_to(folder)}: {link} leads to no anchor"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    found = list(problems(folder))
    for problem in found:
        print(problem)
    pages = len(list(folder.rglob("*.html")))
    if found or not pages:
        sys.exit(f"{len(found)} links are wrong on {pages} pages")
    print(f"{pages} pages, every link leads somewhere")


if __name__ == "__main__":
    main()
