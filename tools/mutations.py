"""Change the core in small ways and see which of the changes no test notices: `make mutations`.

    python tools/mutations.py --number 300 --seed 1
    python tools/mutations.py --only src/hashrange/values/numbers.py#17     one mutant again

mutmut makes the mutants; a random sample is tried, the same one for the same seed and sources. A map of which
test runs which line is made first, once (`--map` makes it again). A mutant is judged by the tests that run
its line: first by those that run little else, in a short run, then by all others. It is killed if one fails,
or if they take far too long. The working tree stays as it is: each worker has a copy. The survivors are
printed at the end, and written to build/mutations/survivors.txt; docs/decisions/0040-mutations.md says why.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Any, Final, NamedTuple

from coverage.numbits import num_in_numbits
from mutmut.mutation.file_mutation import create_mutations, deep_replace

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / "build" / "mutations"
MAP: Final = BUILD / "coverage"
PACKAGES: Final = ("values", "expressions", "partiql", "tables", "operations", "storage")
TESTS: Final = ("tests/unit", "tests/api", "tests/golden", "tests/model")
# What looks at sources and pages, and would kill a mutant for the length of its line; and the tests of
# other packages, which would take half of the time.
NOT_JUDGES: Final = ("tidy", "docs", "package", "release", "bench", "deploy", "garbage", "growth")
OF_OTHERS: Final = ("client", "kinesis", "proxy", "rings", "server", "testing")
IGNORED: Final = [f"--ignore-glob=tests/unit/test_{name}*" for name in NOT_JUDGES + OF_OTHERS]
# Over HTTP the same requests meet the same code, later.
PYTEST: Final = ["-q", "-k", "not http", "-p", "no:cacheprovider", "--hypothesis-profile=mutations", *IGNORED]
FIRST_TESTS: Final = 40
FIRST_SECONDS_MAX: Final = 120
SECONDS_MAX: Final = 900


class Mutant(NamedTuple):
    """A changed source: `name` is its path and its number there, `line` the first line that changed."""

    name: str
    path: str
    line: int
    code: str
    diff: str


def mutants_of(path: str, numbers: list[int] | None, count: int, chance: random.Random) -> Iterator[Mutant]:
    """Mutants of a file: those with the numbers, or `count` random ones."""
    before = (ROOT / path).read_text(encoding="utf-8")
    module, found, *_ = create_mutations(path, before)
    chosen = numbers if numbers is not None else chance.sample(range(len(found)), min(count, len(found)))
    for number in chosen:
        changed: Any = deep_replace(module, found[number].original_node, found[number].mutated_node)
        code: str = changed.code
        lines = [*difflib.unified_diff(before.splitlines(), code.splitlines(), n=0, lineterm="")][2:]
        line = int(lines[0].split()[1].lstrip("-").partition(",")[0])
        yield Mutant(f"{path}#{number}", path, line, code, "\n".join(lines))


def sample(number: int, seed: int) -> list[Mutant]:
    """A random sample, in which each file has a share like its size."""
    chance = random.Random(seed)
    roots = [ROOT / "src" / "hashrange" / package for package in PACKAGES]
    files = [path for root in roots for path in sorted(root.rglob("*.py"))]
    chosen = Counter(chance.choices(files, [path.stat().st_size for path in files], k=number))
    found = [
        mutant
        for path in files
        if path in chosen
        for mutant in mutants_of(str(path.relative_to(ROOT)), None, chosen[path], chance)
    ]
    chance.shuffle(found)
    return found


def is_in_function(mutant: Mutant) -> bool:
    """Whether the changed line is in the body of a function."""
    tree = ast.parse((ROOT / mutant.path).read_text(encoding="utf-8"))
    return any(
        node.body[0].lineno <= mutant.line <= (node.end_lineno or 0)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


class Tests:
    """Which tests run which line; `commonness` is how many files a test runs something of."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(MAP, check_same_thread=False)
        counts = self._connection.execute("SELECT context_id, count(*) FROM line_bits GROUP BY context_id")
        self._commonness: dict[int, int] = dict(counts.fetchall())

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that run the line of a mutant, or else those that run anything of its file; first those
        that run something of few files."""
        rows = self._connection.execute(
            "SELECT context.id, context, numbits FROM line_bits JOIN context ON context.id = context_id"
            " JOIN file ON file.id = file_id WHERE path = ? AND context != ''",
            (str(ROOT / mutant.path),),
        ).fetchall()
        # (what runs only while a module is imported, such as a constant, is in the lines of one test at most)
        lines = range(mutant.line, max(mutant.line - 4, 0), -1) if is_in_function(mutant) else range(0)
        # (the first line of a statement stands for the others)
        exact = next(filter(None, ([r for r in rows if num_in_numbits(line, r[2])] for line in lines)), rows)
        ordered = sorted(exact, key=lambda row: (self._commonness[row[0]], row[1]))
        return list(dict.fromkeys(context.rpartition("|")[0] for _, context, _ in ordered))


def make_map() -> None:
    """Run all tests once, and note which lines each of them runs."""
    print("Running all tests for the map of tests and lines", flush=True)
    covering = ["-n", "auto", "--cov=src/hashrange", "--cov-context=test", "--cov-report="]
    BUILD.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "HASHRANGE_WHOLE": "1", "COVERAGE_FILE": str(MAP)}
    command = [sys.executable, "-m", "pytest", *PYTEST, *covering, *TESTS]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def copy_of_tree(number: int) -> Path:
    """A copy of the working tree in which a worker may change files."""
    tree = BUILD / f"tree-{number}"
    shutil.rmtree(tree, ignore_errors=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0"):
        if name and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    return tree


def fails(tree: Path, tests: list[str], seconds_max: float) -> bool:
    """Whether one of the tests fails in a copy of the tree, or they take too long."""
    sources = [tree / "src", *sorted((tree / "packages").glob("*/src"))]
    environment = {**os.environ, "HASHRANGE_WHOLE": "1", "PYTHONPATH": os.pathsep.join(map(str, sources))}
    command = [sys.executable, "-m", "pytest", "-x", "-n0", *PYTEST, *tests]
    silent = subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=tree, env=environment, stdout=silent, stderr=silent, start_new_session=True
    )
    try:
        return process.wait(seconds_max) != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def survives(tree: Path, mutant: Mutant, tests: list[str]) -> bool:
    """Whether no test fails because of the mutant."""
    path = tree / mutant.path
    cached = Path(cache_from_source(str(path)))
    before = path.read_text(encoding="utf-8")
    path.write_text(mutant.code, encoding="utf-8")
    cached.unlink(missing_ok=True)
    try:
        first, others = tests[:FIRST_TESTS], tests[FIRST_TESTS:]
        return not (first and fails(tree, first, FIRST_SECONDS_MAX)) and not (
            others and fails(tree, others, SECONDS_MAX)
        )
    finally:
        path.write_text(before, encoding="utf-8")
        cached.unlink(missing_ok=True)


def judge(mutants: list[Mutant], workers: int) -> list[Mutant]:
    """The mutants that survive; says of each what became of it."""
    tests = Tests()
    trees: SimpleQueue[Path] = SimpleQueue()
    for number in range(workers):
        trees.put(copy_of_tree(number))
    collect = [sys.executable, "-m", "pytest", "--collect-only", *PYTEST, *TESTS]
    listed = subprocess.check_output(collect, cwd=ROOT, text=True).splitlines()
    known = dict.fromkeys(line for line in listed if "::" in line)

    def one(mutant: Mutant) -> tuple[Mutant, bool, float]:
        tree, begun = trees.get(), monotonic()
        judges = [test for test in tests.of(mutant) if test in known] or list(known)
        try:
            return mutant, survives(tree, mutant, judges), monotonic() - begun
        finally:
            trees.put(tree)

    survivors = []
    with ThreadPoolExecutor(workers) as pool:
        for number, (mutant, lives, seconds) in enumerate(pool.map(one, mutants), 1):
            verdict = "SURVIVED" if lives else "killed"
            place = f"{mutant.name} line {mutant.line}"
            print(f"{number}/{len(mutants)} {verdict} {place}, {seconds:.0f} s", flush=True)
            if lives:
                print(mutant.diff, flush=True)
                survivors.append(mutant)
    return survivors


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--number", type=int, default=300, help="how many mutants are tried")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", action="append", metavar="PATH#NUMBER", help="try this mutant")
    parser.add_argument("--map", action="store_true", help="make the map of tests and lines again")
    options = parser.parse_args()
    if options.map or not MAP.exists():
        make_map()
    named = [name.rpartition("#") for name in options.only or ()]
    mutants = [one for path, _, n in named for one in mutants_of(path, [int(n)], 1, random.Random(0))]
    mutants = mutants or sample(options.number, options.seed)
    survivors = judge(mutants, options.workers)
    report = "\n".join(f"{one.name} line {one.line}\n{one.diff}\n" for one in survivors)
    (BUILD / "survivors.txt").write_text(report, encoding="utf-8")
    killed = len(mutants) - len(survivors)
    print(f"\n{report}\n{killed} of {len(mutants)} mutants were killed ({killed / max(len(mutants), 1):.1%})")


if __name__ == "__main__":
    main()
