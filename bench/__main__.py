"""`python -m bench`: run the workloads on Hashrange and its peers and print the tables."""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

from bench import report
from bench.load import LoadError, find_wrk
from bench.servers import PEER_NAMES, SERVERS, Server
from bench.suite import Cell, Plan, run_server
from bench.workloads import LARGE_COUNT, USUAL_WORKLOADS, WORKLOADS, set_large_count

DEFAULT_WORKLOADS: tuple[str, ...] = ("get", "put")
MODES = ("durable", "memory")
QUICK_WORKLOADS: tuple[str, ...] = ("get", "put", "update-spread")


def _parser() -> argparse.ArgumentParser:
    workloads = "\n".join(f"  {w.name:14} {w.summary}" for w in WORKLOADS.values())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Run the same load on Hashrange and on its peers, check the answers, print the ratios.",
        epilog=f"workloads:\n{workloads}\n\npeers: {', '.join(PEER_NAMES)}\n"
        "Peers that are not installed are left out: python -m bench.install fetches them.\n"
        "docs/benchmarks.md explains how it measures and what the figures do not show.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--peers",
        default="all",
        metavar="NAMES",
        help="comma list of peers, 'all' that are installed, or 'none' (default: all)",
    )
    parser.add_argument(
        "--modes",
        default="all",
        metavar="MODES",
        help="comma list of durable, memory: which modes of each server (default: all)",
    )
    parser.add_argument(
        "--no-hashrange", action="store_true", help="measure the peers alone (to try the harness out)"
    )
    parser.add_argument(
        "--workloads",
        metavar="NAMES",
        help="comma list of workloads, or 'all' except get-large, which takes long to fill"
        f" (default: {','.join(DEFAULT_WORKLOADS)})",
    )
    large_help = f"items of 0.5 KB in the table of get-large (default: {LARGE_COUNT:,})"
    parser.add_argument("--large-items", type=int, default=LARGE_COUNT, metavar="N", help=large_help)
    parser.add_argument(
        "--connections", metavar="COUNTS", help="comma list of connection counts (default: 1,16,64)"
    )
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="length of a measured run, whole seconds (default: 3)"
    )
    parser.add_argument(
        "--warm-up",
        type=float,
        metavar="S",
        help="seconds of load before each run, more before a workload's first (default: 1)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=1,
        metavar="N",
        help="measure all servers N times and take medians (default: 1)",
    )
    parser.add_argument(
        "--retries",
        type=int,
        default=0,
        metavar="N",
        help="repeat a run up to N times if other programs disturb it, keep the quietest (default: 0)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"a first look: {','.join(QUICK_WORKLOADS)} at 64 connections, 1 s each (if not given)",
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every figure to PATH")
    parser.add_argument("--list", action="store_true", help="list the servers that would run, and stop")
    return parser


def _names(
    text: str, known: tuple[str, ...], option: str, parser: argparse.ArgumentParser
) -> tuple[str, ...]:
    if text == "all":
        return known
    if text == "none":
        return ()
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"unknown {option}: {', '.join(unknown)} (known: {', '.join(known)})")
    return names


def choose_servers(peers: tuple[str, ...], modes: tuple[str, ...], own: bool) -> list[Server]:
    """The chosen servers that are installed."""
    return [
        server
        for server in SERVERS
        if (server.name in peers if server.is_peer else own)
        and ("durable" if server.is_durable else "memory") in modes
        and server.installed()
    ]


def _plan(options: argparse.Namespace, parser: argparse.ArgumentParser) -> Plan:
    quick: bool = options.quick
    workloads = QUICK_WORKLOADS if quick else DEFAULT_WORKLOADS
    if options.workloads is not None:
        known = USUAL_WORKLOADS if options.workloads == "all" else tuple(WORKLOADS)
        workloads = _names(options.workloads, known, "workload", parser)
    counts = options.connections or ("64" if quick else "1,16,64")
    try:
        connections = tuple(int(count) for count in counts.split(","))
    except ValueError:
        parser.error(f"--connections takes numbers: {counts}")
    if not connections or min(connections) < 1:
        parser.error("--connections takes numbers of at least 1")
    seconds = options.seconds if options.seconds is not None else (1 if quick else 3)
    warm_up = options.warm_up if options.warm_up is not None else 1
    return Plan(workloads, connections, seconds, warm_up, options.retries)


def main() -> int:
    parser = _parser()
    options = parser.parse_args()
    if options.large_items < 1:
        parser.error("--large-items takes a number of at least 1")
    set_large_count(options.large_items)
    plan = _plan(options, parser)
    peers = _names(options.peers, PEER_NAMES, "peer", parser)
    modes = _names(options.modes, MODES, "mode", parser)
    servers = choose_servers(peers, modes, not options.no_hashrange)
    missing = sorted(set(peers) - {server.name for server in servers if server.is_peer})
    if missing:
        print(f"left out, not installed or not in this mode: {', '.join(missing)}", file=sys.stderr)
    if options.list:
        for server in servers:
            print(f"{server.title:22} {server.version()}")
        return 0
    try:
        find_wrk()
    except LoadError as error:
        print(error, file=sys.stderr)
        return 2
    if platform.system() != "Linux":
        print("CPU time is read from /proc: Linux only", file=sys.stderr)
        return 2
    where = report.machine()
    cells: list[Cell] = []
    for _ in range(options.rounds):
        for server in servers:
            cells += run_server(server, plan, lambda line: print(line, file=sys.stderr, flush=True))
    cells = report.merge_rounds(cells)
    print(report.render(cells, servers, where))
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(report.to_json(cells, servers, where))
    return 1 if any(cell.problem and cell.server == report.OWN for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
