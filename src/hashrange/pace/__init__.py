"""Keeps one client's long work from making the other clients wait.

    turns      how long a body may keep the event loop, and where long work lets other threads run
    workers    threads for work that takes longer
    texts      large JSON texts, decoded piece by piece
    codings    compressed bodies, decoded piece by piece
    answers    large answers, encoded piece by piece
    freeing    large requests, freed piece by piece
    garbage    when the garbage collector looks for cycles

The goal: nobody waits longer than 50 ms beside what programs send (requests up to 1 MB, full pages, batches,
transactions, scans, statements), or 300 ms beside the worst that the protocol allows (16 MB of tiny
attributes). `bench.bystander` measures it. The names of `turns` are offered here: `pace.point()`.
"""

from hashrange.pace.turns import (
    BUSY_TURN_SECONDS,
    TURN_SECONDS,
    WITHOUT_END,
    Abandoned,
    Task,
    Turn,
    TurnOver,
    acquire,
    before,
    begin_commit,
    end_commit,
    give_way,
    is_aside,
    point,
    step,
    turn,
)

__all__ = [
    "BUSY_TURN_SECONDS",
    "TURN_SECONDS",
    "WITHOUT_END",
    "Abandoned",
    "Task",
    "Turn",
    "TurnOver",
    "acquire",
    "before",
    "begin_commit",
    "end_commit",
    "give_way",
    "is_aside",
    "point",
    "step",
    "turn",
]
