"""Runs the golden scripts of PartiQL: statement, `---`, exact answer.

A script is a session with an empty database: steps parted by blank lines. A step is a statement on one line,
or `<Operation> <request JSON>`; a line `with <JSON>` adds members to the statement's request. Then `---` and
the answer as JSON, or for an error `<code>: <message>` and its further members; `...` is not looked at. `#`
lines say where the answers below them are from: [docs], [report] or [assumed]; "[report] local" was observed
on DynamoDB Local 3.3 as a black box. `python tests/unit/test_partiql_golden.py` writes the answers anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.operations import REGISTRY
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine

SCRIPTS = sorted((Path(__file__).parent.parent / "golden" / "partiql").glob("*.txt"))
_ANYTHING = "..."


def answer_to(database: Database, lines: list[str]) -> str:
    """The answer to one step."""
    name, _, rest = lines[0].partition(" ")
    request = orjson.loads(rest) if name in REGISTRY else {"Statement": lines[0]}
    for line in lines[1:]:
        assert line.startswith("with "), line
        request |= orjson.loads(line.removeprefix("with "))
    try:
        answer = database.execute(name if name in REGISTRY else "ExecuteStatement", request)
    except ServiceError as error:
        members = f" {orjson.dumps(error.members).decode()}" if error.members else ""
        return f"{error.code}: {error.message}{members}"
    return orjson.dumps(answer).decode()


def rewritten(script: str, engine: Engine) -> Iterator[str]:
    """The steps of a script, each with the answer that it gives now."""
    database = Database(engine, clock=ManualClock())
    for block in script.strip("\n").split("\n\n"):
        lines = block.splitlines()
        head = lines[: lines.index("---")] if "---" in lines else lines
        step = [line for line in head if not line.startswith("#")]
        if not step:
            yield block
            continue
        answer = answer_to(database, step)
        if lines[len(head) + 1 :] == [_ANYTHING]:
            assert "Exception: " not in answer, (step, answer)
            answer = _ANYTHING
        yield "\n".join([*head, "---", answer])


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 6


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
