"""A cloud that is served by somebody else's DynamoDB: what these servers do otherwise, sync must bear."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest

from bench.servers import SERVERS, running
from sync.histories import EXAMPLES, CounterHistories, Histories, check
from sync.test_sync_behaviours import equal
from sync.world import CONFIG, Place, Places, World

FEWER = max(2, EXAMPLES // 10)
"""A history with moto takes a second or two."""


def places_of(endpoint: str, *, batches: bool) -> Places:
    """A cloud at an endpoint, and an edge of ours."""
    connect: Any = partial(
        boto3.client,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=CONFIG,
    )
    return Places(Place(connect, batches=batches))


@pytest.fixture(scope="module")
def moto() -> Iterator[Places]:
    """The cloud's side is moto, whose PartiQL answers an unmet condition as if it had been met."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    places = places_of(f"http://{host}:{port}", batches=False)
    yield places
    places.close()
    server.stop()


@pytest.fixture(scope="module")
def dynamodb_local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """The cloud's side is DynamoDB Local, if `python -m bench.install dynamodb-local` has installed it."""
    [server] = [one for one in SERVERS if one.title == "dynamodb-local memory"]
    if not server.installed():
        pytest.skip("DynamoDB Local is not installed: python -m bench.install dynamodb-local")
    with ExitStack() as stack:
        folder: Path = tmp_path_factory.mktemp("dynamodb-local")
        port = stack.enter_context(running(server, folder)).port
        places = places_of(f"http://127.0.0.1:{port}", batches=True)
        stack.callback(places.close)
        yield places


def settle(world: World) -> None:
    """Let both sides become equal. A peer's stream may show a change late."""
    for _ in range(50):
        world.once()
        if equal(world):
            return
    assert equal(world)


@pytest.mark.parametrize("peer", ["moto", "dynamodb_local"])
def test_edits_deletions_and_conflicts(peer: str, request: pytest.FixtureRequest) -> None:
    world = World(request.getfixturevalue(peer), conflicts="newest: t", segments=2)
    for number in range(60):
        world.cloud.put(f"c{number}", a="0", b={"B": b"\xff"}, n={"NS": ["1", "2.50"]}, t={"N": "1"})
        world.edge.put(f"e{number}", a="0", deep={"M": {"l": {"L": [{"NULL": True}]}}})
    settle(world)
    for number in (1, 4, 5):
        world.cloud.set(f"e{number}", a="1")
        world.edge.set(f"c{number}", a="1", b=None)
    world.cloud.delete("c2")
    world.edge.delete("e2")
    world.cloud.put("c3", a="old", t={"N": "5"})
    world.edge.put("c3", a="new", t={"N": "6"})
    settle(world)
    assert world.edge.items().keys().isdisjoint({"c2", "e2"})
    assert (world.cloud.get("c3") or {})["a"] == {"S": "new"}
    [conflict] = world.log()
    assert (conflict.cloud or {})["a"] == {"S": "old"}
    assert world.sync.pairs[0].verify().is_equal


def test_histories_with_moto(moto: Places) -> None:
    check(lambda: Histories(moto, conflicts="cloud"), FEWER)


def test_histories_of_counters_with_moto(moto: Places) -> None:
    check(lambda: CounterHistories(moto, "mark"), FEWER)
