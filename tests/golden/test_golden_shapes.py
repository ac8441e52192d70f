"""Runs the golden scripts of request shapes: request, `---`, exact answer."""

from pathlib import Path

import orjson
import pytest

from hashrange import shapes
from hashrange.errors import ServiceError

SCRIPTS = sorted((Path(__file__).parent / "shapes").glob("*.txt"))


def cases(script: Path) -> list[tuple[str, str]]:
    """The cases of a script: request lines and answer."""
    found = []
    for block in script.read_text().strip().split("\n\n"):
        lines = "\n".join(line for line in block.splitlines() if not line.startswith("#"))
        request, _, answer = lines.partition("\n---\n")
        assert answer, f"{script.name}: no answer after {request!r}"
        found.append((request, answer))
    return found


def answer_to(request: str) -> str:
    operation, _, body = request.partition(" ")
    try:
        shapes.check(operation, orjson.loads(body))
    except ServiceError as error:
        return f"{error.code}: {error.message}"
    return "ok"


def test_there_are_scripts() -> None:
    assert SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_golden_script(script: Path) -> None:
    wanted = cases(script)
    assert [(request, answer_to(request)) for request, _ in wanted] == wanted
