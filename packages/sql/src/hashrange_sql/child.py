"""The process in which a statement of the console's page runs: it has no more rights than the answers that
the page gives it, and may crash, take long, or need too much memory without harm to the server.

Its questions and its result go over its pipes (`messages`). It ends with the pipe.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from hashrange_sql import messages
from hashrange_sql.looking import Look, Plan, Refused, opened
from hashrange_sql.messages import COLUMNS_MAX, ROWS_MAX, Done, Failure, Job, Message
from hashrange_sql.reading import Json, Page, parted

_NUMBER: Final = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL\([\d,]+\)|DOUBLE|FLOAT")
"""DuckDB's names of types of numbers."""
_MISSING: Final = ("ResourceNotFoundException", "ValidationException")
_THREADS: Final = 2
_SETTINGS: Final = {"memory_limit": "512MB", "max_temp_directory_size": "1GB", "threads": str(_THREADS)}
_DATA_BYTES_MAX: Final = 2 << 30
"""The memory of the process: DuckDB's own limit leaves some of its memory out."""
_FILE_BYTES_MAX: Final = 2 << 30
_NICE: Final = 10


class PipeReader:
    """Reads tables by the answers of the page."""

    past = False
    segments = 1

    def __init__(self, region: str, questions: IO[bytes], answers: IO[bytes]) -> None:
        self.region = region
        self._questions, self._answers = questions, answers

    def describe(self, name: str) -> Json | None:
        answer = self._ask("DescribeTable", {"TableName": name}, _MISSING)
        return None if answer is None else msgspec.json.decode(answer)["Table"]

    def tables(self) -> list[str]:
        names: list[str] = []
        request: Json = {}
        while True:
            page = msgspec.json.decode(self._asked("ListTables", request))
            names += page["TableNames"]
            if "LastEvaluatedTableName" not in page:
                return names
            request = {"ExclusiveStartTableName": page["LastEvaluatedTableName"]}

    def read(self, operation: str, request: Json) -> Page:
        items, rest = parted(self._asked(operation, {**request, "ReturnConsumedCapacity": "TOTAL"}))
        found: Json = {name: msgspec.json.decode(value) for name, value in rest.items()}
        units = float(found.get("ConsumedCapacity", {}).get("CapacityUnits", 0))
        return Page(items, found["Count"], found.get("LastEvaluatedKey"), units)

    def _asked(self, operation: str, request: Json) -> bytes:
        answer = self._ask(operation, request)
        assert answer is not None
        return answer

    def _ask(self, operation: str, request: Json, missing: tuple[str, ...] = ()) -> bytes | None:
        """The answer of the API; None for an error with one of the codes `missing`. Raises Refused."""
        tell(self._questions, Message(ask=operation, request=msgspec.Raw(msgspec.json.encode(request))))
        body, failed = messages.receive(self._answers)
        if not failed:
            return body
        failure = msgspec.json.decode(body, type=Failure)
        if failure.code in missing:
            return None
        raise Refused(failure.text)


def tell(pipe: IO[bytes], message: Message) -> None:
    """Send a line to the page."""
    pipe.write(msgspec.json.encode(message) + b"\n")
    pipe.flush()


def performed(job: Job, reader: PipeReader) -> Done:
    """What comes of a job. Raises Refused."""
    tempfile.tempdir = job.folder  # (the page removes the folder, however this process ends)
    with opened(reader, settings=_SETTINGS) as look:
        plan = look.plan(job.sql, None if job.form else ROWS_MAX + 1)
        done = Done([*plan.lines], plan.cost)
        if job.only_plan:
            return done
        look.load(plan)
        done.told = [line for table in plan.tables for line in table.told]
        if job.form:
            # (moved, because the look's own folder ends with it)
            written = look.write(plan, job.form, guarded=True)
            done.file = str(written.rename(Path(job.folder) / written.name))
        else:
            _show(look, plan, done)
        return done


def _show(look: Look, plan: Plan, done: Done) -> None:
    columns = look.columns(plan.sql)
    done.more_columns = max(0, len(columns) - COLUMNS_MAX)
    done.names = [name for name, _ in columns[:COLUMNS_MAX]]
    done.numbers = [_NUMBER.fullmatch(kind) is not None for _, kind in columns[:COLUMNS_MAX]]
    rows = look.texts(plan, COLUMNS_MAX, messages.CHARACTERS_MAX)
    done.more = len(rows) > ROWS_MAX
    done.rows = rows[:ROWS_MAX]


def bound() -> None:
    """Bound what the process may take, where the system can."""
    with contextlib.suppress(AttributeError, OSError):  # (Windows)
        os.nice(_NICE)
    try:
        import resource
    except ImportError:  # (Windows)
        return
    for limit, value in (
        (resource.RLIMIT_CPU, messages.SECONDS_MAX * (_THREADS + 1)),
        (resource.RLIMIT_DATA, _DATA_BYTES_MAX),
        (resource.RLIMIT_FSIZE, _FILE_BYTES_MAX),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # (the system bounds it already, or not at all)
            resource.setrlimit(limit, (value, value))


def main() -> None:
    # What DuckDB may print does not come between the questions.
    questions: Any = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answers = sys.stdin.buffer
    with contextlib.suppress(EOFError, BrokenPipeError):  # (the page has no interest any more)
        body, _ = messages.receive(answers)
        job = msgspec.json.decode(body, type=Job)
        bound()
        try:
            message = Message(done=performed(job, PipeReader(job.region, questions, answers)))
        except Refused as error:
            message = Message(refused=str(error))
        tell(questions, message)


if __name__ == "__main__":
    main()
