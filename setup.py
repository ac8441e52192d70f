"""Compile the hot path with mypyc where HASHRANGE_COMPILE=1 asks for it. The rest stands in pyproject.toml.

mypyc writes one C file a module, and these are compiled side by side, one on each core. `make compile` and
wheels for a platform come here; an ordinary installation compiles nothing and needs no compiler.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
C_FILES = os.environ.get("HASHRANGE_C_FILES")
"""Where mypyc writes the C files; `build` if it is not given."""
# gcc takes half as long as with -O3.
OPTIMIZATION = "2"
# All C files end in one library, whose functions need not be found from outside. So calls are direct,
# and functions can be inlined.
OPTIONS = [] if sys.platform == "win32" else ["-fvisibility=hidden"]
# Packages whose types no compiled module needs. To read them took mypy a third of its time.
SETTINGS = """
[mypy]
[mypy-boto3.*,botocore.*,cryptography.*,numpy.*,requests.*,types_boto3_dynamodb.*,types_boto3_s3.*]
follow_imports = skip
follow_imports_for_stubs = true
"""


class BuildAnew(build):
    """Build from nothing. pip builds in the checkout, where `build` still has the modules of earlier builds:
    those that were deleted since, and old compiled forms, would go into the wheel."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class ParallelBuild(build_ext):
    """Compile the C files of an extension at once, where distutils compiles them one after the other, and so
    the extensions."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = os.cpu_count()

    def build_extension(self, ext: Extension) -> None:
        def compiled(source: str) -> list[str]:
            return self.compiler.compile(
                [source],
                output_dir=self.build_temp,
                include_dirs=ext.include_dirs,
                extra_postargs=[*ext.extra_compile_args, *OPTIONS],
            )

        # The largest first, so that no core waits for the last.
        sources = sorted(ext.sources, key=os.path.getsize, reverse=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            ext.extra_objects = [name for names in pool.map(compiled, sources) for name in names]
        ext.sources = []
        super().build_extension(ext)


def extensions() -> list[Extension]:
    """One extension with all code of the compiled modules, and a small one for each module."""
    from mypyc.build import mypycify

    # The modules of the engine over PostgreSQL are among them, though it is a package of its own, whose wheel
    # is pure: where both are installed, Python takes the compiled form of a module. Compiled together, calls
    # between the packages are direct.
    files = PROJECT["tool"]["hashrange"]["compiled"]
    # Modules that are not compiled may import what is not installed where a wheel is built, such as boto3.
    with tempfile.TemporaryDirectory() as scratch:
        settings = Path(scratch, "mypy.ini")
        settings.write_text(SETTINGS)
        arguments = [f"--config-file={settings}", "--follow-imports=silent", *files]
        made: list[Extension] = mypycify(
            arguments, opt_level=OPTIMIZATION, debug_level="0", multi_file=True, target_dir=C_FILES
        )
    return made


compiling = os.environ.get("HASHRANGE_COMPILE") == "1"
# setuptools runs this file several times for a wheel: to ask what building takes, for the metadata, to build.
building = not {"build_ext", "bdist_wheel"}.isdisjoint(sys.argv)
requirements = [*PROJECT["dependency-groups"]["compile"], *PROJECT["project"]["dependencies"]]
setup(
    ext_modules=extensions() if compiling and building else [],
    setup_requires=requirements if compiling and not building else [],
    cmdclass={"build": BuildAnew, "build_ext": ParallelBuild},
)
