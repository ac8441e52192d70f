"""The data files of botocore are read once in a process of tests.

Each session reads the model of each service again, and looks for it in all folders: half of the time of a new
client, of which the tests make a thousand.
"""

from __future__ import annotations

import os
from functools import cache

from botocore import loaders, session


class _Folders(list[str]):
    """The folders of a loader; boto3 adds its own with each session."""

    def append(self, folder: str) -> None:
        if folder not in self:
            super().append(folder)


@cache
def _loader(data_path: str | None, home: str) -> loaders.Loader:
    made = _create(data_path)
    made._search_paths = _Folders(made._search_paths)
    return made


def read_once() -> None:
    """Let all sessions of this process with the same folders share a loader."""
    session.create_loader = lambda data_path=None: _loader(data_path, os.path.expanduser("~"))


_create = loaders.create_loader
