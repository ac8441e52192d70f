"""`hashrange replay`: the same requests on another server, and what is different there."""

from __future__ import annotations

import socketserver
import threading
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.database import Database
from hashrange.server import running
from hashrange_lab.loads import sending
from hashrange_lab.loads.renaming import renamed
from hashrange_lab.recordings import blocks, reader
from hashrange_lab.recordings.lines import End, Entry, Head, TableLine, encode
from hashrange_lab.recordings.recording import Recording
from watched import create

ITEM = {"pk": {"S": "ada"}, "sk": {"N": "1"}, "price": {"N": "2"}}
KEY = {"pk": {"S": "ada"}, "sk": {"N": "1"}}


def replay(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)], prog_name="hashrange")


@pytest.fixture
def recorded(database: Database, client: Any, tmp_path: Path) -> Path:
    """A recording of a load that begins without items."""
    create(client, "orders")
    path = tmp_path / "load"
    with Recording(database, path):
        client.list_tables()
        client.put_item(TableName="orders", Item=ITEM)
        client.get_item(TableName="orders", Key=KEY)
        client.update_item(
            TableName="orders",
            Key=KEY,
            UpdateExpression="SET price = price + :n",
            ExpressionAttributeValues={":n": {"N": "1"}},
        )
        client.transact_write_items(
            TransactItems=[{"Put": {"TableName": "orders", "Item": {**ITEM, "sk": {"N": "2"}}}}],
            ClientRequestToken="token",
        )
        with pytest.raises(client.exceptions.ConditionalCheckFailedException):
            client.put_item(TableName="orders", Item=ITEM, ConditionExpression="attribute_not_exists(pk)")
        client.query(
            TableName="orders",
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": "ada"}},
        )
        client.execute_statement(Statement="SELECT * FROM \"orders\" WHERE pk = 'ada' AND sk = 2")
    return path


def test_the_same_load_on_a_new_server_gives_the_same_answers(recorded: Path) -> None:
    with Database.in_memory() as other, running(other) as url:
        result = replay(recorded, "--endpoint-url", url, "--speed", "max", "--create-tables", "--strict")
        assert result.exit_code == 0, result.output
        answer = orjson.loads(orjson.dumps(other.execute("GetItem", {"TableName": "orders", "Key": KEY})))
        assert answer["Item"]["price"] == {"N": "3"}
        assert other.execute("Scan", {"TableName": "orders", "Select": "COUNT"})["Count"] == 2
    assert "7 requests in" in result.stdout
    assert "0 differences" in result.stdout
    assert "errors of PutItem: recorded 1 ConditionalCheckFailedException; now 1" in result.stdout
    assert "left out: 1 ListTables" in result.stdout
    [get] = [line.split() for line in result.stdout.splitlines() if line.startswith("GetItem")]
    assert get[1] == "1"
    assert get[-2:] == ["0", "0"]


def test_other_answers_are_differences(recorded: Path) -> None:
    with Database.in_memory() as other, running(other) as url:
        assert replay(recorded, "--endpoint-url", url, "--speed", "max", "--create-tables").exit_code == 0
        # The item is there already, so the price rises once more, and the first put finds it.
        other.execute("DeleteItem", {"TableName": "orders", "Key": {**KEY, "sk": {"N": "2"}}})
        result = replay(
            recorded,
            "--endpoint-url",
            url,
            "--speed",
            "max",
            "--strict",
            "--operations",
            "Query,ExecuteStatement",
        )
    assert result.exit_code == 1
    assert "2 requests in" in result.stdout
    assert "2 differences" in result.stdout
    assert "has another answer" in result.stdout


def test_other_outcomes_are_named(recorded: Path) -> None:
    with Database.in_memory() as other, running(other) as url:
        result = replay(recorded, "--endpoint-url", url, "--speed", "max", "--limit", "1")
    assert result.exit_code == 0
    assert "  PutItem orders at " in result.stdout
    assert "was 200, is ResourceNotFoundException: Requested resource not found" in result.stdout
    assert "the endpoint lacks tables: create them with --create-tables" in result.stdout


def test_tables_may_have_other_names(recorded: Path) -> None:
    with Database.in_memory() as other, running(other) as url:
        options = [
            "--endpoint-url",
            url,
            "--speed",
            "max",
            "--create-tables",
            "--strict",
            "--tables",
            "orders=copies",
        ]
        result = replay(recorded, *options)
        assert result.exit_code == 0, result.output
        assert other.execute("ListTables", {})["TableNames"] == ["copies"]


def test_a_transaction_is_made_again_on_the_same_server(
    database: Database, endpoint: str, recorded: Path
) -> None:
    database.execute("DeleteItem", {"TableName": "orders", "Key": {**KEY, "sk": {"N": "2"}}})
    result = replay(
        recorded, "--endpoint-url", endpoint, "--speed", "max", "--operations", "TransactWriteItems"
    )
    assert result.exit_code == 0, result.output
    key = {**KEY, "sk": {"N": "2"}}
    assert "Item" in database.execute("GetItem", {"TableName": "orders", "Key": key})


def test_requests_of_a_connection_keep_their_order(
    client: Any, database: Database, endpoint: str, tmp_path: Path
) -> None:
    def number_of(entry: Entry) -> int:
        return int(entry.request["ExpressionAttributeValues"][":number"]["L"][0]["N"])

    create(client, "orders")
    lines: list[Any] = [Head(1, 0.0)]
    for number in range(200):
        update = {
            "TableName": "orders",
            "Key": {"pk": {"S": str(number % 4)}, "sk": {"N": "0"}},
            "UpdateExpression": "SET seen = list_append(if_not_exists(seen, :none), :number)",
            "ExpressionAttributeValues": {":none": {"L": []}, ":number": {"L": [{"N": str(number)}]}},
        }
        lines.append(
            Entry(at=number / 1e6, operation="UpdateItem", seconds=0.0, connection=number % 4, request=update)
        )
    lines.append(End(1.0, 200, "stopped"))
    path = tmp_path / "load"
    path.write_bytes(blocks.compressed(b"".join(encode(line) + b"\n" for line in lines)))
    with Recording(database, tmp_path / "again"):
        result = replay(path, "--endpoint-url", endpoint, "--speed", "max", "--strict", "--in-flight", "10")
    assert result.exit_code == 0, result.output
    with reader.open(tmp_path / "again") as again:
        connections = {(entry.connection, number_of(entry) % 4) for entry in again.entries()}
    assert len(connections) == 4, "each recorded connection is one connection again"
    for connection in range(4):
        key = {"pk": {"S": str(connection)}, "sk": {"N": "0"}}
        seen = client.get_item(TableName="orders", Key=key)["Item"]["seen"]["L"]
        assert [int(value["N"]) for value in seen] == list(range(connection, 200, 4))


@pytest.mark.parametrize("kind", ["zstd", "gzip"])
@pytest.mark.parametrize("harm", ["cut", "changed", "zeros", "nothing"])
def test_a_damaged_recording_does_not_pass(
    kind: str, harm: str, endpoint: str, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first block is whole, and has no request in it."""
    if kind == "gzip":
        monkeypatch.setattr(blocks, "zstd", None)
    create(client, "orders")
    entry = Entry(at=0.0, operation="GetItem", seconds=0.0, request={"TableName": "orders", "Key": KEY})
    begin, end = (
        bytearray(blocks.compressed(b"".join(encode(line) + b"\n" for line in lines)))
        for lines in ([Head(1, 0.0)], [entry, End(1.0, 1, "stopped")])
    )
    if harm == "changed":
        end[-12] ^= 1
    elif harm != "nothing":
        end[-12:] = bytes(12) if harm == "zeros" else b""
    path = tmp_path / "load"
    path.write_bytes(begin + end)
    for strict, code in ((["--strict"], int(harm != "nothing")), ([], 0)):
        result = replay(path, "--endpoint-url", endpoint, "--speed", "max", *strict)
        assert result.exit_code == code, result.output
        assert ("the recording is cut off or damaged" in result.stdout) == (harm != "nothing")


def test_a_check_that_compares_nothing_does_not_pass(recorded: Path, endpoint: str) -> None:
    result = replay(
        recorded, "--endpoint-url", endpoint, "--speed", "max", "--strict", "--operations", "DeleteItem"
    )
    assert result.exit_code == 1
    assert "0 requests in" in result.stdout


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"])
@pytest.mark.parametrize("options", [[], ["--create-tables"]])
def test_a_silent_endpoint_ends_the_replay(
    recorded: Path, said: bytes, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "SECONDS_MAX", 0.05)
    ends = threading.Event()
    received: list[bytes] = []

    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            received.append(self.request.recv(65_536))
            self.request.sendall(said)
            ends.wait()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        result = replay(recorded, "--endpoint-url", url, "--speed", "max", *options)
        ends.set()
        server.shutdown()
    assert result.exit_code == 1
    assert url in result.stderr
    assert "has answered none of the requests" in result.stderr or "no answer for" in result.stderr
    assert len(received) == 1


def test_an_endpoint_that_does_not_answer_is_a_difference(recorded: Path) -> None:
    with Database.in_memory() as other, running(other) as url:
        pass
    result = replay(recorded, "--endpoint-url", url, "--speed", "max", "--limit", "2", "--strict")
    assert result.exit_code == 1
    assert "NoAnswer" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["--endpoint-url", "127.0.0.1:8000"],
            "is not the URL of an endpoint; give one such as http://127.0.0.1:8000.",
        ),
        (
            ["--endpoint-url", "http://127.0.0.1:1", "--speed", "fast"],
            "give a number above 0, such as 10, or max.",
        ),
        (["--endpoint-url", "http://127.0.0.1:1", "--operations", "Get"], "'Get' is not an operation"),
        (
            ["--endpoint-url", "http://127.0.0.1:1", "--tables", "orders"],
            "does not name two tables; give OLD=NEW.",
        ),
    ],
)
def test_wrong_options_are_explained(recorded: Path, arguments: list[str], text: str) -> None:
    result = replay(recorded, *arguments)
    assert result.exit_code in (1, 2)
    assert text in result.stderr


def test_a_file_that_is_no_recording_is_named(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("hello\n")
    result = replay(tmp_path / "other", "--endpoint-url", "http://127.0.0.1:1")
    assert result.exit_code == 1
    assert "other is not a recording" in result.stderr


def test_a_table_that_cannot_be_made_ends_the_replay(tmp_path: Path, endpoint: str) -> None:
    request = {"TableName": "orders"}
    entry = Entry(at=0.0, operation="GetItem", seconds=0.0, tables=("orders",), request=request)
    lines = [Head(1, 0.0), TableLine({"TableName": "orders"}), entry, End(1.0, 1, "stopped")]
    path = tmp_path / "load"
    path.write_bytes(b"".join(encode(line) + b"\n" for line in lines))
    result = replay(path, "--endpoint-url", endpoint, "--create-tables")
    assert result.exit_code == 1
    assert "The table orders cannot be made" in result.stderr


def test_names_of_tables_are_changed_everywhere() -> None:
    names = {"orders": "copies"}
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"
    for request, wanted in (
        ({"TableName": "orders"}, {"TableName": "copies"}),
        ({"TableName": arn}, {"TableName": "copies"}),
        ({"TableName": "others"}, {"TableName": "others"}),
        ({"RequestItems": {"orders": 1, "others": 2}}, {"RequestItems": {"copies": 1, "others": 2}}),
        (
            {"TransactItems": [{"Put": {"TableName": "orders"}}]},
            {"TransactItems": [{"Put": {"TableName": "copies"}}]},
        ),
        ({"Statement": "SELECT orders FROM orders"}, {"Statement": 'SELECT orders FROM "copies"'}),
        (
            {"Statements": [{"Statement": 'UPDATE "orders" SET a=1'}]},
            {"Statements": [{"Statement": 'UPDATE "copies" SET a=1'}]},
        ),
        ({"Statement": 'SELECT * FROM "orders"."i"'}, {"Statement": 'SELECT * FROM "copies"."i"'}),
    ):
        assert renamed(request, names) == wanted


def test_a_recording_with_hashed_values_can_be_replayed(
    database: Database, client: Any, tmp_path: Path
) -> None:
    create(client, "orders")
    with Recording(database, tmp_path / "load", hashed=True):
        for number in range(20):
            key = {"pk": {"S": f"user-{number}"}, "sk": {"N": "12345"}}
            client.put_item(TableName="orders", Item=key)
            client.get_item(TableName="orders", Key=key)
    with Database.in_memory() as other, running(other) as url:
        result = replay(
            tmp_path / "load", "--endpoint-url", url, "--speed", "max", "--create-tables", "--strict"
        )
        assert result.exit_code == 0, result.output
        assert other.execute("Scan", {"TableName": "orders", "Select": "COUNT"})["Count"] == 20


def test_pauses_before_the_first_request_are_left_out(client: Any, endpoint: str, tmp_path: Path) -> None:
    create(client, "orders")
    requests = [
        Entry(at=at, operation="GetItem", seconds=0.0, request={"TableName": "orders", "Key": KEY})
        for at in (5.0, 5.1)
    ]
    path = tmp_path / "load"
    path.write_bytes(b"".join(encode(line) + b"\n" for line in (Head(1, 0.0), *requests)))
    result = replay(path, "--endpoint-url", endpoint, "--speed", "2")
    assert result.exit_code == 0, result.output
    assert "recorded in 0.1 s" in result.stdout


def test_as_fast_as_possible_keeps_what_came_before_what(
    client: Any, database: Database, endpoint: str, tmp_path: Path
) -> None:
    create(client, "orders")
    with Recording(database, tmp_path / "load"):
        for number in range(60):
            # Each by a connection of its own, one after the other.
            other = boto3.client("dynamodb", endpoint_url=endpoint)
            if number % 2:
                other.get_item(TableName="orders", Key=KEY)
            else:
                other.put_item(TableName="orders", Item={**ITEM, "price": {"N": str(number)}})
            other.close()
    with reader.open(tmp_path / "load") as opened:
        assert len({entry.connection for entry in opened.entries()}) == 60
    result = replay(tmp_path / "load", "--endpoint-url", endpoint, "--speed", "max", "--strict")
    assert result.exit_code == 0, result.output


def test_requests_at_the_same_time_are_sent_at_the_same_time(tmp_path: Path) -> None:
    lines: list[Any] = [Head(1, 0.0)]
    lines += [
        Entry(at=number / 10, operation="GetItem", seconds=5.0, connection=number, request={"Limit": number})
        for number in range(4)
    ]
    path = tmp_path / "load"
    path.write_bytes(b"".join(encode(line) + b"\n" for line in lines))
    received: list[bytes] = []
    together = threading.Barrier(4, timeout=20)

    class Answers(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            received.append(self.request.recv(65_536))
            together.wait()
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        result = replay(
            path, "--endpoint-url", f"http://127.0.0.1:{server.server_address[1]}", "--speed", "max"
        )
        server.shutdown()
    assert result.exit_code == 0, result.output
    assert "0 differences" in result.stdout
    assert sorted(sent[-1:] for sent in received) == [b"}"] * 4
