"""The definition of a table and of its indexes, as it is stored in the catalog.

All values here are plain data in the API's own terms; `table_description` makes the answers of DescribeTable
from them. A definition is immutable: a change makes a new definition. A space is the engine's number for a
set of records; it is never reused after its table or index was removed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Literal, NamedTuple

import msgspec

from hashrange.storage import features
from hashrange.tables.definitions.spans import History
from hashrange.tables.streams import Stream

_DAY_SECONDS = 24 * 3600

UNTIL_FILLED = -1.0
"""As `Table.creating_until`: the table is CREATING until the work that fills it ends."""

KeyType = Literal["S", "N", "B"]


class KeyAttribute(NamedTuple):
    """An attribute of a key and its type."""

    name: str
    type: KeyType


class KeySchema(msgspec.Struct, frozen=True):
    """The attributes of a primary or index key. A base table has one partition attribute and at most one sort
    attribute."""

    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...] = ()

    def attributes(self) -> tuple[KeyAttribute, ...]:
        """Partition key attributes, then sort key attributes."""
        return self.partition + self.sort

    @property
    def is_simple(self) -> bool:
        """Whether it has one partition attribute and at most one sort attribute, as base tables do."""
        return len(self.partition) == 1 and len(self.sort) <= 1


class Throughput(msgspec.Struct, frozen=True):
    """Provisioned capacity, in units per second, and the times of its changes (epoch seconds).

    `decreases` counts the decreases on the day of the last one; days begin at midnight UTC.
    """

    read_units: int = 0
    write_units: int = 0
    decreases: int = 0
    last_increase: float | None = None
    last_decrease: float | None = None

    def decreases_today(self, now: float) -> int:
        """How often the throughput was decreased on the day of the time `now`."""
        last = self.last_decrease
        return self.decreases if last is not None and last // _DAY_SECONDS == now // _DAY_SECONDS else 0


class Vector(msgspec.Struct, frozen=True):
    """What a vector index has beside its key, which is the HASH of its search schema, or empty.

    `attribute` holds the vectors, `filters` are the INLINE_FILTER attributes, `order` the names of the search
    schema as the request gave them. `changes` is the space of the log of changed entries (`items.vectors`).
    The index is being allocated while `allocated_at` is not 0, stays CREATING while `filled_at` is not 0, and
    refuses searches while `served_at` is not 0: these are the times (epoch seconds) at which `states` ends
    the phases.
    """

    attribute: str
    dimensions: int
    distance: Literal["COSINE", "DOT_PRODUCT", "EUCLIDEAN"]
    filters: tuple[KeyAttribute, ...] = ()
    order: tuple[str, ...] = ()
    changes: int = 0
    allocated_at: float = 0.0
    filled_at: float = 0.0
    served_at: float = 0.0


class Warming(msgspec.Struct, frozen=True):
    """A raise of warm throughput in progress: the units per second that a table or index will have at the
    time `until` (epoch seconds)."""

    units: dict[str, int]
    until: float


class Index(msgspec.Struct, frozen=True):
    """A secondary index. `included` are the NonKeyAttributes of an INCLUDE projection.

    A vector index has a `vector`. It is also global: its entries are those of the whole table, and may lag.
    `lags`: changes of its entries go through the queue of `writes.lag`, where some may wait.
    """

    name: str
    is_global: bool
    space: int
    key: KeySchema
    projection: Literal["ALL", "KEYS_ONLY", "INCLUDE"]
    included: tuple[str, ...] = ()
    throughput: Throughput = Throughput()
    on_demand: dict[str, int] | None = None
    warm: dict[str, int] | None = None
    warming: Warming | None = None
    status: Literal["CREATING", "ACTIVE", "UPDATING", "DELETING"] = "ACTIVE"
    backfilling: bool = False
    vector: Vector | None = None
    lags: bool = False

    @property
    def kind(self) -> Literal["local", "global", "vector"]:
        """Which of the three kinds of index it is."""
        if self.vector is not None:
            return "vector"
        return "global" if self.is_global else "local"

    def attributes(self) -> tuple[KeyAttribute, ...]:
        """The attributes that it uses and whose types the table defines: those of its key, and filters."""
        if self.vector is None:
            return self.key.attributes()
        return self.key.attributes() + self.vector.filters

    def spaces(self) -> list[int]:
        """The spaces of its records."""
        return [self.space] if self.vector is None else [self.space, self.vector.changes]

    def placed(self, new_space: Callable[[], int]) -> Index:
        """The index with spaces of its own, from a source of spaces."""
        if self.vector is None:
            return msgspec.structs.replace(self, space=new_space())
        vector = msgspec.structs.replace(self.vector, changes=new_space())
        return msgspec.structs.replace(self, space=new_space(), vector=vector)


class TimeToLive(msgspec.Struct, frozen=True):
    """The expiry attribute, when it was set (epoch seconds), and the space of its queue by time.

    `built` is false while the items that existed before are still being added to the queue.
    """

    attribute: str
    changed: float
    space: int
    built: bool = True


class Override(msgspec.Struct, frozen=True):
    """A replica's own read capacity, for a table or an index; None: the same as the table's.

    It is the provisioned read units and the maximum of on-demand reads. Write capacity cannot differ.
    """

    read_units: int | None = None
    read_ceiling: int | None = None


class Insights(msgspec.Struct, frozen=True):
    """The contributor insights of a table or a global index: whether its keys are counted.

    `space` is that of the table or the index, so that a later index with the name does not inherit them.
    ENABLING and DISABLING last until `until`, `changed` is the time of the last change (epoch seconds), and
    `begun` is the number in the names of the rules: the time in milliseconds when they were made.
    `exhausted`: there are too many rules, and ENABLING ends as FAILED.
    """

    space: int
    status: Literal["ENABLING", "ENABLED", "DISABLING", "DISABLED", "FAILED"]
    mode: Literal["ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS"]
    changed: float
    begun: int
    until: float = 0.0
    exhausted: bool = False


class Scaling(msgspec.Struct, frozen=True):
    """The auto scaling of one dimension: of the writes of a table or an index, or of its reads in a region.

    `units_min` and `units_max` bound the provisioned units, `target` is the utilization to aim at, in
    percent. `options` are the other members of the policy's configuration, as they were given.
    """

    units_min: int
    units_max: int
    policy: str
    target: float
    options: dict[str, int | bool] = {}


class Replica(msgspec.Struct, frozen=True):
    """A member of a global table: the parts of the definition that belong to one region.

    `source` is the region from which it was added, None for the first member. `key` is the ARN of a
    customer's KMS key. `creating_until` and `gone_at` are as in `Table`. `disassociation_protection` matters
    only while the global table is eventually consistent. `scaling` is the auto scaling of the reads there: of
    the table ("") and of its indexes, by name.
    """

    region: str
    id: str
    created: float
    source: str | None = None
    creating_until: float = 0.0
    gone_at: float | None = None
    deletion_protection: bool = False
    disassociation_protection: bool = True
    key: str | None = None
    table_class: str | None = None
    class_changed: float | None = None
    throughput: Override = Override()
    indexes: dict[str, Override] = {}
    scaling: dict[str, Scaling] = {}


class Witness(msgspec.Struct, frozen=True):
    """The region of a strongly consistent global table that holds no data."""

    region: str
    creating_until: float = 0.0
    gone_at: float | None = None


class Restore(msgspec.Struct, frozen=True):
    """The source of a table's items while the table is being restored.

    `source` is the full name of the source table, `source_id` its id, `source_arn` its ARN in the request.
    The items are those at `stamp` (`STAMP_MAX`: those of a deleted table); `moment` is its time (epoch
    seconds). With `backup`, the id of a backup, they are the items in its files, and `backup_arn` is its ARN
    in the request.
    """

    source: str
    source_id: str
    source_arn: str
    stamp: int
    moment: float
    backup: str | None = None
    backup_arn: str | None = None


class Policy(msgspec.Struct, frozen=True):
    """A resource-based policy: its document, "" once it was deleted, and its revision, which is the time of
    its last change in milliseconds since the epoch. `before` is the former policy, where reads lag."""

    document: str
    revision: int
    before: Policy | None = None


class Destination(msgspec.Struct, frozen=True):
    """A Kinesis data stream that gets, or got, the changes of a table.

    `arn` is the stream's ARN. ENABLING, UPDATING and DISABLING last until `until` (epoch seconds) at least;
    the deliverer ends them. `changed` is when the destination was enabled or disabled. `precision` is that of
    the times in the records, MILLISECOND if it is None. `reason` says why the destination failed.
    """

    arn: str
    status: Literal["ENABLING", "ACTIVE", "UPDATING", "DISABLING", "DISABLED", "ENABLE_FAILED"]
    changed: float
    until: float = 0.0
    precision: Literal["MILLISECOND", "MICROSECOND"] | None = None
    reason: str | None = None

    @property
    def is_live(self) -> bool:
        """Whether it takes the place of the one destination that a table may have."""
        return self.status not in ("DISABLED", "ENABLE_FAILED")


class Table(msgspec.Struct, frozen=True, dict=True):
    """A table.

    The table is CREATING while `creating_until` is not 0, UPDATING while `updating_until` is not 0, and
    DELETING while `gone_at` is not None. These are the times (epoch seconds) at which `states` ends the
    states; a state lasts until it is ended, whichever way the clock moves. Beside its status, a table may be
    changing its encryption until `encrypting_until`, and its warm throughput (`warming`). A table that is
    being filled by an import or a restore has `UNTIL_FILLED` as `creating_until`, and no time ends that.
    `collection_space` holds the size of each item collection; it is 0 for a table without local indexes.
    `stream` is the enabled stream, `stream_label` the label of the latest stream. `replicas` are all members
    of a global table, including that of the first region; it is empty if the table is not global.
    `left_regions` are the regions whose replica was deleted. See the module `replicas`. `scope` is the
    table's owner (`catalog`). `history` exists while the table's past is needed, `restore` while the table is
    being restored. `policies` are those of the table ("") and of its streams, by label. `destinations` are
    the Kinesis data streams of the table, the newest first, and `outbox` is the log of the changes that the
    live one has not got yet. `scaling` is the auto scaling of writes, in all regions: of the table ("")
    and of its indexes, by name. `insights` are the contributor insights, by the same names.
    """

    name: str
    id: str
    space: int
    created: float
    key: KeySchema
    attribute_types: dict[str, KeyType]
    indexes: tuple[Index, ...] = ()
    collection_space: int = 0
    billing_mode: Literal["PROVISIONED", "PAY_PER_REQUEST"] = "PROVISIONED"
    billing_changed: float | None = None
    throughput: Throughput = Throughput()
    on_demand: dict[str, int] | None = None
    warm: dict[str, int] | None = None
    warming: Warming | None = None
    table_class: str | None = None
    class_changed: float | None = None
    deletion_protection: bool = False
    sse: dict[str, str] | None = None
    encrypting_until: float = 0.0
    creating_until: float = 0.0
    updating_until: float = 0.0
    gone_at: float | None = None
    ttl: TimeToLive | None = None
    ttl_changed: float | None = None
    stream: Stream | None = None
    stream_label: str | None = None
    tags: dict[str, str] = {}
    policies: dict[str, Policy] = {}
    destinations: tuple[Destination, ...] = ()
    outbox: Stream | None = None
    scaling: dict[str, Scaling] = {}
    insights: dict[str, Insights] = {}
    replicas: tuple[Replica, ...] = ()
    witness: Witness | None = None
    strongly_consistent: bool = False
    left_regions: tuple[str, ...] = ()
    settings_replication: str | None = None
    scope: str = ""
    history: History | None = None
    restore: Restore | None = None

    @property
    def full_name(self) -> str:
        """The table's unique name, with its scope."""
        return f"{self.scope}/{self.name}" if self.scope else self.name

    @property
    def status(self) -> str:
        """CREATING, ACTIVE, UPDATING or DELETING."""
        if self.gone_at is not None:
            return "DELETING"
        if self.creating_until:
            return "CREATING"
        return "UPDATING" if self.updating_until else "ACTIVE"

    @property
    def is_changing_quietly(self) -> bool:
        """Whether its encryption or its warm throughput is being changed, which its status does not show."""
        return self.encrypting_until != 0.0 or self.warming is not None

    def has_changing_index(self) -> bool:
        """Whether an index is being filled. The table's own status does not show this."""
        return any(index.status != "ACTIVE" for index in self.indexes)

    @property
    def needs(self) -> list[str]:
        """The features without which a program would damage the table."""
        needs = [features.KINESIS] if self.outbox is not None else []
        if any(index.vector is not None for index in self.indexes):
            needs.append(features.VECTORS)
        return needs

    @cached_property
    def key_names(self) -> frozenset[str]:
        """The names of the primary key's attributes."""
        return frozenset(attribute.name for attribute in self.key.attributes())

    @cached_property
    def has_local_indexes(self) -> bool:
        """Whether item collections have a size limit."""
        return any(not index.is_global for index in self.indexes)

    @cached_property
    def needs_old_item(self) -> bool:
        """Whether a write needs the previous attributes of the item: for an index, expiry, a stream or a
        Kinesis data stream."""
        changes_are_kept = self.stream is not None or self.outbox is not None
        return bool(self.indexes) or self.ttl is not None or changes_are_kept

    @cached_property
    def is_plain(self) -> bool:
        """Whether a write changes only the item: there is no index, stream, expiry or history."""
        return not self.needs_old_item and self.history is None

    @cached_property
    def vectors(self) -> tuple[Vector, ...]:
        """One vector of its vector indexes for each attribute that holds vectors."""
        found = {index.vector.attribute: index.vector for index in self.indexes if index.vector is not None}
        return tuple(found.values())

    def index(self, name: str) -> Index | None:
        """The index called `name`, or None."""
        for index in self.indexes:
            if index.name == name:
                return index
        return None

    def insights_of(self, index: str) -> Insights | None:
        """The insights of the table (""), or of the global index with this name."""
        found = self.insights.get(index)
        if found is None or not index:
            return found
        current = self.index(index)
        return found if current is not None and current.space == found.space else None

    def with_index(self, index: Index) -> Table:
        """The table with one of its indexes changed; the index is found by its space."""
        changed = tuple(index if existing.space == index.space else existing for existing in self.indexes)
        return msgspec.structs.replace(self, indexes=changed)


_ENCODE = msgspec.json.Encoder()
_DECODE = msgspec.json.Decoder(Table)


def encode(table: Table) -> bytes:
    """The stored form of a definition."""
    return _ENCODE.encode(table)


def decode(stored: bytes) -> Table:
    """The definition whose stored form this is."""
    return _DECODE.decode(stored)
