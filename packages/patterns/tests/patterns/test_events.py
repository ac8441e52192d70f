"""Events in: queues in a table and at a broker, workers, dead letters; and all of them killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import kombu
import pytest
from botocore.exceptions import ClientError

from hashrange_patterns import (
    Counters,
    Delivery,
    Event,
    EventQueue,
    Jobs,
    QueueFull,
    Runtime,
    SqsEvents,
    Table,
    TableEvents,
    Unreachable,
    Worker,
)
from hashrange_patterns.brokers import BrokerEvents
from hashrange_patterns.sqs import batches_of
from patterns.brokers import (
    RABBITMQ,
    Broker,
    queue_at,
    rabbitmq,
    sqs,
    started,
    wait_for_work,
)
from patterns.conftest import ROUNDS
from patterns.counting_worker import queue_of
from patterns.faults import Intercepted, answer_of, faulty

needs_rabbitmq = pytest.mark.skipif(not RABBITMQ, reason="there is no rabbitmq-server, or no time")
QUEUES = [
    "table",
    pytest.param("rabbitmq", marks=needs_rabbitmq),
    "sqs",
]
BROKERS = {"rabbitmq": rabbitmq, "sqs": sqs}
STOP_SECONDS_MAX = 30.0


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Broker]]:
    """Brokers that are started when they are asked for, and not killed between."""
    running: dict[str, Broker] = {}

    def broker(name: str) -> Broker:
        if name not in running:
            running[name] = BROKERS[name](tmp_path_factory.mktemp(name))
            running[name].start()
        return running[name]

    yield broker
    for one in running.values():
        one.kill()


@pytest.fixture(params=QUEUES)
def make_queue(
    request: pytest.FixtureRequest,
    http_client: Any,
    name_table: Callable[..., str],
    brokers: Callable[[str], Broker],
) -> Iterator[Callable[..., EventQueue]]:
    """Makes queues of one name, each as a process of its own has it."""
    client, table = http_client, Table(name_table("events", http_client))
    client.create_table(**table.definition())
    client.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1})
    made: list[BrokerEvents | SqsEvents] = []

    def make(**options: Any) -> EventQueue:
        if request.param == "table":
            return TableEvents(client, table, "views", poll_seconds=0.01, **options)
        url = brokers(request.param).url
        made.append(queue_at(url, Jobs(client, table, table.name), **options))
        return made[-1]

    yield make
    for queue in made:
        if isinstance(queue, BrokerEvents):
            queue.close()


def bodies(queue: EventQueue, number: int) -> list[str]:
    """Take events, and say that they are done."""
    found: list[str] = []
    while len(found) < number and (deliveries := queue.take(number - len(found), 5.0)):
        queue.done(deliveries)
        found += [delivery.body for delivery in deliveries]
    return sorted(found)


def test_events_are_put_taken_and_done(make_queue: Callable[..., EventQueue]) -> None:
    endpoint, worker = make_queue(), make_queue()
    endpoint.put(["a", "b", "ü"])
    assert bodies(worker, 3) == ["a", "b", "ü"]
    assert worker.take(1, 0.0) == []


def test_events_that_are_given_back_come_again(make_queue: Callable[..., EventQueue]) -> None:
    queue = make_queue()
    queue.put(["a"])
    [delivery] = queue.take(1, 5.0)
    queue.give_back([delivery])
    assert bodies(queue, 1) == ["a"]


def test_the_event_of_a_silent_worker_is_delivered_again_and_counts_as_an_attempt(
    make_queue: Callable[..., EventQueue],
) -> None:
    silent = make_queue(lease_seconds=1.0)
    silent.put(["a"])
    [first] = silent.take(1, 5.0)
    other = make_queue(lease_seconds=1.0)
    if isinstance(silent, BrokerEvents):
        silent.close()  # RabbitMQ knows no lease
    again = []
    for _ in range(50):
        again = other.take(1, 0.2)
        if again:
            break
    assert [(one.body, one.attempts) for one in again] == [("a", first.attempts + 1)]
    other.done(again)


def test_a_full_queue_refuses_events(make_queue: Callable[..., EventQueue]) -> None:
    queue = make_queue(waiting_max=3, look_seconds=0.0)
    queue.put(["a", "b"])
    with pytest.raises(QueueFull, match="2 events wait, and 3 may"):
        queue.put(["c", "d"])
    queue.put(["c"])
    with pytest.raises(QueueFull):
        queue.put(["d"])
    worker = make_queue()
    assert bodies(worker, 3) == ["a", "b", "c"]
    queue.put(["d"])
    assert bodies(worker, 1) == ["d"]


def test_poison_events_are_put_aside_listed_and_replayed(make_queue: Callable[..., EventQueue]) -> None:
    queue = make_queue(attempts_max=2)
    queue.put(["good", "poison", "better"])
    handled: Counter[str] = Counter()

    def handle(events: list[str]) -> None:
        if "poison" in events:
            raise ValueError("indigestible")
        handled.update(events)

    worker, stop = Worker(queue, handle, wait_seconds=0.05), threading.Event()
    for _ in range(100):
        worker.step(stop)
        if queue.dead():
            break
    assert handled == {"good": 1, "better": 1}
    [dead] = queue.dead()
    assert (dead.payload, dead.attempts, dead.reason) == ("poison", 2, "ValueError: indigestible")
    assert queue.replay(dead)
    assert queue.dead() == []
    [again] = queue.take(1, 5.0)
    assert (again.body, again.attempts) == ("poison", 1)
    queue.done([again])


def test_a_worker_stops_after_its_batch(make_queue: Callable[..., EventQueue]) -> None:
    queue, stop = make_queue(), threading.Event()
    queue.put([str(number) for number in range(5)])
    handled: list[str] = []

    def handle(events: list[str]) -> None:
        stop.set()
        if len(events) > 1:
            raise ValueError("one by one, please")
        handled.extend(events)

    worker = Worker(queue, handle, batch_max=5, wait_seconds=5.0)
    worker.run(stop)
    assert len(handled) <= 1  # (a broker may have had only one at once); the others were given back
    stop.clear()

    def keep(events: list[str]) -> None:
        handled.extend(events)
        stop.set()

    Worker(queue, keep, batch_max=5, wait_seconds=5.0).run(stop)
    rest = bodies(queue, 5 - len(handled)) if len(handled) < 5 else []
    assert sorted(handled + rest) == list("01234")


def test_a_failing_table_costs_the_events_no_attempts(client: Any, table: Table) -> None:
    """A throttled table costs no attempts: nothing is put aside however long it lasts."""
    queue = TableEvents(client, table, "views", attempts_max=1)
    queue.put([str(number) for number in range(10)])
    through, faults = faulty(client, random.Random(1), 0.9)
    counters = Counters(through, table, runtime=Runtime(attempts_max=1))
    count = lambda events: counters.count([Event(event, {"/": 1}) for event in events])  # noqa: E731
    worker = Worker(queue, count, wait_seconds=0.0, runtime=Runtime(pause_seconds=0.0))
    assert worker.step(threading.Event()) == 10
    assert queue.dead() == []
    faults.rate = 0.0
    assert counters.value("/", consistent=True) == 10


def test_events_taken_before_the_table_was_throttled_are_handled(client: Any, table: Table) -> None:
    class Throttled(Intercepted):
        claims = 0

        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            self.claims += operation == "update_item"
            if self.claims > 8:
                raise answer_of("ThrottlingException")
            return super().perform(operation, parameters)

    queue = TableEvents(client, table, "views")
    queue.put([str(number) for number in range(20)])
    through: Any = Throttled(client)
    worker = TableEvents(through, table, "views", runtime=Runtime(pause_seconds=0.0))
    assert [one.attempts for one in worker.take(20, 0.0)] == [1] * 8
    with pytest.raises(ClientError, match="ThrottlingException"):
        worker.take(20, 0.0)


def test_events_that_are_given_back_cost_no_attempt(make_queue: Callable[..., EventQueue]) -> None:
    queue = make_queue(attempts_max=2)
    queue.put(["a"])
    for _ in range(4):
        [delivery] = queue.take(1, 5.0)
        assert delivery.attempts == 1
        queue.give_back([delivery])
    assert queue.dead() == []
    assert bodies(queue, 1) == ["a"]


def test_a_slow_worker_keeps_its_events(client: Any, table: Table) -> None:
    extended = threading.Semaphore(0)

    class Watched(TableEvents):
        def extend(self, deliveries: Sequence[Delivery]) -> None:
            super().extend(deliveries)
            extended.release()

    queue = Watched(client, table, "views", lease_seconds=0.6, attempts_max=1)
    queue.put(["a", "b"])
    handled = []

    def handle(events: list[str]) -> None:
        for _ in range(4):  # (longer than the lease)
            assert extended.acquire(timeout=30.0)
        assert TableEvents(client, table, "views", attempts_max=1).take(2, 0.0) == []
        handled.extend(events)

    assert Worker(queue, handle).step(threading.Event()) == 2
    assert sorted(handled) == ["a", "b"]
    assert queue.dead() == []


def test_no_event_ends_the_worker(client: Any, table: Table) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    class Refusing(TableEvents):
        def done(self, deliveries: Sequence[Delivery]) -> None:
            if any(one.body == "unfinished" for one in deliveries):
                raise ValueError("not this one")
            super().done(deliveries)

    errors: dict[str, Exception] = {"surrogate": ValueError("\ud800"), "unspeakable": Unspeakable()}

    def handle(events: list[str]) -> None:
        if len(events) > 1:
            raise ValueError("one by one, please")
        if events[0] in errors:
            raise errors[events[0]]
        handled.extend(events)

    handled: list[str] = []
    queue = Refusing(client, table, "views", attempts_max=1)
    queue.put(["surrogate", "unspeakable", "unfinished", "good"])
    assert Worker(queue, handle).step(threading.Event()) == 4
    assert sorted(handled) == ["good", "unfinished"]
    assert {dead.payload: dead.reason for dead in queue.dead()} == {
        "surrogate": "ValueError: \\ud800",
        "unspeakable": "Unspeakable",
    }
    assert queue.take(1, 0.0) == []  # ("unfinished" has its lease)


def test_events_that_no_queue_can_take_are_refused_before_anything_is_put(
    make_queue: Callable[..., EventQueue],
) -> None:
    queue = make_queue(waiting_max=2)
    with pytest.raises(TypeError, match="a list of events"):
        queue.put("abc")
    with pytest.raises(ValueError, match="never fit: waiting_max is 2"):
        queue.put(["a", "b", "c"])
    with pytest.raises(ValueError, match="bytes"):
        queue.put(["a", "x" * 400_001])
    assert queue.take(1, 0.0) == []


@needs_rabbitmq
def test_a_message_that_is_not_an_event_is_put_aside(
    client: Any, table: Table, brokers: Callable[[str], Broker]
) -> None:
    jobs = Jobs(client, table, table.name)
    queue = BrokerEvents(brokers("rabbitmq").url, jobs)
    queue.put(["first"])
    with kombu.Connection(brokers("rabbitmq").url) as connection, connection.Producer() as producer:
        for body in (b"\xff", b"x" * 500_000):
            producer.publish(
                body,
                routing_key=table.name,
                content_type="application/octet-stream",
                content_encoding="binary",
            )
    queue.put(["last"])
    assert bodies(queue, 2) == ["first", "last"]
    assert sorted((len(dead.payload), dead.reason[:9]) for dead in queue.dead()) == [
        (4, "no event:"),
        (100_000, "no event:"),
    ]
    queue.close()


@pytest.mark.parametrize("url", ["redis://localhost", "sqs://", "localhost"])
def test_a_broker_that_keeps_no_promises_is_refused(client: Any, table: Table, url: str) -> None:
    with pytest.raises(ValueError, match="not a URL of RabbitMQ"):
        BrokerEvents(url, Jobs(client, table, "views"))
    with pytest.raises(ValueError, match="FIFO"):
        SqsEvents(client, "https://sqs.us-east-1.amazonaws.com/1/a.fifo", Jobs(client, table, "views"))


def test_requests_to_sqs_are_as_large_as_they_may_be() -> None:
    batches = batches_of(["x" * 100_000] * 5 + ["y"] * 25)
    assert [len(batch) for batch in batches] == [2, 2, 10, 10, 6]


def test_a_worker_goes_on_when_the_queue_is_back(client: Any, table: Table) -> None:
    class Down(TableEvents):
        calls = 0

        def take(self, limit: int, wait_seconds: float) -> Any:
            self.calls += 1
            if self.calls < 3:
                raise Unreachable("down")
            stop.set()
            return []

    stop = threading.Event()
    queue = Down(client, table, "views")
    Worker(queue, print, runtime=Runtime(pause_seconds=0.0)).run(stop)
    assert queue.calls == 3


def test_other_errors_end_the_worker(client: Any, table: Table) -> None:
    queue = TableEvents(client, "no-such-table", "views")
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        Worker(queue, print).run(threading.Event())


def test_nobody_there_is_said(client: Any, table: Table) -> None:
    queue = BrokerEvents("amqp://127.0.0.1:1/", Jobs(client, table, "views"), connect_seconds=0.2)
    with pytest.raises(Unreachable):
        queue.put(["a"])


@pytest.mark.parametrize("broker", QUEUES)
def test_counts_are_exact_whichever_process_is_killed(
    http_client: Any, endpoint: str, name_table: Callable[..., str], tmp_path: Path, broker: str
) -> None:
    """Workers and the broker get SIGKILL in the middle of everything; events are put twice now and then. What
    stands for SQS is spared.

    Every event is counted once.
    """
    table = Table(name_table("events", http_client))
    http_client.create_table(**table.definition())
    http_client.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1})
    chance = random.Random(table.name)
    server = BROKERS[broker](tmp_path) if broker != "table" else None
    url = server.url if server else "table"
    if server:
        server.start()
    queue = queue_of(http_client, table.name, url)
    expected: Counter[str] = Counter()
    workers: list[subprocess.Popen[str]] = []
    try:
        workers += [started("patterns.counting_worker", endpoint, table.name, url) for _ in range(2)]
        for round_number in range(ROUNDS // 4 or 2):
            for serial in range(40):
                event = {"id": f"{round_number}-{serial}", "page": f"/{chance.randrange(3)}"}
                put_at_last(queue, json.dumps(event), chance.choice([1, 1, 2]))
                expected[event["page"]] += 1
            wait_for_work(workers, chance.randrange(1, 6))
            worker = workers.pop(0)
            worker.kill()
            worker.communicate()
            workers.append(started("patterns.counting_worker", endpoint, table.name, url))
            if server and broker != "sqs":
                server.kill()
                server.start()
        counters = Counters(http_client, table)
        wait_for_counts(lambda: counters.values(list(expected), consistent=True), expected.total())
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        for worker in workers:
            worker.communicate(timeout=STOP_SECONDS_MAX)
            assert worker.returncode == 0
        assert counters.values(list(expected), consistent=True) == expected
        assert Jobs(http_client, table, "views").dead() == []
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
                worker.communicate()
        if isinstance(queue, BrokerEvents):
            queue.close()
        if server:
            server.kill()


def wait_for_counts(read: Callable[[], dict[str, int]], least: int) -> None:
    """Wait until at least so many were counted, or nothing was for long."""
    waiting = threading.Event()
    values, still = read(), 0
    while sum(values.values()) < least and still < 150:
        waiting.wait(0.2)
        before, values = values, read()
        still = still + 1 if values == before else 0


def put_at_last(queue: EventQueue, body: str, times: int) -> None:
    """Put an event as a client does: again until the endpoint took it."""
    for _ in range(times):
        for _ in range(200):
            try:
                queue.put([body])
                break
            except Unreachable:
                continue
        else:
            raise AssertionError("the queue could not be reached 200 times")
