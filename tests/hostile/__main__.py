"""`python -m hostile`: as many mutations as you have time for."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from hostile.run import Run, Tally
from hostile.server import (
    EVERY_OPTION,
    attacked,
    built,
    place_of,
    problems_of,
    with_options,
    with_small_caches,
)


def _summary(tally: Tally) -> str:
    by_operation: dict[str, dict[str, int]] = defaultdict(dict)
    for (operation, outcome), count in sorted(tally.outcomes.items(), key=lambda pair: -pair[1]):
        by_operation[operation][outcome] = count
    lines = []
    for operation in sorted(by_operation):
        counts = by_operation[operation]
        most = ", ".join(f"{outcome}: {count:,}" for outcome, count in list(counts.items())[:6])
        lines.append(f"{operation:22} {sum(counts.values()):9,}  {most}")
    memory = [count >> 20 for count in tally.memory]
    lines.append(f"memory in MiB at the end of each epoch: {', '.join(map(str, memory))}")
    lines.append(
        f"CPU us a mutation: {tally.own_cpu_us:.0f} to draw it and look at the answer, "
        f"{tally.server_cpu_us:.0f} of the server"
    )
    lines.append(f"growth after the warm-up: {tally.growth_bytes() / (1 << 20):.0f} MiB")
    lines += [f"in the log: {line}" for line in tally.log_errors]
    for key, failure in tally.failures.items():
        lines.append(f"{tally.failed[key]:,} times {failure}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m hostile", description="Send a mass of broken requests to a real server."
    )
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--interpreted", action="store_true", help="do not use the compiled hot path")
    parser.add_argument("--every-option", action="store_true", help="delays, deliveries and more")
    arguments = parser.parse_args()
    server = with_small_caches(built(arguments.interpreted))
    if arguments.every_option:
        server = with_options(server, *EVERY_OPTION)
    print(f"{server.title}: {server.version()}, seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="hashrange-hostile-") as directory:
        with attacked(server, Path(directory)) as target:
            run = Run(target, arguments.seed, lambda line: print(line, flush=True))
            tally = run.play(arguments.mutations)
        log = target.new_log()
        if "Traceback" in log:
            tally.log_errors.append(place_of(log))
        problems = problems_of(server, Path(directory))
    print(_summary(tally))
    print(problems or "the store is sound")
    is_good = tally.is_good and not problems
    print("GOOD" if is_good else "FAILED")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
