"""The requests that cost a server most, as far as a client may go: for `python -m bench.bystander`.

    registry   what a shape is, and the decorator that registers one
    stage      the server on which the shapes play, and the tables that they need
    reads      gets, queries, scans, selects, streams, lists of tables
    writes     puts, updates, batches, transactions, index builds
    refusals   requests that are refused, and should be at once

A new shape is a function in one of the last three: it takes a Stage, fills the tables it needs and returns
the requests, which are sent in turn, over and over.
"""

from bench.worst import reads, refusals, writes
from bench.worst.registry import SHAPES, WAYS, Shape
from bench.worst.stage import Stage

__all__ = ["SHAPES", "WAYS", "Shape", "Stage", "reads", "refusals", "writes"]
