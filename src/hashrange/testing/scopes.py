"""The scopes that are entered: which database of this process answers which request.

All threads and tasks share them, because the code under test may make its requests on any. A scope may be
limited to an endpoint, a region or an account. The scope that was entered last and takes a request answers
it; so an inner scope hides an outer one. Scopes may be left in any order.

While a scope is entered, the environment keeps botocore from asking the network for credentials, and names a
region where the user has named none. What the environment held before comes back with the end of the last
scope.

Refuses to know botocore.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from hashrange.operations.context import Caller

if TYPE_CHECKING:
    from hashrange.database import Database
    from hashrange.testing.database import LocalDatabase

OtherServices = Literal["stop", "allow"]
Afterwards = Literal["reach", "refuse"]

_ACCOUNT_DIGITS: Final = 12


class Sender(NamedTuple):
    """Who sends a request: the access key of the client, "" where it has none, and its region."""

    access_key: str
    region: str


class Scope:
    """A database, and the requests that it answers while the scope is entered.

    `endpoint_url`, `region` and `account_id` limit the requests; None is no limit. A sender whose access key
    has 12 digits is of that account, and any other sender of `default_account_id`. `holder` is what the
    block of the scope gives to the program.
    """

    __slots__ = (
        "_callers",
        "account_id",
        "afterwards",
        "database",
        "default_account_id",
        "endpoint_url",
        "holder",
        "other_services",
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
    ) -> None:
        self.database = database
        self.holder = holder
        self.endpoint_url = endpoint_url.rstrip("/") if endpoint_url is not None else None
        self.region = region
        self.account_id = account_id
        self.default_account_id = default_account_id
        self.other_services = other_services
        self.afterwards = afterwards
        self._callers: dict[Sender, Caller] = {}

    def caller(self, sender: Sender) -> Caller:
        """The caller that `sender` is to this scope's database."""
        found = self._callers.get(sender)
        if found is None:
            key = sender.access_key
            is_account = len(key) == _ACCOUNT_DIGITS and key.isascii() and key.isdecimal()
            account_id = key if is_account else self.default_account_id
            found = self._callers[sender] = Caller(sender.region, account_id, key)
        return found

    def takes(self, url: str, sender: Sender) -> bool:
        """Whether a request to `url` belongs to this scope."""
        if self.region is not None and self.region != sender.region:
            return False
        if self.account_id is not None and self.account_id != self.caller(sender).account_id:
            return False
        if self.endpoint_url is None:
            return not url.startswith(_served)
        return url == self.endpoint_url or url.startswith(self.endpoint_url + "/")


_entered: tuple[Scope, ...] = ()
_changing: Final = threading.Lock()
_served: tuple[str, ...] = ()


def scope_of(url: str, sender: Sender) -> Scope | None:
    """The scope that answers a request of `sender` to `url`; None where none does."""
    for scope in reversed(_entered):
        if scope.takes(url, sender):
            return scope
    return None


def innermost() -> Scope | None:
    """The scope that was entered last."""
    entered = _entered
    return entered[-1] if entered else None


def is_entered(scope: Scope) -> bool:
    """Whether `scope` is entered."""
    return scope in _entered


def enter(scope: Scope) -> None:
    """Let `scope` answer requests."""
    global _entered
    with _changing:
        if not _entered:
            _environment.set()
        _entered = (*_entered, scope)


def leave(scope: Scope) -> None:
    """End a scope, whether or not others were entered since."""
    global _entered
    with _changing:
        _entered = tuple(one for one in _entered if one is not scope)
        if not _entered:
            _environment.reset()


@contextmanager
def served(endpoint_url: str) -> Iterator[None]:
    """Let requests to the server at `endpoint_url`, which this process runs, pass all scopes by."""
    global _served
    with _changing:
        _served = (*_served, endpoint_url)
    try:
        yield
    finally:
        with _changing:
            _served = tuple(one for one in _served if one != endpoint_url)


class _Environment:
    """The variables that are set while a scope is entered."""

    def __init__(self) -> None:
        self._set: dict[str, str] = {}

    def set(self) -> None:
        wanted = {"AWS_EC2_METADATA_DISABLED": "true"}
        if not _names_a_region():
            wanted["AWS_DEFAULT_REGION"] = Caller().region
        for name, value in wanted.items():
            if name not in os.environ:
                os.environ[name] = self._set[name] = value

    def reset(self) -> None:
        for name, value in self._set.items():
            if os.environ.get(name) == value:
                del os.environ[name]
        self._set.clear()


def _names_a_region() -> bool:
    """Whether the user may have named a region: by a variable, or in a file of configuration."""
    if "AWS_DEFAULT_REGION" in os.environ:
        return True
    file = Path(os.environ.get("AWS_CONFIG_FILE", "~/.aws/config")).expanduser()
    return file.is_file() and "region" in file.read_text(encoding="utf-8", errors="replace")


_environment: Final = _Environment()
