"""Entities: single-table models in typed Python.

    class User(Entity[str], pk="USER#{username}", sk="#METADATA#{username}", unique=["EMAIL#{email}"]):
        username: str
        email: str
        interests: set[str] = field(default_factory=set)

    store = Entities(client, "quick-photos")
    store.create(User("alice", "alice@example.org"))

    attributes  the types of fields, and how they are written
    templates   keys with fields in them
    model       classes of entities: keys, indexes, migrations, what changed
    writes      create, update, delete, add, exists: single, or in one transaction
    store       reads and writes

packages/patterns/docs/entities.md is the guide.
"""

from hashrange_patterns.entities.attributes import Expires, Unreadable
from hashrange_patterns.entities.model import Entity, Key, key_of, version_of
from hashrange_patterns.entities.store import AsyncEntities, Entities, EntityFlows
from hashrange_patterns.entities.writes import (
    AlreadyExists,
    Changed,
    Missing,
    NotUnique,
    Refused,
    Write,
    add,
    create,
    delete,
    exists,
    update,
)
from hashrange_patterns.tables import Index

__all__ = [
    "AlreadyExists",
    "AsyncEntities",
    "Changed",
    "Entities",
    "Entity",
    "EntityFlows",
    "Expires",
    "Index",
    "Key",
    "Missing",
    "NotUnique",
    "Refused",
    "Unreadable",
    "Write",
    "add",
    "create",
    "delete",
    "exists",
    "key_of",
    "update",
    "version_of",
]
