"""A server with a console, and a browser that has opened it."""

from consoles import browser, database, orders

__all__ = ["browser", "database", "orders"]
