"""What access adds to the console: a page about who may do what, with the access keys and the audit log.

The keys are shown to administrators only, as on the admin plane, who can make, rotate, disable, enable and
delete keys. A secret is in the answer to the request that makes it: a page shows that answer once, and no
address leads to it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.server.admin.application import audit_of, json, read_json, subject_of
from hashrange.server.admin.aside import aside
from hashrange_access.judging.gate import Gate
from hashrange_access.keys.keyring import Keyring, KeyringError
from hashrange_access.keys.records import StoredKey
from hashrange_access.keys.sealing import VaultError
from hashrange_console import looks
from hashrange_console.pages import Action, Page, Pages, Section, Tab
from hashrange_console.reach import Refused, View

T = TypeVar("T")

PATH: Final = "/console/access"
GRACE_SECONDS: Final = 86_400.0
"""How long a key counts that another one has replaced."""


class KeyChange(msgspec.Struct, forbid_unknown_fields=True):
    """A key to disable, or to enable if `enable` is not ""."""

    id: str
    enable: str = ""


class NewKey(msgspec.Struct, forbid_unknown_fields=True):
    """The user of a new key, "" for the root user; the account, "" for the only one; and the policy, a
    document in JSON, of a user who stands in no users file."""

    user: str = ""
    account: str = ""
    policy: str = ""


class OneKey(msgspec.Struct, forbid_unknown_fields=True):
    """A key to rotate or to delete."""

    id: str


async def page(view: View) -> Response:
    """The mode of access, the keys, and where the audit log is."""
    gate = subject_of(view.request).database.observers.gate
    keyring = gate.keyring if isinstance(gate, Gate) else None
    keys: list[dict[str, Any]] | None = None
    if keyring is not None and view.administers:
        keys = await aside(view.request, lambda _: keyring.overview())
        keys = [key | {"made": show_moment(key["created"])} for key in keys]
    audit = audit_of(subject_of(view.request))
    return await looks.page(
        "access/access.html",
        view=view,
        mode="off" if not isinstance(gate, Gate) else "strict" if gate.strict else "soft",
        has_keys=keyring is not None,
        keys=keys,
        audit=audit,
    )


async def change(view: View) -> Response:
    """Disable or enable a key."""
    sent = await read_json(view.request, KeyChange)
    await _work(view, lambda keyring: keyring.set_enabled(sent.id, bool(sent.enable)))
    return _back(view)


async def create(view: View) -> Response:
    """Make a key, and answer its secret."""
    sent = await read_json(view.request, NewKey)
    policy = None
    if sent.policy.strip():
        try:
            policy = msgspec.json.decode(sent.policy, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise Refused(f"The policy is not a JSON document: {error}.") from None
    made = await _work(view, lambda keyring: keyring.create(sent.user, sent.account or None, policy))
    return _with_secret(*made, then="")


async def rotate(view: View) -> Response:
    """Make another key of the same user, and answer its secret. The old key counts for a day more."""
    sent = await read_json(view.request, OneKey)
    made = await _work(view, lambda keyring: keyring.rotate(sent.id, GRACE_SECONDS))
    return _with_secret(*made, then=f"The key {sent.id} counts for a day more.")


async def delete(view: View) -> Response:
    """Delete a key."""
    sent = await read_json(view.request, OneKey)
    await _work(view, lambda keyring: keyring.delete(sent.id))
    return _back(view)


def _with_secret(key: StoredKey, secret: str, *, then: str) -> Response:
    credentials = f"export AWS_ACCESS_KEY_ID={key.id}\nexport AWS_SECRET_ACCESS_KEY={secret}\n"
    return json({"of": key.user or "root", "credentials": credentials, "then": then})


def _back(view: View) -> Response:
    return json({"href": looks.href(PATH, scope=view.scope)})


async def _work(view: View, work: Callable[[Keyring], T]) -> T:
    """Work with the keys on a thread, because it waits for the store. Raises `Refused`."""
    keyring = _keyring(view)
    try:
        return await aside(view.request, lambda _: work(keyring))
    except (KeyringError, VaultError) as error:
        raise Refused(str(error)) from None


def _keyring(view: View) -> Keyring:
    """The keys, for administrators. Raises `Refused`."""
    if not view.administers:
        raise Refused("Only an administrator may change keys.")
    gate = subject_of(view.request).database.observers.gate
    if not isinstance(gate, Gate) or gate.keyring is None:
        raise Refused("The server has no keys: start it with --auth soft or --auth strict.")
    return gate.keyring


PAGES: Final = Pages(
    parts=(
        Page(PATH, "Who may do what: the mode, the keys, the audit log.", page),
        Action("/console/access/key", "Disable or enable an access key.", change, KeyChange),
        Action("/console/access/new", "Make an access key; the answer has its secret.", create, NewKey),
        Action("/console/access/rotate", "Make another key of the same user.", rotate, OneKey),
        Action("/console/access/delete", "Delete an access key.", delete, OneKey),
    ),
    sections=(Section("server", "Server", "/console/backups", (Tab("access", "Access", PATH),)),),
    folder=Path(__file__).parent,
)
"""The pages, for `rings.Ring.pages`."""
