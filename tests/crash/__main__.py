"""`python -m crash`: as many rounds as you have time for."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from crash import machine
from crash.levels import LEVELS
from crash.rounds import play

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="crash", description="Kill a writing database, again and again.")
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", "100")))
    parser.add_argument("--level", choices=[*LEVELS, "all", "machine"], default="all")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.level == "machine":
        with tempfile.TemporaryDirectory(prefix="hashrange-crash-") as name:
            place = Path(name).resolve()
            library = machine.build(place)
            if library is None:
                parser.error("crashes of the machine need Linux and a C compiler, cc")
            survived = machine.play(place, library, arguments.rounds, arguments.seed)
        print(f"machine: {arguments.rounds} crashes survived, with {survived} writes")
        raise SystemExit
    levels = list(LEVELS) if arguments.level == "all" else [arguments.level]
    for level in levels:
        with tempfile.TemporaryDirectory(prefix="hashrange-crash-") as directory:
            survived = play(level, Path(directory), arguments.rounds, arguments.seed)
        print(f"{level}: {arguments.rounds} crashes survived, with {survived} writes")
