"""Crash tests: a child acknowledges writes, the parent kills it, opens the store again and checks.

    python -m crash [--rounds N] [--level storage|api|history|transfers|vectors] [--seed N]

(with PYTHONPATH=src:tests)

SIGKILL ends a process at any instruction, but the operating system keeps what was handed to it: these tests
prove order, atomicity and replay, not that the disk obeys fsync.
"""
