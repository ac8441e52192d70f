"""The fault rules of a server, on the admin plane.

    GET    /faults            the rules in force, and how often each of them fired
    POST   /faults            put a rule in force
    DELETE /faults            remove all rules
    DELETE /faults/{number}   remove a rule

Each answers with the rules that are then in force.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hashrange.faults import show
from hashrange.server.admin.application import Endpoint, json, read_json, subject_of
from hashrange.server.admin.port import Subject


class NewFault(msgspec.Struct, forbid_unknown_fields=True):
    """A fault rule, as `hashrange serve --fault` takes it: ``PutItem table=orders nth=3 throttle``."""

    rule: str


def rules_of(subject: Subject) -> list[dict[str, Any]]:
    """The rules in force on a server, as `GET /faults` shows them."""
    return [
        {
            "number": armed.number,
            "rule": show(armed.rule),
            "matched": armed.matched,
            "fired": armed.fired,
        }
        for armed in subject.database.faults
    ]


def add(subject: Subject, rule: str) -> None:
    """Put a rule in force. Raises HTTPException."""
    try:
        subject.database.faults.add(rule)
    except ValueError as error:
        raise HTTPException(400, str(error)) from None


def remove(subject: Subject, number: str) -> None:
    """Remove a rule. Raises HTTPException."""
    faults = subject.database.faults
    if not (number.isascii() and number.isdigit() and len(number) < 10 and faults.remove(int(number))):
        numbers = ", ".join([str(armed.number) for armed in faults]) or "none"
        raise HTTPException(404, f"there is no fault {number}; there are: {numbers}")


async def _list(request: Request) -> Response:
    return json({"faults": rules_of(subject_of(request))})


async def _add(request: Request) -> Response:
    add(subject_of(request), (await read_json(request, NewFault)).rule)
    return await _list(request)


async def _clear(request: Request) -> Response:
    subject_of(request).database.faults.clear()
    return await _list(request)


async def _remove(request: Request) -> Response:
    remove(subject_of(request), request.path_params["number"])
    return await _list(request)


ENDPOINTS: Final = (
    Endpoint("GET", "/faults", "The fault rules in force, and how often each of them fired.", _list),
    Endpoint("POST", "/faults", "Put a fault rule in force.", _add, takes=NewFault),
    Endpoint("DELETE", "/faults", "Remove all fault rules.", _clear),
    Endpoint("DELETE", "/faults/{number}", "Remove a fault rule.", _remove),
)
