"""The fixtures of what observes requests."""

from watched import _retry_at_once, client, clients, database

__all__ = ["_retry_at_once", "client", "clients", "database"]
