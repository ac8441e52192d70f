"""`python -m forgeries`: as many changed requests as you have time for."""

from __future__ import annotations

import argparse
import logging
import sys

from forgeries.attack import attack


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m forgeries",
        description="Change genuine signed requests, and look whether a strict server takes one that nobody "
        "has signed.",
    )
    parser.add_argument("--number", type=int, default=100_000, help="how many changed requests (100000)")
    parser.add_argument("--seed", type=int, default=0, help="other numbers give other requests (0)")
    given = parser.parse_args()
    logging.disable()  # a server logs each refusal
    tally = attack(given.number, given.seed, lambda line: print(line, flush=True))
    for title, counts in (
        ("changes", tally.changes),
        ("refused with", tally.refused),
        ("taken, because a change has no meaning, in", tally.without_meaning),
    ):
        print(f"\n{title}")
        for name, count in counts.most_common():
            print(f"    {count:9,}  {name}")
    for forged in tally.forged:
        print(forged)
    print(f"\n{tally.forgeries} of {given.number:,} changed requests were forged and taken")
    return 1 if tally.forgeries else 0


if __name__ == "__main__":
    sys.exit(main())
