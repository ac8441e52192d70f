"""The process that is killed: `python -m crash.child LEVEL DIRECTORY` acknowledges writes on its output."""

from __future__ import annotations

import os
import sys
import threading
import traceback

from crash import machine
from crash.levels import LEVELS


def acknowledge(line: str) -> None:
    """Print a line in one system call, so that it arrives whole or not at all."""
    os.write(1, line.encode() + b"\n")


def give_up(arguments: threading.ExceptHookArgs) -> None:
    """Exit at once: a child must not go on with a dead thread, nor look as if it had been killed."""
    traceback.print_exception(arguments.exc_value)
    os._exit(3)


if __name__ == "__main__":
    threading.excepthook = give_up
    run = machine.live if sys.argv[1] == "machine" else LEVELS[sys.argv[1]].run
    run(sys.argv[2], acknowledge)
