"""Keep a compiled form of the hot path beside the checkout: `make serve` and `make compile` come here.

    python tools/compiled.py python     print the interpreter to serve with; compile for the next time
    python tools/compiled.py build      compile now, unless these sources are compiled already

A build is a folder of extension modules, `.venv/compiled/builds/HASH`, named by the sources it was made from.
`.venv/compiled/bin/python` is an interpreter that finds the modules of the newest build there and everything
else where `.venv/bin/python` finds it, so that an edit of a module that is not compiled needs no build.
The folder of a build that a server runs from is never changed. HASHRANGE_BUILDS names another folder for the
builds, which lets several checkouts share them.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILED = Path(sys.prefix) / "compiled"
BUILDS = Path(os.environ.get("HASHRANGE_BUILDS", COMPILED / "builds"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOG = COMPILED / "build.log"
MARK = "modules"
"""The file in COMPILED that tells which modules the interpreter there has compiled."""
BUILDS_KEPT = 3
"""A server may still load modules of the build before; and two branches take turns without compiling
again."""

_FINDER = '''\
"""Find the compiled modules of the newest build; written by tools/compiled.py."""

import sys
from importlib.machinery import PathFinder

BUILD = {build!r}


class _Compiled:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith(("hashrange.", "hashrange_")) or name.endswith("__mypyc"):
            found = PathFinder.find_spec(name, [BUILD + "/" + name.rpartition(".")[0].replace(".", "/")])
            if found and found.loader:  # a folder has none
                return found
        return None


sys.meta_path.insert(0, _Compiled)
'''


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["python", "build"])
    if parser.parse_args().what == "build":
        sys.exit(build())
    print(to_serve_with())


def to_serve_with() -> Path:
    """The compiled interpreter, if the compiled modules are as they were when it was made; else the
    interpreted one, and a build begins in the background."""
    python, modules = COMPILED / "bin" / "python", COMPILED / MARK
    if modules.exists() and modules.read_text() == _hash(_compiled_modules()):
        return python
    if lack := lacking():
        tell = f"Compiled, the server would be about 1.5 times as fast; that takes {lack}."
    else:
        COMPILED.mkdir(exist_ok=True)
        with LOG.open("w") as log:
            command = ["nice", "-n", "19", sys.executable, __file__, "build"]
            # A session of its own: Ctrl-C, which ends the server, lets the build go on.
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        tell = (
            "The hot path is being compiled in the background, and the next `make serve` will be about"
            f" 1.5 times as fast (log: {os.path.relpath(LOG)}; `make COMPILE=no serve` does without)."
        )
    print(tell, file=sys.stderr)
    return Path(sys.executable)


def lacking() -> str:
    """What compiling takes and this machine lacks; empty if nothing."""
    if shutil.which("cc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "a C compiler and Python's headers (Debian: apt-get install gcc python3-dev)"
    return ""


def build() -> int:
    """Compile these sources, unless a build of them is there. Returns the exit status."""
    if lack := lacking():
        print(f"The hot path stays interpreted: to compile it takes {lack}.", file=sys.stderr)
        return 1
    BUILDS.mkdir(parents=True, exist_ok=True)
    with (BUILDS / "lock").open("w") as lock:
        # Another build that is under way may be of these very sources.
        fcntl.flock(lock, fcntl.LOCK_EX)
        modules = _hash(_compiled_modules())
        packages = [*ROOT.glob("src/**/*.py"), *ROOT.glob("packages/*/src/**/*.py")]
        target = BUILDS / _hash([*packages, ROOT / "setup.py", ROOT / "pyproject.toml"])
        if not target.exists():
            print("Compiling the hot path, which takes about a minute ...", file=sys.stderr, flush=True)
            _compile(target)
        os.utime(target)
        _point_at(target)
        (COMPILED / MARK).write_text(modules)
        builds = sorted(filter(Path.is_dir, BUILDS.iterdir()), key=lambda path: path.stat().st_mtime)
        for old in builds[:-BUILDS_KEPT]:
            shutil.rmtree(old, ignore_errors=True)
    return 0


def _compile(target: Path) -> None:
    """Make the extension modules in a folder that has its name only when it is whole."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PROJECT["dependency-groups"]["compile"]], check=True)
    with tempfile.TemporaryDirectory(dir=BUILDS) as scratch:
        arguments = ["build_ext", f"--build-lib={scratch}/lib", f"--build-temp={scratch}/objects"]
        subprocess.run(
            [sys.executable, "setup.py", "--quiet", *arguments],
            check=True,
            cwd=ROOT,
            env=os.environ | {"HASHRANGE_COMPILE": "1", "HASHRANGE_C_FILES": f"{scratch}/c"},
        )
        os.rename(f"{scratch}/lib", target)


def _point_at(target: Path) -> None:
    """Make `.venv/compiled/bin/python` find the modules of this build."""
    venv.create(COMPILED, symlinks=True)
    here, there = ({"base": str(path), "platbase": str(path)} for path in (COMPILED, Path(sys.prefix)))
    site = Path(sysconfig.get_path("purelib", vars=here))
    _replace(site / "hashrange_compiled.py", _FINDER.format(build=str(target)))
    packages = sysconfig.get_path("purelib", vars=there)
    # The order is that of the names: first the compiled modules, then all that is installed beside them.
    _replace(site / "a-compiled.pth", "import hashrange_compiled\n")
    _replace(site / "b-packages.pth", f"import site; site.addsitedir({packages!r})\n")
    script = COMPILED / "bin" / "hashrange"
    _replace(script, f"#!{COMPILED}/bin/python\nfrom hashrange.cli import main\n\nmain()\n")
    script.chmod(0o755)


def _replace(path: Path, text: str) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    os.replace(new, path)


def _compiled_modules() -> list[Path]:
    return [ROOT / name for name in PROJECT["tool"]["hashrange"]["compiled"]]


def _hash(files: Iterable[Path]) -> str:
    """A name for the contents of files, and for the Python that they are compiled for."""
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(files):
        digest.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    main()
