"""Golden scripts of operations and statements: their format, and how they are run.

A script is a session with an empty database: steps separated by blank lines. A step is one line, `---`, and
the answer as JSON, or for an error `<code>: <message>` and the error's other members. `...` means that the
answer is not compared. `#` lines comment on the next step and give the source of its answer: [docs], [report]
or [assumed]; "[report] local" was observed on DynamoDB Local as a black box.

    <Operation> <JSON>   a request
    <statement>          a PartiQL statement; a line `with <JSON>` below it adds members to its request
    settings <JSON>      the database's settings, at the head of a script
    advance <seconds>    move the clock, and finish the changes of tables that are due then
    region <name>        set the region of the clients from here on; it begins as us-east-1
    sweep                run the background work that is due

`<x*300>` in a script means the letter x 300 times. After a change, `python tests/golden_scripts.py` rewrites
the scripts with the current answers; read the differences before you keep them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.operations import REGISTRY
from hashrange.operations.context import Caller
from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.definitions import catalog, states

_GOLDEN = Path(__file__).parent / "golden"
SCRIPTS = sorted([*(_GOLDEN / "operations").glob("*.txt"), *(_GOLDEN / "partiql").glob("*.txt")])

_REPEATED = re.compile(r"<(.)\*(\d+)>")
_RUN = re.compile(r"([^ ])\1{59,}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_BACKUP = re.compile(r"(/backup/\d{14}-)(?!0{8})[0-9a-f]{8}")
_ERROR = re.compile(r"[A-Z]\w+: ")
_ANYTHING = "..."


def expand(text: str) -> str:
    """The text with every `<x*300>` written out."""
    return _REPEATED.sub(lambda found: found[1] * int(found[2]), text)


def collapse(text: str) -> str:
    """The reverse of `expand`; it also masks identifiers, which differ in each run."""
    text = _UUID.sub("<uuid>", _RUN.sub(lambda found: f"<{found[1]}*{len(found[0])}>", text))
    return _BACKUP.sub(r"\1<hex>", text)


def request_of(lines: list[str]) -> tuple[str, Any]:
    """The operation and the request in the lines of a step."""
    name, _, rest = lines[0].partition(" ")
    if name in REGISTRY:
        return name, orjson.loads(expand(" ".join([rest, *lines[1:]])))
    request = {"Statement": expand(lines[0])}
    for line in lines[1:]:
        request |= orjson.loads(expand(line.removeprefix("with ")))
    return "ExecuteStatement", request


def steps(script: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """The steps of a script: (the whole block, its head, the lines of the head without comments)."""
    for block in script.strip("\n").split("\n\n"):
        lines = block.splitlines()
        head = lines[: lines.index("---")] if "---" in lines else lines
        yield block, head, [line.strip() for line in head if not line.startswith("#")]


class Session:
    """A database that the steps of one script share."""

    def __init__(self, engine: Engine) -> None:
        self.clock = ManualClock()
        self.engine = engine
        self.database = Database(engine, clock=self.clock)
        self.caller = Caller()

    def run(self, lines: list[str]) -> str:
        """The answer to one step."""
        name, _, rest = lines[0].partition(" ")
        if name == "settings":
            self.database = Database(self.engine, settings=Settings(**orjson.loads(rest)), clock=self.clock)
            return "ok"
        if name == "advance":
            self.clock.advance(float(rest))
            tables = self.database.engine.read(lambda reader: list(catalog.definitions(reader)))
            states.end(self.database.engine, tables, self.clock.now(), self.database.settings)
            return "ok"
        if name == "region":
            self.caller = Caller(region=rest)
            return "ok"
        if name == "sweep":
            self.database.settle()
            return "ok"
        try:
            answer = self.database.execute(*request_of(lines), self.caller)
        except ServiceError as error:
            members = f" {orjson.dumps(error.members).decode()}" if error.members else ""
            return collapse(f"{error.code}: {error.message}{members}")
        return collapse(orjson.dumps(answer).decode())


def rewritten(script: str, engine: Engine) -> Iterator[str]:
    """The steps of a script, each with its current answer."""
    session = Session(engine)
    for block, head, lines in steps(script):
        if not lines:
            yield block
            continue
        answer = session.run(lines)
        unseen = block.splitlines()[len(head) + 1 :] == [_ANYTHING]
        shown = _ANYTHING if unseen and not _ERROR.match(answer) else answer
        yield "\n".join([*head, "---", shown])


if __name__ == "__main__":
    for path in SCRIPTS:
        old = path.read_text(encoding="utf-8")
        path.write_text("\n\n".join(rewritten(old, MemoryEngine())) + "\n", encoding="utf-8")
