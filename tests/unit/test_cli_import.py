"""`hashrange import`: the items of files go into a table of a running server; lines that are no items are
reported."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.remote import batches
from hashrange.database import Database
from hashrange.server import running
from importing import encoded, item_of
from worlds import create, index_on

GROUP = index_on("by-group", "group")


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory() as database:
        create(database, "music", "pk", indexes={"by-group": "group"})
        yield database


@pytest.fixture
def endpoint(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with running(database) as url:
        yield url


def run(endpoint: str, *arguments: object) -> Result:
    return CliRunner().invoke(main, ["import", *map(str, arguments), "--endpoint-url", endpoint])


def scan(database: Database) -> list[dict[str, object]]:
    found = orjson.loads(orjson.dumps(database.execute("Scan", {"TableName": "music"})))
    items: list[dict[str, object]] = found["Items"]
    return items


def test_files_of_all_formats(database: Database, endpoint: str, tmp_path: Path) -> None:
    items = [item_of(number) for number in range(160)]
    items[3]["binary"] = {"L": [{"B": "AAE="}, {"BS": ["YQ=="]}, {"M": {"x": {"NULL": True}}}]}
    (tmp_path / "a.json").write_bytes(encoded(items[:60], "DYNAMODB_JSON"))
    (tmp_path / "b.ION.gz").write_bytes(gzip.compress(encoded(items[60:120], "ION")))
    (tmp_path / "c.csv").write_bytes(encoded(items[120:], "CSV"))
    result = run(endpoint, "music", tmp_path / "a.json", tmp_path / "b.ION.gz", tmp_path / "c.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("160 items imported, 0 rows left out\n")
    # In a CSV only keys have types.
    wanted = [{**item, "n": {"S": item["n"]["N"]}} if item in items[120:] else item for item in items]
    assert sorted(scan(database), key=str) == sorted(wanted, key=str)


def test_rows_that_are_no_items_are_reported_and_the_others_imported(
    database: Database, endpoint: str, tmp_path: Path
) -> None:
    rows = [
        {"pk": {"S": "a"}},
        {"other": {"S": "b"}},
        {"pk": {"S": "c"}, "group": {"N": "1"}},  # only the service knows that this is wrong
        {"pk": {"S": "a"}, "n": {"N": "2"}},
        {"pk": {"S": "d"}, "large": {"S": "x" * 409_600}},
    ]
    file = tmp_path / "a.json"
    file.write_bytes(encoded(rows, "DYNAMODB_JSON") + b"garbage\n")
    result = run(endpoint, "music", file)
    assert result.exit_code == 1
    assert scan(database) == [rows[3]]
    for number, message in (
        (2, "One or more parameter values were invalid: Missing the key pk in the item"),
        (3, "One or more parameter values were invalid: Type mismatch for Index Key group"),
        (5, "Item size has exceeded the maximum allowed size"),
        (6, "Invalid DynamoDB JSON"),
    ):
        assert f"{file}, row {number}: {message}" in result.output
    assert "2 items imported, 4 rows left out" in result.output


def test_csv_with_options(database: Database, endpoint: str, tmp_path: Path) -> None:
    file = tmp_path / "songs.txt"
    file.write_bytes(b"x;1\ny;2\n")
    result = run(endpoint, "music", file, "--format", "csv", "--delimiter", ";", "--header", "pk;value")
    assert result.exit_code == 0, result.output
    assert {"pk": {"S": "y"}, "value": {"S": "2"}} in scan(database)


def test_csv_with_types(database: Database, endpoint: str, tmp_path: Path) -> None:
    text = b'pk,group,size,tags,note\nx,7,2.5,"[1]",3\ny,,,"{""SS"": [""a""]}",\n'
    (tmp_path / "a.csv").write_bytes(text)
    (tmp_path / "b.typed.csv").write_bytes(text)
    result = run(endpoint, "music", tmp_path / "a.csv", "--types", "size=N,tags=JSON")
    assert result.exit_code == 0, result.output
    x, y = sorted(scan(database), key=lambda item: str(item["pk"]))
    assert (x["size"], x["tags"]) == ({"N": "2.5"}, {"L": [{"N": "1"}]})
    assert (x["group"], x["note"]) == ({"S": "7"}, {"S": "3"})
    assert y == {"pk": {"S": "y"}, "tags": {"SS": ["a"]}, "note": {"S": ""}}
    for file, options in (("a.csv", ["--types", "AUTO"]), ("b.typed.csv", [])):
        database.execute("DeleteItem", {"TableName": "music", "Key": {"pk": {"S": "y"}}})
        assert run(endpoint, "music", tmp_path / file, *options).exit_code == 0
        assert sorted(scan(database), key=lambda item: str(item["pk"])) == [
            x | {"note": {"N": "3"}},
            {"pk": {"S": "y"}, "tags": {"SS": ["a"]}},
        ]
    assert run(endpoint, "music", tmp_path / "a.csv", "--types", "size=X").exit_code == 2
    wrong = run(endpoint, "music", tmp_path / "a.csv", "--types", "note=BOOL")
    assert "row 1: The field of note is wrong: '3' is neither true nor false" in wrong.output


def test_impossible_imports_are_refused_before_anything_is_sent(
    database: Database, endpoint: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_bytes(encoded([item_of(1)], "DYNAMODB_JSON"))
    (tmp_path / "b").write_bytes(b"")
    result = run(endpoint, "music", tmp_path / "a.json", tmp_path / "b")
    assert "has no known format; give --format" in result.output
    assert "Requested resource not found" in run(endpoint, "absent", tmp_path / "a.json").output
    assert run(endpoint, "music", tmp_path / "a.json", "--delimiter", "ab").exit_code == 2
    assert scan(database) == []


def test_without_the_extra_a_file_of_zstd_is_refused_and_the_extra_named(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hashrange.interchange.compression._DAMAGED_ZSTD", ())
    (tmp_path / "a.json.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    result = run(endpoint, "music", tmp_path / "a.json.zst")
    assert result.exit_code == 2
    assert "pip install backports.zstd" in result.output


def test_a_list_of_items(database: Database, endpoint: str, tmp_path: Path) -> None:
    file = tmp_path / "songs.json"
    file.write_text(
        ' [{"pk": "plain", "n": 1.10, "deep": {"x": [true, null]}},'
        ' {"pk": {"S": "typed"}, "n": {"N": "2"}},'
        ' {"Item": {"pk": {"S": "of an export"}}}, "nothing", {"x": 1}]'
    )
    result = run(endpoint, "music", file)
    assert result.exit_code == 1
    assert f"{file}, row 4: an item is an object, not 'nothing'" in result.stderr
    assert f"{file}, row 5: One or more parameter values were invalid: Missing the key pk" in result.stderr
    deep = {"M": {"x": {"L": [{"BOOL": True}, {"NULL": True}]}}}
    wanted = [
        {"pk": {"S": "plain"}, "n": {"N": "1.1"}, "deep": deep},
        {"pk": {"S": "typed"}, "n": {"N": "2"}},
        {"pk": {"S": "of an export"}},
    ]
    assert sorted(scan(database), key=str) == sorted(wanted, key=str)
    file.write_text("[{]")
    broken = run(endpoint, "music", file)
    assert broken.exit_code == 1
    assert f"{file}: it begins as a list or an object over several lines, and is not JSON" in broken.stderr


PLAIN = [{"pk": "a", "n": 1.10}, {"pk": "b", "Items": [1]}]
TYPED = [{"pk": {"S": "a"}, "n": {"N": "1.1"}}, {"pk": {"S": "b"}, "Items": {"L": [{"N": "1"}]}}]


@pytest.mark.parametrize("items", [PLAIN, TYPED], ids=["plain", "typed"])
@pytest.mark.parametrize("form", ["list", "lines", "answer", "answer over lines", "object over lines"])
@pytest.mark.parametrize("suffix", ["json", "jsonl.gz"])
def test_json_as_programs_write_it(
    database: Database, endpoint: str, tmp_path: Path, items: list[object], form: str, suffix: str
) -> None:
    answer = {"Items": items, "Count": 2, "ScannedCount": 2}
    text = {
        "list": json.dumps(items),
        "lines": "\n" + "".join(json.dumps(item) + "\n" for item in items),
        "answer": json.dumps(answer),
        "answer over lines": json.dumps(answer, indent=2),
        "object over lines": json.dumps(items[0], indent=2),
    }[form]
    file = tmp_path / f"songs.{suffix}"
    file.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    result = run(endpoint, "music", file)
    assert result.exit_code == 0, result.output
    wanted = TYPED[:1] if form == "object over lines" else TYPED
    assert sorted(scan(database), key=str) == sorted(wanted, key=str)


def test_wrong_lines_of_plain_json_are_reported(database: Database, endpoint: str, tmp_path: Path) -> None:
    file = tmp_path / "songs.jsonl"
    file.write_text('{"pk": "a"}\n{"pk":\n\n[1]\n{"Item": {"pk": {"S": "b"}}}\n')
    result = run(endpoint, "music", file)
    assert f"{file}, row 2: The line cannot be read as JSON" in result.stderr
    assert f"{file}, row 3: an item is an object, not [1]" in result.stderr
    assert "2 items imported, 2 rows left out" in result.stdout


def test_a_dry_run_puts_nothing(database: Database, endpoint: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(encoded([{"pk": {"S": "a"}}, {"other": {"S": "b"}}], "DYNAMODB_JSON"))
    result = run(endpoint, "music", file, "--dry-run")
    assert result.exit_code == 1
    assert "row 2: One or more parameter values were invalid: Missing the key pk" in result.stderr
    assert "1 item would be imported, 1 row left out" in result.stdout
    assert scan(database) == []


@pytest.mark.parametrize("number", [0, 3])
def test_ctrl_c_tells_how_far_it_got_and_how_to_go_on(
    database: Database, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(encoded([item_of(number) for number in range(200)], "DYNAMODB_JSON"))
    put, sent = batches.put, list[object]()

    def interrupted(client: object, table: str, items: list[object]) -> None:
        if len(sent) == number:
            raise KeyboardInterrupt
        sent.append(items)
        put(client, table, items)

    with monkeypatch.context() as patched:
        patched.setattr(batches, "put", interrupted)
        result = run(endpoint, "music", file)
    assert result.exit_code == 130
    assert f"Interrupted: {25 * number} items are in table music" in result.stderr
    assert "run the same command again" in result.stderr
    if number:
        assert f"up to {file}, row {25 * number}" in result.stderr
    assert len(scan(database)) == 25 * number
    assert run(endpoint, "music", file).exit_code == 0
    assert len(scan(database)) == 200


def test_a_log_file_gets_no_progress_bar(database: Database, endpoint: str, tmp_path: Path) -> None:
    file = tmp_path / "songs.json"
    file.write_text('{"pk": "a"}')
    result = run(endpoint, "music", file)
    assert result.output == f"Server: {endpoint}\n1 item imported, 0 rows left out\n"
