"""What is installed: Python, the package, its libraries and extras, the form of the hot path."""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

import hashrange
from hashrange import __version__, compiled
from hashrange.cli.health.findings import NOTE, OK, PROBLEM, Finding
from hashrange.rings import HOMES, Rings, rings

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

EXTRAS: Final = {
    "access": ({"cryptography": "cryptography", "PyYAML": "yaml"}, "serve --auth, and tls"),
    "approximate": ({"numpy": "numpy", "usearch": "usearch"}, "SearchVectors with serve --vector-exact-max"),
    "client": ({"boto3": "boto3"}, "use in process, and the commands import, pull, stream and trigger"),
    "kinesis": ({"boto3": "boto3"}, "changes of tables to data streams of Kinesis"),
    "masking": ({"Faker": "faker"}, "rules with fake in pull --mask"),
    "mcp": ({"hashrange-mcp": "hashrange_mcp.server"}, "mcp"),
    "postgres": ({"hashrange-postgres": "hashrange_postgres.engine"}, "serve --postgres"),
    "replication": ({"hashrange-replication": "hashrange_replication.running"}, "serve --copy-to"),
    "s3": ({"boto3": "boto3"}, "imports from and exports to S3"),
    "sql": ({"hashrange-sql": "hashrange_sql.looking"}, "sql"),
    "sync": ({"hashrange-sync": "hashrange_sync.commands.sync"}, "sync"),
    "testing": (
        {"boto3": "boto3", "pytest": "pytest", "PyYAML": "yaml"},
        "tests, and tables from templates in YAML",
    ),
    "vectors": ({"numpy": "numpy"}, "SearchVectors"),
    "zstd": ({"backports.zstd": "backports.zstd"}, "imports of files that zstd compressed"),
}
"""The module of each distribution that an extra brings, and what the extra is for."""


def findings() -> Iterator[Finding]:
    """The findings about the installation."""
    yield _python()
    yield Finding("hashrange", OK, f"{__version__} in {Path(hashrange.__file__).parent}")
    yield _hot_path()
    yield from _rings(rings())
    yield _libraries()
    for extra, (modules, use) in EXTRAS.items():
        if extra != "zstd" or sys.version_info < (3, 14):  # which has a module of its own
            yield _extra(extra, modules, use)


def _python() -> Finding:
    libc = " ".join(platform.libc_ver()).strip()
    system = f"{platform.system()} {platform.machine()}" + (f", {libc}" if libc else "")
    return Finding("python", OK, f"{platform.python_implementation()} {platform.python_version()}, {system}")


def _hot_path() -> Finding:
    if compiled():
        return Finding("hot path", OK, "compiled")
    how = how_to_compile()
    text = "interpreted; compiled, the server is about 1.5 times as fast"
    return Finding("hot path", NOTE, text, f"{how[0].upper()}{how[1:]}.")


def how_to_compile() -> str:
    """What makes the hot path compiled: another way in a checkout than where pip has installed a package."""
    root = Path(hashrange.__file__).parents[2]
    if (root / "Makefile").exists() and (root / "pyproject.toml").exists():
        return "run `make compile`"
    return "install a wheel of this platform, or with HASHRANGE_COMPILE=1 where there is a C compiler"


def _rings(found: Rings) -> Iterator[Finding]:
    """The rings that are installed, that cannot be loaded, and those of this project that are missing."""
    found.examine()
    if found.installed:
        yield Finding("rings", OK, ", ".join(found.installed))
    for name, why in found.troubles().items():
        yield Finding(f"ring {name}", PROBLEM, f"cannot be loaded: {why}", _remedy(name))
    for name in HOMES.keys() - found.installed.keys() - found.failed.keys():
        yield Finding(f"ring {name}", NOTE, "not installed", _remedy(name))


def _remedy(ring: str) -> str:
    remedy = HOMES[ring].brings if ring in HOMES else f"reinstall the package of {ring}"
    return f"{remedy[0].upper()}{remedy[1:]}."


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
            "Reinstall Hashrange, in its own environment: python -m venv DIRECTORY",
        )
    return Finding("libraries", OK, ", ".join(versions))


def _extra(extra: str, modules: Mapping[str, str], use: str) -> Finding:
    versions, lacking = [], []
    for distribution, module in modules.items():
        try:
            # (first: the compiled wheel has a part of hashrange-postgres, which cannot be imported alone)
            version = metadata.version(distribution)
            importlib.import_module(module)
            versions.append(f"{distribution} {version}")
        except ImportError:
            lacking.append(distribution)
    if lacking:
        needed = "is needed" if len(lacking) == 1 else "are needed"
        text = f"not installed; {' and '.join(lacking)} {needed} for {use}"
        return Finding(f"extra {extra}", OK, text)
    return Finding(f"extra {extra}", OK, f"{', '.join(versions)}, for {use}")
