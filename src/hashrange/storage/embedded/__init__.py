"""The durable engine: RocksDB in a directory, with group commit."""

from hashrange.storage.embedded.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
