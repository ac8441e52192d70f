"""Limits of requests: of each key, and of users in the users file."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from click.testing import CliRunner

from hashrange.cli import main
from hashrange.clock import SystemClock
from hashrange.database import Caller, Database
from hashrange.errors import ThrottlingException
from hashrange.server import running
from hashrange_access import rates
from hashrange_access.judging.gate import Gate, LimitingGate
from hashrange_access.judging.judging import guard
from hashrange_access.rates import Limiter
from hashrange_access.users import UsersError, read
from worlds import table_of

EVERYTHING = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
USERS: dict[str, Any] = {
    "accounts": {
        "123456789012": {
            "users": {
                "alice": {
                    "policies": [EVERYTHING],
                    "requests_per_second": "2",
                    "keys": [
                        {"id": "AKIDALICE1", "secret": "the-secret-of-alice"},
                        {"id": "AKIDALICE2", "secret": "the-secret-of-alice"},
                    ],
                },
                "bob": {
                    "policies": [EVERYTHING],
                    "keys": [{"id": "AKIDBOB", "secret": "the-secret-of-bob"}],
                },
            }
        }
    }
}


class Time:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


def passed(limiter: Limiter, key: str, tries: int) -> int:
    """How many of some requests at one time are not refused."""
    count = 0
    for _ in range(tries):
        try:
            limiter.take(Caller(access_key=key))
        except ThrottlingException as error:
            assert error.message == "Rate exceeded"
        else:
            count += 1
    return count


@pytest.mark.parametrize(
    ("per_second", "burst", "at_once", "after_a_second"),
    [(10, None, 10, 10), (10, 30, 30, 10), (10, 1, 1, 1), (0.5, None, 1, 0), (3, 7, 7, 3)],
)
def test_a_burst_and_then_the_rate(
    time: Time, per_second: float, burst: float | None, at_once: int, after_a_second: int
) -> None:
    limiter = Limiter(per_second, burst, time)
    assert passed(limiter, "a", 100) == at_once
    time.now += 1
    assert passed(limiter, "a", 100) == after_a_second
    time.now += 1_000
    assert passed(limiter, "a", 100) == at_once


def test_each_key_has_its_own_room(time: Time) -> None:
    limiter = Limiter(5, None, time)
    assert [passed(limiter, key, 9) for key in ("a", "b", "a")] == [5, 5, 0]


def test_steady_requests_at_the_rate_are_never_refused(time: Time) -> None:
    limiter = Limiter(7, 1, time)
    for _ in range(1_000):
        assert passed(limiter, "a", 1) == 1
        time.now += 1 / 7


def test_without_a_limit_nothing_is_counted(time: Time) -> None:
    limiter = Limiter(None, None, time)
    assert passed(limiter, "a", 1_000) == 1_000
    assert not limiter._full_at


def test_keys_that_are_full_again_are_forgotten(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "KEYS_MAX", 10)
    limiter = Limiter(1, None, time)
    for number in range(9):
        passed(limiter, f"former {number}", 1)
    time.now += 1
    assert passed(limiter, "last", 1) == 1
    assert passed(limiter, "new", 1) == 1
    assert list(limiter._full_at) == ["last", "new"]
    assert passed(limiter, "last", 1) == 0
    for number in range(100):
        assert passed(limiter, f"later {number}", 1) == 1
        assert len(limiter._full_at) <= 10


# -- Over HTTP ---------------------------------------------------------------------------------------------


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory() as made:
        yield made


def client(endpoint: str, key: str, secret: str = "any-secret") -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": 1}),
    )


def refusals(dynamodb: Any, tries: int) -> int:
    count = 0
    for _ in range(tries):
        try:
            dynamodb.list_tables()
        except ClientError as error:
            assert error.response["Error"] == {"Code": "ThrottlingException", "Message": "Rate exceeded"}
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400
            count += 1
    return count


def test_a_key_that_makes_too_many_requests(database: Database, time: Time) -> None:
    database.observers.guard(LimitingGate(Limiter(3, None, time)))
    with running(database) as endpoint:
        first, second = client(endpoint, "AKIDFIRST"), client(endpoint, "AKIDSECOND")
        assert refusals(first, 5) == 2
        assert refusals(second, 3) == 0
        time.now += 1
        assert refusals(first, 3) == 0
        database.observers.guard(None)
        assert not database.observers.heads
        assert refusals(first, 9) == 0


def test_a_refused_request_does_nothing(database: Database, time: Time) -> None:
    database.observers.guard(LimitingGate(Limiter(2, None, time)))
    with running(database) as endpoint:
        dynamodb = client(endpoint, "AKIDFIRST")
        dynamodb.create_table(**table_of("events", "id"))
        dynamodb.put_item(TableName="events", Item={"id": {"S": "first"}})
        with pytest.raises(ClientError, match="Rate exceeded"):
            dynamodb.put_item(TableName="events", Item={"id": {"S": "second"}})
        database.observers.guard(None)
        assert dynamodb.scan(TableName="events")["Items"] == [{"id": {"S": "first"}}]


def test_the_limit_of_a_user_is_for_all_keys_of_the_user(database: Database, time: Time) -> None:
    guard(database, Gate(read(USERS), SystemClock().now, strict=True, limiter=Limiter(4, None, time)))
    with running(database) as endpoint:
        one, two = (client(endpoint, f"AKIDALICE{n}", "the-secret-of-alice") for n in (1, 2))
        assert refusals(one, 1) == 0
        assert refusals(two, 3) == 2
        assert refusals(client(endpoint, "AKIDBOB", "the-secret-of-bob"), 6) == 2
        time.now += 1
        # Whoever only claims a key takes nothing of its room.
        with pytest.raises(ClientError, match="InvalidSignature"):
            client(endpoint, "AKIDALICE1", "another-secret").list_tables()
        assert refusals(two, 2) == 0


def test_soft_does_not_limit_users(database: Database, time: Time) -> None:
    limiter = Limiter(None, None, time)
    guard(database, Gate(read(USERS), SystemClock().now, strict=False, limiter=limiter))
    with running(database) as endpoint:
        assert refusals(client(endpoint, "AKIDALICE1", "the-secret-of-alice"), 5) == 0


@pytest.mark.parametrize("wrong", ["0", "-1", "many", "", "1e3", ["5"]])
def test_a_limit_is_a_number(wrong: Any) -> None:
    users = copy.deepcopy(USERS)
    users["accounts"]["123456789012"]["users"]["alice"]["requests_per_second"] = wrong
    with pytest.raises(UsersError, match=r"alice\.requests_per_second must be a number above 0"):
        read(users)


def test_a_burst_needs_a_limit() -> None:
    outcome = CliRunner().invoke(main, ["serve", "--memory", "--port", "0", "--requests-burst", "5"])
    assert outcome.exit_code == 2
    assert "without --requests-per-second-max" in outcome.output
