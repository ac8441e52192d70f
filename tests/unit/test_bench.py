"""The load harness: its requests, how it reads wrk, /proc and py-spy, and which results count."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tools import compiled

from bench import __main__ as command_line
from bench import (
    callgraph,
    install,
    instructions,
    large,
    layers,
    profiling,
    report,
    servers,
    shares,
    small_tests,
    workloads,
)
from bench.load import RESULT_MARK, SCRIPT, LoadError, Outcome, parse_outcome, write_requests
from bench.servers import parse_machine_stat, parse_stat
from bench.streams import StreamError, pages
from bench.suite import Cell, find_miscount, find_problem, quietest
from bench.wire import Request, render

OUTCOME = Outcome(
    requests=1_000,
    duration_us=2_000_000,
    bytes=500_000,
    p50_us=1_000,
    p99_us=9_000,
    p999_us=15_000,
    max_us=20_000,
    status_errors=0,
    socket_errors=0,
    timeouts=0,
    generator_cpu_us=0,
)
CELL = Cell("hashrange", "fsync", "get", 64, requests_per_second=100.0, requests=300)


def test_a_request_is_whole_and_signed_in_form() -> None:
    raw = render(Request("GetItem", {"TableName": "t", "Key": {"pk": {"S": "é"}}}), 8000)
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST / HTTP/1.1"
    assert b"X-Amz-Target: DynamoDB_20120810.GetItem" in lines
    assert f"Content-Length: {len(body)}".encode() in lines
    assert any(line.startswith(b"Authorization: AWS4-HMAC-SHA256 Credential=") for line in lines)
    assert json.loads(body) == {"TableName": "t", "Key": {"pk": {"S": "é"}}}


def test_the_request_file_can_be_read_back_as_the_script_reads_it(tmp_path: Any) -> None:
    requests = [b"one\n2\n", b"", b"\x00\xff"]
    path = tmp_path / "requests"
    write_requests(path, requests)
    found = []
    with path.open("rb") as file:
        while length := file.readline():
            found.append(file.read(int(length)))
    assert found == requests


def test_items_are_a_kilobyte_of_thirteen_attributes() -> None:
    for number in (0, 7, 1_999):
        item = workloads.item(number)
        assert len(item) == 13
        assert 1_000 <= sum(len(name) + _size(value) for name, value in item.items()) <= 1_048
        assert item == workloads.item(number)


def _size(value: dict[str, Any]) -> int:
    """An attribute value's size by DynamoDB's rules, for the kinds that the items hold."""
    ((kind, held),) = value.items()
    sizes: dict[str, Callable[[], int]] = {
        "S": lambda: len(held.encode()),
        "N": lambda: 1 + (len(held.replace(".", "").strip("0")) + 1) // 2,
        "BOOL": lambda: 1,
        "NULL": lambda: 1,
        "SS": lambda: sum(len(member) for member in held),
        "L": lambda: 3 + sum(1 + _size(member) for member in held),
        "M": lambda: 3 + sum(1 + len(name) + _size(member) for name, member in held.items()),
    }
    return sizes[kind]()


def test_operations_of_streams_have_their_own_target() -> None:
    assert b"X-Amz-Target: DynamoDBStreams_20120810.GetRecords\r\n" in render(Request("GetRecords", {}), 8000)


@pytest.mark.parametrize("name", [w.name for w in workloads.WORKLOADS.values() if w.asked is None])
def test_every_workload_makes_requests_of_tables_it_names(name: str) -> None:
    workload = workloads.WORKLOADS[name]
    requests = workload.requests()
    assert requests
    text = json.dumps([request.body for request in requests[:50]])
    assert all(table in text for table in workload.tables)
    assert not any(table in text for table in set(workloads.TABLES) - set(workload.tables))
    operations = {request.operation for request in requests}
    assert len(operations) == 1
    assert workload.writes == (operations.pop() not in {"GetItem", "Query", "BatchGetItem", "Scan"})


@pytest.mark.parametrize(
    ("name", "answer"), [("get", {}), ("query-50", {"Items": [], "Count": 0}), ("scan", {})]
)
def test_a_wrong_answer_is_reported(name: str, answer: dict[str, Any]) -> None:
    workload = workloads.WORKLOADS[name]
    assert workload.check(workload.requests()[0], answer) is not None


def test_a_right_answer_passes_however_its_sets_and_numbers_are_written() -> None:
    workload = workloads.WORKLOADS["get"]
    request = workload.requests()[3]
    item = workloads.item(int(request.body["Key"]["pk"]["S"].rpartition("#")[2]))
    item["tags"]["SS"].reverse()
    item["amount"]["N"] += "0"
    assert workload.check(request, {"Item": item}) is None
    item["note"]["S"] += "x"
    assert workload.check(request, {"Item": item}) is not None


def test_queries_are_checked_in_order() -> None:
    workload = workloads.WORKLOADS["query-last-10"]
    request = workload.requests()[3]
    items = [
        workloads.feed_item(3, p) for p in range(workloads.FEED_LENGTH - 1, workloads.FEED_LENGTH - 11, -1)
    ]
    assert workload.check(request, {"Items": items, "Count": 10}) is None
    assert workload.check(request, {"Items": items[::-1], "Count": 10}) is not None


def test_loading_fills_a_table_in_batches() -> None:
    requests = list(workloads.loading(workloads.ITEMS))
    assert len(requests) == workloads.ITEM_COUNT / workloads.BATCH_WRITE_SIZE
    assert {len(request.body["RequestItems"][workloads.ITEMS]) for request in requests} == {25}


class Stream:
    """A server with a stream: answers what `pages` asks, two shards to a page of DescribeStream."""

    def __init__(self, shards: dict[str, list[dict[str, Any]]]) -> None:
        self.shards = shards

    def __call__(self, request: Request) -> dict[str, Any]:
        match request.operation:
            case "DescribeTable":
                return {"Table": {"LatestStreamArn": "arn"} if self.shards else {}}
            case "DescribeStream":
                names = list(self.shards)
                start = request.body.get("ExclusiveStartShardId")
                rest = names[names.index(start) + 1 :] if start else names
                page = {"Shards": [{"ShardId": name} for name in rest[:2]]}
                return {"StreamDescription": page | ({"LastEvaluatedShardId": rest[1]} if rest[2:] else {})}
            case "GetShardIterator":
                return {"ShardIterator": f"{request.body['ShardId']} 0"}
        shard, start = request.body["ShardIterator"].split()
        end = int(start) + request.body["Limit"]
        records = self.shards[shard][int(start) : end]
        return {"Records": records, "NextShardIterator": f"{shard} {end}"}


def _inserted(number: int) -> dict[str, Any]:
    return {"eventName": "INSERT", "dynamodb": {"NewImage": workloads.item(number, "followed")}}


def test_the_full_pages_of_every_shard_are_read() -> None:
    stream = Stream({"a": [{}] * 5, "b": [], "c": [{}] * 2, "d": [{}]})
    found = [request.body["ShardIterator"] for request in pages(stream, "t", 2)]
    assert found == ["a 0", "a 2", "c 0"]


def test_a_server_without_streams_is_left_out_even_if_it_took_the_specification() -> None:
    with pytest.raises(StreamError, match="t was given no stream"):
        pages(Stream({}), "t", 2)
    with pytest.raises(StreamError, match="no page of 2 records"):
        pages(Stream({"a": [{}]}), "t", 2)


def test_the_records_of_a_page_are_checked() -> None:
    records = [_inserted(number) for number in range(workloads.PAGE_RECORDS)]
    workload = workloads.WORKLOADS["get-records"]
    assert workload.asked is not None
    (request,) = workload.asked(Stream({"a": records}))
    assert workload.check(request, {"Records": records}) is None
    assert workload.check(request, {"Records": records[1:]}) is not None
    changed = {**records[0], "eventName": "MODIFY"}
    assert workload.check(request, {"Records": [*records[1:], changed]}) is not None


def test_a_workload_is_compared_with_its_baseline_on_the_same_server() -> None:
    cells = [
        replace(CELL, workload="put"),
        replace(CELL, workload="put-stream", requests_per_second=80.0),
        replace(CELL, workload="get-records", requests_per_second=12.0),
        replace(CELL, server="moto", workload="put"),
        replace(CELL, server="moto", workload="put-stream", requests=0, problem="was given no stream"),
    ]
    lines = report.render(cells, [], "a machine").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in lines]
    assert ["put-stream / put", "0.80", "-"] in rows
    assert ["get-records, records/s", "1,200", "-"] in rows
    assert "put-stream / put" not in report.render(cells[3:], [], "a machine")


def test_counters_are_summed_over_their_reads() -> None:
    reads = list(workloads.counter_reads(workloads.SPREAD_COUNTERS))
    assert [len(read.body["RequestItems"][workloads.COUNTERS]["Keys"]) for read in reads] == [100] * 10
    answer = {"Responses": {workloads.COUNTERS: [{"count": {"N": "3"}}, {"count": {"N": "4"}}]}}
    assert workloads.counter_total(answer) == 7


def test_the_outcome_is_found_among_what_wrk_prints() -> None:
    fields = (
        '{"requests":10,"duration_us":1000000,"bytes":700,"p50_us":1,"p99_us":2,"p999_us":3,"max_us":3,'
        '"status_errors":0,"socket_errors":0,"timeouts":0}'
    )
    outcome = parse_outcome(f"Running 1s test\n  10 requests in 1.00s\n{RESULT_MARK}{fields}\n", 500)
    assert outcome.requests_per_second == 10
    assert outcome.generator_cpu_us == 500
    assert RESULT_MARK in SCRIPT
    with pytest.raises(LoadError):
        parse_outcome("unable to connect to 127.0.0.1:1 Connection refused")


@pytest.mark.parametrize(
    ("outcome", "counts"),
    [
        (OUTCOME, True),
        (replace(OUTCOME, requests=0), False),
        (replace(OUTCOME, status_errors=1), False),
        (replace(OUTCOME, timeouts=1), False),
        (replace(OUTCOME, socket_errors=1), False),
        (replace(OUTCOME, bytes=100_000), False),
    ],
)
def test_a_run_counts_only_with_every_answer_good(outcome: Outcome, counts: bool) -> None:
    assert (find_problem(outcome, 500.0) is None) is counts


def test_counters_may_run_ahead_by_what_was_in_flight_only() -> None:
    assert find_miscount(100, 100, 16) is None
    assert find_miscount(116, 100, 16) is None
    assert find_miscount(117, 100, 16) is not None
    assert find_miscount(99, 100, 16) is not None


def test_a_peer_that_cannot_be_installed_is_left_out_with_a_note(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None)
    notes: list[str] = []
    assert install.install_all(["dynalite"], tmp_path / "peers", notes.append) == ["dynalite"]
    assert notes == ["dynalite: left out: npm is not installed"]


def test_modes_and_peers_choose_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = tuple(replace(server, installed=lambda: True) for server in servers.SERVERS)
    monkeypatch.setattr(command_line, "SERVERS", everything)
    chosen = command_line.choose_servers(("dynalite", "moto"), ("durable",), own=True)
    assert [server.title for server in chosen] == ["hashrange fsync", "dynalite file"]
    chosen = command_line.choose_servers((), command_line.MODES, own=True)
    assert [server.title for server in chosen] == ["hashrange fsync", "hashrange memory"]
    chosen = command_line.choose_servers(("moto",), command_line.MODES, own=False)
    assert [server.title for server in chosen] == ["moto memory"]


def test_proc_stat_is_read_past_a_command_with_blanks_and_brackets() -> None:
    line = "42 (a) b (c) S 7 42 42 0 -1 4194304 1 0 0 0 30 12 5 5 20 0 1 0 100 1 1"
    assert parse_stat(line) == (7, 42)


def test_the_machine_is_busy_with_all_but_idling_and_waiting() -> None:
    assert parse_machine_stat("cpu  10 1 20 1000 500 2 3 4 50 6\ncpu0 1 1 1 1 1 1 1 1 0 0\n") == 40


def test_without_peers_there_are_no_ratios() -> None:
    text = report.render([CELL], [], "a machine")
    assert "fastest" not in text
    assert "100" in text


def test_a_disturbed_run_is_repeated_but_a_problem_is_kept() -> None:
    disturbed, worse, quiet = (replace(CELL, others_share=share) for share in (0.5, 0.8, 0.02))
    assert quietest(iter([disturbed, quiet, worse])) is quiet
    assert quietest(iter([worse, disturbed])) is disturbed
    broken = replace(worse, problem="bad")
    assert quietest(iter([disturbed, broken, quiet])) is broken


def test_rounds_merge_to_medians_and_keep_a_problem() -> None:
    cells = [replace(CELL, requests_per_second=rate) for rate in (90.0, 130.0, 100.0)]
    (merged,) = report.merge_rounds(cells)
    assert merged.requests_per_second == 100
    assert merged.requests == 900
    (merged,) = report.merge_rounds([*cells, replace(CELL, problem="bad")])
    assert merged.problem == "bad"


def test_ratios_leave_out_cells_with_a_problem() -> None:
    peers = [
        Cell("dynalite", "memory", "get", 64, requests_per_second=50.0, requests=150),
        Cell("dynalite", "file", "get", 64, requests_per_second=25.0, requests=75),
        Cell("dynoxide", "fsync", "get", 64, requests_per_second=999.0, requests=9, problem="errors"),
        Cell("moto", "memory", "get", 64, problem="does not start"),
    ]
    best = report.fastest([CELL, *peers], durable_only=False)
    assert best is not None
    assert best.title == "dynalite memory"
    text = report.render([CELL, *peers], [], "a machine")
    row = next(line for line in text.splitlines() if "dynalite file 25" in line)
    assert [cell.strip() for cell in row.split("|")[1:3]] == ["get", "2.0x"]
    assert "4.0x" in row
    assert "999 !" in text
    assert "does not start" in text


def test_the_json_holds_every_figure() -> None:
    document = json.loads(report.to_json([CELL], [], "a machine"))
    assert document["cells"][0]["requests_per_second"] == 100.0
    assert document["machine"] == "a machine"


def test_stacks_add_up_by_function_whatever_the_line() -> None:
    profile = profiling.parse_stacks(
        ["main (a.py:1);work (b.py:5) 3\n", "main (a.py:2);work (b.py:9) 1\n", "main (a.py:2) 4\n", "\n"]
    )
    assert profile.samples == 8
    assert profile.own == {"work (b.py)": 4, "main (a.py)": 4}
    assert profile.total["main (a.py)"] == 8
    text = profiling.render(profile, 40.0, 10)
    assert "| work (b.py) |           20.00 |        20.00 |" in text
    assert profiling.render(profiling.parse_stacks([]), 40.0, 10) == "py-spy took no samples"


def test_recursion_counts_once() -> None:
    profile = profiling.parse_stacks(["walk (a.py:1);walk (a.py:2);walk (a.py:2) 5\n"])
    assert profile.total["walk (a.py)"] == 5


def test_only_our_durable_server_is_measured_on_a_store_that_it_opened() -> None:
    assert [server.title for server in servers.SERVERS if server.is_reopened] == ["hashrange fsync"]


def test_the_large_table_has_as_many_items_as_asked_for_and_is_no_part_of_all() -> None:
    try:
        workloads.set_large_count(60)
        requests = list(workloads.loading(workloads.LARGE))
        puts = [put for request in requests for put in request.body["RequestItems"][workloads.LARGE]]
        assert [put["PutRequest"]["Item"] for put in puts] == [workloads.large_item(n) for n in range(60)]
        workload = workloads.WORKLOADS["get-large"]
        keys = {request.body["Key"]["pk"]["S"] for request in workload.requests()}
        assert keys == {workloads.large_item(n)["pk"]["S"] for n in range(60)}
    finally:
        workloads.set_large_count(workloads.LARGE_COUNT)
    assert "get-large" not in workloads.USUAL_WORKLOADS
    size = sum(len(name) + _size(value) for name, value in workloads.large_item(5).items())
    assert 450 <= size <= 550


def test_a_store_is_filled_with_each_item_once() -> None:
    raw = list(large.batches(1, 60, 500))
    bodies = [json.loads(request.partition(b"\r\n\r\n")[2]) for request in raw]
    puts = [put["PutRequest"]["Item"] for body in bodies for put in body["RequestItems"][large.TABLE]]
    assert sorted(puts, key=str) == sorted((large.item_of(n, 500) for n in range(60)), key=str)
    size = sum(len(name) + _size(value) for name, value in large.item_of(123_456, 500).items())
    assert 490 <= size <= 510


def test_a_large_store_is_compared_with_the_small_one() -> None:
    small, big = (
        large.Store(
            items,
            warm_up_seconds=dict.fromkeys(large.LOADS, 30.0),
            rates=dict.fromkeys(large.LOADS, rate),
            p99_us=dict.fromkeys(large.LOADS, 5.0),
        )
        for items, rate in ((10, 300.0), (1_000, 200.0))
    )
    assert large.render_stores(small, big).endswith("MET: within 1.5 times of the small store.")
    big.rates["put"] = 100.0
    assert "MISSED by put: " in large.render_stores(small, big)


def test_the_suite_of_small_tests_runs_in_process() -> None:
    own = next(one for one in small_tests.CONTENDERS if one.title == "hashrange in process")
    assert small_tests.run(own, tests=2) > 0
    broken = replace(own, fixture="users = None\n")
    with pytest.raises(RuntimeError, match="hashrange in process"):
        small_tests.run(broken, tests=1)


def test_the_table_of_small_tests_compares_with_the_run_in_process() -> None:
    seconds = {"moto": [9.0, 6.0, 7.0], "hashrange in process": [2.0]}
    assert small_tests.render(seconds, 100).splitlines()[2:] == [
        "| moto | 7.00 | 3.5 |",
        "| hashrange in process | 2.00 | 1.0 |",
    ]


ANNOTATED = """\
 2,000 (100.0%)  PROGRAM TOTALS
 1,800 (90.00%)  /build/__native_1.c:CPyDef_http___Connection___data_received [/site/hashrange.so]
   900 (45.00%)  Objects/object.c:PyObject_GetAttr [/lib/libpython.so]
   600 (30.00%)  /build/__native_1.c:CPyDef_plane___Exchange___start [/site/hashrange.so]
   100 ( 5.00%)  /include/object.h:CPyDef_plane___Exchange___start [/site/hashrange.so]
"""


def test_the_server_is_compiled_once_a_build_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "COMPILED", tmp_path)
    monkeypatch.setattr(compiled, "BUILDS", tmp_path / "builds")
    monkeypatch.setattr(compiled, "lacking", lambda: "")
    monkeypatch.setattr(compiled, "_compile", Path.mkdir)
    monkeypatch.setattr(servers, "COMPILED", tmp_path)
    server = servers.hashrange("fsync")
    assert "interpreted" in server.version()
    assert compiled.build() == 0
    assert "compiled" in server.version()
    assert "interpreted" in servers.hashrange("fsync", interpreted=True).version()


def test_instructions_are_those_of_compiled_functions_with_their_callees() -> None:
    found = instructions.parse_functions(ANNOTATED, 10)
    assert found == {"http___Connection___data_received": 180, "plane___Exchange___start": 60}


def test_instructions_of_two_builds_are_shown_beside_each_other() -> None:
    builds = [instructions.Counted(90, {"start": 60}), instructions.Counted(100, {"start": 75, "gone": 5})]
    shown = instructions.render_totals({"get": builds}).splitlines()
    assert [cell.strip() for cell in shown[-1].split("|")[1:-1]] == ["get", "90", "100", "0.900"]
    shown = instructions.render_functions(builds, 5).splitlines()
    assert [cell.strip() for cell in shown[-1].split("|")[1:-1]] == ["start", "60", "75"]
    assert instructions.render_totals({"get": builds[:1]}).splitlines()[-1].count("|") == 3
    mixed = instructions.render_totals({"get": builds[:1], "get --throttle": builds}).splitlines()
    assert {line.count("|") for line in mixed} == {5}


CALLGRIND = """\
version: 1
fn=(1) uv_run
16 100
cfn=(2) CPyDef_http___Connection___data_received
calls=10 20
+3 900
fn=(2)
16 300
cfn=(3) CPyDef_http___Connection___on_message_complete
calls=10 40
* 600
fn=(3)
20 150
cfn=(4) CPyDef_plane___Exchange___start
calls=10 50
* 450
fn=(4)
-4 400
cfn=(4)
calls=5 50
* 50
+1 50
fn=(5) sweep
1 77
"""


def test_the_instructions_of_a_function_include_those_of_its_callees() -> None:
    graph = callgraph.parse(CALLGRIND.splitlines())
    assert graph.total == 100 + 300 + 150 + 450 + 77
    assert graph.of("uv_run") == 1_000
    assert graph.of("CPyDef_plane___Exchange___start") == 450  # calls of itself count once
    assert graph.of("sweep", "nothing") == 77


def test_each_instruction_belongs_to_one_layer() -> None:
    graph = callgraph.parse(CALLGRIND.splitlines())
    counts = dict(zip(layers.ROWS, layers.layers(graph), strict=True))
    assert sum(counts.values()) == graph.total
    assert counts["event loop"] == 100
    assert counts["HTTP parser and its callbacks"] == 300
    assert counts["connection: order, turns"] == 150
    assert counts["hand over to the database"] == 450
    assert counts["beside requests"] == 77
    with pytest.raises(ValueError, match="make compile"):
        layers.layers(callgraph.parse([]))
    shown = layers.rendered(80.0, {"get": [number / 10 for number in counts.values()]}).splitlines()
    assert [cell.strip() for cell in shown[-2].split("|")[1:-1]] == ["in all", "108"]


TRACED = """\

 Summary of events:

 python (13690), 57415 events, 95.3%

   syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
   read               13497      0   370.654     0.014     0.027     0.181      0.17%
   futex                431     45    20.511     0.013     0.048     1.048     11.93%


 python (13709), 2338 events, 3.9%

   futex                281      3  1702.215     0.000     6.058    20.288      3.64%
   fdatasync            210      0    90.906     0.216     0.433     4.134      5.42%
"""


def test_system_calls_are_summed_over_threads() -> None:
    assert shares.parse_calls(TRACED) == {"read": 13_497, "futex": 431 + 281, "fdatasync": 210}


def test_what_threads_use_is_counted() -> None:
    before = shares.used(os.getpid())
    while True:  # until the kernel has counted some of each
        Path("/proc/self/maps").read_text()
        now = shares.used(os.getpid())
        grown = [one.less(then) for one, then in zip(now, before, strict=True)]
        in_all = grown[0].plus(grown[1])
        if in_all.user_us > 0 and in_all.kernel_us > 0:
            break
    assert min(one.user_us for one in grown) >= 0 <= in_all.waits


def test_the_shares_of_a_request_are_shown() -> None:
    measured = shares.Shares(2, 1_000.0, shares.Used(20, 10, 1), shares.Used(3, 1, 0), {"read": 1.5})
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in shares.render({"get": measured}).splitlines()
    ]
    assert ["event loop, the program, us of CPU", "10.0"] in rows
    assert ["event loop, the kernel, us of CPU", "5.0"] in rows
    assert ["event loop, waits", "0.500"] in rows
    assert ["other threads, the program, us of CPU", "1.5"] in rows
    assert ["calls of read", "1.500"] in rows
