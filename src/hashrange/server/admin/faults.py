"""The fault rules of a server, on the admin plane.

    GET    /v1/faults            the rules in force, and how often each of them fired
    POST   /v1/faults            put a rule in force
    DELETE /v1/faults            remove all rules
    DELETE /v1/faults/{number}   remove a rule

Each answers with the rules that are then in force.
"""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from hashrange.faults import show
from hashrange.server.admin.application import Endpoint, read_json, subject_of
from hashrange.server.admin.port import Subject


class NewFault(msgspec.Struct, forbid_unknown_fields=True):
    """A fault rule to put in force.

    rule: the rule, as `hashrange serve --fault` takes it: `PutItem table=orders nth=3 throttle`.
    """

    rule: str


class FaultRule(msgspec.Struct):
    """A fault rule in force.

    number: its number, by which it is removed.
    rule: the rule.
    matched: how many requests it was for.
    fired: how many of them it made fail.
    """

    number: int
    rule: str
    matched: int
    fired: int


class FaultRules(msgspec.Struct):
    """The fault rules in force.

    faults: the rules, oldest first.
    """

    faults: list[FaultRule]


def rules_of(subject: Subject) -> list[FaultRule]:
    """The rules in force on a server."""
    return [
        FaultRule(armed.number, show(armed.rule), armed.matched, armed.fired)
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


async def _list(request: Request) -> FaultRules:
    return FaultRules(rules_of(subject_of(request)))


async def _add(request: Request) -> FaultRules:
    add(subject_of(request), (await read_json(request, NewFault)).rule)
    return await _list(request)


async def _clear(request: Request) -> FaultRules:
    subject_of(request).database.faults.clear()
    return await _list(request)


async def _remove(request: Request) -> FaultRules:
    remove(subject_of(request), request.path_params["number"])
    return await _list(request)


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/faults", "The fault rules in force, and how often each of them fired.", _list),
    Endpoint("POST", "/v1/faults", "Put a fault rule in force; answers with all.", _add, takes=NewFault),
    Endpoint("DELETE", "/v1/faults", "Remove all fault rules; answers with none.", _clear),
    Endpoint("DELETE", "/v1/faults/{number}", "Remove a fault rule; answers with the others.", _remove),
)
