"""What stops a pair; each text says what to do.

    SyncError            a person must act
    ├ SettingsError      the settings file is wrong
    ├ Missing            a table or a stream is not there
    ├ Superseded         another process works on the pair
    └ Unavailable        a side does not answer now: trying again later may work
      ├ Denied           the credentials do not suffice
      └ OutcomeUnknown   a write was sent, and nobody knows whether it was made
    Gap                  the stream no longer has what was not read yet (handled inside)
    Refused              the condition of a write does not hold (handled inside)

Errors of botocore that are not known here become a `SyncError` with their own text.
"""

from __future__ import annotations


class SyncError(Exception):
    """The pair cannot go on; the text says what to do."""


class SettingsError(SyncError):
    """The settings are wrong."""


class Missing(SyncError):
    """A table, a stream or a shard is not there."""


class Superseded(SyncError):
    """Another process works on the same pair."""


class Unavailable(SyncError):
    """A side does not answer, or is too busy. Nothing is lost; trying again later may work."""


class Denied(Unavailable):
    """A side refuses the credentials. Nothing is lost; new credentials are used as soon as they are there."""


class OutcomeUnknown(Unavailable):
    """A write was sent and not answered."""


class Gap(Exception):
    """The stream of a side has lost records that were not read yet."""

    def __init__(self, side: str, why: str) -> None:
        super().__init__(why)
        self.side = side


class Refused(Exception):
    """The condition of a write does not hold."""
