"""Who may open the console: the tokens of links, which are used once, and the sessions of browsers.

A link's token is swapped for a session, whose value the browser keeps in a cookie. Both end with the server,
when nobody has used them for eight hours, and when the key that asked for the link no longer counts. A
session also ends after a day, and when its browser logs out. The token of the admin plane opens the console
as well, as often as it is used. A user who may only read gets links to a console that changes nothing: such a
link and its session begin with a mark.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hashrange.clock import SystemClock
from hashrange.server.admin.port import Admin, Door

PASSES_MAX: Final = 100
"""The most unused links, and the most sessions; the oldest are forgotten."""
IDLE_SECONDS_MAX: Final = 8 * 3_600
"""How long a link or a session may be unused."""
AGE_SECONDS_MAX: Final = 24 * 3_600
"""How old a session may become."""
_BYTES: Final = 24
_READ_ONLY: Final = "read."
"""The mark; it has a dot, which random tokens do not have."""


def _always() -> bool:
    return True


@dataclass(slots=True)
class _Pass:
    """A link or a session. `counts`: whether the key still counts that asked for the link. `is_admin`: who
    asked for it has the role of an administrator."""

    value: str
    made: float
    used: float
    counts: Callable[[], bool]
    is_admin: bool


class Entry:
    """The links and the sessions of one server. `token` is that of the admin plane, "" for none. `now` is the
    machine's time in epoch seconds."""

    __slots__ = ("_links", "_now", "_sessions", "_token")

    def __init__(self, token: str = "", now: Callable[[], float] | None = None) -> None:
        self._token = token
        self._now = now or SystemClock().now
        self._links: list[_Pass] = []
        self._sessions: list[_Pass] = []

    def link(
        self, *, read_only: bool = False, is_admin: bool = False, counts: Callable[[], bool] = _always
    ) -> str:
        """A new token for a link. `read_only`: its user may change nothing. `is_admin`: also what only
        administrators may do. `counts`: whether the key that asks for the link still counts."""
        return self._new(self._links, _READ_ONLY if read_only else "", counts, is_admin)

    def redeem(self, token: str) -> str | None:
        """The session for a token, which is used up; None if the token is not valid."""
        link = self._known(self._links, token)
        if link is not None:
            self._links.remove(link)
            mark = _READ_ONLY if is_read_only(link.value) else ""
            return self._new(self._sessions, mark, link.counts, link.is_admin)
        if not self._token or not _same(self._token, token):
            return None
        return self._new(self._sessions, "", _always, True)

    def knows(self, session: str, *, uses: bool = True) -> bool:
        """Whether a browser with this session may use the console. `uses`: it does so now."""
        known = self._known(self._sessions, session)
        if known is not None and uses:
            known.used = self._now()
        return known is not None

    def end(self, session: str) -> None:
        """End a session, if there is such a one."""
        known = self._known(self._sessions, session)
        if known is not None:
            self._sessions.remove(known)

    def administers(self, session: str) -> bool:
        """Whether a browser with this session may do what only administrators may."""
        known = self._known(self._sessions, session)
        return known is not None and known.is_admin

    def _new(self, passes: list[_Pass], mark: str, counts: Callable[[], bool], is_admin: bool) -> str:
        now = self._now()
        passes.append(_Pass(mark + secrets.token_urlsafe(_BYTES), now, now, counts, is_admin))
        del passes[:-PASSES_MAX]
        return passes[-1].value

    def _known(self, passes: list[_Pass], given: str) -> _Pass | None:
        """The link or session with the value `given`, if it has not ended."""
        known = next((each for each in passes if _same(each.value, given)), None)
        if known is None:
            return None
        now = self._now()
        is_in_time = now - known.made < AGE_SECONDS_MAX and now - known.used < IDLE_SECONDS_MAX
        if is_in_time and known.counts():
            return known
        passes.remove(known)
        return None


@dataclass(slots=True)
class Console:
    """The console of one server: who may open it, and the text on a red strip of each page, "" for none."""

    entry: Entry
    banner: str = ""


def console_of(door: Door) -> Console:
    """The console behind a door of the admin plane. It is made when it is first asked for."""
    if "console" not in door.of_rings:
        door.of_rings["console"] = Console(Entry(door.token))
    console: Console = door.of_rings["console"]
    return console


def link_to(admin: Admin) -> str:
    """A new link to the console of a server, which can be used once."""
    return f"{admin.url}/console?token={console_of(admin.door).entry.link(is_admin=True)}"


def is_read_only(value: str) -> bool:
    """Whether who uses this link or session, which is known, may change nothing."""
    return value.startswith(_READ_ONLY)


def _same(value: str, given: str) -> bool:
    """Whether two values are the same. The time of the comparison reveals nothing about them."""
    return hmac.compare_digest(value.encode(), given.encode("utf-8", "surrogatepass"))
