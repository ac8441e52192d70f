"""Type what the first pages say, in an empty folder with nothing but Python, and take the time.

    python tools/typed.py ARTIFACT [--seconds 60]

ARTIFACT is a wheel, or a source archive, which must install without a compiler: the commands run with a PATH
that has none. It types docs/five-minutes.md as it stands, but for the path of the artifact and the port, and
compares what programs print with the comments beside their `print` calls. Then it runs the programs of
README.md in the same environment.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "five-minutes.md"
README: Final = ROOT / "README.md"
NAMED: Final = "/path/to/hashrange.whl"
SERVE: Final = "hashrange serve"
PORT: Final = "8000"
# What the commands of the pages need beside Python.
_PROGRAMS: Final = ("bash", "sh", "env", "mkdir", "rm", "cat", "ls")


class Block(NamedTuple):
    """A block of a page: `language` is what stands behind its fence, `before` the line before it."""

    language: str
    text: str
    before: str


def blocks(page: Path) -> list[Block]:
    """The blocks of a page that are typed or saved, in their order."""
    found = re.finditer(r"([^\n]*)\n+```(sh|python)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    return [Block(match[2], match[3], match[1]) for match in found]


def promised(program: str) -> str:
    """What a program prints, by the comments beside its `print` calls."""
    return "".join(f"{text}\n" for text in re.findall(r"^ *print\(.*\)  # (.*)$", program, re.M))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0, help="the most until the first item")
    parser.add_argument("--python", default=sys.executable, help="the Python that there is")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds, all_seconds = typed(given.artifact.resolve(), Path(folder), given.python)
    name = given.artifact.name
    print(f"{name}: the first item after {seconds:.1f} s, both pages after {all_seconds:.1f} s")
    if seconds > given.seconds:
        sys.exit(f"The first item took longer than {given.seconds:.0f} s.")


def typed(artifact: Path, folder: Path, python: str) -> tuple[float, float]:
    """Type both pages; returns the seconds until the first item, and until the end."""
    environment = _empty_environment(folder, python)
    work = folder / "work"
    work.mkdir()
    # (the machine's own servers may have the port of the page)
    port = environment["HASHRANGE_PORT"] = str(_free_port())
    steps = [
        block._replace(text=block.text.replace(NAMED, str(artifact)).replace(f":{PORT}", f":{port}"))
        for block in blocks(PAGE)
    ]
    begin = next(number for number, block in enumerate(steps) if block.text.strip() == SERVE)
    began = time.monotonic()
    install = "".join(block.text for block in steps[:begin])
    _run(install, work, environment)
    activate = next(line for line in install.splitlines() if line.startswith(". "))
    serve = f"{activate}\nexec {SERVE} > server.log 2>&1"
    server = subprocess.Popen(["bash", "-e", "-c", serve], cwd=work, env=environment)
    first = 0.0
    try:
        second_terminal = ""
        for block in steps[begin + 1 :]:
            if block.language == "sh":
                output = _run(second_terminal + block.text, work, environment)
                print(output, end="")
                second_terminal += "".join(
                    f"{line}\n" for line in block.text.splitlines() if line.startswith((". ", "export "))
                )
                continue
            name = re.findall(r"`(\w+\.py)`", block.before)[0]
            (work / name).write_text(block.text, "utf-8")
            _program(name, block.text, second_terminal, work, environment)
            first = first or time.monotonic() - began
        _readme(second_terminal, work, environment)
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0, (work / "server.log").read_text()
    return first, time.monotonic() - began


def _readme(terminal: str, work: Path, environment: dict[str, str]) -> None:
    for number, block in enumerate(block for block in blocks(README) if block.language == "python"):
        name = f"readme_{number}.py"
        (work / name).write_text(block.text, "utf-8")
        _program(name, block.text, terminal, work, environment)


def _program(name: str, text: str, terminal: str, work: Path, environment: dict[str, str]) -> None:
    printed = _run(f"{terminal}python {name}\n", work, environment)
    shown = printed.partition("\nok\n")[2] or printed  # (`healthcheck` printed before)
    if not shown.endswith(promised(text)) or not promised(text):
        sys.exit(f"{name} printed {printed!r}, not {promised(text)!r}.")


def _run(script: str, work: Path, environment: dict[str, str]) -> str:
    finished = subprocess.run(
        ["bash", "-e", "-c", script], cwd=work, env=environment, capture_output=True, text=True, timeout=600
    )
    if finished.returncode:
        sys.exit(f"{script}\nended with {finished.returncode}:\n{finished.stdout}{finished.stderr}")
    return finished.stdout


def _empty_environment(folder: Path, python: str) -> dict[str, str]:
    """The variables of a user whose PATH has Python and a shell, and no compiler."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(python)
    for name in _PROGRAMS:
        if (path := shutil.which(name)) is not None:
            (programs / name).symlink_to(path)
    kept = ("LANG", "PIP_", "SSL_", "REQUESTS_", "HTTP_PROXY", "HTTPS_PROXY", "TMPDIR")
    variables = {name: value for name, value in os.environ.items() if name.startswith(kept)}
    return {**variables, "PATH": str(programs), "HOME": str(folder), "NO_PROXY": "127.0.0.1"}


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
