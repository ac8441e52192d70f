"""The rules of style that a program can check, on every source file of the package and the tests.

Each rule is a function from a file to what it finds; a finding names the line and says what to do instead.
"""

from __future__ import annotations

import ast
import gc
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "hashrange"

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
MODULES_MAX = 22
TOP_MODULES_MAX = 12

VAGUE_NAMES = {"util", "utils", "helper", "helpers", "manager", "base", "common", "misc"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|raise NotImplementedError)\b")

# What only some modules may import: time, chance and identity come in as arguments, the event loop and
# sockets belong to the server, argv and the environment to the command line. The wire's JSON is read and
# written by orjson and msgspec: `json` is slower, and reads what is not JSON (NaN, Infinity).
ALLOWED_IMPORTERS: dict[str, set[str]] = {
    # The chance of a fault begins with the seed that its rule names.
    # The versions of records on PostgreSQL are random, and show nowhere.
    "random": {"clock", "database", "server", "cli", "protocol", "patterns", "faults", "lab", "postgres"},
    "secrets": {"clock", "database", "server", "cli", "protocol", "patterns", "console", "postgres"},
    "uuid": {"clock", "database", "server", "cli", "protocol", "patterns"},
    "asyncio": {"server", "console", "patterns", "client", "lab", "sql", "testing"},
    "uvloop": {"server"},
    "httptools": {"server", "lab"},
    "starlette": {"server", "access", "console", "lab", "replication", "sql", "sync"},
    "jinja2": {"console"},
    "uvicorn": {"server"},
    "socket": {"server", "cli", "replication"},
    "argparse": set(),
    "click": {"cli", "access", "console", "lab", "mcp", "postgres", "replication", "sql", "sync", "triggers"},
    "json": set(),
    "pickle": set(),
    "boto3": {"cli", "client", "triggers", "testing", "buckets", "kinesis"},
    "botocore": {
        *("cli", "client", "transport", "lab", "triggers", "patterns", "sql", "sync", "testing", "buckets"),
        "kinesis",
    },
    "psycopg": {"postgres"},
    "rocksdict": {"storage"},
    "fastcrc": {"storage", "server"},
}
# What only some modules may name, as `module.attribute`.
ALLOWED_NAMES: dict[str, set[str]] = {
    "time.time": {"clock", "patterns"},
    "time.time_ns": {"clock"},
    "datetime.now": {"clock"},
    "datetime.utcnow": {"clock"},
    "datetime.today": {"clock"},
    "os.environ": {"cli", "testing"},
    "os.getenv": {"cli"},
    # The secret of a recording's hashes is its own.
    "os.urandom": {"clock", "database", "server", "cli", "protocol", "access", "lab", "replication"},
    "sys.argv": {"cli"},
    # An engine waits for its own disk: nobody else can tell it when compactions have caught up.
    # A pattern's driver waits before it repeats a request; its flows do not. A sleep of no time lets other
    # threads run.
    "time.sleep": {"storage", "patterns", "pace", "postgres", "testing", "engine-tests"},
}


# What uses up a generator at once.
CONSUMERS = (
    "all", "any", "bytes", "dict", "frozenset", "join", "list", "max", "min", "next", "set", "sorted", "sum",
    "tuple",
)  # fmt: skip


@dataclass(frozen=True)
class SourceFile:
    """A file of Python source."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree; to walk it takes as long as to parse it."""
        return list(ast.walk(self.tree))

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def ring(self) -> str:
        """The ring that the file belongs to; "" for none."""
        parts = self.path.relative_to(ROOT).parts
        is_ring = parts[0] == "packages" and parts[2] == "src" and parts[1] != "patterns"
        return parts[1] if is_ring else ""

    @property
    def module(self) -> str:
        """The dotted name of the module or the package."""
        root = ROOT / "packages" / self.ring / "src" if self.ring else ROOT / "src"
        parts = self.path.relative_to(root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def layer(self) -> str:
        """The ring, or the module or package right below `hashrange`, that the file belongs to; "" outside of
        both."""
        if self.ring or not self.path.is_relative_to(PACKAGE):
            return self.ring
        return self.path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def source_files(*folders: str) -> list[SourceFile]:
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return [SourceFile(path) for path in sorted(found) if not {"peers", "node_modules"} & set(path.parts)]


ALL_FILES = source_files("src", "tests", "bench", "tools", "packages")
# (the objects of ALL_FILES, so that each file is parsed once)
PACKAGE_FILES = [file for file in ALL_FILES if file.ring or file.path.is_relative_to(ROOT / "src")]


def long_files(file: SourceFile) -> Iterator[str]:
    lines = file.text.count("\n")
    if lines > FILE_LINES_MAX:
        yield f"{lines} lines, more than {FILE_LINES_MAX}: two modules in one"


def long_functions(file: SourceFile) -> Iterator[str]:
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{node.lineno}: {node.name} has {lines} lines, more than {FUNCTION_LINES_MAX}"


def vague_names(file: SourceFile) -> Iterator[str]:
    words = set(re.split(r"[/_.]", file.name)) & VAGUE_NAMES
    if words:
        yield f"the name says {', '.join(words)}: name what it holds"


def missing_docstring(file: SourceFile) -> Iterator[str]:
    if file.tree.body and not ast.get_docstring(file.tree):
        yield "no module docstring: say what it holds, its rules, and what it refuses to know"


def unfinished_work(file: SourceFile) -> Iterator[str]:
    if file.path == Path(__file__).resolve():
        return
    for number, line in enumerate(file.text.splitlines(), 1):
        if found := UNFINISHED.search(line):
            yield f"{number}: {found[0]}: finish it, or file it"


def imported_modules(file: SourceFile) -> Iterator[tuple[int, str]]:
    for node in file.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module


def forbidden_imports(file: SourceFile) -> Iterator[str]:
    for line, module in imported_modules(file):
        allowed = ALLOWED_IMPORTERS.get(module.partition(".")[0])
        if allowed is not None and file.layer not in allowed:
            yield f"{line}: imports {module}: only {', '.join(sorted(allowed)) or 'no module'} may"


def forbidden_names(file: SourceFile) -> Iterator[str]:
    for node in file.nodes:
        named = []
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            named = [f"{owner}.{node.attr}"]
        elif isinstance(node, ast.ImportFrom):
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in named:
            allowed = ALLOWED_NAMES.get(name)
            if allowed is not None and file.layer not in allowed:
                line = getattr(node, "lineno", 0)
                yield f"{line}: {name}: only {', '.join(sorted(allowed)) or 'no module'} may"


def sleeping(file: SourceFile) -> Iterator[str]:
    for node in file.nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time"), attr="sleep")):
                yield f"{node.lineno}: sleeps: wait for what is to happen, or pass the time as an argument"


def lazy_expressions(file: SourceFile) -> Iterator[str]:
    """A compiled generator expression is a list, so it may only stand where a list gives the same."""
    consumed = {
        id(call.args[0])
        for call in file.nodes
        if isinstance(call, ast.Call) and len(call.args) == 1 and ast.unparse(call.func).endswith(CONSUMERS)
    }
    for node in file.nodes:
        if isinstance(node, ast.GeneratorExp) and id(node) not in consumed:
            yield f"{node.lineno}: generator expression: a list when compiled; write a list, or a generator"


def imported_files(file: SourceFile, modules: set[str]) -> set[str]:
    """Which of the modules a file imports when it is loaded or type-checked; not those that a function
    imports when it is called, nor the types on the page of the seams, which names all parts."""
    found: set[str] = set()
    nodes: list[ast.AST] = [file.tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found.add(submodule if submodule in modules else node.module)
        elif isinstance(node, ast.If) and file.module == "hashrange.rings":
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
    return (found & modules) - {file.module}


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or by way of others."""
    reached = {module: _reached(imports, module) for module in imports}
    groups = {
        frozenset(one for one in reached[module] if module in reached[one])
        for module in imports
        if module in reached[module]
    }
    return sorted(map(sorted, groups))


def _reached(imports: dict[str, set[str]], module: str) -> set[str]:
    reached: set[str] = set()
    nodes = [module]
    while nodes:
        new = imports[nodes.pop()] - reached
        reached |= new
        nodes += new
    return reached


def modules_of(package: SourceFile) -> dict[str, Path]:
    """The files of the modules and packages right in the folder of a package, by their names."""
    folder = package.path.parent
    modules = {path.stem: path for path in folder.glob("*.py")}
    packages = {path.parent.name: path for path in folder.glob("*/__init__.py")}
    return {name: path for name, path in (modules | packages).items() if not name.startswith("__")}


def crowded_folders(package: SourceFile) -> Iterator[str]:
    folder = package.path.parent
    modules = len(list(folder.glob("*.py")))
    modules_max = TOP_MODULES_MAX if folder.name == "hashrange" else MODULES_MAX
    if modules > modules_max:
        yield f"{modules} modules, more than {modules_max}: make a folder of those that belong together"


def incomplete_contents(package: SourceFile) -> Iterator[str]:
    """A table of contents names all modules of its folder, and nothing else. It may leave out the modules of
    operations, whose names are those of the API."""
    lines = re.findall(
        r"^    ((?:\w+, )*\w+)(?:  +\S|$)", ast.get_docstring(package.tree, clean=False) or "", re.M
    )
    named = {name for line in lines for name in line.split(", ")}
    modules = modules_of(package)
    if not named & modules.keys():
        return
    for name in sorted(named - modules.keys()):
        yield f"its table of contents names {name}, which is not there"
    for name in sorted(modules.keys() - named):
        if not re.search(r"^def prepare", modules[name].read_text(encoding="utf-8"), re.M):
            yield f"its table of contents does not name {name}"


RULES_FOR_ALL = [long_files, long_functions, vague_names, missing_docstring, unfinished_work]
RULES_FOR_THE_PACKAGE = [forbidden_imports, forbidden_names]
RULES_FOR_FOLDERS = [crowded_folders, incomplete_contents]


@pytest.fixture(scope="module", autouse=True)
def uncollected() -> Iterator[None]:
    """The trees of all files are millions of objects, of which none is garbage before the end."""
    gc.disable()
    yield
    for file in ALL_FILES:
        vars(file).pop("nodes", None)
        vars(file).pop("tree", None)
    gc.enable()


@pytest.mark.parametrize("rule", RULES_FOR_ALL, ids=lambda rule: rule.__name__)
def test_every_file(rule: object) -> None:
    assert callable(rule)
    assert [f"{file.name}: {finding}" for file in ALL_FILES for finding in rule(file)] == []


@pytest.mark.parametrize("rule", RULES_FOR_THE_PACKAGE, ids=lambda rule: rule.__name__)
def test_every_module_of_the_package(rule: object) -> None:
    assert callable(rule)
    assert [f"{file.name}: {finding}" for file in PACKAGE_FILES for finding in rule(file)] == []


@pytest.mark.parametrize("rule", RULES_FOR_FOLDERS, ids=lambda rule: rule.__name__)
def test_every_folder_of_the_package(rule: object) -> None:
    assert callable(rule)
    packages = [file for file in PACKAGE_FILES if file.path.name == "__init__.py"]
    assert [f"{file.name}: {finding}" for file in packages for finding in rule(file)] == []


def test_no_files_import_each_other() -> None:
    modules = {file.module for file in PACKAGE_FILES}
    found = circles({file.module: imported_files(file, modules) for file in PACKAGE_FILES})
    assert found == [], "put what several need into a module below them"


def is_there(name: str) -> bool:
    """Whether a file belongs to the core, or to a ring that was not deleted."""
    parts = Path(name).parts
    return parts[0] != "packages" or (ROOT / "packages" / parts[1]).exists()


def test_every_compiled_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    compiled = set(project["tool"]["hashrange"]["compiled"])
    files = [file for file in PACKAGE_FILES if file.name in compiled]
    assert {file.name for file in files} == {name for name in compiled if is_there(name)}
    assert [f"{file.name}: {finding}" for file in files for finding in lazy_expressions(file)] == []


def test_no_test_sleeps() -> None:
    # The crash tests let a child write for a random time before they kill it: that is what they test. The
    # clients of the consistency tests wait before they connect again to a server that was killed, and these
    # tests wait for programs of others, such as Patroni.
    tests = [file for file in ALL_FILES if file.name.startswith("tests/")]
    files = [file for file in tests if not file.name.startswith(("tests/crash/", "tests/consistency/"))]
    assert [f"{file.name}: {finding}" for file in files for finding in sleeping(file)] == []


def test_the_rules_find_what_they_are_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "src" / "hashrange" / "table_utils.py"
    path.parent.mkdir(parents=True)
    body = "    pass\n" * FUNCTION_LINES_MAX
    path.write_text(
        f"import json\nfrom time import time\nimport datetime\n# TO{'DO'}: later\ndef long():\n{body}"
        "now = iter(datetime.datetime.now() for _ in 'x')\n" + "\n" * FILE_LINES_MAX
    )
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path / "src" / "hashrange")
    file = SourceFile(path)
    assert file.layer == "table_utils"
    for rule in RULES_FOR_ALL:
        assert len(list(rule(file))) == 1, rule.__name__
    assert len(list(forbidden_imports(file))) == 1
    assert len(list(lazy_expressions(file))) == 1
    assert len(list(forbidden_names(file))) == 2


def test_circles_are_found() -> None:
    imports = {
        "a": {"b"},
        "b": {"c"},
        "c": {"b", "d"},
        "d": {"e"},
        "e": set[str](),
        "f": {"g", "a"},
        "g": {"h"},
        "h": {"f"},
    }
    assert circles(imports) == [["b", "c"], ["f", "g", "h"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_imports_of_a_file_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "src" / "package" / "one.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import sys, package.two\nfrom package import three, name\n"
        "if sys:\n    from package.four import name\n"
        "def late():\n    import package.five\n"
    )
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    modules = {f"package.{name}" for name in ("one", "two", "three", "four", "five")} | {"package"}
    file = SourceFile(path)
    assert file.module == "package.one"
    assert imported_files(file, modules) == {"package.two", "package.three", "package.four", "package"}


def test_folders_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    for name in ("one", "two", "three", "four"):
        (tmp_path / f"{name}.py").write_text("def prepare(): ...\n" if name == "four" else "")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "__init__.py").write_text("")
    package = tmp_path / "__init__.py"
    package.write_text('"""Contents.\n\n    one, two   numbers\n    five\n    above      is not there\n"""')
    assert [finding.split()[-1] for finding in incomplete_contents(SourceFile(package))] == [
        *("there", "there", "below", "three"),
    ]
    package.write_text('"""No contents.\n\n    five   is not there\n"""')
    assert list(incomplete_contents(SourceFile(package))) == []
    assert list(crowded_folders(SourceFile(package))) == []
    for number in range(MODULES_MAX):
        (tmp_path / f"n{number}.py").write_text("")
    assert len(list(crowded_folders(SourceFile(package)))) == 1
