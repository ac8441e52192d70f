"""Answers requests to STS: `answered`, a function of a request's bytes.

With a gate, the signature must be that of a known key. A soft gate logs what a strict one would refuse, and
answers as a server without a gate does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from hashrange.errors import ServiceError
from hashrange.operations.context import Caller
from hashrange.rings import Formed, Sent
from hashrange_access.judging.gate import Gate
from hashrange_access.sts import operations, parameters
from hashrange_access.sts.answers import Result, StsError, failed, succeeded
from hashrange_access.sts.operations import OPERATIONS, Asker, Desk
from hashrange_access.sts.parameters import Form
from hashrange_access.users import root_of

SERVICE: Final = "sts"
# STS's errors for those of a signature. Source: AWS Security Token Service API Reference, "Common Errors".
_ERRORS: Final[Mapping[str, tuple[str, int]]] = {
    "MissingAuthenticationTokenException": ("MissingAuthenticationToken", 403),
    "IncompleteSignatureException": ("IncompleteSignature", 400),
    "InvalidSignatureException": ("SignatureDoesNotMatch", 403),
    "UnrecognizedClientException": ("InvalidClientTokenId", 403),
    "ExpiredTokenException": ("ExpiredToken", 403),
}

_log = logging.getLogger("hashrange.access")


def answered(
    sent: Sent,
    caller: Callable[[], Caller],
    gate: Any,
    now: Callable[[], float],
    request_id: bytes,
) -> Formed | None:
    """The answer to a request; None for a form that is no request to STS.

    `caller` is who the request's credentials say that he is; it may raise the errors of
    `protocol.Wire.read`. `gate` is that of the server. `now` is the machine's time in epoch seconds.
    """
    form = parameters.read(sent.body)
    gate = gate if isinstance(gate, Gate) else None
    if form is None or not form.is_of_sts:
        return None
    try:
        return succeeded(form.action, _result(form, sent, caller, gate, now()), request_id)
    except StsError as error:
        return failed(error, request_id)


def _result(
    form: Form, sent: Sent, caller: Callable[[], Caller], gate: Gate | None, now: float
) -> Result:
    operation = OPERATIONS.get(form.action)
    if operation is None:
        version = parameters.VERSION
        raise StsError("InvalidAction", f"Could not find operation {form.action} for version {version}")
    if gate is not None:
        try:
            return _verified(operation, form, sent, gate, now)
        except StsError as error:
            if gate.strict:
                raise
            fields = {"action": form.action, "error": error.code, "why": error.message}
            _log.warning("strict would refuse a request", extra={"fields": fields})
    try:
        called = caller()
    except ServiceError as error:
        raise _translated(error) from error
    identified = called.identified
    identity = identified.identity if identified is not None else root_of(called.account_id)
    return operation(form, Asker(identity), None, now)


def _verified(
    operation: operations.Operation, form: Form, sent: Sent, gate: Gate, now: float
) -> Result:
    try:
        key = gate.signer(SERVICE, sent.method, sent.target, sent.headers, sent.body)
    except ServiceError as error:
        raise _translated(error) from error
    desk = Desk(gate.directory, gate.tokens, gate.connection_keys(sent.headers))
    return operation(form, Asker(key.owner, key), desk, now)


def _translated(error: ServiceError) -> StsError:
    code, status = _ERRORS.get(error.code, (error.code, 400))
    return StsError(code, error.message or "", status)
