"""What the packages of pages declare: their pages, their questions, their changes, and their place in the
navigation. A package of another ring gives a `Pages`.

`routes` makes endpoints of them. Each needs a browser with a session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from starlette.responses import Response

from hashrange.rings import rings
from hashrange_console.reach import View

Answer = Callable[[View], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page, or another answer to a GET, which changes nothing: `answer` makes it of the view."""

    path: str
    about: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class Question:
    """A POST with a JSON body `takes` that changes nothing, so a read-only console answers it too."""

    path: str
    about: str
    answer: Answer
    takes: type[Any]


@dataclass(frozen=True, slots=True)
class Action:
    """A POST with a JSON body `takes` that may change something. A read-only console refuses it."""

    path: str
    about: str
    answer: Answer
    takes: type[Any]


Part = Page | Question | Action


class Tab(NamedTuple):
    """A page of a section: the value of `tab` in its template, its title, its address."""

    name: str
    title: str
    address: str


class Section(NamedTuple):
    """What every page links to: the value of `here` in its templates, its title, its address, its tabs.

    The template of a page with tabs extends `section.html`.
    """

    name: str
    title: str
    address: str
    tabs: tuple[Tab, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The pages that another ring adds: `rings.Ring.pages` refers to one of these.

    `parts` are what it answers, below /console. `sections` come after those of the console; the tabs of one
    with a known name are added to that section. `folder` has the folders `templates` and `static`, whose
    files must have names that the console does not have. Templates get what `looks.page` gives them, and
    extend `base.html` or `section.html`; a static file's address is `asset('NAME')`.
    """

    parts: Sequence[Part]
    sections: Sequence[Section] = ()
    folder: Path


@cache
def of_rings() -> tuple[Pages, ...]:
    """The pages of other rings, without those that cannot be used."""

    def checked(pages: Any) -> Pages:
        if not isinstance(pages, Pages) or not all(isinstance(part, Part) for part in pages.parts):
            raise TypeError(f"{pages!r} is not Pages")
        return pages

    return tuple(rings().each("pages", checked).values())


_OWN: tuple[Section, ...] = (
    Section("tables", "Tables", "/console"),
    Section("ask", "Ask", "/console/ask"),
    Section(
        "live",
        "Live",
        "/console/requests",
        (
            Tab("requests", "Requests", "/console/requests"),
            Tab("stream", "Streams", "/console/streams"),
            Tab("contributors", "Contributors", "/console/contributors"),
        ),
    ),
    Section(
        "server",
        "Server",
        "/console/backups",
        (
            Tab("backups", "Backups", "/console/backups"),
            Tab("faults", "Faults", "/console/faults"),
            Tab("clock", "Clock", "/console/clock"),
            Tab("kinesis", "Kinesis", "/console/kinesis"),
        ),
    ),
)


@cache
def sections() -> dict[str, Section]:
    """The navigation, by the names of the sections."""
    found: dict[str, Section] = {}
    for section in (*_OWN, *(section for pages in of_rings() for section in pages.sections)):
        before = found.get(section.name)
        found[section.name] = before._replace(tabs=before.tabs + section.tabs) if before else section
    return found
