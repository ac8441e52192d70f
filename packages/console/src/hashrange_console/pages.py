"""What the packages of pages declare: their pages, their questions and their changes.

`routes` makes endpoints of them. Each needs a browser with a session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

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
class Change:
    """A POST with a JSON body `takes` that may change something. A read-only console refuses it."""

    path: str
    about: str
    answer: Answer
    takes: type[Any]


Part = Page | Question | Change
