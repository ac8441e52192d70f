"""GetResourcePolicy, PutResourcePolicy and DeleteResourcePolicy.

Source: API reference; Developer Guide, "Using resource-based policies for DynamoDB"; [report] ack-api-quirks
DDB-TABLE-205 to 214, 236 and 347. On AWS reads lag behind changes by seconds; here `policy_delay_seconds`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from hashrange.clock import show_moment
from hashrange.errors import (
    INVALID,
    RESOURCE_NOT_FOUND,
    PolicyNotFoundException,
    ResourceInUseException,
    ResourceNotFoundException,
    ThrottlingException,
    ValidationException,
)
from hashrange.operations.context import Answer, Context, ReadBody, Request, WriteBody
from hashrange.operations.policies import documents
from hashrange.storage.api import Reader, Transaction
from hashrange.tables import streams
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Policy, Table

_NOT_FOUND: Final = "Resource-based policy not found for the provided ResourceArn: "
_IN_USE: Final = "Attempt to change a resource which is still in use: "
_PENDING_MS: Final = 2_000
_LIMITED_MS: Final = 15_000


class _Resource(NamedTuple):
    """The table, and the label of its stream ("": the table itself), that an ARN names."""

    arn: str
    table: str
    label: str

    @property
    def kind(self) -> str:
        return "stream" if self.label else "table"

    @property
    def name(self) -> str:
        return self.label or self.table


def prepare_get(request: Request, context: Context) -> ReadBody:
    """The body of a GetResourcePolicy."""
    resource = _resource(request["ResourceArn"], context)
    delay = context.settings.policy_delay_seconds

    def body(reader: Reader) -> Answer:
        policy = _open(reader, resource, context).policies.get(resource.label)
        if policy is not None and context.now < policy.revision / 1_000 + delay:
            policy = policy.before
        if policy is None or not policy.document:
            raise PolicyNotFoundException(f"{_NOT_FOUND}{resource.arn}")
        return {"Policy": shown(policy.document), "RevisionId": str(policy.revision)}

    return body


def prepare_put(request: Request, context: Context) -> WriteBody:
    """The body of a PutResourcePolicy."""
    resource = _resource(request["ResourceArn"], context)
    document = documents.canonical(request["Policy"], resource.arn)
    if not request.get("ConfirmRemoveSelfResourceAccess"):
        documents.check_access_remains(document, resource.arn, context.caller.account_id)
    expected = request.get("ExpectedRevisionId")

    def body(txn: Transaction) -> Answer:
        table = _open(txn, resource, context)
        policy = table.policies.get(resource.label)
        _check_revision(policy, expected, resource)
        if policy is not None and policy.document == document:
            return {"RevisionId": str(policy.revision)}
        return {"RevisionId": str(_change(txn, table, resource, document, context))}

    return body


def prepare_delete(request: Request, context: Context) -> WriteBody:
    """The body of a DeleteResourcePolicy. Its answer has the revision that was removed, or that of an earlier
    deletion, or none."""
    resource = _resource(request["ResourceArn"], context)
    expected = request.get("ExpectedRevisionId")

    def body(txn: Transaction) -> Answer:
        table = _open(txn, resource, context)
        policy = table.policies.get(resource.label)
        _check_revision(policy, expected, resource)
        if policy is None:
            return {}
        if policy.document:
            _change(txn, table, resource, "", context)
        return {"RevisionId": str(policy.revision)}

    return body


def of_new_table(document: str | None, arn: str, context: Context) -> dict[str, Policy]:
    """The policies of a table that is created with a document. Raises `ValidationException`."""
    if document is None:
        return {}
    made = documents.canonical(document, arn)
    return {"": Policy(made, int(context.now * 1_000))}


def shown(document: str) -> str:
    """A document as GetResourcePolicy shows it, with the version that it has if it names none."""
    if document.startswith('{"Version":'):
        return document
    return f'{{"Version":"{documents.OLD_VERSION}",{document[1:]}'


def _resource(arn: str, context: Context) -> _Resource:
    """The resource that an ARN names. Raises `ValidationException`."""
    if not arn.startswith("arn:"):
        raise ValidationException(f"{INVALID}ARNs must start with 'arn:': {arn}")
    parts = arn.split(":", 5)
    path = parts[5].split("/", 3) if len(parts) == 6 else []
    kinds = path[::2]
    if parts[1] != "aws" or len(parts) < 6 or parts[2] != "dynamodb":
        raise ValidationException(f"{INVALID}Invalid resource Arn: {arn}")
    if parts[4] != context.caller.account_id:
        raise ValidationException(
            "This action is only supported by accounts that match the resource owner’s account."
        )
    if parts[3] != context.caller.region:
        raise ValidationException(f"{INVALID}Invalid resource Arn: {arn}")
    if kinds == ["table", "index"]:
        raise ValidationException(
            f"{INVALID}Invalid resource arn provided, only table or stream is accepted. Provided resource "
            f"arn: {arn}"
        )
    if kinds not in (["table"], ["table", "stream"]) or len(path) % 2:
        raise ValidationException(f"{INVALID}Provided Arn is not a DynamoDB resource arn: {arn}")
    return _Resource(arn, path[1], path[3] if len(path) == 4 else "")


def _open(reader: Reader, resource: _Resource, context: Context) -> Table:
    table = catalog.find(reader, resource.table, context.scope)
    if table is None:
        raise ResourceNotFoundException(f"{RESOURCE_NOT_FOUND}: Table: {resource.table} not found")
    if resource.label and streams.find(reader, resource.table, resource.label, context.scope) is None:
        raise ResourceNotFoundException(
            f"{RESOURCE_NOT_FOUND}: Stream: {resource.label} not found for Table: {resource.table}"
        )
    return table


def _check_revision(policy: Policy | None, expected: str | None, resource: _Resource) -> None:
    """Refuse a change of another revision than `expected`. The ends of the messages are [assumed]."""
    if expected is None:
        return
    asked = f"{_NOT_FOUND}Requested update for policy with revision id {expected}, but "
    if policy is None or not policy.document:
        raise PolicyNotFoundException(f"{asked}{resource.kind} {resource.name} has no associated policy.")
    if str(policy.revision) != expected:
        raise PolicyNotFoundException(
            f"{asked}the policy associated to target {resource.kind} {resource.name} did not match."
        )


def _change(txn: Transaction, table: Table, resource: _Resource, document: str, context: Context) -> int:
    """Attach a document, or remove it (""). Returns the revision, which is the time in milliseconds."""
    kind, name = resource.kind, resource.name
    if table.gone_at is not None:
        raise ResourceInUseException(f"{_IN_USE}Table is being deleted: {table.name}")
    now_ms = int(context.now * 1_000)
    before = table.policies.get(resource.label)
    if before is not None and context.settings.policy_changes_limited:
        until_ms = before.revision + _LIMITED_MS
        if now_ms < before.revision + _PENDING_MS:
            raise ResourceInUseException(
                f"{_IN_USE}{kind.capitalize()} is pending previous resource-based policy update: {name}"
            )
        if now_ms < until_ms:
            raise ThrottlingException(
                f"Resource-based policy for {kind} {name} modified within the previous {_LIMITED_MS} "
                f"milliseconds. Please try again after {show_moment(until_ms / 1_000)}."
            )
    revision = now_ms if before is None else max(now_ms, before.revision + 1)
    kept = {label: policy for label, policy in table.policies.items() if _exists(txn, table, label)}
    former = None
    if before is not None and context.settings.policy_delay_seconds > 0:
        former = msgspec.structs.replace(before, before=None)
    policies = {**kept, resource.label: Policy(document, revision, former)}
    catalog.save(txn, msgspec.structs.replace(table, policies=policies))
    return revision


def _exists(reader: Reader, table: Table, label: str) -> bool:
    """Whether a table still has the stream of a policy."""
    return not label or streams.find(reader, table.name, label, table.scope) is not None
