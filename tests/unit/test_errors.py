"""The envelope of every error."""

from __future__ import annotations

import pytest

from hashrange import errors
from hashrange.errors import ServiceError

CLASSES = [
    value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, ServiceError)
]
# Subclasses tell apart errors that the client sees under one code.
CODES = [error for error in CLASSES if error.__base__ in (ServiceError, Exception)]


@pytest.mark.parametrize("error", CODES, ids=lambda error: error.__name__)
def test_every_error_has_its_code_and_a_status(error: type[ServiceError]) -> None:
    raised = error("text")
    assert raised.code == error.__name__
    assert raised.status in (400, 500, 503)
    assert raised.wire()["__type"].endswith("#" + error.__name__)
    assert "text" in raised.wire().values()
    # [docs] "some of them send no text"
    assert list(error().wire()) == ["__type"]


def test_members_are_part_of_the_body() -> None:
    error = errors.ConditionalCheckFailedException("failed", Item={"p": {"S": "a"}})
    assert error.wire() == {
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "message": "failed",
        "Item": {"p": {"S": "a"}},
    }


@pytest.mark.parametrize(
    ("error", "prefix"),
    [
        # [report] the services of AWS's own framework answer under its names
        (errors.ValidationException, "com.amazon.coral.validate#"),
        (errors.SerializationException, "com.amazon.coral.service#"),
        (errors.UnknownOperationException, "com.amazon.coral.service#"),
        (errors.AccessDeniedException, "com.amazon.coral.service#"),
        (errors.ResourceNotFoundException, "com.amazonaws.dynamodb.v20120810#"),
        (errors.TransactionCanceledException, "com.amazonaws.dynamodb.v20120810#"),
    ],
)
def test_prefixes(error: type[ServiceError], prefix: str) -> None:
    assert error("x").wire()["__type"] == prefix + error.__name__


@pytest.mark.parametrize("error", [error for error in CLASSES if error not in CODES])
def test_a_finer_error_shows_the_code_of_its_parent(error: type[ServiceError]) -> None:
    assert error.__base__ is not None
    assert error("text").wire()["__type"].endswith("#" + error.__base__.__name__)


def test_the_tree_in_the_docstring_names_every_class() -> None:
    assert errors.__doc__ is not None
    missing = [error.__name__ for error in CLASSES if error.__name__ not in errors.__doc__]
    assert missing == []
