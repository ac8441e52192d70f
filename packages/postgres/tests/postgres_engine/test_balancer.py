"""The servers of compose.yaml behind their balancer, but for the containers."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread

import boto3
import pytest
import yaml
from botocore.config import Config
from click.testing import CliRunner

import balancer
import postgres
from endpoints import connection
from hashrange.cli import main
from serving import serving
from worlds import table_of

DEPLOY = Path(__file__).parents[2] / "deploy"
ROOT = DEPLOY.parents[2]
CLIENTS = 4


def test_clients_go_on_when_a_server_dies(postgres_url: str) -> None:
    """Clients add to counters of their own; each request is answered, and none is done twice unless its
    connection died with the server."""
    if not balancer.installed():
        pytest.skip("HAProxy is not installed")
    options = ("--postgres", postgres_url, "--postgres-schema", postgres.new_schema(), "--admin-port", "0")
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(*options)) for _ in range(2)]
        endpoint = stack.enter_context(balancer.balancing([server.endpoint for server in servers]))
        # As a program's client is, which repeats a request that was cut off.
        usual = Config(retries={"mode": "standard", "total_max_attempts": 5})
        client = boto3.client("dynamodb", **connection(endpoint) | {"config": usual})
        stack.callback(client.close)
        client.create_table(**table_of("counters", "pk"))
        stop, surprises = Event(), []
        answered = [0] * CLIENTS

        def work(number: int) -> None:
            try:
                while not stop.is_set():
                    client.update_item(
                        TableName="counters",
                        Key={"pk": {"S": str(number)}},
                        UpdateExpression="ADD n :one",
                        ExpressionAttributeValues={":one": {"N": "1"}},
                    )
                    answered[number] += 1
            except BaseException as error:
                surprises.append(error)

        def await_answers(more: int) -> None:
            enough = [count + more for count in answered]
            while any(count < least for count, least in zip(answered, enough, strict=True)) and not surprises:
                pass

        threads = [Thread(target=work, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        await_answers(20)
        servers[0].kill()
        await_answers(50)
        stop.set()
        for thread in threads:
            thread.join()
        assert surprises == []
        for number, count in enumerate(answered):
            item = client.get_item(TableName="counters", Key={"pk": {"S": str(number)}}, ConsistentRead=True)
            # The one that was cut off may have been done before it was repeated.
            assert int(item["Item"]["n"]["N"]) - count in (0, 1)


def test_the_compose_file_names_what_is_there() -> None:
    composed = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = composed["services"]
    assert services["one"] == services["two"]
    build = services["one"]["build"]
    assert (DEPLOY / build["context"]).samefile(ROOT)
    [mounted] = services["balancer"]["volumes"]
    assert (DEPLOY / mounted.split(":")[0]).samefile(DEPLOY / "haproxy.cfg")
    given = services["balancer"]["environment"]
    assert (given["HASHRANGE_ONE"], given["HASHRANGE_TWO"]) == ("one:8000", "two:8000")
    assert set(services["one"]["depends_on"]) <= set(services)
    text = CliRunner().invoke(main, ["serve", "--help"]).output
    dockerfile = (ROOT / build["dockerfile"]).read_text()
    for variable in (*services["one"]["environment"], "HASHRANGE_HOST"):
        assert "--" + variable.removeprefix("HASHRANGE_").lower().replace("_", "-") in text
        assert variable in dockerfile or variable in services["one"]["environment"]
    for source in ("pyproject.toml", "README.md", "LICENSE", "src"):
        assert source in dockerfile
        assert (ROOT / source).exists()
