"""What a store needs is kept in the store, and a program that does not have it refuses the store by name.

The program of another version is played by this one, with other features in `features.KNOWN`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from copies import CALLER, Directory, Place, copied, new_schema
from hashrange.cli import main
from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.settings import Settings
from hashrange.storage import features
from hashrange.storage.failures import UnknownFormat
from hashrange.storage.memory import MemoryEngine
from vector_tables import NOW, index_of
from worlds import create


def needed(database: Database) -> list[bytes]:
    return database.engine.read(
        lambda reader: [sort for sort, _ in reader.scan(features.SPACE, features.NEEDS)]
    )


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Play a program that knows neither feature."""

    def play() -> None:
        monkeypatch.setattr(features, "KNOWN", frozenset())

    return play


def test_a_feature_is_needed_once_it_is_used() -> None:
    with Database(MemoryEngine(), settings=Settings(kinesis_endpoint="http://127.0.0.1:1")) as database:
        create(database, "plain", "id", CALLER)
        assert needed(database) == []
        create(database, "near", "id", CALLER, VectorIndexes=[index_of()])
        assert needed(database) == [b"vectors"]
        arn = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
        request = {"TableName": "plain", "StreamArn": arn}
        database.execute("EnableKinesisStreamingDestination", request, CALLER)
        assert needed(database) == [b"kinesis", b"vectors"]


def test_a_directory_stays_open_to_programs_that_have_what_it_needs(tmp_path: Path, old: Any) -> None:
    place = Directory(tmp_path / "data")
    old()
    with Database(place.open(), clock=ManualClock(NOW)) as database:
        create(database, "plain", "id", CALLER)
    with Database(place.open(), clock=ManualClock(NOW)) as database:
        assert database.execute("ListTables", {}, CALLER) == {"TableNames": ["plain"]}


@pytest.mark.parametrize("kind", ["directory", "postgres"])
def test_a_store_that_needs_more_is_refused_by_name(
    tmp_path: Path, old: Any, kind: str, request: pytest.FixtureRequest
) -> None:
    """At the start of a server, by every command that reads a store, and in every copy of the store."""
    origin, back = Directory(tmp_path / "data"), Directory(tmp_path / "back")
    with Database(origin.open(), clock=ManualClock(NOW)) as database:
        create(database, "near", "id", CALLER, VectorIndexes=[index_of()])
        database.engine.checkpoint(str(tmp_path / "checkpoint"))
    place: Place = origin
    if kind == "postgres":
        place = new_schema(request.getfixturevalue("postgres_url"))
        copied(origin, place)
    copied(place, back)
    old()
    for refused in (place, back, Directory(tmp_path / "checkpoint")):
        for _ in range(2):
            with pytest.raises(UnknownFormat, match=r"does not have: vectors\. Nothing was changed"):
                refused.open()
        with pytest.raises(UnknownFormat, match="vectors"):
            refused.source()
    for options in ([], ["--repair"]):
        shown = CliRunner().invoke(main, ["check", *options, str(origin.path)])
        assert (shown.exit_code, "does not have: vectors" in shown.output) == (2, True), shown.output
