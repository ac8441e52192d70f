"""Refuses requests of web pages to the data plane, by their Host and Origin headers.

Any web page can make the browser send requests to the loopback interface. Two headers distinguish such
requests from those of programs, and a page can forge neither:

- **Origin** names the page's site. Programs and SDKs send none. A request with one is refused unless the
  operator allows that origin (`allow_origin`). Any program of this machine may serve pages, so even
  `http://localhost:3000` has to be allowed first.
- **Host** is the name that the browser looked up. A foreign name may lead to 127.0.0.1 (DNS rebinding), and
  the page then sends no Origin. So a server that listens only on loopback addresses accepts only loopback
  names and addresses, the name that it listens on, and the names that the operator allows (`allow_host`). A
  server that listens on other addresses cannot know all its names, such as those of containers; it checks
  Host only if `allow_host` is set.

A refusal is 403 with an error that names the value and the option that allows it. A Host that is not a name
or an address is answered 400 (RFC 9112, 3.2).

Refuses to know: credentials, and what a request asks for.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import Final

import orjson

from hashrange.errors import AccessDeniedException
from hashrange.protocol import Headers, Response
from hashrange.server.settings import ANY, ServerSettings

HEADERS_ONCE: Final = frozenset({
    b"amz-sdk-request", b"authorization", b"content-encoding", b"content-length", b"content-type", b"date",
    b"expect", b"host", b"origin", b"transfer-encoding", b"x-amz-date", b"x-amz-target",
})  # fmt: skip
"""Headers that the server reads. A request that has such a header twice is refused with 400, because a proxy
before the server may have read the other value (RFC 9112, 3.2 demands this for Host)."""
REPEATED_BYTES_MAX: Final = 8 * 1024
"""The most bytes of another header that goes on in one more line: joining many lines takes quadratic time."""

_LOCALHOST: Final = "localhost"
# RFC 9110, 7.2:  Host = uri-host [ ":" port ];  RFC 3986, 3.2.2:  host = "[" IPv6address "]" / reg-name
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([-a-z0-9._~%!$&'()*+,;=]*))(?::[0-9]*)?", re.IGNORECASE)
_HOSTS_MET_MAX: Final = 1_000
_TOLD_MAX: Final = 100

_log = logging.getLogger(__name__)


class Access:
    """The rules of a server. `hosts_met` are the values of Host that were accepted before: a cache."""

    __slots__ = ("_hosts", "_origins", "_told", "hosts_met")

    def __init__(self, settings: ServerSettings, *, listening: Iterable[str] = (), host: str = "") -> None:
        """`listening` are the addresses that the server listens on, `host` the name that the operator
        gave."""
        addresses = tuple(listening)
        self._origins = frozenset(origin.lower() for origin in settings.allow_origin)
        self._hosts: frozenset[str] | None = None
        if ANY not in settings.allow_host and (settings.allow_host or _all_loopback(addresses)):
            self._hosts = frozenset(_bare(name) for name in (*settings.allow_host, *addresses, host))
        self._told: set[tuple[str, str]] = set()
        self.hosts_met: set[bytes] = set()

    def refusal(self, headers: Headers) -> Response | None:
        """The answer to a request that is refused; None if it is accepted."""
        sent = headers.get(b"host")
        if sent is not None and sent not in self.hosts_met:
            host = named(sent)
            if host is None:
                return Response(400, b"")
            if not self.takes_host(host):
                return self._refuse(
                    "Host",
                    host,
                    "The server does not know that name as its own. If it is one of yours, start the server "
                    "with --allow-host",
                )
            if len(self.hosts_met) >= _HOSTS_MET_MAX:
                self.hosts_met.clear()
            self.hosts_met.add(sent)
        origin = headers.get(b"origin")
        if origin is not None and ANY not in self._origins:
            name = origin.decode("latin-1").lower()
            if name not in self._origins:
                return self._refuse(
                    "Origin",
                    name,
                    "Web pages may not use this server. If the page is one of yours, start the server with "
                    "--allow-origin",
                )
        return None

    def takes_host(self, host: str) -> bool:
        """Whether clients may call the server by this name or address (of `named`)."""
        if self._hosts is None or host in self._hosts:
            return True
        # RFC 6761, 6.3: names below localhost are always loopback names.
        return host == _LOCALHOST or host.endswith("." + _LOCALHOST) or is_loopback(host)

    def _refuse(self, header: str, value: str, remedy: str) -> Response:
        if (header, value) not in self._told and len(self._told) < _TOLD_MAX:
            self._told.add((header, value))
            _log.warning("requests refused", extra={"fields": {"header": header, "value": value}})
        option = value if value.isprintable() and " " not in value and value else "VALUE"
        text = f"The request was refused because of its header {header}: {value!r}. {remedy} {option}."
        error = AccessDeniedException(text)
        return Response(403, orjson.dumps(error.wire()), error=error.code)


def coding_refusal(coding: bytes, http_version: str) -> int:
    """The status for a request with this Transfer-Encoding; 0 if its body can be read.

    RFC 9112, 6.1: a coding that the server does not know is 501; HTTP/1.0 has no codings.
    """
    if http_version == "1.0":
        return 400
    return 0 if coding.strip().lower() == b"chunked" else 501


def named(sent: bytes) -> str | None:
    """The name or address in a Host header: `localhost` of `localhost:8000`, `::1` of `[::1]:8000`; None if
    the header is malformed."""
    matched = _HOST.fullmatch(sent.decode("latin-1"))
    if matched is None:
        return None
    address, name = matched.groups()
    if address is None:
        return str(name).lower()
    try:
        IPv6Address(address)
    except ValueError:
        return None
    return str(address).lower()


def _bare(host: str) -> str:
    return host.lower().strip("[]")


def _all_loopback(addresses: tuple[str, ...]) -> bool:
    return bool(addresses) and all(map(is_loopback, addresses))


def is_loopback(address: str) -> bool:
    """Whether only programs on this machine can reach an address."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
