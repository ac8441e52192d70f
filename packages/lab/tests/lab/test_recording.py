"""Requests are recorded in a file, with their outcomes and costs, from any client."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hashrange.database import Database
from hashrange_lab.recordings import reader, writer
from hashrange_lab.recordings.lines import Entry
from hashrange_lab.recordings.recording import Recording
from watched import Clients, create


def item(pk: str, number: int, **others: Any) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"N": str(number)}, **others}


def read(path: Path) -> list[Entry]:
    with reader.open(path) as opened:
        entries = list(reader.in_order(opened.entries()))
        assert not opened.is_cut
        return entries


def test_a_request_is_recorded_as_it_was_sent(database: Database, client: Any, tmp_path: Path) -> None:
    sent = item("ada", 1, date={"S": "2026"}, price={"N": "1.50"})
    with Recording(database, tmp_path / "load"):
        client.put_item(TableName="orders", Item=sent)
        client.get_item(TableName="orders", Key=item("ada", 1), ConsistentRead=True)
        with pytest.raises(ClientError):
            client.get_item(TableName="missing", Key=item("ada", 1))
        client.query(
            TableName="orders",
            IndexName="by-date",
            KeyConditionExpression="#date = :date",
            ExpressionAttributeNames={"#date": "date"},
            ExpressionAttributeValues={":date": {"S": "2026"}},
        )
        client.scan(TableName="orders")
    put, get, missing, query, scan = read(tmp_path / "load")
    assert put.request == {"TableName": "orders", "Item": sent}
    assert (put.operation, put.tables, put.status, put.error) == ("PutItem", ("orders",), 200, "")
    assert (put.write_units, put.index_units) == (2.0, {"by-date": 1.0})
    assert (get.read_units, get.read_items, get.returned_items) == (1.0, 1, 1)
    assert get.answer_bytes > 0
    assert get.request_bytes > 0
    assert (missing.status, missing.error) == (400, "ResourceNotFoundException")
    assert (query.index, query.index_units, query.is_scan) == ("by-date", {"by-date": 0.5}, False)
    assert scan.is_scan
    assert all(entry.seconds > 0 for entry in (put, get, query, scan))
    assert put.at < get.at < missing.at < query.at < scan.at
    assert put.connection == get.connection != 0


def test_requests_before_and_after_are_not_recorded(database: Database, client: Any, tmp_path: Path) -> None:
    client.put_item(TableName="orders", Item=item("ada", 1))
    with Recording(database, tmp_path / "load"):
        client.delete_item(TableName="orders", Key=item("ada", 1))
    client.put_item(TableName="orders", Item=item("ada", 2))
    assert [entry.operation for entry in read(tmp_path / "load")] == ["DeleteItem"]
    assert database.observers.active is None


def test_the_tables_of_a_recording_can_be_made_again(database: Database, client: Any, tmp_path: Path) -> None:
    with Recording(database, tmp_path / "load"):
        client.get_item(TableName="orders", Key=item("ada", 1))
    with reader.open(tmp_path / "load") as opened:
        list(opened.entries())
        create_orders = opened.tables["orders"]
    client.delete_table(TableName="orders")
    client.create_table(**create_orders)
    client.put_item(TableName="orders", Item=item("ada", 1))


def test_equal_answers_have_equal_digests(database: Database, client: Any, tmp_path: Path) -> None:
    with Recording(database, tmp_path / "load"):
        for number in (1, 1, 2):
            put = item("ada", 1, tags={"SS": ["a", "b"]}, n={"N": f"{number}"})
            client.put_item(TableName="orders", Item=put)
            client.get_item(TableName="orders", Key=item("ada", 1), ReturnConsumedCapacity="TOTAL")
            client.get_item(TableName="orders", Key=item("ada", 1))
    digests = [entry.digest for entry in read(tmp_path / "load") if entry.operation == "GetItem"]
    assert digests[0] == digests[1] == digests[2] == digests[3] != digests[4]


def test_hashed_values_are_not_in_the_file(database: Database, client: Any, tmp_path: Path) -> None:
    with Recording(database, tmp_path / "load", hashed=True):
        for _ in range(2):
            client.put_item(TableName="orders", Item=item("ada lovelace", 1815, note={"S": "secret"}))
            client.get_item(TableName="orders", Key=item("ada lovelace", 1815))
            client.execute_statement(
                Statement="SELECT * FROM \"orders\" WHERE pk = 'ada lovelace' AND sk = 1815"
            )
    entries = read(tmp_path / "load")
    assert "ada" not in str(entries)
    assert "secret" not in str(entries)
    assert "1815" not in str([entry.request for entry in entries])
    put, get, select, *again = [entry.request for entry in entries]
    assert {name: put["Item"][name] for name in ("pk", "sk")} == get["Key"]
    assert get["Key"]["pk"]["S"] in select["Statement"]
    assert [put, get, select] == again
    assert not any(entry.digest for entry in entries)


def test_a_recording_ends_when_its_file_is_full(database: Database, client: Any, tmp_path: Path) -> None:
    bytes_max = 20_000
    chance = random.Random(1)
    with Recording(database, tmp_path / "load", bytes_max=bytes_max) as recording:
        for number in range(60):  # more than enough: half of a text like this is left when it is compressed
            note = {"S": chance.randbytes(1_000).hex()}
            client.put_item(TableName="orders", Item=item("ada", number, note=note))
        assert recording.writer is not None
        recording.writer._thread.join()  # (it writes on a thread, which ends when the file is full)
        client.get_item(TableName="orders", Key=item("ada", 1))
        assert database.observers.active is None
    assert recording.writer is not None
    assert recording.writer.state == "full"
    with reader.open(tmp_path / "load") as opened:
        assert 0 < len(list(opened.entries())) < 60
        assert opened.end is not None
        assert opened.end.why == "full"
    assert bytes_max <= (tmp_path / "load").stat().st_size < 2 * bytes_max


def test_requests_that_find_no_room_are_counted(
    database: Database, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUEUE_MAX", 0)
    with Recording(database, tmp_path / "load") as recording:
        client.get_item(TableName="orders", Key=item("ada", 1))
        monkeypatch.setattr(writer, "QUEUE_MAX", 10)
        client.get_item(TableName="orders", Key=item("ada", 2))
    with reader.open(tmp_path / "load") as opened:
        assert len(list(opened.entries())) == 1
        assert opened.dropped == 1
    assert recording.writer is not None
    assert recording.writer.dropped == 1


def test_a_file_that_exists_is_not_overwritten(database: Database, tmp_path: Path) -> None:
    (tmp_path / "load").write_text("precious")
    with pytest.raises(FileExistsError), Recording(database, tmp_path / "load"):
        pass
    assert (tmp_path / "load").read_text() == "precious"
    assert database.observers.active is None


def test_only_the_owner_reads_a_recording(database: Database, tmp_path: Path) -> None:
    former = os.umask(0o000)
    try:
        with Recording(database, tmp_path / "load"):
            pass
    finally:
        os.umask(former)
    assert (tmp_path / "load").stat().st_mode & 0o077 == 0


def test_there_is_one_recording_at_a_time(database: Database, tmp_path: Path) -> None:
    refused = pytest.raises(ValueError, match="load; stop that recording first")
    with Recording(database, tmp_path / "load"), refused:
        Recording(database, tmp_path / "other").begin()
    with Recording(database, tmp_path / "other"):
        pass


@pytest.mark.parametrize("buffering", [0, -1])
def test_a_file_that_cannot_be_written_ends_the_recording_only(
    database: Database,
    client: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    buffering: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", ended.append)
    with Recording(database, tmp_path / "load") as recording:
        assert recording.writer is not None
        recording.writer._file.close()
        # A file with a buffer fails once more when it is closed.
        recording.writer._file = open("/dev/full", "wb", buffering)  # noqa: SIM115 (the writer closes it)
        client.get_item(TableName="orders", Key=item("ada", 1))
    assert not ended, "a thread that ends by an error ends the server"
    client.get_item(TableName="orders", Key=item("ada", 1))
    assert recording.writer.state == "failed"
    assert "the recording ended" in caplog.text


def test_connections_are_told_apart(database: Database, clients: Clients, tmp_path: Path) -> None:
    first, second = clients(), clients()
    create(first, "orders")
    with Recording(database, tmp_path / "load"):
        first.get_item(TableName="orders", Key=item("ada", 1))
        second.get_item(TableName="orders", Key=item("ada", 1))
        first.get_item(TableName="orders", Key=item("ada", 1))
    numbers = [entry.connection for entry in read(tmp_path / "load")]
    is_over_http = numbers[0] > 0
    assert numbers == [1, 2, 1] if is_over_http else [-1, -1, -1]
