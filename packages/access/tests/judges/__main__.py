"""`python -m judges`: as many random policies as you have time for."""

from __future__ import annotations

import argparse
import sys

from judges.comparing import compare
from judges.outside import NODE, is_installed


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m judges",
        description="Compare decisions on random policies with those of @cloud-copilot/iam-simulate.",
    )
    parser.add_argument("--cases", type=int, default=20_000, help="how many (20000)")
    parser.add_argument("--seed", type=int, default=0, help="other numbers give other cases (0)")
    given = parser.parse_args()
    if not is_installed():
        parser.error(f"the simulator is not installed: `make judges` does it, into {NODE}")
    made = compare(given.cases, given.seed, lambda line: print(line, flush=True))
    for title, counts in (
        ("agreed", made.agreed), ("known differences", made.known), ("not taken", made.errors),
    ):  # fmt: skip
        print(f"\n{title}")
        for name, count in counts.most_common():
            print(f"    {count:9,}  {name}")
    for shown in made.unexplained:
        print(f"\n{shown}")
    print(f"\n{made.differences} of {given.cases:,} decisions differ for no known reason")
    return 1 if made.differences else 0


if __name__ == "__main__":
    sys.exit(main())
