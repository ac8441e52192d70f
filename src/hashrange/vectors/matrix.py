"""A matrix: the vectors of index entries as rows of 32-bit floats, with their places and filter attributes.

A filter attribute of a row is a number that stands for its value. So a condition is tested once for each
value, and a comparison by `=` is that of an array with a number. A row that is removed is replaced by the
last one: rows have no order.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from sys import getsizeof
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hashrange import pace
from hashrange.expressions.preparing import Values
from hashrange.expressions.search_conditions import Choice, Either, Every, Except, Leaf, SearchCondition
from hashrange.tables.definitions.table import Vector
from hashrange.tables.items import records
from hashrange.vectors.graph import Floats, Graph, Rows, bytes_of

Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MATRIX_BYTES: Final = 2_000
"""What a matrix takes beside its rows. An estimate from above, as the next ones."""

_ROW_BYTES: Final = 250
"""What a row takes beside its floats and the bytes of its sort: an entry of a dictionary just after it has
grown, one of a list, and the objects."""

_CONTENT_BYTES: Final = 150
"""What a content of a filter attribute takes beside its text."""

_ROWS_MIN: Final = 16
_ABSENT: Final = -1


def floats(content: bytes) -> Floats:
    """The vector whose floats these bytes hold."""
    return np.frombuffer(content, "<f4").astype(np.float32, copy=False)


def square_of(vector: Floats) -> float:
    """The square of a vector's length."""
    wide = vector.astype(np.float64)
    return float((wide * wide).sum())


class Matrix:
    """The vectors of entries of one index. `places` maps the sort of an entry to its row, `sorts` a row to
    its sort; `squares` are the squares of their lengths. `floats` has more rows than `count` tells. `graph`
    proposes rows near a vector, if there is one."""

    __slots__ = (
        "_codes",
        "_columns",
        "_held",
        "_names",
        "_types",
        "_vector",
        "attribute",
        "count",
        "floats",
        "graph",
        "places",
        "sorts",
        "squares",
    )

    def __init__(self, vector: Vector) -> None:
        self._vector = vector
        self.attribute = vector.attribute
        self.graph: Graph | None = None
        self.count = 0
        self.floats: Floats = np.empty((_ROWS_MIN, vector.dimensions), np.float32)
        self.squares: Scores = np.empty(_ROWS_MIN)
        self.places: dict[bytes, int] = {}
        self.sorts: list[bytes] = []
        self._names = [name for name, _ in vector.filters]
        self._types = [type_ for _, type_ in vector.filters]
        self._columns = [np.empty(_ROWS_MIN, np.int32) for _ in self._names]
        self._codes: list[dict[str, int]] = [{} for _ in self._names]
        self._held = 0  # the bytes of sorts and contents

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        columns = sum(column.nbytes for column in self._columns)
        rows = self.floats.nbytes + self.squares.nbytes + columns + _ROW_BYTES * self.count
        return _MATRIX_BYTES + rows + self._held + (self.graph.size if self.graph is not None else 0)

    def put(self, sort: bytes, record: bytes) -> None:
        """Add the entry with this sort, or replace its row. `record` is the entry in stored form."""
        entry = records.item_of(record)
        row = self.places.get(sort)
        if row is None:
            row = self.count
            if row == len(self.floats):
                self._grow(row + 1)
            self.places[sort] = row
            self.sorts.append(sort)
            self._held += len(sort)
            self.count += 1
        content = np.frombuffer(b64decode(entry[self.attribute]["B"]), "<f4")
        self.floats[row] = content
        self.squares[row] = square_of(content)
        if self.graph is not None:
            self.graph.changed(sort)
        for name, column, codes in zip(self._names, self._columns, self._codes, strict=True):
            value = entry.get(name)
            column[row] = _ABSENT if value is None else self._code(codes, content_of(value))

    def add(self, other: Matrix) -> None:
        """Add the rows of another matrix of the same index, which has no entry of this one."""
        rows = self.count + other.count
        if rows > len(self.floats):
            self._grow(rows)
        self.floats[self.count : rows] = other.floats[: other.count]
        self.squares[self.count : rows] = other.squares[: other.count]
        for column, codes, column_, codes_ in zip(
            self._columns, self._codes, other._columns, other._codes, strict=True
        ):
            codes_there = list(codes_)
            mapped = [self._code(codes, content) for content in codes_there]
            table = np.array([*mapped, _ABSENT], np.int32)
            column[self.count : rows] = table[column_[: other.count]]
        for row, sort in enumerate(other.sorts, self.count):
            self.places[sort] = row
            self._held += len(sort)
        self.sorts += other.sorts
        self.count = rows

    def remove(self, sort: bytes) -> None:
        """Remove the entry with this sort, if there is one."""
        row = self.places.pop(sort, None)
        if row is None:
            return
        if self.graph is not None:
            self.graph.removed(sort)
        self.count -= 1
        self._held -= len(sort)
        last = self.sorts.pop()
        if row < self.count:
            self.sorts[row] = last
            self.places[last] = row
            self.floats[row] = self.floats[self.count]
            self.squares[row] = self.squares[self.count]
            for column in self._columns:
                column[row] = column[self.count]

    def rows(self, condition: SearchCondition) -> Rows | None:
        """The rows whose filter attributes meet a condition; None for all rows."""
        if not condition.parts:
            return None
        masks = [self._mask(part, condition.values) for part in condition.parts]
        return np.flatnonzero(np.logical_and.reduce(masks))

    def _mask(self, choice: Choice, values: Values) -> Mask:
        """For each row, whether it meets a part of a condition."""
        match choice:
            case Leaf():
                return self._meets(choice, values)
            case Every(parts):
                every: Mask = np.logical_and.reduce([self._mask(part, values) for part in parts])
                return every
            case Either(parts):
                either: Mask = np.logical_or.reduce([self._mask(part, values) for part in parts])
                return either
            case Except(part):
                return ~self._mask(part, values)

    def _meets(self, leaf: Leaf, values: Values) -> Mask:
        """For each row, whether it passes a test; each content is tested once."""
        place = self._names.index(leaf.attribute)
        column, codes = self._columns[place][: self.count], self._codes[place]
        if leaf.comparator == "=":
            code = codes.get(content_of(values[leaf.operands[0]]))
            return np.zeros(self.count, np.bool_) if code is None else column == code
        verdicts = []
        for content in codes:
            pace.point()
            verdicts.append(leaf.run({leaf.attribute: {self._types[place]: content}}, values))
        # An attribute that is absent has the code -1, which takes the last one.
        return np.array([*verdicts, leaf.run({}, values)], np.bool_)[column]

    def near(self, query: Floats, count: int, condition: SearchCondition, exact_max: int) -> Rows | None:
        """The rows among which to search for the `count` nearest that meet a condition; None for all rows."""
        rows = self.rows(condition)
        if self.graph is None:
            return rows
        return self.graph.proposed(query, count, rows, self.places, exact_max)

    def tend_graph(self, exact_max: int, bytes_max: int, count: int) -> bool:
        """Add at most `count` vectors to the graph. The matrix has one if it has more than `exact_max` rows,
        and if both together take at most `bytes_max`. Returns whether vectors still wait."""
        if self.count <= exact_max or self.size > bytes_max:
            self.graph = None
            return False
        if self.graph is None:
            if self.size + bytes_of(self._vector, self.count) > bytes_max:
                return False
            self.graph = Graph(self._vector, self.sorts)
        self.graph.grow(self.floats, self.places, count)
        return bool(self.graph.waiting)

    def is_worn(self) -> bool:
        """Whether so many of its contents belong to no row that it should be rebuilt."""
        return any(len(codes) > 2 * self.count + 1_000 for codes in self._codes)

    def _code(self, codes: dict[str, int], content: str) -> int:
        """The number that stands for a content of a filter attribute."""
        code = codes.get(content)
        if code is None:
            code = codes[content] = len(codes)
            self._held += _CONTENT_BYTES + getsizeof(content)
        return code

    def _grow(self, rows: int) -> None:
        """Make room for this many rows and some more, if there are rows to be copied."""
        rows += self.count // 4
        self.floats = _longer(self.floats, rows)
        self.squares = _longer(self.squares, rows)
        self._columns = [_longer(column, rows) for column in self._columns]


def _longer(array: Any, rows: int) -> Any:
    longer = np.empty((rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def texts_of(value: Mapping[str, str]) -> list[str]:
    """The numbers of an entry's vector, each as short as its 32 bits allow, and with a point.

    `1.0`, `16777216.0`: [report] dynoxide's captures of August 2026. That large and small numbers have no
    exponent is [assumed].
    """
    content = np.frombuffer(b64decode(value["B"]), "<f4")
    return [np.format_float_positional(number, unique=True, trim="0") for number in content]


def content_of(value: Mapping[str, str]) -> str:
    """The content of a string, number or binary value in normal form."""
    return next(iter(value.values()))
