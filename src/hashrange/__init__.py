"""Hashrange: a DynamoDB-compatible database.

    from hashrange import Database
    from hashrange.client import connect

    with Database.open("data") as database:
        client = connect(database)

    import boto3
    import hashrange

    with hashrange.local() as database:             # for tests
        client = boto3.client("dynamodb")

The table of contents, from the top layer to the bottom layer. The first lines of each module say what it
holds, and what it refuses to know:

    cli          the `hashrange` command: the only reader of argv and the environment
    testing      the database for tests: `hashrange.local`
    server       sockets and the event loop
    client       boto3 clients over a database of this process
    protocol     wire bytes <-> operation calls
    database     Database.execute(operation, request), and the background sweeps
    insights     counts the keys that are used most, for contributor insights or those who look
    faults       fault rules: which requests fail, and how
    costs        what each request costs
    observing    shows each request to its observers, if there are any
    operations   one module per API operation, and the registry of them
    vectors      searches vectors, in matrices that follow the writes
    partiql      PartiQL statements, as reads and writes of the other operations
    tables       definitions of tables; the one way to change an item, the one ordered read
    expressions  the four expression languages
    shapes       request shapes and their constraint errors
    storage      the engine contract and the engines
    encoding     order-preserving key bytes
    interchange  the files in which items come and go
    values       attribute values, 38-digit numbers, sizes
    credentials  who a request says has sent it
    errors       one class for each error of the API
    settings     the settings of the database's behaviour
    rings        what packages around this one may add
    buckets      buckets of objects: folders, S3
    kinesis      data streams of Kinesis, which get the changes of tables
    prices       what DynamoDB costs, by region, with the sources
    pace         how long one piece of work may keep others waiting; worker threads
    limits       the limits of the API
    clock        time, and how moments are written
    files        files that survive a crash, only regular files, how many may be open
"""

from importlib.machinery import ExtensionFileLoader
from importlib.util import find_spec
from re import MULTILINE, search
from typing import TYPE_CHECKING

__all__ = ["Database", "__version__", "compiled", "form", "local", "replaced"]

__version__ = "0.2.0"
"""The version of Hashrange."""

# `Database` and `local` are loaded at their first use, because many programs import only a part of the
# package. A checker of types knows these names, and no others.
if TYPE_CHECKING:
    from hashrange.database import Database
    from hashrange.testing.blocks import local
else:

    def __getattr__(name):
        if name == "Database":
            from hashrange.database import Database

            return Database
        if name == "local":
            from hashrange.testing.blocks import local

            return local
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})


def compiled() -> bool:
    """Whether the modules on the path of a request run compiled to C, which makes the server about 1.5 times
    as fast."""
    # Finding one module is enough, because they are compiled together. It is not loaded, so that `--version`
    # is fast.
    spec = find_spec(f"{__name__}.database")
    return spec is not None and isinstance(spec.loader, ExtensionFileLoader)


def replaced() -> str:
    """A line about another version that was installed in the place of this one, which still runs: modules
    that are loaded from now on may not fit. "" where that is not so."""
    try:
        with open(__file__, encoding="utf-8") as file:
            found = search(r'^__version__ = "(.*)"', file.read(), MULTILINE)
    except OSError:
        found = None
    now = found[1] if found else "no version"
    if now == __version__:
        return ""
    return f"{now} is installed in the place of {__version__}, which still runs: restart it"


def form() -> str:
    """The form in which the hot path runs: "compiled" or "interpreted"."""
    return "compiled" if compiled() else "interpreted"
