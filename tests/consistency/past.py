"""Backups and restores of moments in the midst of the load: each is the table as it was at one moment.

For the workloads such a state is a read of all their keys, within the request that named its moment: they
judge it as any other read, so that the accounts of a torn state have the wrong sum. Here it is compared with
the stream: the records up to some point have to make exactly this state, and its indexes have to agree.

A change has the time at which its request came. If its commit takes long, such as over a failover, the state
of a moment before the commit includes it, and reads in between do not. So the state of a named moment is a
read that ends when all requests have ended that were under way then.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import count
from threading import Event
from typing import Any, Final

from consistency import streams, tables
from consistency.client import AWAY_SECONDS, REPEATED_SECONDS, Client
from consistency.history import Anomaly, Operation
from consistency.tables import Workload

NAME: Final = "past"
TAKEN_MAX: Final = 4
CLOCK_SECONDS: Final = 1.0
"""How far the servers' clock may be from the order in which clients hear of writes: each asks PostgreSQL for
the time, and goes on by its own clock."""


class Past:
    """Names moments of `table` while the clients work, and restores them when they have ended."""

    name = NAME

    def __init__(self, client: Client, table: str, seconds: float) -> None:
        self._client = client
        self._table = table
        self._seconds = seconds
        self._names = (f"{table}-{number}" for number in count(1))
        self._taken: list[tuple[str, Operation]] = []
        self.restored: list[str] = []

    def follow(self, stop: Event) -> None:
        """Name moments at random, until `stop` is set."""
        kinds = {"backup": self._back_up, "latest": self._restore_latest, "moment": self._next_second}
        while not stop.wait(self._client.random.uniform(0, self._seconds)):
            kind = self._client.random.choice(sorted(kinds))
            with self._client.recorded(NAME, kind, table=self._table) as operation:
                operation.result = kinds[kind]()
            if operation.status == "ok":
                self._taken.append((kind, operation))
            if len(self._taken) == TAKEN_MAX:
                return

    def _back_up(self) -> str:
        answer = self._client.call("CreateBackup", TableName=self._table, BackupName="consistency")
        arn: str = answer["BackupDetails"]["BackupArn"]
        return arn

    def _restore_latest(self) -> str:
        """The restore begins now, and may go on through faults."""
        name = next(self._names)
        self._client.call("RestoreTableToPointInTime", **self._source(name), UseLatestRestorableTime=True)
        return name

    def _source(self, name: str) -> dict[str, Any]:
        return {"SourceTableName": self._table, "TargetTableName": name}

    def _next_second(self) -> float:
        """The next whole second of the servers' clock, whose present one the answer shows."""
        answer = self._client.call_until_answered("DescribeContinuousBackups", TableName=self._table)
        recovery = answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        present: float = recovery["LatestRestorableDateTime"]
        return present + 1.0

    def finish(self, workloads: Sequence[Workload]) -> None:
        """Restore all moments, and record what was there then."""
        for kind, taken in self._taken:
            name = self._restored(kind, taken.result)
            self.restored.append(name)
            tables.await_active(self._client, name)
            content = tables.content(self._client, name)
            within = (taken.invoked, taken.ended)
            if kind == "moment":
                end = taken.ended + 1.0 + CLOCK_SECONDS
                within = (taken.invoked - CLOCK_SECONDS, self._client.settled(end))
            self._client.saw(NAME, "state", content, *within, table=self._table, kind=kind)
            for workload in workloads:
                for action, arguments, result in workload.reads(content["items"]):
                    self._client.saw(workload.name, action, result, *within, **arguments)

    def _restored(self, kind: str, taken: Any) -> str:
        """Begin the restore, unless it has begun; returns the name of the new table."""
        call = self._client.call_until_answered
        if kind == "latest":
            return str(taken)
        name = next(self._names)
        if kind == "moment":
            while self._next_second() <= taken:
                time.sleep(AWAY_SECONDS)
            call("RestoreTableToPointInTime", **self._source(name), RestoreDateTime=taken)
            return name
        until = time.monotonic() + REPEATED_SECONDS
        while True:
            details = call("DescribeBackup", BackupArn=taken)["BackupDescription"]["BackupDetails"]
            if details["BackupStatus"] == "AVAILABLE":
                break
            assert time.monotonic() < until, f"the backup is not complete: {details}"
            time.sleep(AWAY_SECONDS)
        call("RestoreTableFromBackup", BackupArn=taken, TargetTableName=name)
        return name


def judge(operations: Sequence[Operation]) -> list[Anomaly]:
    """The anomalies of the restored states in a whole history."""
    anomalies = []
    of_streams = [operation for operation in operations if operation.workload == streams.NAME]
    for state in operations:
        if state.workload != NAME or state.action != "state":
            continue
        about = f"{state.arguments['kind']} [{state.invoked:.6f}, {state.ended:.6f}]"
        anomalies += [
            Anomaly("wrong index", f"{about}: {text}") for text in tables.disagreements(state.result)
        ]
        records = streams.records_of(of_streams, state.arguments["table"])
        different = _difference(records, state.result["items"])
        if different:
            details = f"{about}: the table was never in this state; the most similar lacks {different}"
            anomalies.append(Anomaly("no moment", details))
    return anomalies


def _difference(records: Sequence[streams.Record], state: dict[str, Any]) -> dict[str, Any]:
    """How a state differs from the most similar one that the records make; empty if it is one of these."""
    made: dict[str, Any] = {}
    wrong = set(state)
    best = {key: (None, state[key]) for key in wrong}
    for record in records:
        key = record["key"]
        made[key] = record["new"]
        wrong.discard(key)
        if made[key] != state.get(key):
            wrong.add(key)
        if len(wrong) < len(best):
            best = {key: (made.get(key), state.get(key)) for key in wrong}
    return best
