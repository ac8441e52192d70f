"""Whether somebody looks: what live pages and commands show is kept only then.

A page that is loaded counts as looked at for a minute, because without JavaScript the server cannot know
better. With JavaScript it has a stream, which counts for as long as it is open, and for some seconds more,
because the browser may be on its way to the next page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

LOOK_SECONDS: Final = 60.0
RETURN_SECONDS: Final = 5.0
CALL_SECONDS: Final = 150.0
"""A program may ask once a minute, and have its terminal closed."""


class Attention:
    """Calls `begin` when somebody begins to look, and `end` some time after the last look. Lives on the event
    loop."""

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self.is_on = False
        self._begin = begin
        self._end = end
        self._streams = 0
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """A page was loaded."""
        self._look(LOOK_SECONDS)

    def _look(self, seconds: float) -> None:
        if not self.is_on:
            self.is_on = True
            self._begin()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.check)

    def call(self) -> None:
        """A program asked, and will perhaps ask again."""
        self._look(CALL_SECONDS)

    def hold(self) -> None:
        """A stream was opened."""
        self._streams += 1
        self.look()

    def release(self) -> None:
        """A stream was closed."""
        self._streams -= 1
        self._look(RETURN_SECONDS)

    def check(self) -> None:
        """End if no stream is open; called when the last look was long enough ago."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.is_on and not self._streams:
            self.is_on = False
            self._end()
