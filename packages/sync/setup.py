"""Build from nothing, as the setup.py of the server does and says why. The rest stands in pyproject.toml."""

from __future__ import annotations

import shutil

from setuptools import setup
from setuptools.command.build import build


class BuildAnew(build):
    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(cmdclass={"build": BuildAnew})
