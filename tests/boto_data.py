"""The data files of botocore are read once in a process of tests.

Each session reads the model of each service again, and looks for it in all folders: half of the time of a new
client, of which the tests make a thousand.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from botocore import loaders, session


class _Folders(list[str]):
    """The folders of a loader; boto3 adds its own with each session."""

    def append(self, folder: str) -> None:
        if folder not in self:
            super().append(folder)


@cache
def _loader(search_path_string: str | None, home: str) -> loaders.Loader:
    made: Any = _create(search_path_string)
    made._search_paths = _Folders(made._search_paths)
    loader: loaders.Loader = made
    return loader


def _shared(search_path_string: str | None = None) -> loaders.Loader:
    """One loader for all sessions with the same folders, of which one is in the home."""
    return _loader(search_path_string, os.path.expanduser("~"))


def read_once() -> None:
    """Let the sessions of this process share loaders."""
    session.create_loader = _shared


_create = loaders.create_loader
