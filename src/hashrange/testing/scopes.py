"""The active scopes: which database of this process answers which request.

All threads and tasks share them, because the code under test may make requests on any of them. A scope may be
limited to an endpoint, a region or an account. Of the scopes that take a request, the one that was entered
last answers it, so an inner scope hides an outer one. Scopes may be left in any order.

While a scope is active, variables of the environment keep botocore from asking the network for credentials,
and name a region if the user has named none. While a scope with `own_credentials` is active, the environment
holds dummy credentials, and boto3's default session, which may hold the developer's credentials, is replaced.
The end of the last such scope restores the previous state.

Refuses to know botocore.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from hashrange.operations.context import Caller

if TYPE_CHECKING:
    from hashrange.database import Database
    from hashrange.testing.database import LocalDatabase

OtherServices = Literal["stop", "refuse", "allow"]
Afterwards = Literal["reach", "refuse"]

_ACCOUNT_DIGITS: Final = 12
_OWN_CREDENTIALS: Final = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    # The older name of AWS_SESSION_TOKEN.
    "AWS_SECURITY_TOKEN": "testing",
}


class Sender(NamedTuple):
    """Who sends a request: the access key of the client, "" where it has none, and its region."""

    access_key: str
    region: str


class Scope:
    """A database, and the requests that it answers while the scope is entered.

    `endpoint_url`, `region` and `account_id` limit the requests; None means no limit. An access key of 12
    digits is the sender's account; any other sender belongs to `default_account_id`. `holder` is the value
    that the scope's block has for the program. `own_credentials` hides the developer's credentials.
    `identified` makes the identity (`access.judging.Identified`) of the senders of an account, whose requests
    are then judged by policies.
    """

    __slots__ = (
        "_callers",
        "account_id",
        "afterwards",
        "database",
        "default_account_id",
        "endpoint_url",
        "holder",
        "identified",
        "other_services",
        "own_credentials",
        "region",
    )

    def __init__(
        self,
        database: Database,
        *,
        holder: LocalDatabase | None = None,
        endpoint_url: str | None = None,
        region: str | None = None,
        account_id: str | None = None,
        default_account_id: str = Caller().account_id,
        other_services: OtherServices = "stop",
        afterwards: Afterwards = "reach",
        own_credentials: bool = False,
        identified: Callable[[str], Any] | None = None,
    ) -> None:
        if other_services not in get_args(OtherServices):
            choices = ", ".join(get_args(OtherServices))
            raise ValueError(f"other_services is {other_services!r}, and must be one of: {choices}.")
        self.database = database
        self.holder = holder
        self.endpoint_url = endpoint_url.rstrip("/") if endpoint_url is not None else None
        self.region = region
        self.account_id = account_id
        self.default_account_id = default_account_id
        self.other_services = other_services
        self.afterwards = afterwards
        self.own_credentials = own_credentials
        self.identified = identified
        self._callers: dict[Sender, Caller] = {}

    def caller(self, sender: Sender) -> Caller:
        """The caller that `sender` is to this scope's database."""
        caller_ = self._callers.get(sender)
        if caller_ is None:
            key = sender.access_key
            is_account = len(key) == _ACCOUNT_DIGITS and key.isascii() and key.isdecimal()
            account_id = key if is_account else self.default_account_id
            identified = None if self.identified is None else self.identified(account_id)
            caller_ = self._callers[sender] = Caller(sender.region, account_id, key, identified=identified)
        return caller_

    def takes(self, url: str, sender: Sender) -> bool:
        """Whether a request to `url` belongs to this scope."""
        if self.region is not None and self.region != sender.region:
            return False
        if self.account_id is not None and self.account_id != self.caller(sender).account_id:
            return False
        if self.endpoint_url is None:
            return not url.startswith(_served)
        end = self.endpoint_url
        return any(own == end or own.startswith(end + "/") for own in _as_of_tables(url))


def _as_of_tables(url: str) -> Iterator[str]:
    """The URL, and for one of a vector search those that the client's other requests go to: AWS has endpoints
    of their own for searches."""
    yield url
    scheme, _, host = url.partition("://")
    if host.startswith("search-dynamodb."):
        yield f"{scheme}://{host.removeprefix('search-')}"
    account_id, found, rest = host.partition(".search-ddb.")
    if found:
        yield f"{scheme}://{account_id}.ddb.{rest}"
        yield f"{scheme}://dynamodb.{rest}"


_entered: tuple[Scope, ...] = ()
_changing: Final = threading.Lock()
_served: tuple[str, ...] = ()


def scope_of(url: str, sender: Sender) -> Scope | None:
    """The scope that answers a request of `sender` to `url`; None if none does."""
    for scope in reversed(_entered):
        if scope.takes(url, sender):
            return scope
    return None


def innermost() -> Scope | None:
    """The scope that was entered last."""
    entered = _entered
    return entered[-1] if entered else None


def other_services() -> OtherServices:
    """How requests to other services are treated. The innermost scope decides; but if it says "stop", an
    outer scope may still refuse all of them."""
    named: list[OtherServices] = [scope.other_services for scope in reversed(_entered)]
    if not named:
        return "allow"
    return (
        named[0]
        if named[0] != "stop"
        else next((treatment for treatment in named if treatment == "refuse"), "stop")
    )


def is_entered(scope: Scope) -> bool:
    """Whether `scope` is entered."""
    return scope in _entered


def enter(scope: Scope) -> None:
    """Let `scope` answer requests."""
    global _entered
    with _changing:
        if not _entered:
            _defaults.set(_default_variables())
        if scope.own_credentials and not _has_own_credentials():
            _credentials.set(_OWN_CREDENTIALS)
            _session.put_away()
        _entered = (*_entered, scope)


def leave(scope: Scope) -> None:
    """End a scope, even if others were entered since."""
    global _entered
    with _changing:
        _entered = tuple(entered for entered in _entered if entered is not scope)
        if scope.own_credentials and not _has_own_credentials():
            _credentials.reset()
            _session.bring_back()
        if not _entered:
            _defaults.reset()


def _has_own_credentials() -> bool:
    return any(scope.own_credentials for scope in _entered)


@contextmanager
def served(endpoint_url: str) -> Iterator[None]:
    """Let requests to the server at `endpoint_url`, which this process runs, bypass all scopes."""
    global _served
    with _changing:
        _served = (*_served, endpoint_url)
    try:
        yield
    finally:
        with _changing:
            _served = tuple(url for url in _served if url != endpoint_url)


class _Variables:
    """Variables of the environment that are set temporarily."""

    def __init__(self) -> None:
        self._before: dict[str, str | None] = {}
        self._set: Mapping[str, str] = {}

    def set(self, wanted: Mapping[str, str]) -> None:
        self._before = {name: os.environ.get(name) for name in wanted}
        self._set = wanted
        os.environ.update(wanted)

    def reset(self) -> None:
        """Restore the previous values, except of variables that the program has set meanwhile."""
        for name, before in self._before.items():
            if os.environ.get(name) != self._set[name]:
                continue
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before
        self._before = {}


class _DefaultSession:
    """boto3's default session, which keeps credentials once it has found them.

    The session that replaces it is kept for later scopes, because making a session takes a tenth of a second.
    """

    def __init__(self) -> None:
        self._theirs: Any = None
        self._ours: Any = None

    def put_away(self) -> None:
        boto3: Any = sys.modules.get("boto3")
        if boto3 is not None:
            self._theirs, boto3.DEFAULT_SESSION = boto3.DEFAULT_SESSION, self._ours

    def bring_back(self) -> None:
        boto3: Any = sys.modules.get("boto3")
        if boto3 is not None:
            self._ours, boto3.DEFAULT_SESSION = boto3.DEFAULT_SESSION, self._theirs
        self._theirs = None


def _default_variables() -> dict[str, str]:
    wanted = {"AWS_EC2_METADATA_DISABLED": "true"}
    if not _names_a_region():
        wanted["AWS_DEFAULT_REGION"] = Caller().region
    return {name: value for name, value in wanted.items() if name not in os.environ}


def _names_a_region() -> bool:
    """Whether the user may have named a region: by a variable, or in a file of configuration."""
    if "AWS_DEFAULT_REGION" in os.environ:
        return True
    file = Path(os.environ.get("AWS_CONFIG_FILE", "~/.aws/config")).expanduser()
    return file.is_file() and "region" in file.read_text(encoding="utf-8", errors="replace")


_defaults: Final = _Variables()
_credentials: Final = _Variables()
_session: Final = _DefaultSession()
