"""DescribeTableReplicaAutoScaling and UpdateTableReplicaAutoScaling: the auto scaling of a global table.

On AWS these two are a front of Application Auto Scaling, and exist for global tables only. The settings are
kept and shown, and the provisioned units are moved into their bounds when they are set, as the service does
within seconds. Nothing scales by load afterwards, because nothing throttles here.

Writes are scaled alike in all regions, reads by region. An update must give all settings of a dimension, or
disable it. Its answer shows the settings from before, as on AWS.

Source: API reference; [report] ack-api-quirks DDB-TABLE-187 to 198, 237 to 243, 253, 290, 314, 317 and 323.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec

from hashrange.errors import (
    INVALID,
    STILL_IN_USE,
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from hashrange.operations.context import Answer, Context, ReadBody, Request, WriteBody, table_name
from hashrange.operations.tables import throughput
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog, replicas, states
from hashrange.tables.definitions.table import Override, Replica, Scaling, Table, Throughput

_ROLE: Final = (
    "role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)
_NEEDED: Final = ("MaximumUnits", "ScalingPolicyUpdate", "MinimumUnits")
_OPTIONS: Final = ("DisableScaleIn", "ScaleInCooldown", "ScaleOutCooldown")
_TARGET_MIN: Final = 10.0
_TARGET_MAX: Final = 90.0
_WRITES: Final = "ProvisionedWriteCapacityAutoScalingUpdate"
_INDEX_READS: Final = "ProvisionedReadCapacityAutoScalingUpdate"
_READS: Final = "ReplicaProvisionedReadCapacityAutoScalingUpdate"


class _Change(NamedTuple):
    """The settings that a request gives for one dimension. `region` is None for writes, `index_name` ""
    for the table."""

    region: str | None
    index_name: str
    given: Request

    @property
    def disables(self) -> bool:
        return bool(self.given.get("AutoScalingDisabled"))

    @property
    def kind(self) -> str:
        return "Write" if self.region is None else "Read"

    @property
    def parameter(self) -> str:
        """The name of the parameter in messages. Those other than a replica's are [assumed]."""
        if self.index_name:
            return f"Provisioned{self.kind}CapacityAutoScalingSettingsUpdate"
        prefix = "Provisioned" if self.region is None else "ReplicaProvisioned"
        return f"{prefix}{self.kind}CapacityAutoScalingSettingsUpdate"


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeTableReplicaAutoScaling."""
    name = table_name(request["TableName"], context.scope)

    def body(reader: Reader) -> Answer:
        return _described(_open(reader, name, context), context)

    return body


def prepare_update(request: Request, context: Context) -> WriteBody:
    """The body of an UpdateTableReplicaAutoScaling."""
    name = table_name(request["TableName"], context.scope)
    changes = list(_changes(request))
    now, lasts, request_id = context.now, context.settings.update_seconds, context.new_id()

    def body(txn: Transaction) -> Answer:
        table = _open(txn, name, context)
        _check_members(table, request)
        for change in changes:
            _check_given(table, change)
        _check_places(table, request, changes)
        _check_billing(table, changes)
        for change in changes:
            _check_values(change, context, request_id)
        if table.status != "ACTIVE" or replicas.changing(table):
            # [assumed], as for UpdateTable
            raise ResourceInUseException(f"{STILL_IN_USE}Table is being updated: {name}")
        after = table
        for change in changes:
            after = _changed(after, change, now)
        if _units(after) != _units(table):
            after = msgspec.structs.replace(after, updating_until=now + lasts)
        catalog.save(txn, states.settled(after, now, context.settings))
        status = "UPDATING" if after.updating_until else table.status
        answer = _described(table, context)
        answer["TableAutoScalingDescription"]["TableStatus"] = status
        return answer

    return body


def _changes(request: Request) -> Iterator[_Change]:
    """The dimensions that a request changes."""
    if request.get(_WRITES) is not None:
        yield _Change(None, "", request[_WRITES])
    for part in request.get("GlobalSecondaryIndexUpdates") or ():
        if part.get(_WRITES) is not None:
            yield _Change(None, _index_of(part), part[_WRITES])
    for replica in request.get("ReplicaUpdates") or ():
        if replica.get(_READS) is not None:
            yield _Change(replica["RegionName"], "", replica[_READS])
        for part in replica.get("ReplicaGlobalSecondaryIndexUpdates") or ():
            if part.get(_INDEX_READS) is not None:
                yield _Change(replica["RegionName"], _index_of(part), part[_INDEX_READS])


def _index_of(part: Request) -> str:
    """The index that a part of a request names. The error is [assumed]."""
    if part.get("IndexName") is None:
        raise ValidationException(f"{INVALID}IndexName must be specified")
    return str(part["IndexName"])


def _open(reader: Reader, name: str, context: Context) -> Table:
    """The global table. Other tables do not exist for these operations. [report] DDB-TABLE-187"""
    table = catalog.find(reader, name, context.scope)
    region = context.caller.region
    if table is None or table.restore is not None or not table.replicas or not replicas.is_in(table, region):
        raise ResourceNotFoundException(f"Global table with name: '{name}' does not exist.")
    return table


def _check_members(table: Table, request: Request) -> None:
    """Refuse an update of nothing, and of a region more than once. The last two messages are [assumed]."""
    failed = f"Failed to update settings for global table with name: ‘{table.name}’ because"
    regions = [replica["RegionName"] for replica in request.get("ReplicaUpdates") or ()]
    for replica in request.get("ReplicaUpdates") or ():
        if replica.get(_READS) is None and not replica.get("ReplicaGlobalSecondaryIndexUpdates"):
            raise ValidationException(
                f"{failed} at least one update parameter must be specified for region: "
                f"‘{replica['RegionName']}’."
            )
    if len(set(regions)) < len(regions):
        raise ValidationException(f"{failed} only one update is allowed per region.")
    if request.get(_WRITES) is None and not request.get("GlobalSecondaryIndexUpdates") and not regions:
        raise ValidationException(f"{failed} at least one update parameter must be specified.")


def _check_given(table: Table, change: _Change) -> None:
    """Refuse settings that are not complete, and settings beside AutoScalingDisabled. [report] DDB-TABLE-241
    and 242"""
    given = [name for name in _NEEDED if change.given.get(name) is not None]
    failed = "Failed to update settings for global table with name"
    if change.disables and given:
        raise ValidationException(
            f"{failed} ‘{table.name}’: Parameters {_quoted(given)} must be left blank when disabling auto "
            "scaling."
        )
    missing = [name for name in _NEEDED if name not in given]
    if not change.disables and missing:
        raise ValidationException(
            f"{failed}: ‘{table.name}’: Parameters {_quoted(missing)} are required unless auto scaling is "
            "being disabled."
        )


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _check_places(table: Table, request: Request, changes: list[_Change]) -> None:
    """Refuse regions without a replica, and indexes that do not exist or are CREATING. [report] DDB-TABLE-291
    and 323; the message for a region is [assumed]."""
    failed = f"Failed to update settings for global table with name: ‘{table.name}’ because"
    regions = {replica.region for replica in table.replicas}
    for replica in request.get("ReplicaUpdates") or ():
        if replica["RegionName"] not in regions:
            raise ResourceNotFoundException(
                f"{failed} a replica does not exist in region: ‘{replica['RegionName']}’."
            )
    known = {index.name for index in table.indexes if index.is_global and index.status != "CREATING"}
    unknown = [change for change in changes if change.index_name and change.index_name not in known]
    writes = [change.index_name for change in unknown if change.region is None]
    if writes:
        raise ResourceNotFoundException(
            f"{failed} the global secondary indexes with names: ‘[{', '.join(writes)}]’ do not exist."
        )
    for change in unknown:
        raise ResourceNotFoundException(
            f"{failed} a global secondary index with name: ‘{change.index_name}’ does not exist in region: "
            f"‘{change.region}’."
        )


def _check_billing(table: Table, changes: list[_Change]) -> None:
    """Refuse settings for an on-demand table; they may be disabled. [report] DDB-TABLE-317"""
    wrong = [change.parameter for change in changes if not change.disables]
    if table.billing_mode == "PROVISIONED" or not wrong:
        return
    regions = _quoted(sorted(replica.region.upper() for replica in table.replicas))
    raise ValidationException(
        f"Failed to update global table with name ‘{table.name}‘. Replicas {regions} BillingMode is "
        "PayPerRequest. You must convert table's BillingMode to PROVISIONED to set parameters: "
        f"{_quoted(list(dict.fromkeys(wrong)))}."
    )


def _check_values(change: _Change, context: Context, request_id: str) -> None:
    """The checks of Application Auto Scaling, whose errors pass through. [report] DDB-TABLE-239 and 253; the
    ends of the messages are [assumed]."""
    if change.disables:
        return
    role = change.given.get("AutoScalingRoleArn")
    account = context.caller.account_id
    if role is not None and role != _role_arn(context):
        raise _passed_through(
            f"User: arn:aws:sts::{account}:assumed-role/AWSServiceRoleForDynamoDBReplication/DynamoDB is not "
            f"authorized to perform: iam:PassRole on resource: {role} because no identity-based policy "
            "allows the iam:PassRole action",
            request_id,
        )
    if change.given["MaximumUnits"] < change.given["MinimumUnits"]:
        raise _passed_through("Maximum capacity cannot be less than minimum capacity", request_id)
    policy = change.given["ScalingPolicyUpdate"]["TargetTrackingScalingPolicyConfiguration"]
    target = float(policy["TargetValue"])
    if target <= 0:
        raise _passed_through(
            "For target tracking scaling, target value must be between '8.51592E-109' and '1.174271E108', "
            f"but was '{target}'.",
            request_id,
        )
    if not _TARGET_MIN <= target <= _TARGET_MAX:
        raise _passed_through(
            f"For predefined metric type DynamoDB{change.kind}CapacityUtilization, target value must be "
            f"between '{_TARGET_MIN}' and '{_TARGET_MAX}', but was '{target}'.",
            request_id,
        )


def _passed_through(text: str, request_id: str) -> ValidationException:
    return ValidationException(
        f"{text} (Service: AWSApplicationAutoScaling; Status Code: 400; Error Code: ValidationException; "
        f"Request ID: {request_id}; Proxy: null)"
    )


def _role_arn(context: Context) -> str:
    return f"arn:aws:iam::{context.caller.account_id}:{_ROLE}"


def _changed(table: Table, change: _Change, now: float) -> Table:
    """The table with new settings of one dimension, and its units within their bounds."""
    scaling = None if change.disables else _scaling(table.name, change)
    if change.region is None:
        kept = _with(table.scaling, change.index_name, scaling)
        table = msgspec.structs.replace(table, scaling=kept)
        return table if scaling is None else _with_writes(table, change.index_name, scaling, now)
    index_name = change.index_name
    members = tuple(
        _with_reads(table, replica, index_name, scaling) if replica.region == change.region else replica
        for replica in table.replicas
    )
    return msgspec.structs.replace(table, replicas=members)


def _scaling(table: str, change: _Change) -> Scaling:
    given = change.given
    update = given["ScalingPolicyUpdate"]
    policy = update["TargetTrackingScalingPolicyConfiguration"]
    place = f"table/{table}/index/{change.index_name}" if change.index_name else f"table/{table}"
    return Scaling(
        given["MinimumUnits"],
        given["MaximumUnits"],
        update.get("PolicyName") or f"DynamoDB{change.kind}CapacityUtilization:{place}",
        float(policy["TargetValue"]),
        {name: policy[name] for name in _OPTIONS if policy.get(name) is not None},
    )


def _with(kept: Mapping[str, Scaling], index: str, scaling: Scaling | None) -> dict[str, Scaling]:
    others = {name: other for name, other in kept.items() if name != index}
    return others if scaling is None else {**others, index: scaling}


def _with_writes(table: Table, name: str, scaling: Scaling, now: float) -> Table:
    """The table with the write units of itself or an index within the bounds."""
    if not name:
        return msgspec.structs.replace(table, throughput=_scaled(table.throughput, scaling, now))
    index = table.index(name)
    assert index is not None
    return table.with_index(
        msgspec.structs.replace(index, throughput=_scaled(index.throughput, scaling, now))
    )


def _scaled(current: Throughput, scaling: Scaling, now: float) -> Throughput:
    units = _within(current.write_units, scaling)
    if units == current.write_units:
        return current
    wanted = {"ReadCapacityUnits": current.read_units, "WriteCapacityUnits": units}
    with suppress(LimitExceededException):  # there are no decreases left today: it stays as it is
        return throughput.changed(current, wanted, now)
    return current


def _with_reads(table: Table, replica: Replica, name: str, scaling: Scaling | None) -> Replica:
    """A replica with new settings of its reads, and the read units there within the bounds."""
    replica = msgspec.structs.replace(replica, scaling=_with(replica.scaling, name, scaling))
    if scaling is None:
        return replica
    index = table.index(name) if name else None
    base = (table if index is None else index).throughput.read_units
    own = replica.throughput if index is None else replica.indexes.get(name, Override())
    units = _within(base if own.read_units is None else own.read_units, scaling)
    own = msgspec.structs.replace(own, read_units=None if units == base else units)
    if index is None:
        return msgspec.structs.replace(replica, throughput=own)
    return msgspec.structs.replace(replica, indexes={**replica.indexes, name: own})


def _within(units: int, scaling: Scaling) -> int:
    return min(max(units, scaling.units_min), scaling.units_max)


def _units(table: Table) -> list[Any]:
    """All provisioned units of a table, to be compared."""
    return [
        table.throughput,
        [index.throughput for index in table.indexes],
        [(replica.throughput, replica.indexes) for replica in table.replicas],
    ]


def _described(table: Table, context: Context) -> Answer:
    """The answer of both operations. The regions are in the order of their names. [report] DDB-TABLE-189"""
    members = sorted(table.replicas, key=lambda replica: replica.region)
    return {
        "TableAutoScalingDescription": {
            "TableName": table.name,
            "TableStatus": replicas.seen_from(table, context.caller.region).status,
            "Replicas": [_replica(table, replica, context) for replica in members],
        }
    }


def _replica(table: Table, replica: Replica, context: Context) -> dict[str, Any]:
    return {
        "RegionName": replica.region,
        "GlobalSecondaryIndexes": [
            {
                "IndexName": index.name,
                "IndexStatus": index.status,
                "ProvisionedReadCapacityAutoScalingSettings": _shown(
                    table, replica.scaling.get(index.name), context
                ),
                "ProvisionedWriteCapacityAutoScalingSettings": _shown(
                    table, table.scaling.get(index.name), context
                ),
            }
            for index in table.indexes
            if index.is_global and index.status != "CREATING"
        ],
        "ReplicaProvisionedReadCapacityAutoScalingSettings": _shown(
            table, replica.scaling.get(""), context
        ),
        "ReplicaProvisionedWriteCapacityAutoScalingSettings": _shown(
            table, table.scaling.get(""), context
        ),
        "ReplicaStatus": replicas.status(replica),
    }


def _shown(table: Table, scaling: Scaling | None, context: Context) -> dict[str, Any]:
    """The settings of a dimension. [report] DDB-TABLE-189, 237 and 317"""
    if scaling is None:
        return {"AutoScalingDisabled": True, "ScalingPolicies": []}
    on_demand = {"AutoScalingDisabled": True} if table.billing_mode == "PAY_PER_REQUEST" else {}
    return {
        "MinimumUnits": scaling.units_min,
        "MaximumUnits": scaling.units_max,
        **on_demand,
        "AutoScalingRoleArn": _role_arn(context),
        "ScalingPolicies": [
            {
                "PolicyName": scaling.policy,
                "TargetTrackingScalingPolicyConfiguration": {
                    **scaling.options,
                    "TargetValue": scaling.target,
                },
            }
        ],
    }
