"""The operation on vector indexes: `search_vectors`. Their definitions are in `operations.tables`."""
