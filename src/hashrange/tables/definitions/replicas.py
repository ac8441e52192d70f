"""Global tables: a table, as the clients in each of its regions see it.

All regions share the items, the indexes and the stream of a global table. A replica is the same table in
another region, so it never lags and writes in two regions never conflict. Only a part of the definition
belongs to each
replica: identifier, times and state, deletion protection, KMS key, table class, and read capacity.

Members are equal, as on AWS. The first member belongs to the region whose client added the first replica.
Clients in a region without a replica see the table as the first region does. `settled` ends the states of
members whose time has come. A global table with a single member left becomes an ordinary table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from hashrange.clock import has_come
from hashrange.tables.definitions.table import Index, Override, Replica, Table, Throughput, Witness

_SOURCE_SECONDS = 24 * 3600

_Member = TypeVar("_Member", Replica, Witness)


def local(table: Table, region: str) -> Replica | None:
    """The replica that clients of `region` see; None if the table is not global."""
    for replica in table.replicas:
        if replica.region == region:
            return replica
    return table.replicas[0] if table.replicas else None


def others(table: Table, region: str) -> list[Replica]:
    """All replicas except the replica that clients of `region` see."""
    local_replica = local(table, region)
    return [replica for replica in table.replicas if replica is not local_replica]


def status(member: Replica | Witness) -> str:
    """CREATING, ACTIVE or DELETING."""
    if member.gone_at is not None:
        return "DELETING"
    return "CREATING" if member.creating_until else "ACTIVE"


def changing(table: Table) -> bool:
    """Whether a replica is CREATING or DELETING."""
    return any(status(replica) != "ACTIVE" for replica in table.replicas)


def was_source(table: Table, region: str, now: float) -> bool:
    """Whether another replica was added from `region` in the last 24 hours and still exists."""
    return any(
        replica.source == region and not has_come(replica.created + _SOURCE_SECONDS, now, _SOURCE_SECONDS)
        for replica in table.replicas
    )


def settled(table: Table, now: float, seconds_max: float) -> Table:
    """The table after CREATING members became ACTIVE and DELETING members were removed, if their time has
    come.

    `seconds_max` is how long CREATING and DELETING last at most.
    """
    members = [_settled_member(replica, now, seconds_max) for replica in table.replicas]
    witness = _settled_member(table.witness, now, seconds_max) if table.witness is not None else None
    stay = tuple(replica for replica in members if replica is not None)
    if stay == table.replicas and witness == table.witness:
        return table
    staying = {replica.region for replica in stay}
    removed = tuple(replica.region for replica in table.replicas if replica.region not in staying)
    left = (*(region for region in table.left_regions if region not in removed), *removed)
    table = msgspec.structs.replace(table, replicas=stay, left_regions=left, witness=witness)
    if len(stay) != 1:
        return table
    last = seen_by(table, stay[0])
    return msgspec.structs.replace(last, replicas=(), witness=None, strongly_consistent=False)


def _settled_member(member: _Member, now: float, seconds_max: float) -> _Member | None:
    """A member of a global table after `settled`; None if it was removed."""
    if member.gone_at is not None:
        return None if has_come(member.gone_at, now, seconds_max) else member
    if member.creating_until and has_come(member.creating_until, now, seconds_max):
        return msgspec.structs.replace(member, creating_until=0.0)
    return member


def is_in(table: Table, region: str | None) -> bool:
    """Whether the table exists for clients of `region`: it does not if its replica there was deleted."""
    return region not in table.left_regions


def seen_from(table: Table, region: str) -> Table:
    """The table as clients of `region` see it."""
    replica = local(table, region)
    return table if replica is None else seen_by(table, replica)


def seen_by(table: Table, replica: Replica) -> Table:
    """The table in the region of one of its replicas."""
    provisioned = table.billing_mode == "PROVISIONED"
    throughput, on_demand = _overridden(
        table.throughput, table.on_demand, replica.throughput, provisioned=provisioned
    )
    return msgspec.structs.replace(
        table,
        id=replica.id,
        created=replica.created,
        creating_until=replica.creating_until,
        gone_at=table.gone_at if replica.gone_at is None else replica.gone_at,
        deletion_protection=replica.deletion_protection,
        sse=None if table.sse is None else {**table.sse, "KMSMasterKeyArn": _key_in(table.sse, replica)},
        table_class=replica.table_class or table.table_class,
        class_changed=replica.class_changed if replica.table_class else table.class_changed,
        throughput=throughput,
        on_demand=on_demand,
        indexes=tuple(_index_seen(index, replica, provisioned=provisioned) for index in table.indexes),
    )


def _key_in(sse: Mapping[str, str], replica: Replica) -> str:
    """The ARN of the key in the replica's region: its own, or AWS's key with the same alias."""
    if replica.key is not None:
        return replica.key
    parts = sse["KMSMasterKeyArn"].split(":")
    # Assign to a slice, because the ARN that the client gave may have fewer parts.
    parts[3:4] = [replica.region]
    return ":".join(parts)


def _index_seen(index: Index, replica: Replica, *, provisioned: bool) -> Index:
    own = replica.indexes.get(index.name)
    if own is None:
        return index
    throughput, on_demand = _overridden(index.throughput, index.on_demand, own, provisioned=provisioned)
    return msgspec.structs.replace(index, throughput=throughput, on_demand=on_demand)


def _overridden(
    throughput: Throughput, on_demand: dict[str, int] | None, own: Override, *, provisioned: bool
) -> tuple[Throughput, dict[str, int] | None]:
    if provisioned and own.read_units is not None:
        return msgspec.structs.replace(throughput, read_units=own.read_units), on_demand
    if not provisioned and own.read_ceiling is not None:
        return throughput, {**(on_demand or {}), "MaxReadRequestUnits": own.read_ceiling}
    return throughput, on_demand
