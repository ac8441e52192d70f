"""The browsers, which are started once for all tests of a module."""

from console_browsing import browsers

__all__ = ["browsers"]
