"""The access keys of the store on the admin plane, for `hashrange key`.

    GET    /v1/access-keys               the keys, without secrets
    POST   /v1/access-keys               make a key
    POST   /v1/access-keys/{id}          enable or disable a key
    POST   /v1/access-keys/{id}/rotate   make another key of the same user, and end this one later
    DELETE /v1/access-keys/{id}          delete a key

A secret is in the answer to the request that makes it, and never again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from hashrange.server.admin.application import Endpoint, read_json
from hashrange.server.admin.aside import aside
from hashrange.server.admin.roles import ADMIN
from hashrange_access.judging.gate import Gate
from hashrange_access.keys.keyring import Keyring, KeyringError, NoSuchKey
from hashrange_access.keys.records import StoredKey
from hashrange_access.keys.sealing import VaultError

T = TypeVar("T")


class NewKey(msgspec.Struct, forbid_unknown_fields=True):
    """The access key to make.

    user: the name of its user; without one it is the root user.
    account: the account of the user, needed where there are several.
    policy: the policy of a user who stands in no users file.
    """

    user: str = ""
    account: str | None = None
    policy: dict[str, Any] | None = None


class Status(msgspec.Struct, forbid_unknown_fields=True):
    """A change of an access key.

    enabled: whether it is to count.
    """

    enabled: bool


class Rotation(msgspec.Struct, forbid_unknown_fields=True):
    """A change of an access key for another one.

    grace_seconds: how long the old key counts beside the new one.
    """

    grace_seconds: Annotated[float, msgspec.Meta(ge=0)] = 86_400


class AccessKey(msgspec.Struct):
    """An access key of the store.

    id: its id.
    account: the account of its user.
    user: the name of its user.
    arn: the ARN of its user.
    created: when it was made, in epoch seconds.
    status: enabled or disabled.
    ends: when it ends, in epoch seconds; null if it does not.
    policy: the policy of a user who stands in no users file; null otherwise.
    problem: why it cannot be used; "" if it can.
    """

    id: str
    account: str
    user: str
    arn: str
    created: float
    status: Literal["enabled", "disabled"]
    ends: float | None
    policy: dict[str, Any] | None
    problem: str


class AccessKeys(msgspec.Struct):
    """The access keys of the store.

    keys: the keys, oldest first.
    """

    keys: list[AccessKey]


class ChangedKey(msgspec.Struct):
    """An access key after a change.

    key: the key.
    """

    key: AccessKey


class NewSecret(msgspec.Struct):
    """An access key that was made.

    id: its id.
    secret: its secret, which no other answer has.
    account: the account of its user.
    user: the name of its user.
    """

    id: str
    secret: str
    account: str
    user: str


class DeletedKey(msgspec.Struct):
    """An access key that was deleted.

    deleted: its id.
    """

    deleted: str


async def _list(request: Request) -> AccessKeys:
    keys = await _aside(request, lambda keyring: keyring.overview())
    return AccessKeys(msgspec.convert(keys, list[AccessKey]))


async def _create(request: Request) -> NewSecret:
    sent = await read_json(request, NewKey)
    made = await _aside(request, lambda keyring: keyring.create(sent.user, sent.account, sent.policy))
    return _with_secret(*made)


async def _set(request: Request) -> ChangedKey:
    sent = await read_json(request, Status)
    id_ = request.path_params["id"]
    key = await _aside(request, lambda keyring: keyring.set_enabled(id_, sent.enabled))
    return ChangedKey(msgspec.convert(key, AccessKey))


async def _rotate(request: Request) -> NewSecret:
    sent = await read_json(request, Rotation)
    id_ = request.path_params["id"]
    made = await _aside(request, lambda keyring: keyring.rotate(id_, sent.grace_seconds))
    return _with_secret(*made)


async def _delete(request: Request) -> DeletedKey:
    id_ = request.path_params["id"]
    await _aside(request, lambda keyring: keyring.delete(id_))
    return DeletedKey(id_)


def _with_secret(key: StoredKey, secret: str) -> NewSecret:
    return NewSecret(key.id, secret, key.account, key.user or "root")


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
    Endpoint("GET", "/v1/access-keys", "The access keys of the store, without secrets.", _list, role=ADMIN),
    Endpoint(
        "POST",
        "/v1/access-keys",
        "Make an access key; its secret is in this answer only.",
        _create,
        takes=NewKey,
        role=ADMIN,
    ),
    Endpoint(
        "POST", "/v1/access-keys/{id}", "Enable or disable an access key.", _set, takes=Status, role=ADMIN
    ),
    Endpoint(
        "POST",
        "/v1/access-keys/{id}/rotate",
        "Make another access key of the same user, and end this one later.",
        _rotate,
        takes=Rotation,
        role=ADMIN,
    ),
    Endpoint("DELETE", "/v1/access-keys/{id}", "Delete an access key.", _delete, role=ADMIN),
)
