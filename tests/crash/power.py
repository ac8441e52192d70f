"""What a disk may hold after a power failure: what was synced, and any part of what was not.

`Disk` follows a journal (`journal.c`). Only a sync of a file makes its content durable, and only a sync of a
directory its names. The rest survives in part: a prefix of a directory's changes; of a file's writes none,
all, a prefix that ends within a write, or any selection. Most file systems promise more than that.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import NamedTuple

_HEAD = Struct("=cIIQQQ")
_SECTOR_BYTES = 512


class Event(NamedTuple):
    """A record of the journal; `journal.c` says which fields a kind has."""

    kind: str
    path: str
    target: str
    inode: int
    offset: int
    data: bytes


@dataclass(eq=False)
class File:
    """A file's content, and its writes since it was synced (None for the bytes: truncated at the offset)."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        for write in self.pending:
            _apply(self.durable, *write)
        self.pending.clear()

    def after_cut(self, chance: random.Random) -> bytes:
        content, writes = bytearray(self.durable), self.pending
        how = chance.choice(("none", "all", "prefix", "any"))
        if how == "prefix" and writes:
            writes = writes[: chance.randrange(len(writes)) + 1]
            offset, data = writes[-1]
            if data is not None:
                end = chance.randrange(len(data) + 1)
                if offset + len(data) <= len(content):
                    # A sector is overwritten as a whole or not at all.
                    end = max(0, (offset + end) // _SECTOR_BYTES * _SECTOR_BYTES - offset)
                writes = [*writes[:-1], (offset, data[:end])]
        elif how == "any":
            writes = [write for write in writes if write[1] is None or chance.random() < 0.5]
        for write in writes if how != "none" else ():
            _apply(content, *write)
        return bytes(content)


@dataclass(eq=False)
class Folder:
    """A directory's names, and their changes since it was synced; one change may concern several names."""

    durable: dict[str, File | Folder | None] = field(default_factory=dict)
    pending: list[dict[str, File | Folder | None]] = field(default_factory=list)

    def sync(self) -> None:
        for change in self.pending:
            self.durable.update(change)
        self.pending.clear()

    def after_cut(self, chance: random.Random) -> dict[str, File | Folder | None]:
        count = chance.choice((0, len(self.pending), chance.randint(0, len(self.pending))))
        names = dict(self.durable)
        for change in self.pending[:count]:
            names.update(change)
        return names


class Disk:
    """A directory tree as its disk has it. At first all of it is durable."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._inodes: dict[int, File] = {}
        self._nodes: dict[str, File | Folder] = {}
        self._load(root)

    def _load(self, path: Path) -> File | Folder:
        node: File | Folder
        if path.is_dir():
            node = Folder({entry.name: self._load(entry) for entry in path.iterdir()})
        else:
            node = self._inodes[path.stat().st_ino] = File(bytearray(path.read_bytes()))
        self._nodes[str(path)] = node
        return node

    def follow(self, event: Event) -> None:
        """Apply an event of the journal to the disk."""
        path = event.path
        if event.kind == "C":
            node = self._inodes[event.inode] = File()
            self._name(path, node)
        elif event.kind == "D":
            self._name(path, Folder())
        elif event.kind == "W":
            self._inodes[event.inode].pending.append((event.offset, event.data))
        elif event.kind == "T":
            self._inodes[event.inode].pending.append((event.offset, None))
        elif event.kind == "S":
            self._inodes[event.inode].sync()
        elif event.kind == "Y":
            folder = self._nodes[path]
            assert isinstance(folder, Folder)
            folder.sync()
        elif event.kind == "U":
            self._name(path, None)
        elif event.kind == "L":
            self._name(event.target, self._nodes[path])
        elif event.kind == "R":
            self._rename(path, event.target)

    def _name(self, path: str, node: File | Folder | None) -> None:
        folder, _, name = path.rpartition("/")
        parent = self._nodes[folder]
        assert isinstance(parent, Folder)
        parent.pending.append({name: node})
        if node is None:
            del self._nodes[path]
        else:
            self._nodes[path] = node

    def _rename(self, path: str, target: str) -> None:
        node = self._nodes[path]
        for old in [old for old in self._nodes if old == path or old.startswith(path + "/")]:
            self._nodes[target + old[len(path) :]] = self._nodes.pop(old)
        folder, _, name = path.rpartition("/")
        new_folder, _, new_name = target.rpartition("/")
        source, destination = self._nodes[folder], self._nodes[new_folder]
        assert isinstance(source, Folder)
        assert isinstance(destination, Folder)
        if source is destination:
            source.pending.append({name: None, new_name: node})
        else:
            destination.pending.append({new_name: node})
            source.pending.append({name: None})

    def cut(self, place: Path, chance: random.Random) -> None:
        """Write what a power failure at this moment would leave into the new directory `place`."""
        contents: dict[File, bytes] = {}  # a file with two names has one content

        def restore(node: File | Folder, path: Path) -> None:
            if isinstance(node, Folder):
                path.mkdir()
                for name, inner in node.after_cut(chance).items():
                    if inner is not None:
                        restore(inner, path / name)
            else:
                if node not in contents:
                    contents[node] = node.after_cut(chance)
                path.write_bytes(contents[node])

        restore(self._nodes[self._root], place)


def read_journal(path: Path) -> Iterator[Event]:
    """The events of a journal."""
    content = path.read_bytes()
    at = 0
    while at + _HEAD.size <= len(content):
        kind, first, second, inode, offset, length = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        texts = content[at : at + first].decode(), content[at + first : at + first + second].decode()
        at += first + second
        yield Event(kind.decode(), *texts, inode, offset, content[at : at + length])
        at += length


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        content.extend(bytes(max(0, offset - len(content))))
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data
