"""`hashrange load`: the mixes, their choices, and answers that cannot be true."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.remote import asking
from hashrange.database import Database
from hashrange.faults import parse
from hashrange_lab.loads import items, making, mixes
from hashrange_lab.loads.items import Known
from hashrange_lab.loads.latencies import Latencies
from hashrange_lab.loads.making import Load
from hashrange_lab.loads.sending import Endpoint, Unreachable
from hashrange_lab.recordings import reader
from hashrange_lab.recordings.recording import Recording

SMALL = ["--items", "40", "--limit", "100", "--in-flight", "4"]


def load(endpoint: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["load", "--endpoint-url", endpoint, *arguments], prog_name="hashrange")


@pytest.mark.parametrize("mix", sorted(mixes.MIXES))
def test_every_mix_runs_and_is_verified(endpoint: str, database: Database, mix: str) -> None:
    result = load(endpoint, mix, *SMALL, "--consistent")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("100 requests in ")
    assert lines[1].split()[:2] == ["request", "number"]
    kinds = {line.split("  ")[0] for line in lines[2 : 2 + len(mixes.MIXES[mix].shares)]}
    assert kinds == set(mixes.MIXES[mix].shares)
    assert any(line.startswith("verified: ") and line.endswith(", 0 wrong") for line in lines)
    assert database.execute("ListTables", {})["TableNames"] == []


def test_what_was_consumed_is_shown(endpoint: str) -> None:
    result = load(endpoint, "c", *SMALL)
    assert "consumed: 50.0 read units, 0.0 write units" in result.stdout


def test_equal_seeds_make_equal_requests(endpoint: str, database: Database, tmp_path: Path) -> None:
    runs: list[list[Any]] = []
    for name, seed in (("first", "7"), ("second", "7"), ("third", "8")):
        with Recording(database, tmp_path / name):
            options = ["--items", "40", "--limit", "50", "--in-flight", "1", "--seed", seed]
            assert load(endpoint, "a", *options).exit_code == 0
        with reader.open(tmp_path / name) as opened:
            runs.append([(entry.operation, entry.request) for entry in opened.entries()])
    assert runs[0] == runs[1] != runs[2]


def test_a_table_of_its_own_is_kept_if_that_is_wanted(endpoint: str, database: Database) -> None:
    assert load(endpoint, "c", *SMALL, "--keep-table").exit_code == 0
    assert database.execute("Scan", {"TableName": "hashrange-load", "Select": "COUNT"})["Count"] == 40
    again = load(endpoint, "c", *SMALL)
    assert again.exit_code == 1
    assert "There is a table hashrange-load already" in again.stderr
    assert "give --table hashrange-load" in again.stderr
    assert load(endpoint, "c", *SMALL, "--table", "hashrange-load").exit_code == 0
    assert database.execute("ListTables", {})["TableNames"] == ["hashrange-load"]


def test_wrong_answers_end_in_an_error(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = items.item
    monkeypatch.setattr(items, "item", lambda number, version, size: filled(number, version + 1, size))
    result = load(endpoint, "c", *SMALL)
    assert result.exit_code == 1
    assert "has version 1, which was never sent" in result.stdout
    ignored = load(endpoint, "c", *SMALL, "--no-check")
    assert ignored.exit_code == 0
    assert "answers were not verified" in ignored.stdout


def test_errors_are_counted_by_their_codes(endpoint: str, database: Database) -> None:
    database.faults.add(parse("GetItem nth=3 throttle"))
    result = load(endpoint, "c", *SMALL)
    assert result.exit_code == 0
    assert "errors of read: 1 ProvisionedThroughputExceededException" in result.stdout


def test_an_endpoint_that_does_not_answer_is_named(endpoint: str) -> None:
    result = load("http://127.0.0.1:1", "c", *SMALL)
    assert result.exit_code == 1
    assert "The table hashrange-load cannot be made at http://127.0.0.1:1: NoAnswer" in result.stderr


def test_an_interrupted_load_shows_what_it_has_done(
    endpoint: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = Load._count

    def interrupted(self: Load, kind: str, seconds: float) -> None:
        count(self, kind, seconds)
        if self.made.requests == 20:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Load, "_count", interrupted)
    result = load(endpoint, "c", "--items", "40", "--in-flight", "4")
    assert result.exit_code == 130
    assert "interrupted" in result.stdout
    assert "verified: 2" in result.stdout
    assert database.execute("ListTables", {})["TableNames"] == []


def test_a_rate_is_not_exceeded(endpoint: str) -> None:
    result = load(endpoint, "c", "--items", "40", "--limit", "20", "--rate", "100", "--in-flight", "4")
    assert result.exit_code == 0
    seconds = float(result.stdout.split()[3])
    assert seconds >= 0.19  # (at most: a machine under load takes longer)


def test_zipf_prefers_some_items_and_finds_all() -> None:
    choose = mixes.chooser(mixes.ZIPF, 100, Random(1))
    counts = Counter(choose(100) for _ in range(20_000))
    assert all(0 <= number < 100 for number in counts)
    assert len(counts) > 50
    [(_, most)] = counts.most_common(1)
    assert most > 20_000 / 100 * 10


def test_latest_prefers_the_newest() -> None:
    choose = mixes.chooser(mixes.LATEST, 100, Random(1))
    counts = Counter(choose(150) for _ in range(20_000))
    assert counts.most_common(1)[0][0] == 149
    assert min(counts) >= 50


def test_uniform_prefers_none() -> None:
    choose = mixes.chooser(mixes.UNIFORM, 10, Random(1))
    counts = Counter(choose(10) for _ in range(10_000))
    assert set(counts) == set(range(10))
    assert max(counts.values()) < 1.2 * min(counts.values())


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("distribution", mixes.DISTRIBUTIONS)
def test_few_items_can_be_chosen(distribution: str, count: int) -> None:
    choose = mixes.chooser(distribution, count, Random(1))
    assert {choose(count) for _ in range(500)} <= set(range(count))


def test_shares_add_up() -> None:
    for name, mix in mixes.MIXES.items():
        assert sum(mix.shares.values()) == pytest.approx(1), name
        drawn = Counter(mix.draw(Random(seed)) for seed in range(500))
        assert set(drawn) == set(mix.shares)


def test_an_answer_that_cannot_be_true_is_found() -> None:
    known = Known(10)
    assert known.wrong(3, items.item(3, 0, 10), 0) == ""
    assert known.wrong(3, None, 0) == "item 3 is missing"
    assert known.wrong(3, items.item(4, 0, 10), 0) == "item 3 was asked for, and item 4 came"
    assert "never sent" in known.wrong(3, items.item(3, 1, 10), 0)
    assert "another content" in known.wrong(3, {**items.item(3, 0, 10), "content": {"S": "x"}}, 0)
    assert "another form" in known.wrong(3, items.key(3), 0)
    version = known.begin(3)
    assert known.sure(3) == 0
    known.end(3, version, is_made=True)
    assert known.sure(3) == 1
    assert "after 1 was acknowledged" in known.wrong(3, items.item(3, 0, 10), known.sure(3))
    assert known.wrong(3, items.item(3, 1, 10), known.sure(3)) == ""


def test_of_two_updates_at_a_time_either_may_come_last() -> None:
    known = Known(10)
    first, second = known.begin(3), known.begin(3)
    known.end(3, second, is_made=True)
    known.end(3, first, is_made=True)
    assert known.wrong(3, items.item(3, first, 10), known.sure(3)) == ""
    known.lost(3)
    third = known.begin(3)
    known.end(3, third, is_made=True)
    assert known.sure(3) == 0


def test_a_query_finds_items_from_its_key_on() -> None:
    known = Known(10)
    assert known.wrong_in_query(items.item(17, 0, 10), 15) == ""
    assert "found item 14" in known.wrong_in_query(items.item(14, 0, 10), 15)
    assert "found item 20" in known.wrong_in_query(items.item(20, 0, 10), 15)
    assert "another form" in known.wrong_in_query({}, 15)


def test_percentiles_are_right_to_two_percent() -> None:
    latencies = Latencies()
    assert latencies.percentile(99) == 0
    for number in range(1, 1_001):
        latencies.add(number / 1_000)
    for percent in (50, 95, 99):
        assert latencies.percentile(percent) == pytest.approx(percent / 100, rel=0.02)
    assert (latencies.count, latencies.longest) == (1_000, 1.0)


def test_a_table_that_stays_without_items_is_not_filled(
    endpoint: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "_TRIES_MAX", 2)
    monkeypatch.setattr(making, "_TRY_SECONDS", 0)
    database.faults.add(parse("BatchWriteItem unprocessed"))
    result = load(endpoint, "c", *SMALL)
    assert result.exit_code == 1
    assert "items were left unprocessed 2 times" in result.stderr


def load_of_aws(
    monkeypatch: pytest.MonkeyPatch, answer: str, *arguments: str, terminal: bool = True
) -> Result:
    """A load on Amazon DynamoDB whose requests go nowhere, and the user's answer to the question."""
    monkeypatch.setattr(asking, "has_terminal", lambda: terminal)
    monkeypatch.setattr("hashrange_lab.loads.sending.endpoint", nowhere)
    command = ["load", "c", *SMALL, "--endpoint-url", *arguments]
    return CliRunner().invoke(main, command, prog_name="hashrange", input=answer)


def nowhere(url: str, *place: object) -> Endpoint:
    raise Unreachable(f"{url} would get requests")


@pytest.mark.parametrize(
    "arguments",
    [("aws", "--region", "eu-west-1"), ("https://dynamodb.eu-west-1.amazonaws.com",)],
    ids=["aws", "URL"],
)
def test_a_load_on_aws_asks_first(monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    denied = load_of_aws(monkeypatch, "n\n", *arguments)
    question = (
        "Put a load on table hashrange-load at https://dynamodb.eu-west-1.amazonaws.com, in your account"
    )
    assert question in denied.stderr
    assert "would get requests" not in denied.stderr
    assert denied.exit_code == 1
    for answer, more in (("y\n", ()), ("", ("--yes",))):
        assert "would get requests" in load_of_aws(monkeypatch, answer, *arguments, *more).stderr
    silent = load_of_aws(monkeypatch, "", *arguments, terminal=False)
    assert silent.exit_code == 1
    assert "There is no terminal for the answer: give --yes." in silent.stderr
