"""What is installed: Python, the package, its libraries and extras, the form of the hot path."""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

import hashrange
from hashrange import __version__, compiled
from hashrange.cli.health.findings import NOTE, OK, PROBLEM, Finding

LIBRARIES: Final = {
    "click": "click",
    "fastcrc": "fastcrc",
    "httptools": "httptools",
    "jinja2": "jinja2",
    "msgspec": "msgspec",
    "orjson": "orjson",
    "rocksdict": "rocksdict",
    "sortedcontainers": "sortedcontainers",
    "starlette": "starlette",
    "uvicorn": "uvicorn",
    "uvloop": "uvloop",
}
"""The module of each distribution that the package depends on."""

# Of each extra: the module, its distribution, and what needs it.
_EXTRAS: Final = (
    ("client", "boto3", "boto3", "use in process, S3, and the commands import, pull, stream and trigger"),
    ("postgres", "psycopg", "psycopg", "serve --postgres"),
    ("testing", "yaml", "PyYAML", "tables from templates, and serve --users, in YAML"),
)


def findings() -> Iterator[Finding]:
    """The findings about the installation."""
    yield _python()
    yield Finding("hashrange", OK, f"{__version__} in {Path(hashrange.__file__).parent}")
    yield _hot_path()
    yield _libraries()
    yield from (_extra(*extra) for extra in _EXTRAS)
    if sys.version_info < (3, 14):
        yield _extra("zstd", "backports.zstd", "backports.zstd", "imports of files that zstd compressed")


def _python() -> Finding:
    libc = " ".join(platform.libc_ver()).strip()
    system = f"{platform.system()} {platform.machine()}" + (f", {libc}" if libc else "")
    return Finding("python", OK, f"{platform.python_implementation()} {platform.python_version()}, {system}")


def _hot_path() -> Finding:
    if compiled():
        return Finding("hot path", OK, "compiled")
    return Finding(
        "hot path",
        NOTE,
        "interpreted; compiled, the server is about 1.5 times as fast",
        "Install a wheel of this platform; or set HASHRANGE_COMPILE=1 for pip where there is a C compiler; "
        "or run `make compile` in a checkout.",
    )


def _libraries() -> Finding:
    """Import each library, because a library with a part in C can be there and yet not work."""
    versions, broken = [], []
    for distribution, module in LIBRARIES.items():
        if distribution == "uvloop" and sys.platform == "win32":
            continue
        try:
            importlib.import_module(module)
            versions.append(f"{distribution} {metadata.version(distribution)}")
        except ImportError as error:  # that no distribution is found is such an error, too
            broken.append(f"{distribution} ({error})")
    if broken:
        return Finding(
            "libraries",
            PROBLEM,
            f"cannot be imported: {', '.join(broken)}",
            "Install Hashrange again, in an environment of its own: python -m venv DIRECTORY",
        )
    return Finding("libraries", OK, ", ".join(versions))


def _extra(extra: str, module: str, distribution: str, use: str) -> Finding:
    part = f"extra {extra}"
    try:
        importlib.import_module(module)
        return Finding(part, OK, f"{distribution} {metadata.version(distribution)}, for {use}")
    except ImportError:
        return Finding(part, OK, f"not installed; {distribution} is needed for {use}")
