"""Runs the golden scripts of the operations: request, `---`, exact answer.

A script is a session with an empty database: a list of steps parted by blank lines. A step is one line
`<Operation> <request JSON>`, `---`, and the answer as JSON, or for an error `<code>: <message>` and the
error's further members. `...` stands for an answer that is not looked at. `#` lines comment on the next
step and say where its answer is from: [docs], [report] or [assumed]. Other steps:

    settings <JSON>      the database's settings, at the head of a script
    advance <seconds>    move the clock
    sweep                run the background work that is due

`<x*300>` in a script is the letter x 300 times. After a change, `python tests/unit/test_golden_operations.py`
writes the scripts anew with the answers that the requests give now; read the difference before you keep it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.operations.context import Caller
from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine

SCRIPTS = sorted((Path(__file__).parent.parent / "golden" / "operations").glob("*.txt"))

_REPEATED = re.compile(r"<(.)\*(\d+)>")
_RUN = re.compile(r"([^ ])\1{59,}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ERROR = re.compile(r"[A-Z]\w+: ")
_ANYTHING = "..."


def expand(text: str) -> str:
    """The text with every `<x*300>` written out."""
    return _REPEATED.sub(lambda found: found[1] * int(found[2]), text)


def collapse(text: str) -> str:
    """The reverse of `expand`, with identifiers masked, which differ each time."""
    return _UUID.sub("<uuid>", _RUN.sub(lambda found: f"<{found[1]}*{len(found[0])}>", text))


class Session:
    """A database that the steps of one script share."""

    def __init__(self, engine: Engine) -> None:
        self.clock = ManualClock()
        self.engine = engine
        self.database = Database(engine, clock=self.clock)

    def run(self, step: str) -> str:
        """The answer to one step."""
        name, _, rest = step.partition(" ")
        if name == "settings":
            self.database = Database(self.engine, settings=Settings(**orjson.loads(rest)), clock=self.clock)
            return "ok"
        if name == "advance":
            self.clock.advance(float(rest))
            return "ok"
        if name == "sweep":
            while not self.database.sweep():
                pass
            return "ok"
        try:
            answer = self.database.execute(name, orjson.loads(expand(rest)), Caller())
        except ServiceError as error:
            members = f" {orjson.dumps(error.members).decode()}" if error.members else ""
            return collapse(f"{error.code}: {error.message}{members}")
        return collapse(orjson.dumps(answer).decode())


def rewritten(script: str, engine: Engine) -> Iterator[str]:
    """The steps of a script, each with the answer that it gives now."""
    session = Session(engine)
    for block in script.strip("\n").split("\n\n"):
        lines = block.splitlines()
        given = lines[lines.index("---") + 1 :] if "---" in lines else []
        head = lines[: lines.index("---")] if "---" in lines else lines
        steps = [line for line in head if not line.startswith("#")]
        if not steps:
            yield block
            continue
        answer = session.run(" ".join(step.strip() for step in steps))
        shown = _ANYTHING if given == [_ANYTHING] and not _ERROR.match(answer) else answer
        yield "\n".join([*head, "---", shown])


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 15


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
@pytest.mark.parametrize("engine_name", ["memory", "embedded"])
def test_script(script: Path, engine_name: str, tmp_path: Path) -> None:
    text = script.read_text(encoding="utf-8")
    engine: Engine = MemoryEngine() if engine_name == "memory" else EmbeddedEngine(tmp_path / "data")
    try:
        assert list(rewritten(text, engine)) == text.strip("\n").split("\n\n")
    finally:
        engine.close()


if __name__ == "__main__":
    for path in SCRIPTS:
        old = path.read_text(encoding="utf-8")
        path.write_text("\n\n".join(rewritten(old, MemoryEngine())) + "\n", encoding="utf-8")
