"""Two servers and a sync as processes of their own, any of which is killed while users write."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from serving import Server, free_port, serving
from sync.histories import marks
from sync.world import STREAM

ROUNDS = max(4, int(os.environ.get("HASHRANGE_SYNC_ROUNDS", "0")) // 25)
"""How many kills."""


class Side:
    """A server with a data directory, which comes back on its port after it was killed."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.port = free_port()
        self._folder = folder
        self._stack = stack
        self.server = self.start()
        config = Config(retries={"total_max_attempts": 1}, read_timeout=20)
        self.client: Any = boto3.client(
            "dynamodb",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=config,
        )
        self.acknowledged = self.unknown = 0

    def start(self) -> Server:
        self.server = self._stack.enter_context(
            serving("--port", str(self.port), "--data-dir", str(self._folder), "--admin-port", "0")
        )
        return self.server

    def add(self, pk: str) -> None:
        """Add one to a counter."""
        try:
            self.client.update_item(
                TableName="counters",
                Key={"pk": {"S": pk}},
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )
            self.acknowledged += 1
        except (BotoCoreError, ClientError):
            self.unknown += 1

    def items(self) -> dict[str, Any]:
        """All counters, without the marks of the sync."""
        found = self.client.scan(TableName="counters", ConsistentRead=True)["Items"]
        return {item["pk"]["S"]: {"pk": item["pk"], "n": item["n"]} for item in found}


@contextmanager
def syncing(file: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "hashrange", "sync", "run", str(file)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_counters_survive_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    with ExitStack() as stack:
        sides = {name: Side(tmp_path / name, stack) for name in ("cloud", "edge")}
        for side in sides.values():
            side.client.create_table(
                TableName="counters",
                AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                BillingMode="PAY_PER_REQUEST",
                StreamSpecification=STREAM,
            )
        keys = [f"k{number}" for number in range(5)]
        for key in keys:
            sides["cloud"].client.put_item(TableName="counters", Item={"pk": {"S": key}, "n": {"N": "0"}})
        file = tmp_path / "sync.toml"
        places = "".join(
            f'[{name}]\nendpoint = "http://127.0.0.1:{side.port}"\nregion = "us-east-1"\n'
            for name, side in sides.items()
        )
        file.write_text(
            f'poll = 0.02\n{places}[[pairs]]\ntable = "counters"\nconflicts = "add: n"\nmark = "mark"\n'
        )
        once(file)
        for _ in range(ROUNDS):
            with syncing(file):
                for _ in range(chance.randrange(20, 120)):
                    sides[chance.choice(["cloud", "edge"])].add(chance.choice(keys))
                if victim := chance.choice(["", "cloud", "edge"]):
                    sides[victim].server.kill()
                    for _ in range(20):
                        sides[chance.choice(["cloud", "edge"])].add(chance.choice(keys))
            if victim:
                sides[victim].start()
        once(file)
        cloud, edge = (side.items() for side in sides.values())
        assert marks(cloud) == marks(edge)
        total = sum(int(item["n"]["N"]) for item in cloud.values())
        acknowledged = sum(side.acknowledged for side in sides.values())
        assert acknowledged <= total <= acknowledged + sum(side.unknown for side in sides.values())


def once(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hashrange", "sync", "once", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
