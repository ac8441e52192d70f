"""`python -m crash`: as many rounds as one has time for."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from crash.levels import LEVELS
from crash.rounds import play

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="crash", description="Kill a writing database, again and again.")
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", "100")))
    parser.add_argument("--level", choices=[*LEVELS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    levels = list(LEVELS) if arguments.level == "all" else [arguments.level]
    for level in levels:
        with tempfile.TemporaryDirectory(prefix="hashrange-crash-") as directory:
            survived = play(level, Path(directory), arguments.rounds, arguments.seed)
        print(f"{level}: {arguments.rounds} crashes survived, with {survived} writes")
