"""Who may open the console: the tokens of links, which are used once, and the sessions of browsers.

A link's token is swapped for a session, whose value the browser keeps in a cookie. Both end with the server.
The token of the admin plane opens the console as well, as often as it is used. A user who may only read gets
links to a console that changes nothing: such a link and its session begin with a mark.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

KEPT_MAX: Final = 100
"""The most unused links, and the most sessions; the oldest are forgotten."""
_BYTES: Final = 24
_READ_ONLY: Final = "read."
"""The mark; it has a dot, which random tokens do not have."""


class Entry:
    """The links and the sessions of one server. `token` is that of the admin plane, "" for none."""

    __slots__ = ("_links", "_sessions", "_token")

    def __init__(self, token: str = "") -> None:
        self._token = token
        self._links: list[str] = []
        self._sessions: list[str] = []

    def link(self, *, read_only: bool = False) -> str:
        """A new token for a link. `read_only`: whoever uses it may change nothing."""
        return _kept(self._links, _READ_ONLY if read_only else "")

    def redeem(self, token: str) -> str | None:
        """The session for a token, which is used up; None if the token is not valid."""
        link = _known(self._links, token)
        mark = ""
        if link is not None:
            self._links.remove(link)
            mark = _READ_ONLY if is_read_only(link) else ""
        elif not self._token or _known([self._token], token) is None:
            return None
        return _kept(self._sessions, mark)

    def knows(self, session: str) -> bool:
        """Whether a browser with this session may use the console."""
        return _known(self._sessions, session) is not None


def is_read_only(value: str) -> bool:
    """Whether who uses this link or session, which is known, may change nothing."""
    return value.startswith(_READ_ONLY)


def _kept(values: list[str], mark: str) -> str:
    values.append(mark + secrets.token_urlsafe(_BYTES))
    del values[:-KEPT_MAX]
    return values[-1]


def _known(values: list[str], given: str) -> str | None:
    """The value that equals `given`. The time of the comparison reveals nothing about the values."""
    sent = given.encode("utf-8", "surrogatepass")
    return next((value for value in values if hmac.compare_digest(value.encode(), sent)), None)
