"""Two servers under `--auth strict`, and a sync whose keys may do what `hashrange sync policy` prints."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
import orjson
import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner

from hashrange.cli import main
from serving import Server, serving
from worlds import expiry_of, table_of

_NUMBERS = itertools.count()
TOKEN = "0123456789abcdef"
ROOT = ("AKIDROOT", "the-secret-of-root")
STRICT = (
    *("--memory", "--auth", "strict", "--admin-token", TOKEN),
    *("--root-access-key-id", ROOT[0], "--root-secret-access-key", ROOT[1]),
)


class Side:
    """A server, its root user, and the keys that it makes."""

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self.endpoint = server.endpoint
        self.admin = server.admin
        self.root = self.client(*ROOT)

    def client(self, key: str, secret: str) -> Any:
        return boto3.client(
            "dynamodb",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
        )

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = None if body is None else orjson.dumps(body)
        with urlopen(Request(self.admin + path, data, headers, method=method)) as answer:
            return orjson.loads(answer.read())

    def key(self, policy: Any) -> tuple[str, str]:
        """A new access key of a user with this policy."""
        sent = {"user": f"sync-{next(_NUMBERS)}", "policy": policy}
        made = self.ask("POST", "/v1/access-keys", sent)
        return made["id"], made["secret"]


class Strict:
    """Both sides, and the commands with keys of their own for each."""

    def __init__(self, sides: dict[str, Side], folder: Path) -> None:
        self.sides = sides
        self.cloud, self.edge = sides.values()
        self.credentials = folder / "credentials"
        self.file = folder / "sync.toml"

    def settings(self, table: str, direction: str) -> None:
        places = [
            f'[{side.name}]\nendpoint = "{side.endpoint}"\nregion = "us-east-1"\nprofile = "{side.name}"\n'
            for side in self.sides.values()
        ]
        pair = f'[[pairs]]\ntable = "{table}"\ndirection = "{direction}"\nconflicts = "add: n"\n'
        self.file.write_text("".join([*places, pair]))

    def keys(self, *options: str) -> dict[str, tuple[str, str]]:
        """Give the sync new keys, with the policies that the command prints."""
        keys = {
            name: side.key(orjson.loads(self.sync("policy", "--side", name, *options)))
            for name, side in self.sides.items()
        }
        self.credentials.write_text(
            "".join(
                f"[{name}]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
                for name, (key, secret) in keys.items()
            )
        )
        return keys

    def sync(self, name: str, *options: str, code: int = 0) -> str:
        words = ["sync", *name.split(), str(self.file), *options]
        result = CliRunner().invoke(main, words, catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result.output


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Side]]:
    with serving(*STRICT) as cloud, serving(*STRICT) as edge:
        yield {"cloud": Side("cloud", cloud), "edge": Side("edge", edge)}


@pytest.fixture
def strict(servers: dict[str, Side], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Strict:
    found = Strict(servers, tmp_path)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(found.credentials))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return found


@pytest.mark.parametrize("direction", ["both", "down", "up"])
def test_the_printed_policies_are_enough(strict: Strict, direction: str) -> None:
    table = f"orders-{direction}"
    strict.settings(table, direction)
    indexes = {"by-state": "state"}
    stream: Any = {"stream": "NEW_AND_OLD_IMAGES"}
    strict.cloud.root.create_table(**table_of(table, "pk", indexes=indexes, **stream))
    strict.cloud.root.update_time_to_live(**expiry_of(table))
    if direction == "up":  # (--definitions makes the edge's table only, so this one has its stream)
        strict.edge.root.create_table(**table_of(table, "pk", **stream))
    strict.keys("--definitions")
    strict.sync("once", "--definitions")
    edge = strict.edge.root.describe_table(TableName=table)["Table"]
    assert [index["IndexName"] for index in edge["GlobalSecondaryIndexes"]] == ["by-state"]

    keys = strict.keys()
    for side in strict.sides.values():
        for name in ("o-1", f"o-{side.name}"):
            item = {"pk": {"S": name}, "n": {"N": "1"}, "a": {"S": side.name}}
            side.root.put_item(TableName=table, Item=item)
    strict.sync("once")
    writer = strict.edge if direction == "up" else strict.cloud
    writer.root.delete_item(TableName=table, Key={"pk": {"S": f"o-{writer.name}"}})
    strict.sync("once")
    output = strict.sync("verify", code=0 if direction == "both" else 1)
    assert ("all equal" in output) == (direction == "both")
    [line] = strict.sync("conflicts list", "--format", "json").splitlines()
    conflict = orjson.loads(line)
    assert conflict["key"] == {"pk": {"S": "o-1"}}
    assert "in step" in strict.sync("status")
    for side in strict.sides.values():
        sync_client = side.client(*keys[side.name])
        with pytest.raises(ClientError, match="AccessDenied"):
            sync_client.delete_table(TableName=table)
        with pytest.raises(ClientError, match="AccessDenied"):
            sync_client.scan(TableName="another-table")
    strict.cloud.ask("DELETE", f"/v1/access-keys/{keys['cloud'][0]}")
    assert "Renew the credentials" in strict.sync("once", code=1)
