"""The formats in which items come and go: written, read back, cut off, damaged, and judged by others."""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import orjson
import pytest
from hypothesis import example, given

from hashrange.interchange import compression, csv_files, dynamodb_json, ion, ion_text
from hashrange.interchange.csv_files import Columns
from hashrange.interchange.lines import LINE_BYTES_MAX, lines
from hashrange.interchange.object_rows import Format, Rows
from hashrange.interchange.rows import Bad
from hashrange.values import Item, admit_item
from model.strategies import values

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NO_COLUMNS = Columns(",", None, {}, frozenset())
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def items(draw: st.DrawFn) -> Item:
    """Items in normal form, as they are stored."""
    item: Item = orjson.loads(orjson.dumps(draw(st.dictionaries(names, values, min_size=1, max_size=5))))
    admit_item(item)
    return item


def compressed(data: bytes, kind: str) -> bytes:
    if kind == "GZIP":
        return gzip.compress(data)
    return zstd.compress(data) if kind == "ZSTD" else data


def rows(
    data: bytes, format_: Format, kind: str = "NONE", columns: Columns = NO_COLUMNS, place: int = 0
) -> tuple[list[Item | Bad], list[int]]:
    """All rows of an object, and the place after each."""
    found = Rows(io.BytesIO(data), format_, kind, columns, place)
    read: list[Item | Bad] = []
    places = []
    for row in found:
        read.append(row)
        places.append(found.place)
    return read, places


WRITERS: dict[Format, Any] = {
    "DYNAMODB_JSON": lambda item: dynamodb_json.write(orjson.dumps(item)),
    "ION": ion.write,
}


@pytest.mark.parametrize("format_", ["DYNAMODB_JSON", "ION"])
@given(st.sampled_from(compression.COMPRESSIONS), st.lists(items(), max_size=5))
def test_what_is_written_is_read(format_: Format, kind: str, written: list[Item]) -> None:
    data = b"".join(map(WRITERS[format_], written))
    read, _ = rows(compressed(data, kind), format_, kind)
    for item in read:
        assert not isinstance(item, Bad)
        admit_item(item)
    assert read == written


@pytest.mark.parametrize("format_", ["DYNAMODB_JSON", "ION"])
@given(st.lists(items(), min_size=1, max_size=5), st.data())
def test_reading_goes_on_at_any_place(format_: Format, written: list[Item], data: st.DataObject) -> None:
    content = b"".join(map(WRITERS[format_], written))
    whole, places = rows(compressed(content, "GZIP"), format_, "GZIP")
    number = data.draw(st.integers(0, len(written) - 1))
    rest, _ = rows(compressed(content, "GZIP"), format_, "GZIP", place=places[number])
    assert rest == whole[number + 1 :]


@given(st.lists(st.lists(texts, min_size=2, max_size=2), max_size=6), st.data())
def test_csv_is_read_as_it_is_written(fields: list[list[str]], data: st.DataObject) -> None:
    delimiter = data.draw(st.sampled_from(",;:|\t "))
    fields = [[one.replace("\r", "") for one in row] for row in fields]
    written = io.StringIO(newline="")
    writer = csv.writer(written, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["pk", "sort key"])
    writer.writerows(fields)
    content = written.getvalue().encode()
    columns = Columns(delimiter, None, {}, frozenset())
    read, places = rows(content, "CSV", columns=columns)
    assert read == [{"pk": {"S": first}, "sort key": {"S": second}} for first, second in fields]
    for number, place in enumerate(places):
        assert rows(content, "CSV", columns=columns, place=place)[0] == read[number + 1 :]


def test_csv_gives_keys_their_types() -> None:
    columns = Columns(";", ("id", "group", "price"), {"id": "N", "group": "S"}, frozenset(("group",)))
    read, _ = rows(b"1;a;2.5\r\n\n2;;\n3;c\n", "CSV", columns=columns)
    assert read == [
        {"id": {"N": "1"}, "group": {"S": "a"}, "price": {"S": "2.5"}},
        {"id": {"N": "2"}, "price": {"S": ""}},  # the key of an index cannot be empty
        Bad("The row has 2 fields, and the header 3"),
    ]


@pytest.mark.parametrize("content", [b"a,a\n1,2\n", b"a,\n1,2\n", b"\xff\n1\n", b'"a,b\n1,2\n'])
def test_csv_with_a_wrong_header_is_not_read(content: bytes) -> None:
    read, _ = rows(content, "CSV")
    assert not any(isinstance(row, dict) for row in read)
    assert not read or isinstance(read[0], Bad)


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=12))
def test_lines_of_bounded_length(given_lines: list[bytes]) -> None:
    found = list(lines(io.BytesIO(b"".join(line + b"\n" for line in given_lines)), 0, bytes_max=5))
    assert [line for line, _ in found] == [line if len(line) <= 5 else None for line in given_lines]
    assert not found or found[-1][1] == sum(len(line) + 1 for line in given_lines)


class Endless:
    """A stream of one line of a gigabyte; it says how much was held at once."""

    def __init__(self, ends: Iterable[bytes]) -> None:
        self._chunks = iter([*[b"x" * 1_000_000] * 1_000, *ends])

    def read(self, size: int, /) -> bytes:
        return next(self._chunks, b"")

    def close(self) -> None:
        pass


def test_a_line_of_a_gigabyte_is_passed_over_without_being_held() -> None:
    import tracemalloc

    tracemalloc.start()
    found = [line for line, _ in lines(Endless([b"x\nnext\n", b"last"]), 0)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [None, b"next", b"last"]
    assert peak < 64 * 1024 * 1024


def test_a_line_that_is_no_json_ends_the_object() -> None:
    read, _ = rows(b'{"Item":{"a":{"S":"x"}}}\n{"other":1}\n\n{"Item":{\n{"Item":{}}\n', "DYNAMODB_JSON")
    assert read[0] == {"a": {"S": "x"}}
    assert [isinstance(row, Bad) and row.is_end for row in read] == [False, False, True]


@pytest.mark.parametrize("kind", ["GZIP", "ZSTD"])
def test_what_is_not_compressed_is_one_error(kind: str) -> None:
    read, _ = rows(b'{"Item":{"a":{"S":"x"}}}\n' * 3, "DYNAMODB_JSON", kind)
    assert len(read) == 1
    assert isinstance(read[0], Bad)
    assert read[0].is_end
    assert rows(b"", "DYNAMODB_JSON", kind) == ([], [])  # as the file _started of an export


@pytest.mark.parametrize("kind", ["GZIP", "ZSTD"])
def test_the_items_before_the_end_of_a_file_that_was_cut_off_are_read(kind: str) -> None:
    item = b'{"Item":{"a":{"S":"%d"}}}\n'
    data = compressed(b"".join(item % number for number in range(200_000)), kind)
    read, _ = rows(data[: len(data) // 2], "DYNAMODB_JSON", kind)
    assert read[:2] == [{"a": {"S": "0"}}, {"a": {"S": "1"}}]
    assert isinstance(read[-1], Bad)
    assert read[-1].is_end
    assert not any(isinstance(row, Bad) for row in read[:-1])


@pytest.mark.parametrize("kind", ["GZIP", "ZSTD"])
@given(st.binary(min_size=1, max_size=60), st.integers(0, 200))
def test_damaged_files_raise_nothing(kind: str, noise: bytes, at: int) -> None:
    data = compressed(b'{"Item":{"a":{"S":"x"}}}\n' * 50, kind)
    at %= len(data)
    formats: tuple[Format, ...] = ("DYNAMODB_JSON", "ION", "CSV")
    for format_ in formats:
        rows(data[:at] + noise + data[at + len(noise) :], format_, kind)


# The examples of the Developer Guide, "Amazon S3 import formats for DynamoDB".
GUIDE_ITEM: Item = {
    "Authors": {"SS": ["Author1", "Author2"]},
    "Dimensions": {"S": "8.5 x 11.0 x 1.5"},
    "ISBN": {"S": "333-3333333333"},
    "Id": {"N": "103"},
    "InPublication": {"BOOL": False},
    "PageCount": {"N": "600"},
    "Price": {"N": "2000"},
    "ProductCategory": {"S": "Book"},
    "Title": {"S": "Book 103 Title"},
}
GUIDE_ION = (
    '$ion_1_0 {Item:{Authors:$dynamodb_SS::["Author1","Author2"],Dimensions:"8.5 x 11.0 x 1.5",'
    'ISBN:"333-3333333333",Id:103.,InPublication:false,PageCount:6d2,Price:2d3,ProductCategory:"Book",'
    'Title:"Book 103 Title"}}\n'
)


def test_ion_is_that_of_the_guide() -> None:
    assert ion.write(GUIDE_ITEM).decode() == GUIDE_ION
    read = ion.read(GUIDE_ION.encode())
    assert isinstance(read, dict)
    admit_item(read)
    assert read == GUIDE_ITEM


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", {"NULL": True}),
        ("null.string", {"NULL": True}),
        ("-12_000.", {"N": "-12000"}),
        ("1.5d-3", {"N": "1.5E-3"}),
        ("6.d2", {"N": "6E2"}),
        ("0.", {"N": "0"}),
        ("2D0", {"N": "2E0"}),
        ("'''a b''' /* c */ '''c\\\nd'''", {"S": "a bcd"}),
        (r'"\x41é\u00e9\U0001F600\t\"\/"', {"S": 'Aéé😀\t"/'}),
        (r'"\ud83d\ude00"', {"S": "😀"}),
        ("{{ aGVs\n bG8= }}", {"B": "aGVsbG8="}),
        ("[1., 'a b'::2d0, note::{}, // here\n /**//* x **/]", {"L": [{"N": "1"}, {"N": "2E0"}, {"M": {}}]}),
        ("{'a b': 1., \"c\": true,}", {"M": {"a b": {"N": "1"}, "c": {"BOOL": True}}}),
        ("$dynamodb_NS::[1., 2.5]", {"NS": ["1", "2.5"]}),
        ("$dynamodb_BS::[{{YQ==}}]", {"BS": ["YQ=="]}),
    ],
)
def test_ion_in_all_its_forms(text: str, value: Any) -> None:
    assert ion.read(f"{{Item:{{a:{text}}}}}".encode()) == {"a": value}


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01T",
        "2020T",
        "symbol",
        "'sy mbol'",
        "nan",
        '{{"clob"}}',
        "$dynamodb_SS::[1.]",
        "$dynamodb_SS::1.",
        "1",  # [report] ion-python issue 363; the guide's table of types has decimals only
        "-12_000",
        "[1]",
        "$dynamodb_NS::[1]",
        "0xFF",
        "-0b1_01",
        "2e0",
        "1.5E3",
    ],
)
def test_ion_that_dynamodb_has_no_type_for_is_an_error_of_the_item(text: str) -> None:
    read = ion.read(f"{{Item:{{a:{text}}}}}".encode())
    assert isinstance(read, Bad)
    assert not read.is_end


@pytest.mark.parametrize(
    "line",
    [
        b"{Item:{a:1.}",
        b"{Item:{a:01}}",
        b'{Item:{a:"x}}',
        b"{Item:{a:1.}} 2",
        b"\xff",
        b'{Item:{a:"\\ud800"}}',
        b'{Item:{a:"\\UFFFFFFFF"}}',
        b"{Item:{a:" + b"n::" * 200_000 + b"}}",
    ],
    ids=range(8),
)
def test_a_line_that_is_no_ion_ends_the_object(line: bytes) -> None:
    read = ion.read(line)
    assert isinstance(read, Bad)
    assert read.is_end


def test_ion_that_is_nested_deeply_is_an_error_of_the_item() -> None:
    read = ion.read(b"{Item:{a:" + b"[" * 100_000)
    assert isinstance(read, Bad)
    assert not read.is_end


def _plain(value: Any) -> Any:
    """A value of Amazon's library in the terms of `ion_text`."""
    from amazon.ion.simple_types import IonPyList

    if isinstance(value, IonPyList | list):
        members = [_plain(one) for one in value]
        notes = tuple(note.text for note in getattr(value, "ion_annotations", ()))
        return (notes, members) if notes else members
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, bytes):
        return value
    return value


def _ours(value: Any) -> Any:
    from base64 import b64decode

    if isinstance(value, ion_text.AnnotatedValue):
        return (value.notes, _ours(value.value))
    if isinstance(value, ion_text.Number):
        return Decimal(value)
    if isinstance(value, ion_text.Blob):
        return b64decode(value)
    if isinstance(value, list):
        return [_ours(one) for one in value]
    if isinstance(value, dict):
        return {name: _ours(one) for name, one in value.items()}
    return value


@given(items())
def test_amazons_library_reads_what_is_written_and_is_read(item: Item) -> None:
    simpleion = pytest.importorskip("amazon.ion.simpleion")
    model = simpleion.IonPyValueModel
    flags = model.MAY_BE_BARE | model.SYMBOL_AS_TEXT | model.STRUCT_AS_STD_DICT
    line = ion.write(item)
    theirs = simpleion.loads(line.decode(), value_model=flags)
    assert _plain(theirs) == _ours(ion_text.read(line.decode()))
    again = simpleion.dumps(simpleion.loads(line.decode()), binary=False)
    read = ion.read(again.encode())
    assert isinstance(read, dict)
    admit_item(read)
    assert read == item


def judged_by_csv(text: str, delimiter: str) -> list[str] | None:
    """The fields of a row as Python's csv reads them; None: it refuses the row."""
    try:
        return next(csv.reader((text,), delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None


@given(st.text(',;"\r\n ab', min_size=1, max_size=30), st.sampled_from(",;"))
@example('a"b",c', ",")
@example('"a""",', ",")
@example('"a"b', ",")
@example("a\r", ",")
def test_rows_of_csv_are_split_as_python_splits_them(text: str, delimiter: str) -> None:
    row = text.removesuffix("\r")
    if not row.strip("\r\n"):
        return  # such a row is passed over before
    wanted = judged_by_csv(row, delimiter)
    for found in (csv_files.fields(text.encode(), delimiter), csv_files.split(row.rstrip("\r\n"), delimiter)):
        assert (None if isinstance(found, Bad) else found) == wanted


def test_a_field_of_csv_may_be_as_long_as_a_row() -> None:
    long = 'x"\n' * 300_000
    quoted = long.replace('"', '""')
    read, _ = rows(f'pk,text\n1,"{quoted}"\n2,y\n'.encode(), "CSV")
    assert read == [
        {"pk": {"S": "1"}, "text": {"S": long}},
        {"pk": {"S": "2"}, "text": {"S": "y"}},
    ]


def test_a_row_of_several_lines_is_bounded_as_one_of_one_line_is() -> None:
    half = b"x" * (LINE_BYTES_MAX // 2 + 1)
    [(row, place)] = csv_files.joined(iter([(b'"' + half, 10), (half + b'"', 20)]))
    assert (row, place) == (None, 20)


def test_reading_changes_nothing_that_the_whole_process_shares() -> None:
    """Hashrange runs in the process of its user."""
    program = """
import csv, decimal, gc, locale, signal, socket, sys
def shared():
    return (csv.field_size_limit(), sys.getrecursionlimit(), sys.getswitchinterval(), gc.get_threshold(),
            sys.get_int_max_str_digits(), socket.getdefaulttimeout(), locale.setlocale(locale.LC_ALL),
            decimal.getcontext().prec, [signal.getsignal(one) for one in signal.valid_signals()])
before = shared()
import hashrange, hashrange.client, hashrange.database
from hashrange.interchange import compression, csv_files, dynamodb_json, exports, ion, object_rows
from hashrange.tables.jobs.backups import backup_runner
from hashrange.tables.jobs.bulk import bulk_runner
from hashrange.tables.jobs.exports import export_runner
from hashrange.tables.jobs.imports import import_runner
hashrange.Database.in_memory().settle()
assert shared() == before
"""
    subprocess.run([sys.executable, "-c", program], check=True)
