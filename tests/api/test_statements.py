"""The examples of the Developer Guide's PartiQL pages, as an application sends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

WHERE = "WHERE artist = 'Acme Band' AND song = 'PartiQL Rocks'"


@pytest.fixture
def music(client: DynamoDBClient, create: Callable[..., str]) -> str:
    """A table with the guide's song in it."""
    name = create("music", artist="S", song="S")
    statement = f"INSERT INTO \"{name}\" value {{'artist': 'Acme Band', 'song': 'PartiQL Rocks'}}"
    assert client.execute_statement(Statement=statement)["Items"] == []
    return name


def code_of(call: Callable[[], object]) -> str:
    """The error that a call ends with."""
    with pytest.raises(ClientError) as caught:
        call()
    return caught.value.response["Error"]["Code"]


def pages(client: DynamoDBClient, **request: Any) -> Iterator[list[Any]]:
    """The items of every page of a statement."""
    while True:
        answer = client.execute_statement(**request)
        yield answer["Items"]
        if "NextToken" not in answer:
            return
        request["NextToken"] = answer["NextToken"]


def test_the_updates_of_the_guide(client: DynamoDBClient, music: str) -> None:
    for changes, expected in (
        ("SET awards = 1 SET detail = {'Grammys': [2020, 2018]}", {"awards": {"N": "1"}}),
        ("SET detail.Grammys = list_append(detail.Grammys, [2016])", {}),
        ("REMOVE detail.Grammys[2]", {"detail": {"M": {"Grammys": {"L": [{"N": "2020"}, {"N": "2018"}]}}}}),
        ("SET detail.BillBoard = [2020]", {}),
        ("SET members = <<'member1', 'member2'>>", {}),
        ("SET members = set_add(members, <<'newbandmember'>>)", {}),
    ):
        answer = client.execute_statement(Statement=f'UPDATE "{music}" {changes} {WHERE} RETURNING ALL NEW *')
        assert expected.items() <= answer["Items"][0].items()
    item = client.execute_statement(Statement=f'SELECT * FROM "{music}" {WHERE}')["Items"][0]
    assert set(item["members"]["SS"]) == {"member1", "member2", "newbandmember"}
    assert item["detail"]["M"]["BillBoard"] == {"L": [{"N": "2020"}]}


def test_what_is_there_and_what_is_not(client: DynamoDBClient, music: str) -> None:
    song = "{'artist': 'Acme Band', 'song': 'PartiQL Rocks'}"

    def execute(statement: str) -> Any:
        return client.execute_statement(Statement=statement)["Items"]

    assert code_of(lambda: execute(f'INSERT INTO "{music}" VALUE {song}')) == "DuplicateItemException"
    missing = "WHERE artist = 'Acme Band' AND song = 'none'"
    update = f'UPDATE "{music}" SET a = 1 {missing}'
    assert code_of(lambda: execute(update)) == "ConditionalCheckFailedException"
    assert execute(f'DELETE FROM "{music}" {missing}') == []
    (gone,) = execute(f'DELETE FROM "{music}" {WHERE} RETURNING ALL OLD *')
    assert gone == {"artist": {"S": "Acme Band"}, "song": {"S": "PartiQL Rocks"}}
    assert execute(f'SELECT * FROM "{music}"') == []


def test_paging(client: DynamoDBClient, music: str) -> None:
    statement = f"INSERT INTO \"{music}\" VALUE {{'artist': ?, 'song': ?}}"
    for artist in "ab":
        for number in range(7):
            client.execute_statement(Statement=statement, Parameters=[{"S": artist}, {"S": f"s{number}"}])
    select = f'SELECT song FROM "{music}" WHERE artist IN [?, ?] ORDER BY artist DESC, song DESC'
    found = list(pages(client, Statement=select, Parameters=[{"S": "a"}, {"S": "b"}], Limit=4))
    songs = [item["song"]["S"] for page in found for item in page]
    assert songs == [f"s{number}" for number in range(6, -1, -1)] * 2
    assert max(map(len, found)) == 4


def test_a_batch_and_a_transaction(client: DynamoDBClient, music: str) -> None:
    insert = f"INSERT INTO \"{music}\" VALUE {{'artist': ?, 'song': ?}}"
    batch = client.batch_execute_statement(
        Statements=[
            {"Statement": insert, "Parameters": [{"S": "Acme Band"}, {"S": title}]}
            for title in ("Best Song", "PartiQL Rocks")
        ]
    )["Responses"]
    assert [one.get("Error", {}).get("Code") for one in batch] == [None, "DuplicateItem"]

    exists = f'EXISTS(SELECT * FROM "{music}" {WHERE} AND awards IS MISSING)'
    update = f'UPDATE "{music}" SET awards = 1 {WHERE.replace("PartiQL Rocks", "Best Song")}'
    statements: list[Any] = [{"Statement": exists}, {"Statement": update}]
    client.execute_transaction(TransactStatements=statements)
    client.execute_statement(Statement=f'UPDATE "{music}" SET awards = 1 {WHERE}')
    with pytest.raises(client.exceptions.TransactionCanceledException) as caught:
        client.execute_transaction(TransactStatements=statements)
    assert [reason["Code"] for reason in caught.value.response["CancellationReasons"]] == [
        "ConditionalCheckFailed",
        "None",
    ]
    read = client.execute_transaction(
        TransactStatements=[{"Statement": f'SELECT awards FROM "{music}" {WHERE}'}]
    )
    assert read["Responses"] == [{"Item": {"awards": {"N": "1"}}}]
