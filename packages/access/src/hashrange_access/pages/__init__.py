"""What access adds to the console: a page about who may do what, with the access keys and the audit log.

The keys are shown to administrators only, as on the admin plane, and can be disabled and enabled. They are
made by `hashrange key`, so that no secret is ever in a page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.server.admin.application import audit_of, json, read_json, subject_of
from hashrange.server.admin.aside import aside
from hashrange_access.judging.gate import Gate
from hashrange_access.keys.keyring import Keyring, KeyringError
from hashrange_console import looks
from hashrange_console.pages import Action, Page, Pages, Section, Tab
from hashrange_console.reach import Refused, View

PATH: Final = "/console/access"


class KeyChange(msgspec.Struct, forbid_unknown_fields=True):
    """A key to disable, or to enable if `enable` is not ""."""

    id: str
    enable: str = ""


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
    keyring = _keyring(view)
    try:
        await aside(view.request, lambda _: keyring.set_enabled(sent.id, bool(sent.enable)))
    except KeyringError as error:
        raise Refused(str(error)) from None
    return json({"href": looks.href(PATH, scope=view.scope)})


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
    ),
    sections=(Section("server", "Server", "/console/backups", (Tab("access", "Access", PATH),)),),
    folder=Path(__file__).parent,
)
"""The pages, for `rings.Ring.pages`."""
