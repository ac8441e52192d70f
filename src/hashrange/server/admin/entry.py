"""Who may open the console: the tokens of links, which are used once, and the sessions of browsers.

A link's token is swapped for a session, whose value the browser keeps in a cookie. Both end with the server.
The token of the admin plane opens the console as well, as often as it is used.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

KEPT_MAX: Final = 100
"""The most unused links, and the most sessions; the oldest are forgotten."""
_BYTES: Final = 24


class Entry:
    """The links and the sessions of one server. `token` is that of the admin plane, "" for none."""

    __slots__ = ("_links", "_sessions", "_token")

    def __init__(self, token: str = "") -> None:
        self._token = token
        self._links: list[str] = []
        self._sessions: list[str] = []

    def link(self) -> str:
        """A new token for a link."""
        return _kept(self._links)

    def redeem(self, token: str) -> str | None:
        """The session for a token, which is used up; None if the token is not valid."""
        link = _known(self._links, token)
        if link is not None:
            self._links.remove(link)
        elif not self._token or _known([self._token], token) is None:
            return None
        return _kept(self._sessions)

    def knows(self, session: str) -> bool:
        """Whether a browser with this session may use the console."""
        return _known(self._sessions, session) is not None


def _kept(values: list[str]) -> str:
    values.append(secrets.token_urlsafe(_BYTES))
    del values[:-KEPT_MAX]
    return values[-1]


def _known(values: list[str], given: str) -> str | None:
    """The value that equals `given`. The time of the comparison reveals nothing about the values."""
    sent = given.encode("utf-8", "surrogatepass")
    return next((value for value in values if hmac.compare_digest(value.encode(), sent)), None)
