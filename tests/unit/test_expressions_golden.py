"""Runs the golden scripts of the expression languages: input, `---`, exact output.

A script is a list of cases parted by blank lines. A case is one line `<language> <text>`, then optional
lines `names`, `values` and `item` with JSON, `---`, and the output. `legacy` cases name a function of
`expressions.legacy` and its arguments as a JSON list. A `#` line comments on the next case and says where
its expected output is from.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hashrange import expressions
from hashrange.errors import ValidationException
from hashrange.expressions import Condition, KeyCondition, Projection, Substitutions, Update, legacy
from hashrange.values import admit_item

SCRIPTS = sorted((Path(__file__).parent.parent / "golden" / "expressions").glob("*.txt"))


def render(result: Any, item: Any) -> str:
    """The output of a case."""
    if isinstance(result, Condition):
        return (
            "reads " + " ".join(sorted(result.attributes)) if item is None else str(result.test(item)).lower()
        )
    if isinstance(result, Projection):
        return _dump(result.apply(item or {}))
    if isinstance(result, Update):
        after = result.apply(item or {})
        touched = result.changed_paths(after)
        return f"after {_dump(after)}\ntouched {_dump(touched)}"
    return "\n".join(f"{term.attribute} {term.operator} {_dump(list(term.operands))}" for term in result)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def run_case(lines: list[str]) -> str:
    """The output for the input lines of one case."""
    language, _, text = lines[0].partition(" ")
    given = {name: json.loads(data) for name, _, data in (line.partition(" ") for line in lines[1:])}
    item = given.get("item")
    if item is not None:
        admit_item(item)
    try:
        if language == "legacy":
            function, _, arguments = text.partition(" ")
            return render(getattr(legacy, function)(*json.loads(arguments)), item)
        substitutions = Substitutions(given.get("names"), given.get("values"))
        if language in ("condition", "filter"):
            parameter = f"{language.title()}Expression"
            result: Any = expressions.condition(text, substitutions, parameter)
        else:
            result = getattr(expressions, language)(text, substitutions)
        substitutions.check_all_used()
        if isinstance(result, KeyCondition):
            result = result.comparisons()
        return render(result, item)
    except ValidationException as error:
        return f"ValidationException: {error.message}"


def run_script(text: str) -> str:
    """The script again, with the outputs that its inputs give now."""
    blocks = []
    for block in text.strip("\n").split("\n\n"):
        head = block.split("\n---")[0].splitlines()
        inputs = [line for line in head if not line.startswith("#")]
        output = f"\n---\n{run_case(inputs)}" if inputs else ""
        blocks.append("\n".join(head) + output)
    return "\n\n".join(blocks) + "\n"


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert run_script(text) == text
