"""The access keys of the store on the admin plane, for `hashrange key`.

    GET    /access-keys               the keys, without secrets
    POST   /access-keys               make a key
    POST   /access-keys/{id}          enable or disable a key
    POST   /access-keys/{id}/rotate   make another key of the same user, and end this one later
    DELETE /access-keys/{id}          delete a key

A secret is in the answer to the request that makes it, and never again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hashrange.server.admin.application import Endpoint, json, read_json
from hashrange.server.admin.aside import aside
from hashrange.server.admin.roles import ADMIN
from hashrange_access.judging.gate import Gate
from hashrange_access.keys.keyring import Keyring, KeyringError, NoSuchKey
from hashrange_access.keys.records import StoredKey
from hashrange_access.keys.sealing import VaultError

T = TypeVar("T")


class NewKey(msgspec.Struct, forbid_unknown_fields=True):
    """The user of the new key; without one it is the root user. `account` is needed where there are several;
    `policy` is the policy of a user who stands in no users file."""

    user: str = ""
    account: str | None = None
    policy: dict[str, Any] | None = None


class Status(msgspec.Struct, forbid_unknown_fields=True):
    """Whether the key is to count."""

    enabled: bool


class Rotation(msgspec.Struct, forbid_unknown_fields=True):
    """How long the old key counts beside the new one."""

    grace_seconds: Annotated[float, msgspec.Meta(ge=0)] = 86_400


async def _list(request: Request) -> Response:
    return json({"keys": await _aside(request, lambda keyring: keyring.overview())})


async def _create(request: Request) -> Response:
    sent = await read_json(request, NewKey)
    made = await _aside(request, lambda keyring: keyring.create(sent.user, sent.account, sent.policy))
    return json(_with_secret(*made))


async def _set(request: Request) -> Response:
    sent = await read_json(request, Status)
    id_ = request.path_params["id"]
    return json({"key": await _aside(request, lambda keyring: keyring.set_enabled(id_, sent.enabled))})


async def _rotate(request: Request) -> Response:
    sent = await read_json(request, Rotation)
    id_ = request.path_params["id"]
    made = await _aside(request, lambda keyring: keyring.rotate(id_, sent.grace_seconds))
    return json(_with_secret(*made))


async def _delete(request: Request) -> Response:
    id_ = request.path_params["id"]
    await _aside(request, lambda keyring: keyring.delete(id_))
    return json({"deleted": id_})


def _with_secret(key: StoredKey, secret: str) -> dict[str, Any]:
    return {"id": key.id, "secret": secret, "account": key.account, "user": key.user or "root"}


async def _aside(request: Request, work: Callable[[Keyring], T]) -> T:
    """Work with the keys on a thread, because it waits for the store."""
    gate = request.app.state.subject.database.observers.gate
    keyring = gate.keyring if isinstance(gate, Gate) else None
    if keyring is None:
        raise HTTPException(400, "the server has no keys: start it with --auth soft or --auth strict")
    try:
        return await aside(request, lambda _: work(keyring))
    except NoSuchKey as error:
        raise HTTPException(404, str(error)) from None
    except (KeyringError, VaultError) as error:
        raise HTTPException(400, str(error)) from None


ENDPOINTS: Final = (
    Endpoint("GET", "/access-keys", "The access keys of the store, without secrets.", _list, role=ADMIN),
    Endpoint("POST", "/access-keys", "Make an access key.", _create, takes=NewKey, role=ADMIN),
    Endpoint(
        "POST", "/access-keys/{id}", "Enable or disable an access key.", _set, takes=Status, role=ADMIN
    ),
    Endpoint(
        "POST",
        "/access-keys/{id}/rotate",
        "Make another access key of the same user, and end this one later.",
        _rotate,
        takes=Rotation,
        role=ADMIN,
    ),
    Endpoint("DELETE", "/access-keys/{id}", "Delete an access key.", _delete, role=ADMIN),
)
