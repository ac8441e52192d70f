"""Global tables: what a region sees of a table, and what becomes of it when replicas go."""

from __future__ import annotations

import json

import pytest

from hashrange.errors import ResourceNotFoundException
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.definitions import catalog, replicas
from hashrange.tables.definitions.table import (
    Index,
    KeyAttribute,
    KeySchema,
    Override,
    Replica,
    Table,
    Throughput,
    Witness,
    decode,
    encode,
)

_KEY = KeySchema((KeyAttribute("p", "S"),))
NOW = 1_000.0
DAY = 86_400.0

HOME = Replica("us-east-1", "id-1", NOW)
FAR = Replica("eu-west-1", "id-2", NOW + 1, source="us-east-1", creating_until=NOW + 5)
THIRD = Replica("us-west-2", "id-3", NOW + 2, source="eu-west-1")


def table(*members: Replica, **more: object) -> Table:
    return Table("t", "id-1", 64, NOW, _KEY, {"p": "S"}, replicas=members, **more)  # type: ignore[arg-type]


def leaving(replica: Replica, at: float) -> Replica:
    return Replica(replica.region, replica.id, replica.created, replica.source, gone_at=at)


def test_definitions_from_before_there_were_replicas_can_be_read() -> None:
    stored = json.loads(encode(table()))
    for member in ("replicas", "witness", "strongly_consistent", "left_regions", "settings_replication"):
        del stored[member]
    assert decode(json.dumps(stored).encode()) == table()


def test_members_survive_being_stored() -> None:
    own = Replica("eu-west-1", "id-2", NOW, throughput=Override(5), indexes={"i": Override(None, 7)})
    full = table(HOME, own, witness=Witness("us-west-2", NOW), strongly_consistent=True, left_regions=("x",))
    assert decode(encode(full)) == full


def test_a_region_sees_its_own_replica_and_any_other_the_first() -> None:
    whole = table(HOME, FAR, THIRD)
    assert [replicas.seen_from(whole, one).id for one in ("us-east-1", "eu-west-1", "ap-south-1")] == [
        "id-1",
        "id-2",
        "id-1",
    ]
    assert replicas.others(whole, "eu-west-1") == [HOME, THIRD]
    assert replicas.others(whole, "ap-south-1") == [FAR, THIRD]
    assert replicas.local(table(), "us-east-1") is None
    assert replicas.seen_from(table(), "us-east-1") == table()


def test_each_region_sees_the_state_of_its_own_replica() -> None:
    whole = table(HOME, FAR)
    assert replicas.status(FAR) == replicas.seen_from(whole, "eu-west-1").status == "CREATING"
    assert replicas.changing(whole)
    there = replicas.settled(whole, NOW + 5, 9)
    assert [replicas.status(member) for member in there.replicas] == ["ACTIVE", "ACTIVE"]
    assert not replicas.changing(there)
    going = table(HOME, leaving(FAR, NOW + 9))
    assert replicas.seen_from(going, "eu-west-1").status == "DELETING"
    assert replicas.seen_from(going, "us-east-1").status == "ACTIVE"


def test_a_region_is_a_source_for_a_day_while_what_came_of_it_is_there() -> None:
    assert replicas.was_source(table(HOME, FAR), "us-east-1", NOW + DAY)
    # A replica of a time that has not come was added before the clock was set back.
    assert not replicas.was_source(table(HOME, FAR), "us-east-1", NOW - DAY)
    assert not replicas.was_source(table(HOME, FAR), "us-east-1", NOW + 1 + DAY)
    assert not replicas.was_source(table(HOME), "us-east-1", NOW + 2)
    assert replicas.was_source(table(HOME, FAR, THIRD), "eu-west-1", NOW + 2)


def test_members_go_when_their_time_is_over() -> None:
    whole = table(HOME, leaving(FAR, NOW + 9), THIRD)
    assert replicas.settled(whole, NOW + 8, 9) is whole
    after = replicas.settled(whole, NOW + 9, 9)
    assert after.replicas == (HOME, THIRD)
    assert after.left_regions == ("eu-west-1",)


def test_the_last_member_is_a_table_like_any_other() -> None:
    kept = Replica("eu-west-1", "id-2", NOW + 1, deletion_protection=True, table_class="STANDARD")
    whole = table(leaving(HOME, NOW + 9), kept, strongly_consistent=True, witness=Witness("us-west-2", NOW))
    after = replicas.settled(whole, NOW + 9, 9)
    assert (after.id, after.created, after.deletion_protection) == ("id-2", NOW + 1, True)
    assert (after.table_class, after.replicas, after.witness) == ("STANDARD", (), None)
    assert not after.strongly_consistent
    assert after.status == "ACTIVE"


def test_a_region_that_was_left_has_no_such_table() -> None:
    engine = MemoryEngine()
    going = table(HOME, leaving(FAR, NOW + 9), THIRD)
    engine.write(lambda txn: catalog.save(txn, going))

    def names(region: str) -> list[str]:
        return engine.read(lambda reader: list(catalog.names(reader, "", region=region)))

    assert names("eu-west-1") == ["t"]
    assert engine.read(lambda reader: catalog.open_any(reader, "t", "", "eu-west-1")).replicas
    engine.write(lambda txn: catalog.save(txn, replicas.settled(going, NOW + 9, 9)))
    assert names("us-east-1") == names("ap-south-1") == ["t"]
    assert names("eu-west-1") == []
    # [report] as of a table that never was
    with pytest.raises(ResourceNotFoundException, match="Requested resource not found: Table: t not found"):
        engine.read(lambda reader: catalog.open_any(reader, "t", "", "eu-west-1"))


def test_overrides_hold_for_the_billing_mode_that_has_them() -> None:
    own = Override(7, 70)
    member = Replica("eu-west-1", "id-2", NOW, throughput=own, indexes={"i": own})
    index = Index("i", True, 65, _KEY, "ALL", throughput=Throughput(1, 1))
    whole = table(HOME, member, indexes=(index,), throughput=Throughput(5, 5))
    seen = replicas.seen_from(whole, "eu-west-1")
    assert (seen.throughput.read_units, seen.throughput.write_units, seen.on_demand) == (7, 5, None)
    assert seen.indexes[0].throughput == Throughput(7, 1)
    whole = table(HOME, member, billing_mode="PAY_PER_REQUEST", on_demand={"MaxWriteRequestUnits": 9})
    seen = replicas.seen_from(whole, "eu-west-1")
    assert seen.on_demand == {"MaxWriteRequestUnits": 9, "MaxReadRequestUnits": 70}
    assert seen.throughput == Throughput()


def test_a_key_is_one_of_the_replica_s_region() -> None:
    sse = {"Status": "ENABLED", "KMSMasterKeyArn": "arn:aws:kms:us-east-1:1:alias/aws/dynamodb"}
    seen = replicas.seen_from(table(HOME, FAR, sse=sse), "eu-west-1")
    assert seen.sse == {**sse, "KMSMasterKeyArn": "arn:aws:kms:eu-west-1:1:alias/aws/dynamodb"}
    own = Replica("eu-west-1", "id-2", NOW, key="arn:aws:kms:eu-west-1:1:key/2")
    seen = replicas.seen_from(table(HOME, own, sse=sse), "eu-west-1")
    assert seen.sse == {**sse, "KMSMasterKeyArn": "arn:aws:kms:eu-west-1:1:key/2"}
