"""The state of a pair, in a table of the edge:

    id        part
    i#DIGEST  -             of an item: `key`, `cloud`, `edge` (digests), `base` (the image), `expires`. There
                            is none for an item that both sides agree is not there
    s#SIDE    SHARD         how far a shard was read: `after`, `iterator` or `done`
    w         SIDE#SEGMENT  how far a sweep has come: `start`, `done`, `items`, `seen` (see `work.sweeping`)
    j         -             the journal: `entries`
    j         NUMBER        the image that belongs to an entry of the journal: `base`
    meta      -             `epoch`, the streams and tables of both sides, the sweep under way
    status    -             what `hashrange sync status` shows

Each process that opens the state raises `epoch`, and each transaction holds only under the epoch of its
process. So a process that was believed dead writes nothing, once another has taken its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from botocore.exceptions import ClientError

from hashrange.cli.remote.clients import error_code
from hashrange_sync.deciding import NEVER, SideName, State
from hashrange_sync.errors import Refused, Superseded, Unavailable
from hashrange_sync.items import Item, digest, size
from hashrange_sync.sides.calls import Side
from hashrange_sync.sides.reading import items_of, read_items
from hashrange_sync.sides.streams import Position
from hashrange_sync.stored import journal
from hashrange_sync.stored.journal import Entry
from hashrange_sync.stored.status import KEY as STATUS

Member = dict[str, Any]
"""A member of a transaction."""

BASE_BYTES_MAX: Final = 350_000
"""A larger image is not stored, because an item has at most 400 KB."""
_MEMBERS_MAX: Final = 90
_BYTES_MAX: Final = 3_500_000
"""A transaction has at most 100 members and 4 MB; some are for how far a stream was read."""
_RECENT_MAX: Final = 50_000
"""So many states are remembered, of some 300 bytes each."""
_ITEMS: Final = "i#"
KEY: Final = ("id", "part")
"""The key of the table: a partition key and a sort key, both texts."""


class StateTable:
    """The state of a pair. `epoch` is that of this process, once it has opened the state."""

    def __init__(self, edge: Side, name: str) -> None:
        self.name = name
        self.epoch = 0
        self._edge = edge
        self._commits = 0
        self._recent: dict[bytes, State] = {}
        self._earlier: dict[bytes, State] = {}
        self._held: Held | None = None

    # -- Opening ----------------------------------------------------------------------------------------

    def open(self) -> dict[str, Any]:
        """Take the place of other processes. Returns the attributes of `meta`."""
        answer = self._edge.call(
            "update_item",
            TableName=self.name,
            Key=_at("meta"),
            UpdateExpression="ADD epoch :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
            ReturnValues="ALL_NEW",
        )
        last, self.epoch = self.epoch, int(answer["Attributes"]["epoch"]["N"])
        self._recent, self._earlier = {}, {}
        if self.epoch != last + 1:
            self._held = None  # (others have stored states meanwhile)
        return dict(answer["Attributes"])

    def begin(self) -> None:
        """There is no state of any item yet: from now on it is known of most that have none."""
        self._held = Held()

    def meta(self) -> dict[str, Any]:
        """The attributes of `meta`, without opening."""
        return self._get("meta")

    def _get(self, name: str) -> dict[str, Any]:
        answer = self._edge.call("get_item", TableName=self.name, Key=_at(name), ConsistentRead=True)
        return dict(answer.get("Item", {}))

    def note(self, **values: Any) -> None:
        """Store attributes of `meta`, None to remove one. Raises `Superseded`."""
        self.commit([], **values)

    # -- Items ------------------------------------------------------------------------------------------

    def states(self, keys: Mapping[bytes, Item]) -> dict[bytes, State]:
        """The states of items, `NEVER` where there is none."""
        recent, earlier, held = self._recent, self._earlier, self._held
        known = {mark: recent.get(mark) or earlier.get(mark) for mark in keys}
        places = {
            mark: place(mark)
            for mark, state in known.items()
            if state is None and (held is None or mark in held)
        }
        found = {item["id"]["S"]: item for item in read_items(self._edge, self.name, list(places.values()))}
        return {
            mark: _state(found.get(places[mark]["id"]["S"])) if mark in places else state or NEVER
            for mark, state in known.items()
        }

    def remember(self, mark: bytes, state: State) -> None:
        """Remember a state that was just stored: when the echo comes, nobody needs to read the state. Nobody
        else stores states in this epoch."""
        if state.base is not None:
            self._recent.pop(mark, None)
            self._earlier.pop(mark, None)
            return
        self._recent[mark] = state
        if len(self._recent) >= _RECENT_MAX // 2:
            self._recent, self._earlier = {}, self._recent

    def member(self, mark: bytes, key: Item, state: State) -> Member:
        """The member of a transaction that stores the state of the item whose key has the digest `mark`."""
        if self._held is not None:
            self._held.add(mark)
        if state.cloud == state.edge == b"":
            return {"Delete": {"TableName": self.name, "Key": place(mark)}}
        item: dict[str, Any] = {
            **place(mark),
            "key": {"M": dict(key)},
            "cloud": {"B": state.cloud},
            "edge": {"B": state.edge},
        }
        if state.expires is not None:
            item["expires"] = {"N": str(state.expires)}
        if state.base is not None and size(state.base) <= BASE_BYTES_MAX:
            item["base"] = {"M": dict(state.base)}
        return {"Put": {"TableName": self.name, "Item": item}}

    def each_state(self) -> Iterator[tuple[bytes, Item, State]]:
        """The states of all items, after the digests of their keys and the keys."""
        for item in self._edge.items(self.name, "scan"):
            if "cloud" in item:
                yield bytes.fromhex(item["id"]["S"].removeprefix(_ITEMS)), item["key"]["M"], _state(item)

    # -- Streams and sweeps -----------------------------------------------------------------------------

    def positions(self, side: SideName) -> dict[str, Position]:
        """How far the shards of a side were read."""
        return {
            item["part"]["S"]: Position(
                item.get("after", {}).get("S", ""),
                item.get("iterator", {}).get("S", ""),
                item.get("done", {}).get("BOOL", False),
            )
            for item in self._those(f"s#{side}")
        }

    def position_member(self, side: SideName, shard: str, position: Position | None) -> Member:
        """The member of a transaction that stores how far a shard was read; None forgets the shard."""
        key = _at(f"s#{side}", shard)
        if position is None:
            return {"Delete": {"TableName": self.name, "Key": key}}
        item: dict[str, Any] = {**key, "done": {"BOOL": position.done}}
        item |= {"after": {"S": position.after}} if position.after else {}
        item |= {"iterator": {"S": position.iterator}} if position.iterator else {}
        return {"Put": {"TableName": self.name, "Item": item}}

    def segments(self) -> dict[str, dict[str, Any]]:
        """How far the segments of a sweep have come, by `SIDE#SEGMENT`."""
        return {item["part"]["S"]: item for item in self._those("w")}

    def segment_member(self, segment: str, values: Mapping[str, Any] | None) -> Member:
        """The member of a transaction that stores how far a segment has come; None forgets it."""
        key = _at("w", segment)
        if values is None:
            return {"Delete": {"TableName": self.name, "Key": key}}
        return {"Put": {"TableName": self.name, "Item": {**key, **values}}}

    def _those(self, name: str) -> Iterator[dict[str, Any]]:
        """The items with a partition key."""
        values = {":id": {"S": name}}
        condition = "id = :id"
        return self._edge.items(
            self.name, "query", KeyConditionExpression=condition, ExpressionAttributeValues=values
        )

    # -- Transactions -----------------------------------------------------------------------------------

    def write_journal(self, entries: Sequence[Entry]) -> None:
        """Note writes that are about to be sent. Raises `Superseded`."""
        entry_member: Member = {
            "Put": {"TableName": self.name, "Item": {**_at("j"), "entries": {"B": journal.show(entries)}}}
        }
        rows = [
            [{"Put": {"TableName": self.name, "Item": {**_slot(number), "base": {"M": dict(base)}}}}]
            for number, entry in enumerate(entries)
            if (base := entry.state.base) is not None and size(base) <= BASE_BYTES_MAX
        ]
        for group in groups(rows) if rows else ():
            self.commit([member for row in group for member in row])
        self.commit([entry_member])

    @property
    def journal_end(self) -> Member:
        """The member of a transaction that removes the journal."""
        return {"Delete": {"TableName": self.name, "Key": _at("j")}}

    def journal(self) -> list[Entry]:
        """The writes of which nobody knows yet whether they were made."""
        noted = self._get("j").get("entries")
        entries = journal.parse(bytes(noted["B"])) if noted else []
        slots = {
            digest(_slot(number)): _slot(number) for number, entry in enumerate(entries) if entry.has_base
        }
        found = items_of(self._edge, self.name, slots)
        return [
            entry.with_base(found.get(digest(_slot(number)), {}).get("base", {}).get("M"))
            for number, entry in enumerate(entries)
        ]

    def commit(self, members: Sequence[Member], **values: Any) -> None:
        """Make the members in one transaction under this process's epoch, and store attributes of `meta`.

        Raises `Superseded`, and `Cancelled` with the members whose conditions do not hold; then nothing was
        made.
        """
        fence = {"Update": self._fence(values)}
        self._commits += 1
        # (sent again after an answer was lost, it is made once)
        name = f"{self.name} {self.epoch} {self._commits} {self._edge.clock.now()}"
        token = blake2b(name.encode(), digest_size=16).hexdigest()
        try:
            self._edge.call("transact_write_items", TransactItems=[*members, fence], ClientRequestToken=token)
        except ClientError as error:
            if error_code(error) != "TransactionCanceledException":
                raise
            codes = [reason.get("Code", "None") for reason in error.response.get("CancellationReasons", ())]
            if codes and codes[-1] == "ConditionalCheckFailed":
                raise Superseded(
                    f"Another process keeps this pair in step (its state is in {self.name}), and this one "
                    "ends. Run one process for each pair."
                ) from None
            failed = [number for number, code in enumerate(codes) if code == "ConditionalCheckFailed"]
            if not failed:
                raise Unavailable(f"the edge's table {self._edge.table}: {error}") from error
            raise Cancelled(failed) from None

    def _fence(self, values: Mapping[str, Any]) -> dict[str, Any]:
        sets = [f"#{name} = :{name}" for name, value in values.items() if value is not None]
        removes = [f"#{name}" for name, value in values.items() if value is None]
        update = [f"SET {', '.join(['epoch = :epoch', *sets])}"]
        update += [f"REMOVE {', '.join(removes)}"] if removes else []
        fence: dict[str, Any] = {
            "TableName": self.name,
            "Key": _at("meta"),
            "UpdateExpression": " ".join(update),
            "ConditionExpression": "epoch = :epoch",
            "ExpressionAttributeValues": {
                ":epoch": {"N": str(self.epoch)},
                **{f":{name}": value for name, value in values.items() if value is not None},
            },
        }
        if values:
            fence["ExpressionAttributeNames"] = {f"#{name}": name for name in values}
        return fence

    def clear(self) -> int:
        """Forget everything but the epoch. Returns how many items had a state."""
        places = [{name: item[name] for name in KEY} for item in self._edge.items(self.name, "scan")]
        members: list[Member] = [
            {"Delete": {"TableName": self.name, "Key": place}}
            for place in places
            if place["id"]["S"] != "meta"
        ]
        self._recent, self._earlier = {}, {}
        for start in range(0, len(members), _MEMBERS_MAX):
            self.commit(members[start : start + _MEMBERS_MAX])
        kept = ("sweep", "cloud_table", "edge_table", "cloud_stream", "edge_stream")
        self.commit([], **dict.fromkeys(kept))
        return sum(place["id"]["S"].startswith(_ITEMS) for place in places)

    # -- Status -----------------------------------------------------------------------------------------

    def write_status(self, text: str) -> None:
        """Store what `hashrange sync status` shows, unless another process has taken over."""
        self._edge.call("put_item", TableName=self.name, Item={**STATUS, "text": {"S": text}})

    def status(self) -> str:
        """What `write_status` has stored."""
        return str(self._get("status").get("text", {}).get("S", ""))


class Held:
    """Which items may have a state, by the digests of their keys: a Bloom filter of 2 MiB, which names one of
    400 items too many when it holds a million."""

    _BITS: Final = 1 << 24

    def __init__(self) -> None:
        self._bits = bytearray(self._BITS // 8)

    def add(self, mark: bytes) -> None:
        """There may be a state of this item."""
        for place in _places(mark):
            self._bits[place >> 3] |= 1 << (place & 7)

    def __contains__(self, mark: bytes) -> bool:
        return all(self._bits[place >> 3] >> (place & 7) & 1 for place in _places(mark))


def _places(mark: bytes) -> list[int]:
    whole = int.from_bytes(mark)
    return [whole & 0xFFFFFF, whole >> 24 & 0xFFFFFF, whole >> 48 & 0xFFFFFF, whole >> 72 & 0xFFFFFF]


class Cancelled(Refused):
    """A transaction was not made: the conditions of the members `failed`, by their places, do not hold."""

    def __init__(self, failed: Sequence[int]) -> None:
        self.failed = set(failed)


def groups(members: Sequence[Sequence[Member]]) -> Iterator[list[Sequence[Member]]]:
    """Rows of members that belong together, in groups that fit into transactions."""
    group: list[Sequence[Member]] = []
    count = total = 0
    for row in members:
        bytes_ = sum(size(member) for member in row)
        if group and (count + len(row) > _MEMBERS_MAX or total + bytes_ > _BYTES_MAX):
            yield group
            group, count, total = [], 0, 0
        group.append(row)
        count, total = count + len(row), total + bytes_
    yield group


def place(mark: bytes) -> Item:
    """The key of the state of the item whose key has the digest `mark`."""
    return _at(f"{_ITEMS}{mark.hex()}")


def _at(name: str, part: str = "-") -> Item:
    return {"id": {"S": name}, "part": {"S": part}}


def _slot(number: int) -> Item:
    return _at("j", str(number))


def _state(item: Mapping[str, Any] | None) -> State:
    if item is None:
        return NEVER
    expires = item.get("expires", {}).get("N")
    return State(
        bytes(item["cloud"]["B"]),
        bytes(item["edge"]["B"]),
        item.get("base", {}).get("M"),
        None if expires is None else int(expires),
    )
