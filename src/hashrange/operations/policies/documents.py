"""Checks the document of a resource-based policy, and gives it the form in which the service shows it.

The form, from which it also follows whether two documents are equal: no spaces, a fixed order of the members,
`Allow` and `Deny` with a capital, statements as a list, account ids as the ARN of the account's root, a
principal named twice once, and a list of one string as this string. A missing version stays missing:
GetResourcePolicy adds `2008-10-17`, but a document with it is another one.

[report] ack-api-quirks DDB-TABLE-207, 208, 210, 211 and 351 to 356; messages without a number are [assumed]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from hashrange import pace
from hashrange.errors import INVALID, AccessDeniedException, ValidationException
from hashrange.limits import POLICY_BYTES_MAX
from hashrange.operations.policies.operators import exists, fault

OLD_VERSION: Final = "2008-10-17"
_VERSIONS: Final = (OLD_VERSION, "2012-10-17")
_MEMBERS: Final = ("Version", "Id", "Statement")
_EITHER: Final = (
    ("Effect",),
    ("Principal", "NotPrincipal"),
    ("Action", "NotAction"),
    ("Resource", "NotResource"),
)
_STATEMENT: Final = ("Sid", *(name for names in _EITHER for name in names), "Condition")
_DOCUMENT: Final = f"{INVALID}Invalid policy document: "
_UNBOUNDED: Final = (
    "Resource-based policy grants unbounded access in one or more elements. Please revise the policy to "
    "ensure least-privilege form of access"
)
_LOCKED_OUT: Final = "The new resource policy will not allow you to update the resource policy in the future."
_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_PRINCIPAL: Final = re.compile(
    r"arn:aws[a-z-]*:(?:iam|sts)::[0-9]{12}:(?:root|(?:user|role|assumed-role|federated-user)/.+)"
)

_OF_BOTH: Final = "PutResourcePolicy GetResourcePolicy DeleteResourcePolicy"
STREAM_ACTIONS: Final = f"{_OF_BOTH} DescribeStream GetRecords GetShardIterator".lower().split()
TABLE_ACTIONS: Final = f"""{_OF_BOTH} GetItem PutItem UpdateItem DeleteItem Query Scan BatchGetItem
    BatchWriteItem ConditionCheckItem PartiQLSelect PartiQLInsert PartiQLUpdate PartiQLDelete DescribeTable
    UpdateTable DeleteTable TagResource UntagResource ListTagsOfResource DescribeTimeToLive UpdateTimeToLive
    DescribeContinuousBackups UpdateContinuousBackups RestoreTableToPointInTime CreateBackup
    ExportTableToPointInTime DescribeContributorInsights UpdateContributorInsights
    DescribeTableReplicaAutoScaling UpdateTableReplicaAutoScaling EnableKinesisStreamingDestination
    DisableKinesisStreamingDestination DescribeKinesisStreamingDestination
    UpdateKinesisStreamingDestination SearchVectors StartBulkPutItems""".lower().split()


def canonical(text: str, arn: str) -> str:
    """The document of a policy for the resource `arn` in the form of the service.

    Raises `ValidationException`.
    """
    if len(text.encode("utf-8", "surrogatepass")) > POLICY_BYTES_MAX:
        raise ValidationException(f"{INVALID}Maximum policy size of {POLICY_BYTES_MAX} bytes exceeded")
    try:
        document = orjson.loads(text)
    except ValueError:
        raise ValidationException(f"{_DOCUMENT}This policy contains invalid Json") from None
    if not isinstance(document, dict):
        raise _syntax(text, document)
    statements = document.get("Statement")
    if isinstance(statements, dict):
        statements = [statements]
    if not statements:
        raise ValidationException(f"{_DOCUMENT}Could not parse the policy: Statement is empty!")
    if document.get("Version", OLD_VERSION) not in _VERSIONS:
        raise _syntax(text, document["Version"])
    _check_members(text, document, _MEMBERS)
    if not isinstance(statements, list):
        raise _syntax(text, statements)
    made = {**document, "Statement": [_statement(text, statement, arn) for statement in statements]}
    ids = [statement["Sid"] for statement in made["Statement"] if "Sid" in statement]
    if len(set(ids)) < len(ids):
        raise ValidationException(f"{_DOCUMENT}The Statement Ids in the policy are not unique")
    return orjson.dumps({name: made[name] for name in _MEMBERS if name in made}).decode()


def check_access_remains(document: str, arn: str, account_id: str) -> None:
    """Refuse a document in the service's form that denies everybody of the account to change it again.

    Statements with conditions are not considered. Raises `AccessDeniedException`.
    """
    root = _root(account_id)
    for statement in orjson.loads(document)["Statement"]:
        if statement["Effect"] != "Deny" or "Condition" in statement or "Principal" not in statement:
            continue
        principal = statement["Principal"]
        named = ["*"] if principal == "*" else _listed(principal.get("AWS", []))
        if not {"*", root} & set(named):
            continue
        if _covers(statement, "Action", "dynamodb:PutResourcePolicy") and _covers(statement, "Resource", arn):
            raise AccessDeniedException(_LOCKED_OUT)


def _statement(text: str, statement: Any, arn: str) -> dict[str, Any]:
    pace.point()
    if not isinstance(statement, dict):
        raise _syntax(text, statement)
    _check_members(text, statement, _STATEMENT)
    for names in _EITHER:
        present = [name for name in names if name in statement]
        if not present:
            raise ValidationException(f"{_DOCUMENT}Missing required field {names[0]}")
        if len(present) > 1:
            raise _syntax(text, statement[present[1]])
    made = {name: statement[name] for name in _STATEMENT if name in statement}
    if not isinstance(made.get("Sid", ""), str):
        raise _syntax(text, made["Sid"])
    effect = str(made["Effect"]).capitalize()
    if effect not in ("Allow", "Deny"):
        raise _syntax(text, made["Effect"])
    made["Effect"] = effect
    for name in ("Action", "NotAction", "Resource", "NotResource"):
        if name in made:
            made[name] = _strings(text, made[name])
    for name in ("Principal", "NotPrincipal"):
        if name in made:
            made[name] = _principal(text, made[name], allows_all=effect == "Deny" or "Condition" in made)
    if "Condition" in made:
        made["Condition"] = _condition(text, made["Condition"])
    _check_actions(made, is_stream="/stream/" in arn)
    _check_resources(made, arn)
    return made


def _check_members(text: str, value: dict[str, Any], names: Sequence[str]) -> None:
    for name in value:
        if name not in names:
            raise _syntax(text, name)


def _syntax(text: str, value: Any) -> ValidationException:
    """The error for a value that may not stand where it does: the position at which it begins."""
    before = text[: max(text.find(orjson.dumps(value).decode()), 0)]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return ValidationException(f"{_DOCUMENT}Syntax error at position ({line},{column})")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _strings(text: str, value: Any) -> Any:
    """A string, or a list of strings; a list of one is its string."""
    listed = _listed(value)
    if not listed or not all(isinstance(member, str) for member in listed):
        raise _syntax(text, value)
    return listed[0] if len(listed) == 1 else listed


def _principal(text: str, value: Any, *, allows_all: bool) -> Any:
    if value == "*" or (isinstance(value, dict) and "*" in _listed(value.get("AWS"))):
        if not allows_all:
            raise ValidationException(_UNBOUNDED)
        return value
    if not isinstance(value, dict) or not value:
        raise _syntax(text, value)
    made = {}
    for kind, named in value.items():
        if kind not in ("AWS", "Service", "Federated", "CanonicalUser"):
            raise _syntax(text, kind)
        names = _listed(_strings(text, named))
        if kind == "AWS":
            names = [_root(name) if _ACCOUNT.fullmatch(name) else name for name in names]
            if not all(_PRINCIPAL.fullmatch(name) for name in names):
                raise ValidationException(f"{INVALID}Invalid principal in policy document.")
            names = list(dict.fromkeys(names))
        made[kind] = names[0] if len(names) == 1 else names
    return made


def _root(account_id: str) -> str:
    return f"arn:aws:iam::{account_id}:root"


def _condition(text: str, value: Any) -> Any:
    """The conditions by operator and key; a list of one value is this value."""
    if not isinstance(value, dict) or not all(isinstance(keys, dict) for keys in value.values()):
        raise _syntax(text, value)
    for operator, keys in value.items():
        if not exists(operator):
            raise ValidationException(f"{_DOCUMENT}Invalid Condition type : {operator}")
        for given in keys.values():
            _check_values(text, operator, given)
    return {
        operator: {
            key: values[0] if isinstance(values, list) and len(values) == 1 else values
            for key, values in keys.items()
        }
        for operator, keys in value.items()
    }


def _check_values(text: str, operator: str, given: Any) -> None:
    """Refuse what the operator cannot read: a statement with it would never apply."""
    listed = _listed(given)
    if not listed:
        raise _syntax(text, given)
    for value in listed:
        pace.point()
        if not isinstance(value, str | bool | int | float):
            raise _syntax(text, value)
        written = str(value).lower() if isinstance(value, bool) else str(value)
        if fault(operator, written):
            raise _syntax(text, value)


def _check_actions(statement: dict[str, Any], *, is_stream: bool) -> None:
    known = STREAM_ACTIONS if is_stream else TABLE_ACTIONS
    actions = _listed(statement.get("Action", statement.get("NotAction")))
    if wrong := [action for action in actions if not _names_action(action, known)]:
        names = ", ".join(f'"{action}"' for action in wrong)
        raise ValidationException(f"{_DOCUMENT}The following action names are invalid: {names}")


def _names_action(action: str, known: Iterable[str]) -> bool:
    pace.point()
    service, _, name = action.lower().partition(":")
    if action == "*":
        return True
    return service == "dynamodb" and any(matches(name, known_name) for known_name in known)


def _check_resources(statement: dict[str, Any], arn: str) -> None:
    """Refuse resources that no policy of this kind can be about: a table's is about tables and indexes, a
    stream's about streams."""
    is_stream = "/stream/" in arn
    for resource in _listed(statement.get("Resource", statement.get("NotResource"))):
        parts = resource.split(":", 5)
        if resource == "*":
            continue
        if len(parts) < 6 or parts[0] != "arn":
            raise ValidationException(f'{_DOCUMENT}The resource "{resource}" is invalid')
        kinds = parts[5].split("/")[::2]
        own_kinds = [["table", "stream"]] if is_stream else [["table"], ["table", "index"]]
        if kinds not in own_kinds and not parts[5].endswith("*"):
            raise ValidationException(
                f'{_DOCUMENT}The relative-id "{parts[5]}" is invalid for ARN "{resource}"'
            )


def _covers(statement: dict[str, Any], name: str, value: str) -> bool:
    """Whether a statement's actions or resources include one."""
    patterns = _listed(statement.get(name, statement.get(f"Not{name}")))
    matched = any(matches(pattern.lower(), value.lower()) for pattern in patterns)
    return matched if name in statement else not matched


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern with `*` and `?` matches all of a text.

    Its time grows with the product of their lengths; a regular expression of many `.*` could take forever.
    """
    pattern = re.sub(r"\*+", "*", pattern)
    if len(pattern) - pattern.count("*") > len(text):
        return False
    at = place = 0
    star, resume = -1, 0
    while place < len(text):
        if at < len(pattern) and pattern[at] == "*":
            star, resume = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", text[place]):
            at += 1
            place += 1
        elif star >= 0:
            resume += 1
            at, place = star + 1, resume
        else:
            return False
    return pattern[at:] in ("", "*")
