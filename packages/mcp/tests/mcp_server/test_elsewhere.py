"""The tools over another server of DynamoDB's API, and beside the MCP server of AWS Labs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
from mcp import StdioServerParameters
from moto.server import ThreadedMotoServer

from mcp_server.agents import agent, command
from serving import serving

RUNTIME = """#!/bin/sh
# The answers of a container runtime in which the container of DynamoDB Local runs, at the port of Hashrange.
case "$*" in
    inspect*) echo 3.3.0 ;;
    *Ports*) echo "127.0.0.1:$HASHRANGE_PORT->8000/tcp" ;;
    *) echo 0123456789ab ;;
esac
"""


@pytest.fixture
def moto() -> Iterator[str]:
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host.replace('0.0.0.0', '127.0.0.1')}:{port}"
    server.stop()


def test_the_tools_work_over_another_server_of_the_api(moto: str) -> None:
    table = {
        "TableName": "orders",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    }
    with agent(command(moto, "--write")) as made:
        assert "history" not in made.tools()
        assert made.ask("create_tables", model=orjson.dumps(table).decode())["tables"][0]["created"]
        puts = [{"Put": {"Item": {"pk": f"ORDER#{number}", "n": {"N": "1.5"}}}} for number in range(5)]
        assert made.ask("write_items", table="orders", actions=puts)["written"] == 5
        assert made.ask("list_tables")["is_hashrange"] is False
        [entity] = made.ask("describe_table", table="orders")["entities"]
        assert entity["partition"] == "ORDER#*"
        item = {"pk": {"S": "ORDER#3"}, "n": {"N": "1.5"}}
        assert made.ask("get_items", table="orders", keys=[{"pk": "ORDER#3"}])["items"] == [item]
        asked: dict[str, Any] = {"key_condition": "pk = :p", "values": {":p": "ORDER#3"}}
        assert made.ask("query", table="orders", **asked)["items"] == [item]
        assert len(made.ask("scan", table="orders")["items"]) == 5
        statement = made.ask("partiql", statement="SELECT * FROM orders WHERE pk = ?", parameters=["ORDER#3"])
        assert statement["items"] == [item]
        changes = made.ask("recent_changes", table="orders", limit=1)["changes"]
        assert changes[0]["key"] == {"pk": {"S": "ORDER#4"}}


MODEL = {
    "tables": [
        {
            "TableName": "Shop",
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "status")
            ],
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": "ByStatus",
                    "KeySchema": [
                        {"AttributeName": "status", "KeyType": "HASH"},
                        {"AttributeName": "sk", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        }
    ],
    "items": {
        "Shop": [
            {
                "PutRequest": {
                    "Item": {"pk": {"S": "USER#1"}, "sk": {"S": f"ORDER#{n}"}, "status": {"S": "open"}}
                }
            }
            for n in range(30)
        ]
    },
}
_QUERY = "query --table-name Shop --key-condition-expression"
_VALUES = "--expression-attribute-values"
ACCESS = {
    "orders of a user": f"{_QUERY} 'pk = :p AND begins_with(sk, :s)' "
    f"""{_VALUES} '{{":p": {{"S": "USER#1"}}, ":s": {{"S": "ORDER#"}}}}'""",
    "open orders": f"{_QUERY} '#s = :s' --index-name ByStatus "
    f"""--expression-attribute-names '{{"#s": "status"}}' {_VALUES} '{{":s": {{"S": "open"}}}}'""",
    "pay an order": "update-item --table-name Shop --update-expression 'SET paid = :y' "
    """--key '{"pk": {"S": "USER#1"}, "sk": {"S": "ORDER#1"}}' """
    f"""{_VALUES} '{{":y": {{"BOOL": true}}}}'""",
    "an order without its user": f"""{_QUERY} 'sk = :s' {_VALUES} '{{":s": {{"S": "ORDER#1"}}}}'""",
}


def labs_server() -> str:
    """The program of AWS Labs, in the environment that `make awslabs` makes."""
    for home in (Path(sys.prefix), Path(sys.prefix).parent):
        program = home / "awslabs" / "bin" / "awslabs.dynamodb-mcp-server"
        if program.exists():
            return str(program)
    pytest.skip(
        "the MCP server of AWS Labs is not installed: `make awslabs` gives it an environment of its own"
    )


def test_the_server_of_aws_labs_validates_models_against_hashrange(tmp_path: Path) -> None:
    program = labs_server()
    accesses = [
        {"pattern": name, "description": name, "implementation": f"aws dynamodb {words}"}
        for name, words in ACCESS.items()
    ]
    (tmp_path / "dynamodb_data_model.json").write_bytes(orjson.dumps({**MODEL, "access_patterns": accesses}))
    (tmp_path / "bin").mkdir()
    runtime = tmp_path / "bin" / "docker"
    runtime.write_text(RUNTIME)
    runtime.chmod(0o755)
    with serving("--memory") as server:
        variables = {
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "HASHRANGE_PORT": str(urlsplit(server.endpoint).port),
            "AWS_API_MCP_WORKING_DIR": str(tmp_path),
        }
        labs = StdioServerParameters(command=program, env=variables)
        # Both beside each other, as an agent has them: theirs makes the model, ours shows what is there.
        with agent(labs, "legacy") as theirs, agent(command(server.endpoint)) as ours:
            answer = theirs.text("dynamodb_data_model_validation", workspace_dir=str(tmp_path))
            assert "Transform DynamoDB Access Pattern Validation Results" in answer
            listed = ours.ask("list_tables")["tables"]
            assert [(table["name"], table["items"]) for table in listed] == [("Shop", 30)]
            [entity] = ours.ask("describe_table", table="Shop")["entities"]
            assert (entity["partition"], entity["sort"]) == ("USER#*", "ORDER#*")
    results = orjson.loads((tmp_path / "dynamodb_model_validation.json").read_bytes())["validation_response"]
    responses = {result["pattern_id"]: result["response"] for result in results}
    assert responses.keys() == ACCESS.keys()
    assert r"\"Count\": 30" in responses["orders of a user"].replace('"Count"', r"\"Count\"")
    assert "status_code=200" in responses["open orders"]
    assert "status_code=200" in responses["pay an order"]
    assert "Query condition missed key schema element: pk" in responses["an order without its user"]
