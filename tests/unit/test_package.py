"""What somebody meets who imports the package: its names, its help, its first examples, and what it lacks."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import hashrange
import hashrange.testing

ROOT = Path(__file__).resolve().parents[2]
LAZY = ("hashrange", "hashrange.testing")
WITHOUT_BOTO3 = "import sys; sys.modules['boto3'] = sys.modules['botocore'] = None\n"


def program(text: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], cwd=cwd, capture_output=True, text=True)


@pytest.mark.parametrize("package", LAZY)
def test_each_public_name_is_what_it_says(package: str, tmp_path: Path) -> None:
    text = f"""
        import inspect, {package} as package
        for name in package.__all__:
            for _ in range(2):  # the import of a submodule binds its name
                scope = {{}}
                exec(f"from {package} import {{name}}", scope)
                assert not inspect.ismodule(scope[name]), name
                assert getattr(scope[name], "__name__", name) == name
        assert set(package.__all__) <= set(dir(package))
        for name in ("locale", "Databse"):
            assert not hasattr(package, name)
    """
    done = program(textwrap.dedent(text), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", LAZY)
def test_a_checker_of_types_sees_which_names_there_are(package: str) -> None:
    source = ROOT / "src" / Path(*package.split(".")) / "__init__.py"
    [choice] = [node for node in ast.parse(source.read_text()).body if isinstance(node, ast.If)]
    assert ast.unparse(choice.test) == "TYPE_CHECKING"
    assert {node.name for node in choice.orelse if isinstance(node, ast.FunctionDef)} == {
        "__getattr__",
        "__dir__",
    }
    known = {alias.name for node in choice.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    lazy = {name for name in sys.modules[package].__all__ if name not in vars(sys.modules[package])}
    assert lazy <= known <= set(sys.modules[package].__all__)


def test_help_shows_the_database_and_its_block(tmp_path: Path) -> None:
    done = program("import hashrange; help(hashrange)", tmp_path)
    assert "class Database(" in done.stdout
    assert "local(" in done.stdout


def test_the_examples_of_the_package_work(tmp_path: Path) -> None:
    assert hashrange.__doc__ is not None
    example = hashrange.__doc__.partition("The table of contents")[0].partition("\n")[2]
    done = program(
        textwrap.dedent(example).rstrip() + "\n    print(client.list_tables()['TableNames'])", tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


@pytest.mark.parametrize(
    "use",
    [
        "with hashrange.local(): pass",
        "hashrange.local(lambda: 1)()",
        "hashrange.testing.mock_aws()(lambda: 1)()",
        "from hashrange.client import connect; connect(hashrange.Database.in_memory())",
        "from hashrange.client import resource; resource(hashrange.Database.in_memory())",
        "from hashrange.testing import RequestStopped",
    ],
)
def test_who_lacks_boto3_is_told_so(use: str, tmp_path: Path) -> None:
    done = program(f"{WITHOUT_BOTO3}import hashrange, hashrange.testing\n{use}", tmp_path)
    assert done.returncode == 1
    assert re.search("needs boto3.*: pip install boto3", done.stderr.splitlines()[-1]), done.stderr


def test_help_needs_no_boto3(tmp_path: Path) -> None:
    done = program(f"{WITHOUT_BOTO3}import hashrange; help(hashrange)", tmp_path)
    assert (done.returncode, "class Database(" in done.stdout) == (0, True), done.stderr
