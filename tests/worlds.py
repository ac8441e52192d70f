"""What most tests set up: the request of CreateTable from a short text, and a database on a clock of its own.

A key is written as in `hashrange.testing`, ``"pk, sk:N"``. The text of an index may end with what it projects
beside its keys: ``"kind | KEYS_ONLY"``, or ``"kind | a, b"`` for these attributes; all without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from hashrange.clock import ManualClock
from hashrange.database import Caller, Database, Settings
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.testing.declarations import declare

NOW: Final = 1_700_000_000.0
ANYONE: Final = Caller()

Json = dict[str, Any]
Texts = Mapping[str, str]


def table_of(
    name: str, key: str, *, indexes: Texts | None = None, local_indexes: Texts | None = None, **given: Any
) -> Json:
    """The request of CreateTable, on demand; `given` are `stream`, a StreamViewType, and other members."""
    texts = {**(indexes or {}), **(local_indexes or {})}
    keys = {index: text.partition("|")[0] for index, text in texts.items()}
    made = declare(
        name,
        key,
        indexes={index: keys[index] for index in indexes or ()},
        local_indexes={index: keys[index] for index in local_indexes or ()},
        **given,
    ).create
    for member, of_kind in (("GlobalSecondaryIndexes", indexes), ("LocalSecondaryIndexes", local_indexes)):
        for index in made[member] if of_kind else ():
            index["Projection"] = _projection(texts[index["IndexName"]].partition("|")[2].strip())
    return made


def _projection(text: str) -> Json:
    if text in ("", "KEYS_ONLY"):
        return {"ProjectionType": text or "ALL"}
    names = [name.strip() for name in text.split(",")]
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": names}


def schema_of(key: str, **given: Any) -> Json:
    """`table_of`, but for the name."""
    return {member: value for member, value in table_of("any", key, **given).items() if member != "TableName"}


def index_on(name: str, key: str) -> Any:
    """An index, as the requests that make one have it."""
    return schema_of("any", indexes={name: key})["GlobalSecondaryIndexes"][0]


def new_index(table: str, name: str, key: str) -> Json:
    """The request of UpdateTable for an `index_on` an existing table."""
    types = schema_of(key.partition("|")[0])["AttributeDefinitions"]
    updates = [{"Create": index_on(name, key)}]
    return {"TableName": table, "AttributeDefinitions": types, "GlobalSecondaryIndexUpdates": updates}


def expiry_of(table: str, attribute: str = "ttl") -> Json:
    """The request of UpdateTimeToLive."""
    return {"TableName": table, "TimeToLiveSpecification": {"AttributeName": attribute, "Enabled": True}}


def recovery_of(table: str) -> Json:
    """The request of UpdateContinuousBackups."""
    return {"TableName": table, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}


def create(database: Database, name: str, key: str, caller: Caller = ANYONE, **given: Any) -> Json:
    """Create a `table_of` this text; returns its description."""
    shown: Json = database.execute("CreateTable", table_of(name, key, **given), caller)["TableDescription"]
    return shown


class World:
    """A database on a clock that stands still, and requests to it, which are JSON as on a connection.

    `store` makes the engine, or is the directory where it keeps its data. `caller` sends the requests that
    name no other.
    """

    caller = ANYONE

    def __init__(
        self, store: Path | Callable[[], Engine] = MemoryEngine, *, now: float = NOW, **settings: Any
    ) -> None:
        self.settings = Settings(**settings)
        if isinstance(store, Path):
            self.settings = self.settings.with_data_dir(str(store))
        self.opener = partial(EmbeddedEngine, store) if isinstance(store, Path) else store
        self.clock = ManualClock(now)
        self.open()

    def open(self) -> None:
        self.database = Database(self.opener(), settings=self.settings, clock=self.clock)

    def reopen(self) -> None:
        """Open the database again, as a restart does: memory is lost."""
        self.database.close()
        self.open()

    def __call__(self, operation: str, caller: Caller | None = None, /, **request: Any) -> Json:
        copied = orjson.loads(orjson.dumps(request))
        answer = self.database.execute(operation, copied, caller or self.caller)
        found: Json = orjson.loads(orjson.dumps(answer))
        return found

    def settle(self) -> None:
        """Do all background work that is due."""
        self.database.settle()

    def advance(self, seconds: float) -> None:
        """Let time pass, and do what has become due."""
        self.clock.advance(seconds)
        self.settle()
