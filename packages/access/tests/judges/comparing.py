"""Decides each case with Hashrange's evaluation and with the other simulator, and reports the differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from hashrange_access.policies.documents import Policy, parse
from hashrange_access.policies.evaluation import Attached, Decision, evaluate
from hashrange_access.policies.requests import Principal, Request
from judges.cases import ACCOUNT, ROLE, Case, Json, random_case
from judges.known import reason
from judges.outside import Verdict, decide

BATCH = 2_000
_SHOWN_MAX = 10


@dataclass(slots=True)
class Comparison:
    """How many cases were compared, by both decisions; the known differences, by their reason; and the first
    of those that nobody has explained."""

    agreed: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)
    differences: int = 0


def compare(number: int, seed: int, say: Callable[[str], None] = lambda line: None) -> Comparison:
    """Compare `number` random cases. `say` is told of the progress. Raises RuntimeError if the other
    simulator fails."""
    random, made = Random(seed), Comparison()
    done = 0
    while done < number:
        cases = [random_case(random) for _ in range(min(BATCH, number - done))]
        for case, verdict in zip(cases, decide(cases), strict=True):
            _compare(made, case, verdict)
        done += len(cases)
        say(f"{done:,} cases: {sum(made.known.values())} known differences, {made.differences} others")
    return made


def _compare(made: Comparison, case: Case, verdict: Verdict) -> None:
    if verdict.decision == "error":
        made.errors[verdict.error] += 1
        return
    own = evaluated(case, verdict.ignored)
    if outcome(own) == verdict.decision:
        made.agreed[verdict.decision] += 1
        return
    why = reason(case, verdict.decision, lambda other: outcome(evaluated(other, verdict.ignored)))
    if why:
        made.known[why] += 1
        return
    made.differences += 1
    if len(made.unexplained) < _SHOWN_MAX:
        lines = "\n    ".join(own.explained())
        made.unexplained.append(f"the other simulator says {verdict.decision}; here:\n    {lines}\n{case}")


def outcome(decision: Decision) -> str:
    """A decision in the words of the other simulator."""
    if decision.allowed:
        return "Allowed"
    return "ImplicitlyDenied" if decision.statement is None else "ExplicitlyDenied"


def evaluated(case: Case, ignored: tuple[str, ...] = ()) -> Decision:
    """Hashrange's decision. The request does not have the keys in `ignored`."""
    keys = {
        name.lower(): tuple(values) if isinstance(values, list) else (values,)
        for name, values in case.keys.items()
        if name not in ignored
    }
    attached = Attached(
        tuple(_policy(document, f"identity {place}") for place, document in enumerate(case.identity, 1)),
        () if case.resource_policy is None else (_policy(case.resource_policy, "resource", True),),
        None if case.boundary is None else (_policy(case.boundary, "boundary"),),
        None if case.session is None else (_policy(case.session, "session"),),
    )
    request = Request(principal(case.principal), case.action, case.resource, ACCOUNT, keys)
    return evaluate(request, attached)


def principal(arn: str) -> Principal:
    account = arn.split(":")[4]
    if ":assumed-role/" in arn:
        return Principal(arn, account, "AssumedRole", ROLE)
    return Principal(arn, account, name=arn.rpartition("/")[2])


def _policy(document: Json, name: str, on_resource: bool = False) -> Policy:
    return parse(document, name=name, on_resource=on_resource)
