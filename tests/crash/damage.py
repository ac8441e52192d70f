"""Damages a small store in every way, and judges the result: `python -m crash.damage --doses 20`.

Each kind of damage is done to a copy of each file of a killed store, at places drawn from the seed. Then
either all acknowledged writes can be read, or the store refuses to open and `hashrange check` exits with 1.
After `check --repair` the store can be served; if the damage lost nothing, everything is there.

It prints each case before it begins, so that a deadline shows which case hangs.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import orjson
from click.testing import CliRunner

from hashrange.cli import main
from hashrange.database import Database
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.embedded.files.logs import LogRecord, read_log, write_log
from hashrange.storage.failures import StorageError

ITEMS: Final = 40
_ALL: Final = dict.fromkeys(range(ITEMS), 3)

# Each item is written three times. Closing the store between leaves SST files, and the kill leaves a log.
_WRITER: Final = """
import os, shutil, sys
from hashrange.database import Database
from hashrange.storage.embedded import EmbeddedEngine

directory, older, count = sys.argv[1], sys.argv[2], int(sys.argv[3])

def fill(round_, numbers):
    for n in numbers:
        item = {"p": {"S": f"p{n}"}, "v": {"S": f"{round_}" * 300}}
        database.execute("PutItem", {"TableName": "items", "Item": item})

engine = EmbeddedEngine(directory)
database = Database(engine)
database.execute("CreateTable", {
    "TableName": "items", "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}]})
fill(1, range(count))
engine.close()
engine = EmbeddedEngine(directory)
database = Database(engine)
fill(2, range(count))
shutil.copytree(directory, older)
fill(3, range(count))
os._exit(9)
"""

Damage = Callable[[Path, Path, random.Random], object]


def make(place: Path) -> tuple[Path, Path]:
    """A killed store, and a copy of its files from before its last writes."""
    store, older = place / "store", place / "older"
    done = subprocess.run([sys.executable, "-c", _WRITER, str(store), str(older), str(ITEMS)], check=False)
    assert done.returncode == 9
    return store, older


def _change(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def _truncate(path: Path, older: Path, drawn: random.Random) -> None:
    os.truncate(path, drawn.randrange(path.stat().st_size))


def _zero(path: Path, older: Path, drawn: random.Random) -> None:
    def zeroed(content: bytes) -> bytes:
        at, length = drawn.randrange(len(content)), drawn.choice((1, 16, 512))
        end = min(at + length, len(content))
        return content[:at] + bytes(end - at) + content[end:]

    _change(path, zeroed)


def _flip(path: Path, older: Path, drawn: random.Random) -> None:
    def flipped(content: bytes) -> bytes:
        at = drawn.randrange(len(content))
        return content[:at] + bytes((content[at] ^ 1 << drawn.randrange(8),)) + content[at + 1 :]

    _change(path, flipped)


def _double(path: Path, older: Path, drawn: random.Random) -> None:
    _change(path, lambda content: content * 2)


def _records(content: bytes) -> list[bytes]:
    return [found.payload for found in read_log(content) if isinstance(found, LogRecord)]


def _repeat(path: Path, older: Path, drawn: random.Random) -> None:
    """Write a sound record twice: the last one at the end, any other right behind itself."""
    records = _records(path.read_bytes())
    at = drawn.choice((len(records) - 1, drawn.randrange(len(records))))
    path.write_bytes(write_log([*records[:at], records[at], *records[at:]]))


def _repeat_first(path: Path, older: Path, drawn: random.Random) -> None:
    records = _records(path.read_bytes())
    path.write_bytes(write_log([*records, drawn.choice(records)]))


def _swap(path: Path, older: Path, drawn: random.Random) -> None:
    records = _records(path.read_bytes())
    earlier, later = sorted(drawn.sample(range(len(records)), 2))
    records[earlier], records[later] = records[later], records[earlier]
    path.write_bytes(write_log(records))


def _append(path: Path, older: Path, drawn: random.Random) -> None:
    _change(path, lambda content: content + drawn.randbytes(drawn.choice((1, 7, 5000))))


def _remove(path: Path, older: Path, drawn: random.Random) -> None:
    path.unlink()


def _put_back(path: Path, older: Path, drawn: random.Random) -> None:
    """Put back an earlier state of the file, or the file of its kind that existed then."""
    same = older / path.name
    kin = sorted(older.glob(f"*{path.suffix}" if path.suffix else f"{path.name[:8]}*"))
    shutil.copy(same if same.exists() or not kin else kin[0], path)


_KINDS: Final[dict[str, Damage]] = {
    "cut short": _truncate,
    "zeros": _zero,
    "a flipped bit": _flip,
    "doubled": _double,
    "with bytes behind its end": _append,
    "removed": _remove,
    "put back": _put_back,
}
_KINDS_OF_LOGS: Final[dict[str, Damage]] = {
    "a record twice in a row": _repeat,
    "an earlier record at the end": _repeat_first,
    "two records swapped": _swap,
}


# These lose nothing, so a repair has to restore everything. It gives up if the MANIFEST is damaged.
_LOSSLESS: Final = frozenset({"doubled", "with bytes behind its end", *_KINDS_OF_LOGS})
_RIGHT: Final = frozenset({"whole", "mended", "mended in part", "given up"})


def cases(store: Path, older: Path) -> Iterator[tuple[Path, str, Damage]]:
    """Each file that counts, relative to the store, with each kind of damage that fits."""
    names = [Path("FORMAT"), Path("STORE")]
    names += [
        Path("rocks") / path.name
        for path in sorted((store / "rocks").iterdir())
        if path.suffix in (".sst", ".log") or path.name.startswith(("MANIFEST-", "CURRENT"))
    ]
    for name in names:
        kinds = dict(_KINDS)
        if not ((older / name).exists() or name.suffix):
            del kinds["put back"]
        if (name.suffix == ".log" or name.name.startswith("MANIFEST-")) and len(
            _records((store / name).read_bytes())
        ) > 1:
            kinds |= _KINDS_OF_LOGS
        for kind, damage in kinds.items():
            if (store / name).stat().st_size or kind in ("removed", "with bytes behind its end"):
                yield name, kind, damage


def judge(store: Path) -> str:
    """The state of a damaged store: one of `_RIGHT`, or what is wrong."""
    checked = CliRunner().invoke(main, ["check", str(store)])
    if checked.exception is not None and not isinstance(checked.exception, SystemExit):
        return f"check raised {checked.exception!r}"
    try:
        left, refused = _items(store), False
    except StorageError:
        left, refused = {}, True
    if left == _ALL:
        return "whole" if checked.exit_code in (0, 1) else f"check exits with {checked.exit_code}"
    if checked.exit_code != 1:
        return f"check exits with {checked.exit_code} and says {checked.output!r}; {len(left)} items"
    return _repaired(store) if refused else f"it opened without an error, with {len(left)} of {ITEMS} items"


def _repaired(store: Path) -> str:
    """The state of a refused store after a repair: one of `_RIGHT`, or what is wrong."""
    done = CliRunner().invoke(main, ["check", "--repair", str(store)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return f"check --repair raised {done.exception!r}"
    if done.exit_code == 2 and "cannot be repaired" in done.output:
        return "given up"
    # If the definition of the table cannot be decoded, the records stay.
    if done.exit_code != 0 and "no table owns it" not in done.output:
        return f"check --repair exits with {done.exit_code}: {done.output!r}"
    try:
        return "mended" if _items(store) == _ALL else "mended in part"
    except StorageError as error:
        return f"after the repair: {error}"


def _items(store: Path) -> dict[int, int]:
    """The items of the table, and which of the writes of each is there."""
    database = Database(EmbeddedEngine(store))
    try:
        if database.execute("ListTables", {})["TableNames"] != ["items"]:
            return {}
        response = orjson.loads(orjson.dumps(database.execute("Scan", {"TableName": "items"})))["Items"]
        return {int(item["p"]["S"][1:]): int(item["v"]["S"][0]) for item in response}
    except Exception as error:
        if not isinstance(error, StorageError) and "cannot be read" not in str(error):
            raise
        raise StorageError(str(error)) from error
    finally:
        database.close()


def play(place: Path, doses: int, seed: int) -> int:
    """Damage each file in each way, `doses` times; returns how many cases were wrong."""
    store, older = make(place)
    wrong = 0
    for name, kind, damage in cases(store, older):
        for dose in range(doses):
            case = f"{name} {kind}, seed {seed}, dose {dose}"
            print(case, end=": ", flush=True)
            copy = Path(shutil.copytree(store, place / "copy"))
            damage(copy / name, older / name.parent, random.Random(f"{case}"))
            outcome = judge(copy)
            print(outcome, flush=True)
            wrong += outcome not in _RIGHT or (kind in _LOSSLESS and outcome == "mended in part")
            shutil.rmtree(copy)
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="crash.damage", description="Damage a store, file by file.")
    parser.add_argument("--doses", type=int, default=int(os.environ.get("DOSES", "20")))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hashrange-damage-") as directory:
        sys.exit(1 if play(Path(directory), arguments.doses, arguments.seed) else 0)
