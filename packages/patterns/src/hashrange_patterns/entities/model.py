"""Entities: dataclasses with templates of keys, and the description of a class that the store reads.

    class Photo(Entity[str, datetime], pk="USER#{username}", sk="PHOTO#{username}#{taken_at}"):
        username: str
        taken_at: datetime
        likes: int = 0

    Photo.key("alice", taken_at)     # Key[Photo]

The types in brackets are those of the key's fields, in the order in which the templates name them, so type
checkers know the arguments of `key`. They are compared with the fields when the class is first used.

An instance remembers the item that it was read from, so that an update can tell what changed, and its
version, so that the update is refused if somebody else has written the item since.

Refuses to know requests.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar, TypeVarTuple, dataclass_transform

from hashrange_patterns.entities.attributes import Record, Unreadable, attributes, plain, record_of, same
from hashrange_patterns.entities.templates import Template
from hashrange_patterns.tables import Address, Item, Table

E = TypeVar("E", bound="Entity[*tuple[Any, ...]]")
E_co = TypeVar("E_co", bound="Entity[*tuple[Any, ...]]", covariant=True)
Ks = TypeVarTuple("Ks")

Migration: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Makes the attributes of the next shape from those of the previous shape."""

KIND: Final = "_kind"
VERSION: Final = "_version"
SHAPE: Final = "_shape"


@dataclass(frozen=True, slots=True)
class Key(Generic[E_co]):
    """The address of an entity, and its class."""

    kind: type[E_co]
    address: Address


@dataclass_transform(field_specifiers=(dataclasses.field,))
class Entity(Generic[*Ks]):
    """A class of items. A subclass is a dataclass without a decorator.

    - `pk` and `sk` are the templates of its keys.
    - `indexed` are templates of further attributes that are keys of indexes. Such an attribute is left out
      while one of its fields is None, so the index does not hold the item (a sparse index).
    - `unique` are templates whose values no two entities share; a value with a field that is None is not
      checked.
    - `name` is written into each item, to distinguish the classes of a table; by default the class's name.
    - `migrations` lead from the first shape of the class's items to the current one, each from one shape to
      the next: functions of the attributes by name, which run when an older item is read.

    Fields that several classes have in common come from a dataclass that is not an entity:
    `class User(Dated, Entity[str], pk=…, sk=…)`.
    """

    _make_schema: typing.ClassVar[Callable[[], Schema] | None] = None
    """Makes the schema as the arguments of the class say, unchecked."""
    _schema: typing.ClassVar[Schema | None] = None

    def __init_subclass__(
        cls,
        *,
        pk: str,
        sk: str,
        name: str | None = None,
        indexed: Mapping[str, str] | None = None,
        unique: Sequence[str] = (),
        migrations: Sequence[Migration] = (),
    ) -> None:
        super().__init_subclass__()
        dataclass(cls)
        if isinstance(unique, str):
            raise TypeError(f"{cls.__name__}: unique takes templates, as in unique=[{unique!r}]")
        cls._make_schema = lambda: Schema(
            cls,
            name or cls.__name__,
            record_of(cls),
            Template(pk),
            Template(sk),
            {attribute: Template(text) for attribute, text in (indexed or {}).items()},
            tuple(map(Template, unique)),
            tuple(migrations),
        )

    @classmethod
    def key(cls, *values: *Ks) -> Key[Self]:
        """The key of the entity with these values of the key's fields."""
        return Key(cls, schema_of(cls).address_of(values))


AnyEntity: TypeAlias = Entity[*tuple[Any, ...]]
"""An entity of any class."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A class of entities, as the store reads it."""

    kind: type[AnyEntity]
    name: str
    record: Record
    partition: Template
    sort: Template
    indexed: Mapping[str, Template]
    unique: tuple[Template, ...]
    migrations: tuple[Migration, ...]

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The fields in the key, in the order of the templates."""
        return tuple(dict.fromkeys(self.partition.fields + self.sort.fields))

    def address_of(self, values: Sequence[object]) -> Address:
        """The address of the entity with these values of the key's fields."""
        names = self.key_fields
        if len(values) != len(names):
            raise TypeError(
                f"{self.name}.key takes {', '.join(names)}: {len(names)} values, not {len(values)}"
            )
        return self._address(dict(zip(names, values, strict=True)))

    def address(self, entity: AnyEntity) -> Address:
        """The address of `entity`."""
        return self._address(vars(entity))

    def _address(self, values: Mapping[str, Any]) -> Address:
        # The codec refuses values of other types than the field's: "7" and 7 would give the same key.
        for name in self.key_fields:
            self.record.fields[name].codec.encode(values[name])
        partition, sort = self.partition.fill(values), self.sort.fill(values)
        if partition is None or sort is None:
            raise ValueError(f"{self.name}: a field of the key is None")
        return Address(partition, sort)

    def template(self, table: Table, attribute: str) -> Template:
        """The template of a key attribute, of the table's own keys or of an index's."""
        own = {table.partition_key: self.partition, table.sort_key: self.sort}
        template = own.get(attribute) or self.indexed.get(attribute)
        if template is None:
            raise ValueError(
                f"{self.name} has no attribute {attribute!r} that a key of an index could be: "
                f"add it to indexed={{{attribute!r}: …}}"
            )
        return template

    def encode(self, table: Table, entity: AnyEntity) -> Item:
        """The item of `entity`, without its version."""
        values = vars(entity)
        item = {**table.key(self.address(entity)), KIND: {"S": self.name}}
        if self.migrations:
            item[SHAPE] = {"N": str(len(self.migrations))}
        for attribute, template in self.indexed.items():
            text = template.fill(values)
            if text is not None:
                item[attribute] = {"S": text}
        written = self.record.encode(entity)
        if clash := item.keys() & written.keys():
            raise ValueError(
                f"{self.name}.{clash.pop()} has the name of an attribute of the table's: rename it"
            )
        return {**item, **written}

    def decode(self, table: Table, item: Item) -> AnyEntity:
        """The entity in an item. Raises `Unreadable`."""
        entity = self.kind(**self.record.decode(self._migrated(table, item)))
        remember(entity, dict(item))
        return entity

    def changes(self, table: Table, entity: AnyEntity, item: Item) -> tuple[Item, list[str]]:
        """The attributes to set and to remove so that `item` becomes the item of `entity`.

        The entity is compared with what was read from the item, not with the item: an attribute that was
        missing, and read as its default, is not written, because others may have begun to count in it.
        """
        fields = self._fields(table, item)
        migrated = self._migrated(table, item)
        before = self.record.encode(self.kind(**self.record.decode(migrated)))
        before = {
            name: value
            for name, value in before.items()
            if (
                same(fields[name], migrated[name])
                if name in fields and name in migrated
                else name not in fields and name not in migrated
            )
        }
        before.update({name: value for name, value in item.items() if name not in fields})
        after = self.encode(table, entity)
        changed = {
            name: value
            for name, value in after.items()
            if name not in before or not same(before[name], value)
        }
        own_names = {*self.record.fields, *self.indexed, *(fields.keys() - migrated.keys())}
        return changed, sorted(name for name in item.keys() - after.keys() if name in own_names)

    def _fields(self, table: Table, item: Item) -> Item:
        """The attributes of an item, except those that are derived from others."""
        derived = {table.partition_key, table.sort_key, *self.indexed, KIND, VERSION, SHAPE}
        return {name: value for name, value in item.items() if name not in derived}

    def _migrated(self, table: Table, item: Item) -> Item:
        """The fields of an item in the current shape."""
        fields = self._fields(table, item)
        shape = int(item.get(SHAPE, {}).get("N", "0"))
        if shape > len(self.migrations):
            raise Unreadable(
                f"{table.address(item)} was written in shape {shape} of {self.name}, and this program "
                f"knows {len(self.migrations)}: a newer one is at work"
            )
        if shape == len(self.migrations):
            return fields
        values = plain(fields)
        for migrate in self.migrations[shape:]:
            values = migrate(values)
        return attributes(values)


def remember(entity: AnyEntity, item: Item | None) -> None:
    """Remember which item an entity was read from or written as; None if it no longer exists."""
    # (not a field: two entities are equal if their fields are)
    vars(entity)["_item"] = item


def item_of(entity: AnyEntity) -> Item | None:
    """The item that an entity was read from or written as."""
    item: Item | None = vars(entity).get("_item")
    return item


def version_in(item: Item | None) -> str | None:
    """The version in an item; None if it has none, because another program wrote it."""
    version: str | None = (item or {}).get(VERSION, {}).get("S")
    return version


def version_of(entity: AnyEntity) -> str | None:
    """The version of an entity that was read or written: a text that changes with each write, like an
    ETag."""
    return version_in(item_of(entity))


def key_of(entity: E) -> Key[E]:
    """The key of an entity."""
    return Key(type(entity), schema_of(type(entity)).address(entity))


def schema_of(kind: type[AnyEntity]) -> Schema:
    """The schema of a class. Raises TypeError or ValueError if the class cannot be stored."""
    schema: Schema | None = vars(kind).get("_schema")
    if schema is None:
        # (made at the first use: the types that annotations name may be defined below the class)
        schema = _schema(kind)
        kind._schema = schema
    return schema


def _schema(kind: type[AnyEntity]) -> Schema:
    if kind._make_schema is None:
        raise TypeError(
            f"{kind.__name__} is not a class of items: give it keys, class …({kind.__name__}, pk=…, sk=…)"
        )
    schema = kind._make_schema()
    hints = typing.get_type_hints(kind)
    for template in (schema.partition, schema.sort, *schema.indexed.values(), *schema.unique):
        for name in template.fields:
            if name not in schema.record.fields:
                raise ValueError(f"{kind.__name__}: {template.text!r} names {name}, which is not a field")
    for template in (schema.sort, *schema.indexed.values()):
        for name in template.fields:
            if hints[name] is int and template.width(name) is None:
                raise ValueError(
                    f"{kind.__name__}: in {template.text!r} 10 would sort before 9: "
                    f"give a width, as in {{{name}:09}}"
                )
    if not schema.partition.text or not schema.sort.text:
        raise ValueError(f"{kind.__name__}: a key is empty: give at least a constant text")
    _check_types_of_key(schema, hints)
    return schema


def _check_types_of_key(schema: Schema, hints: Mapping[str, Any]) -> None:
    """Raise TypeError if the types in brackets are not those of the key's fields."""
    for base in getattr(schema.kind, "__orig_bases__", ()):
        arguments = typing.get_args(base)
        if typing.get_origin(base) is not Entity or any(
            isinstance(argument, TypeVar) for argument in arguments
        ):
            continue
        expected = tuple(hints[name] for name in schema.key_fields)
        if arguments != expected:
            names = ", ".join(
                f"{name}: {getattr(hint, '__name__', hint)}"
                for name, hint in zip(schema.key_fields, expected, strict=True)
            )
            raise TypeError(
                f"{schema.kind.__name__}: its key has the fields ({names}), "
                f"but the types in the brackets of Entity[…] differ"
            )


def kind_of(table: Table, item: Item, kinds: Sequence[type[E]]) -> type[E] | None:
    """The class of an item among `kinds`: by the name in it, or if it has none by its keys; None if no class
    fits."""
    if KIND in item:
        name = item[KIND].get("S")
        return next((kind for kind in kinds if schema_of(kind).name == name), None)
    address = table.address(item)
    matching = [
        kind
        for kind in kinds
        if schema_of(kind).partition.matches(address.partition) and schema_of(kind).sort.matches(address.sort)
    ]
    return matching[0] if len(matching) == 1 else None
