"""`python -m consistency`: as many rounds as you have time for."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from consistency import rounds
from consistency.deployments import Deployment, Embedded, Running
from consistency.history import Anomaly, load
from consistency.on_patroni import OnPatroni
from consistency.on_postgres import OnPostgres

FAULTS = 3


def _tell(anomalies: list[Anomaly]) -> int:
    """Print the first anomalies; return the exit status."""
    for anomaly in anomalies[:1]:
        print(f"{len(anomalies)} anomalies, the first: {anomaly}", flush=True)
    return 1 if anomalies else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="consistency",
        description="Let clients work on a database, and judge what they saw: all answers; in "
        f"{rounds.DERIVED_SHARE:.0%} of the rounds also streams, indexes, backups and restores.",
    )
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", "20")))
    parser.add_argument("--seed", type=int, default=0, help="of the first round; each further round adds 1")
    parser.add_argument("--seconds", type=float, default=rounds.SECONDS, help="between two faults, at most")
    parser.add_argument("--clients", type=int, default=rounds.CLIENTS)
    parser.add_argument(
        "--kills",
        action="store_true",
        help="hurt the servers in each round: kill them; with --postgres also kill PostgreSQL, cut "
        "connections, and let proxies in front of PostgreSQL hold back requests, answers or both, and then "
        "pass them on or cut",
    )
    parser.add_argument("--faults", type=int, default=FAULTS, help="of --kills in each round")
    parser.add_argument(
        "--endpoint",
        help="running servers of one database, as URL[,URL...], which can make backups; they are not killed",
    )
    parser.add_argument(
        "--postgres",
        type=int,
        metavar="SERVERS",
        help="the number of servers over one PostgreSQL, which is hurt as well",
    )
    parser.add_argument(
        "--pgbouncer", action="store_true", help="with --postgres: through PgBouncer, which is killed as well"
    )
    parser.add_argument("--haproxy", action="store_true", help="with --postgres 2: behind HAProxy")
    parser.add_argument(
        "--skew-seconds", type=int, default=0, help="with --postgres: how wrong the servers' clocks are"
    )
    parser.add_argument(
        "--patroni",
        type=int,
        metavar="MEMBERS",
        help="the number of PostgreSQLs in a group under Patroni, which fails over; two servers use it",
    )
    parser.add_argument(
        "--histories",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="the directory for a history with an anomaly",
    )
    parser.add_argument("--judge", type=Path, metavar="FILE", help="play nothing, and judge a history again")
    return parser


def _deployment(options: argparse.Namespace, directory: Path) -> Deployment:
    if options.postgres:
        return OnPostgres(
            options.postgres,
            pooled=options.pgbouncer,
            skew_seconds=options.skew_seconds,
            balanced=options.haproxy,
        )
    if options.patroni:
        return OnPatroni(options.patroni)
    if options.endpoint:
        return Running(options.endpoint.split(","))
    return Embedded(directory / "data")


def main() -> int:
    parser = _parser()
    options = parser.parse_args()
    if options.judge:
        return _tell(rounds.judge(load(options.judge)))
    if options.endpoint and options.kills:
        parser.error("servers that run already are not killed: leave out --kills or --endpoint")
    operations = unknown = 0
    for seed in range(options.seed, options.seed + options.rounds):
        with tempfile.TemporaryDirectory(prefix="hashrange-consistency-") as directory:
            played = rounds.play(
                _deployment(options, Path(directory)),
                seed,
                faults=options.faults if options.kills else 0,
                seconds=options.seconds,
                clients=options.clients,
            )
        print(f"seed {seed}: {played}", flush=True)
        operations += len(played.history.operations)
        unknown += played.history.counts()["unknown"]
        if played.anomalies:
            path = options.histories / f"consistency-{seed}.jsonl"
            played.history.save(path)
            print(f"the history is in {path}; to judge it again: python -m consistency --judge {path}")
            return _tell(played.anomalies)
    print(f"{options.rounds} rounds, {operations:,} operations, {unknown:,} of unknown outcome: sound")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
