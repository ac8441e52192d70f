"""Each function of the expressions is in each of its places: one that was forgotten fails here, by its name.

The places are those that docs/architecture/operations.md names under "Add a function of expressions".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hashrange.database import Database
from hashrange.errors import ValidationException
from hashrange.expressions import Substitutions, update
from hashrange.expressions.conditions import compile_condition
from hashrange.expressions.operands import ARGUMENT_COUNTS, CONDITION_FUNCTIONS, UPDATE_FUNCTIONS
from hashrange.expressions.parser import parse_condition
from hashrange.expressions.updates import OPERATOR_BYTES
from worlds import table_of

PROPERTIES = Path(__file__).with_name("test_expressions_properties.py")
MODEL = Path(__file__).resolve().parents[1] / "model"
VALUES: tuple[dict[str, Any], ...] = (
    {"S": "S"}, {"N": "1"}, {"B": "eA=="}, {"SS": ["S"]}, {"L": [{"N": "1"}]}, {"M": {}}, {"BOOL": True},
)  # fmt: skip
UPDATING = sorted(UPDATE_FUNCTIONS)
ALL = sorted(UPDATE_FUNCTIONS | CONDITION_FUNCTIONS)


def calls(function: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls whose first argument is the path `a` or a value, and whose others are values of all types."""
    places = [":v", ":w", ":x"][: ARGUMENT_COUNTS[function]]
    for arguments in (["a", *places[1:]], places):
        for values in product(VALUES, repeat=len(arguments) - arguments.count("a")):
            names = [argument for argument in arguments if argument != "a"]
            yield f"{function}({', '.join(arguments)})", dict(zip(names, values, strict=True))


@pytest.mark.parametrize("function", ALL)
def test_operands_say_how_many_arguments_it_has(function: str) -> None:
    assert function in ARGUMENT_COUNTS


@pytest.mark.parametrize("function", UPDATING)
def test_updates_charge_for_it(function: str) -> None:
    assert function in OPERATOR_BYTES


@pytest.mark.parametrize("function", UPDATING)
def test_updates_evaluate_it(function: str) -> None:
    results = 0
    for old, (call, values) in product(VALUES, calls(function)):
        try:
            changed = update(f"SET b = {call}", Substitutions(values=values or None))
            results += "b" in changed.apply({"a": old})
        except ValidationException:
            continue
    assert results


@pytest.mark.parametrize("function", sorted(CONDITION_FUNCTIONS - {"size"}))
def test_conditions_evaluate_it(function: str) -> None:
    results = set()
    for old, (call, values) in product([*VALUES, None], calls(function)):
        holds = compile_condition(parse_condition(call), {})
        results.add(holds({} if old is None else {"a": old}, values))
    assert results == {True, False}


@pytest.mark.parametrize("function", UPDATING)
def test_statements_know_it(function: str) -> None:
    with Database.in_memory() as database:
        table = table_of("table", "pk")
        database.execute("CreateTable", table)
        done = 0
        for old, (call, values) in product(VALUES, calls(function)):
            database.execute("PutItem", {"TableName": "table", "Item": {"pk": {"S": "k"}, "a": old}})
            statement = f"UPDATE \"table\" SET b = {re.sub(':[vwx]', '?', call)} WHERE pk = 'k'"
            request = {"Statement": statement, **({"Parameters": list(values.values())} if values else {})}
            try:
                database.execute("ExecuteStatement", request)
            except ValidationException:
                continue
            done += 1
        assert done


@pytest.mark.parametrize("function", ALL)
def test_the_naive_evaluators_get_it(function: str) -> None:
    """Once where trees are made; what updates do with it is written a second time."""
    times = PROPERTIES.read_text(encoding="utf-8").count(f'"{function}"')
    assert times >= (2 if function in UPDATE_FUNCTIONS else 1)


@pytest.mark.parametrize("function", ALL)
def test_the_reference_model_has_it(function: str) -> None:
    assert function in (MODEL / "expressions.py").read_text(encoding="utf-8")
