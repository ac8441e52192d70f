"""Published programs in the process of their tests, unmodified: the programs are in `in_process/`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RunInProcess = Callable[..., dict[str, Any]]

MOTO_AND_BLOCK = {
    "object": "body",
    "arn": "arn:aws:dynamodb:us-east-1:000000000000:table/things",
    "count": 1,
    "refused": "One or more parameter values are not val",
}

PRINTED: dict[str, dict[str, Any]] = {
    "powertools.py": {
        "answers": [{"charged": 5}, {"charged": 5}],
        "charged": ["o-1", "bad", "bad"],
        "other_payload": "refused",
        "kept": ["COMPLETED"],
        "after_expiry": 0,
    },
    "sessions.py": {
        "cached": {
            "set": True,
            "get": {"n": [1, 2]},
            "add": False,
            "missing": None,
            "has": True,
            "deleted": True,
            "gone": None,
            "clear": True,
        },
        "counted": ["1", "2", "1", "3"],
    },
    "tasks.py": {
        "value": 5,
        "state": "SUCCESS",
        "failed": "FAILURE",
        "unknown": "PENDING",
        "table": ["results"],
        "forgotten": "PENDING",
        "after_expiry": 0,
    },
    "lock.py": {"refused": "ACQUIRE_TIMEOUT", "owner": True, "left": 0},
    "checkpoints.py": {
        "said": ["a", "answer 1", "b", "answer 3"],
        "other": ["c", "answer 1"],
        "history": [4, 3, 2],
    },
    "documents.py": {
        "near": ["cafe", "gaff"],
        "nearest": ["cafe", {"n": 2}, 0.0],
        "got": [{"n": [1, {"x": None}]}, {"n": 1.5}],
        "deleted": True,
        "left": ["gaff", "bead"],
        "tenants": ["cafe"],
        "older": ["bead"],
        "tables": ["older", "tenants", "words"],
    },
    "endpoint.py": {
        "pydynox": ["pydynox", 2],
        "capo": ["orders"],
        "aiodynamo": {"pk": "aiodynamo"},
        "process": "['aiodynamo', 'capo', 'process', 'pydynox']",
        "writes": 4,
        "restored": 0,
        "left": True,
    },
    "beside_moto.py": {
        "inside": MOTO_AND_BLOCK,
        "outside": MOTO_AND_BLOCK,
        "motos_own": "arn:aws:dynamodb:us-east-1:123456789012:table/mocks",
    },
}


@pytest.mark.parametrize("program", PRINTED)
def test_a_program(run_in_process: RunInProcess, program: str) -> None:
    assert run_in_process(program) == PRINTED[program]


@pytest.mark.parametrize(
    ("name", "passed", "asked"),
    [
        ("cachelib", 11, True),
        ("celery", 38, False),  # (one of them asks, in a database of its own)
        ("dynavec", 19, False),  # (as celery's)
        ("langgraph_checkpoint_aws", 43, True),
        ("langgraph_store_dynamodb", 14, True),
    ],
)
def test_the_own_tests_of(run_in_process: RunInProcess, name: str, passed: int, asked: bool) -> None:
    printed = run_in_process("own_tests.py", "in-process", name)
    assert printed == {"status": 0, "outcomes": {"passed": passed}, "asked": asked}


def test_the_own_tests_of_haystack(run_in_process: RunInProcess) -> None:
    printed = run_in_process("own_tests.py", "haystack", "dynamodb_haystack")
    assert printed == {"status": 0, "outcomes": {"passed": 80, "skipped": 4}, "asked": True}


def test_the_own_tests_of_crewai(run_in_process: RunInProcess) -> None:
    printed = run_in_process("own_tests.py", "crewai", "crewai_memory_dynamodb")
    assert printed == {"status": 0, "outcomes": {"passed": 19}, "asked": True}


def test_feasts_online_store(run_in_process: RunInProcess) -> None:
    printed = run_in_process("features.py", "feast")
    assert printed == {"tables": ["shop.orders"], "orders": [7, 9, None], "left": []}


def test_aioboto3_with_the_oldest_botocore(run_in_process: RunInProcess) -> None:
    assert run_in_process("asynchronous.py", "aioboto3") == {
        "queried": ["0", "1"],
        "together": 20,
        "refused": "ConditionalCheckFailedException",
        "pages": [12, 12, 6],
        "before": ["things"],
        "threads": 30,
        "after": "NoCredentialsError",
        "supported": True,
    }
