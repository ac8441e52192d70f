"""The settings that matter to every request of an operation."""

from __future__ import annotations

from hashrange.settings import Settings


class Terms:
    """The settings that matter to every request, read once. It is a compiled class, because to read an
    attribute of a class that is not compiled takes as long as to read twenty of these.

    `has_scopes`: the tables of accounts or regions are separate.
    """

    __slots__ = ("has_scopes", "older_words", "settings")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.older_words = settings.older_words
        self.has_scopes = settings.separate_accounts or settings.separate_regions
