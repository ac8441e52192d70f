"""A batch of statements under policies: a statement that is not allowed fails by itself.

Its answer has the code AccessDenied, and the other statements are executed. Source: API reference,
BatchStatementError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashrange.errors import ServiceError
from hashrange.operations.context import Answer, Caller, Context, Request, scope_of
from hashrange.operations.statements import batch_execute_statement
from hashrange.settings import Settings
from hashrange.tables.items.capacity import NO_BILL
from hashrange_access.judging.act import Act
from hashrange_access.judging.judge import Judge
from hashrange_access.judging.statements import statement_act

DENIED = "AccessDenied"


def judged_batch(
    judge: Judge,
    body: Callable[[Any], Any],
    request: Request,
    caller: Caller,
    settings: Settings,
    now: float,
) -> Callable[[Any], Any]:
    """The body of a BatchExecuteStatement, of which `body` executes all statements."""
    statements = list(request["Statements"])
    others = {name: value for name, value in request.items() if name != "Statements"}
    acts = [_act(content, request) for content in statements]
    scope = scope_of(caller.account_id, caller.region, settings)

    def judged_body(reader: Any) -> Any:
        refusals = [None if act is None else judge.refusal(act, reader) for act in acts]
        if not any(refusals):
            return body(reader)
        allowed = [content for content, refusal in zip(statements, refusals, strict=True) if refusal is None]
        answer: Answer = {"Responses": []}
        bill = NO_BILL
        if allowed:
            # (a batch needs neither new ids nor what operations keep, and its bill is wanted)
            context = Context(caller, now, settings, str, scope, billed=True)
            part = batch_execute_statement.prepare(others | {"Statements": allowed}, context)
            answer, bill = part(reader)
        done = iter(answer["Responses"])
        responses = [next(done) if refusal is None else _denied(refusal) for refusal in refusals]
        return answer | {"Responses": responses}, bill

    return judged_body


def _act(content: Request, request: Request) -> Act | None:
    """The act of a statement; None if it is not valid: it gets its own error, and has no effect."""
    try:
        return statement_act("BatchExecuteStatement", content, request)
    except ServiceError:
        return None


def _denied(message: str) -> dict[str, Any]:
    return {"Error": {"Code": DENIED, "Message": message}}
