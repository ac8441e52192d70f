"""Hashrange: a DynamoDB-compatible database.

    with hashrange.Database.open("data") as database:
        client = hashrange.client.connect(database)

The table of contents, from the top layer to the bottom one; each module says what it holds and what
it refuses to know:

    cli          the `hashrange` command: the only reader of argv and the environment
    triggers     functions that are called with the changes of a table
    server       sockets; the only async code
    client       a boto3 client over an in-process database
    protocol     wire bytes <-> operation calls
    database     Database.execute(operation, request), and the background sweeps
    operations   one module per API operation, and the registry of them
    partiql      statements to the same reads and writes
    tables       what a table is; the one way items change, the one ordered read
    expressions  the four expression languages
    shapes       request shapes and their constraint errors
    storage      the engine contract and the engines
    encoding     order-preserving key bytes
    values       attribute values, 38-digit numbers, sizes
    errors, limits, clock
"""

from importlib.machinery import ExtensionFileLoader
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hashrange.database import Database

__all__ = ["Database", "__version__", "compiled", "form"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`Database`, loaded when it is asked for: most imports of this package need only a part of it."""
    if name != "Database":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hashrange.database import Database

    return Database


def compiled() -> bool:
    """Whether the modules on the path of a request run compiled to C, which makes them half as fast again."""
    # One stands for all: they are compiled together. It is found, and not loaded: `--version` need not wait.
    spec = find_spec(f"{__name__}.database")
    return spec is not None and isinstance(spec.loader, ExtensionFileLoader)


def form() -> str:
    """In which form the hot path runs, in a word."""
    return "compiled" if compiled() else "interpreted"
