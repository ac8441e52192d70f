"""The fault rules in force: which requests they match, what they do, and how often they did it."""

from __future__ import annotations

import shlex
from typing import Any, Final

import msgspec
from starlette.responses import Response

from hashrange.faults import parse
from hashrange.faults.effects import EFFECTS
from hashrange.operations import REGISTRY
from hashrange.server.admin import faults
from hashrange.server.admin.application import json, read_json, subject_of
from hashrange_console import looks
from hashrange_console.reach import Refused, View

WORDS: Final = {
    "throttle": "The request is refused because of its rate. SDKs repeat it.",
    "internal-error": "The answer is InternalServerError, and nothing is done (performed=yes: it is done).",
    "conflict": "Another transaction uses the item, so the write fails, or the transaction is cancelled.",
    "cancel": "The transaction is cancelled because a condition fails (code=… names another reason).",
    "in-progress": "A transaction with a client request token is still in progress.",
    "latency": "The request is done at once; its answer comes later by the seconds in the options.",
    "lose-answer": "The connection is closed before the answer; writes are done (performed=no: are not).",
    "unprocessed": "The last half of a batch stays unprocessed (share=0.2: a fifth of it).",
    "expire-iterator": "GetRecords says that its shard iterator has expired.",
    "trim": "The records that are read from a stream are said to be trimmed.",
}
"""What each effect does."""
EXAMPLES: Final = {
    "throttle": "limit=KeyRangeThroughputExceeded",
    "internal-error": "performed=yes",
    "cancel": "code=TransactionConflict",
    "latency": "seconds=0.5",
    "lose-answer": "performed=no",
    "unprocessed": "share=0.2",
}


class NewRule(msgspec.Struct, forbid_unknown_fields=True):
    """A fault rule, from the fields of the form, which may be empty: the operations with commas between them,
    the share of the requests in percent, how often it happens at most, and the options of the effect."""

    effect: str
    operations: str = ""
    table: str = ""
    percent: str = ""
    times: str = ""
    options: str = ""


class OldRule(msgspec.Struct, forbid_unknown_fields=True):
    """A rule to remove, by its number."""

    number: str


async def page(view: View) -> Response:
    """The rules, and a form for another."""
    rules = [_row(rule) for rule in faults.rules_of(subject_of(view.request))]
    return await looks.page(
        "live/faults.html",
        view=view,
        rules=rules,
        words=WORDS,
        examples=EXAMPLES,
        operations=sorted(REGISTRY),
    )


async def add(view: View) -> Response:
    """Put a rule in force."""
    sent = await read_json(view.request, NewRule)
    faults.add(subject_of(view.request), text_of(sent))
    return json({"href": looks.href("/console/faults", scope=view.scope)})


async def remove(view: View) -> Response:
    """Remove a rule."""
    sent = await read_json(view.request, OldRule)
    faults.remove(subject_of(view.request), sent.number)
    return json({"href": looks.href("/console/faults", scope=view.scope)})


def text_of(sent: NewRule) -> str:
    """A rule as text. Raises `Refused`."""
    if sent.effect not in EFFECTS:
        raise Refused(f"There is no effect {sent.effect!r}; there are: {', '.join(EFFECTS)}.")
    words = [sent.operations.replace(" ", "") or "*"]
    if sent.table.strip():
        words.append(f"table={sent.table.strip()}")
    if sent.times.strip():
        words.append(f"times={sent.times.strip()}")
    if percent := sent.percent.strip().removesuffix("%").strip():
        try:
            words.append(f"probability={float(percent) / 100:.6g}")
        except ValueError:
            raise Refused(f"{percent!r} is not a percentage, such as 10.") from None
    try:
        options = shlex.split(sent.options)
    except ValueError as error:
        raise Refused(f"The options are wrong: {error}.") from None
    return shlex.join([*words, sent.effect, *options]).replace("'*'", "*", 1)


def _row(rule: faults.FaultRule) -> dict[str, Any]:
    word = parse(rule.rule).effect.word
    return {**msgspec.structs.asdict(rule), "effect": word, "words": WORDS[word]}
