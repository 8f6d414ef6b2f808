"""Every reader against a plain model of its format, whole and in tiny blocks."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ingest.importers import chunks, json_array, streams
from ingest.importers.chunks import Chunk, Reader
from ingest.importers.columns import Field, Fields, RepeatedColumnError, UnknownColumnError
from ingest.importers.csv import BadDelimiterError, UnreadableHeaderError, open_csv
from ingest.importers.json_array import NotAnArrayError, open_json_array
from ingest.importers.jsonl import open_jsonl
from ingest.importers.parquet import NotParquetError, open_parquet
from ingest.importers.streams import (
    DamagedFileError,
    LineTooLongError,
    NotUtf8FileError,
    UnopenableFileError,
    open_stream,
)
from tests.ingest.importing import file_of

pytestmark = pytest.mark.fast

FIELDS = Fields(item=Field.parse("item"), time=Field.parse("time"))
IN_TINY_BLOCKS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


@pytest.fixture(params=[1, 7, 2 << 20], ids=lambda size: f"blocks of {size}")
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Blocks so small that every row begins in one and ends in another."""
    for module in (streams, json_array, chunks):
        monkeypatch.setattr(module, "CHUNK_BYTES", request.param)
    return request.param


def rows_of(reader: Reader) -> list[tuple[Any, ...]]:
    """Return of each row (row, line, text, reason or None, item, time)."""
    return [row for chunk in reader.chunks() for row in chunk_rows(chunk)]


def chunk_rows(chunk: Chunk) -> Iterator[tuple[Any, ...]]:
    broken = {fault.row: fault.reason.value for fault in chunk.parsed.broken}
    for row, text in enumerate(chunk.records):
        line = None if chunk.lines is None else chunk.lines[row]
        found = (chunk.parsed.columns[name][row].as_py() for name in ("item", "time"))
        yield (chunk.first_row + row, line, text, broken.get(row), *found)


def read_csv(path: Path, **options: Any) -> list[tuple[Any, ...]]:
    with open_csv(path, FIELDS, **options) as reader:
        return rows_of(reader)


def model_csv(content: bytes) -> list[tuple[Any, ...]]:
    """The definition, row by row over the whole file: a line that fails is a row, reading goes on behind it."""
    lines = content.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
    found: list[tuple[int, bytes, list[str] | None]] = []
    start = 0
    while start < len(lines):
        reader = csv.reader((line.decode("utf-8", "surrogateescape") for line in lines[start:]), strict=True)
        try:
            fields = next(reader, None)
            end = start + reader.line_num
        except csv.Error:
            fields, end = None, start + 1
        if fields != []:
            found.append((start + 1, b"".join(lines[start:end]), fields))
        start = end
    names = found[0][2] if found else []
    rows = []
    for row, (line, raw, fields) in enumerate(found[1:]):
        text = raw[:-2] if raw.endswith(b"\r\n") else raw[:-1] if raw[-1:] in (b"\n", b"\r") else raw
        reason = model_reason(text, fields, len(names or []))
        good = dict(zip(names or [], fields or [], strict=False)) if reason is None else {}
        rows.append((row, line, text, reason, good.get("item"), good.get("time")))
    return rows


def model_reason(text: bytes, fields: list[str] | None, width: int) -> str | None:
    if fields is None:
        return "unreadable_row"
    if text.decode("utf-8", "replace").encode() != text:
        return "not_utf8"
    return None if len(fields) == width else "wrong_columns"


PIECES = st.sampled_from(
    [
        "a",
        "é",
        "😀",
        "\u2028",
        "\x0b",
        "\x85",
        ",",
        '"',
        '""',
        "\n",
        "\r\n",
        "\r",
        "\n\n",
        '"x\ny"',
        " ",
        "\x00",
        "\\",
    ]
)
MESSES = st.lists(PIECES | st.just(b"\xff"), max_size=30)


@IN_TINY_BLOCKS
@given(
    pieces=MESSES,
    head=st.sampled_from(["item,time\n", '"item",time,more\r\n', "\ufeffitem,time\r", "\n\nitem,time\n"]),
)
@example(pieces=['"', "a", "\n", "a", ",", "a", "\n"], head="item,time\n")
@example(pieces=["a,b\n", "c\n", "d,e"], head="item,time\n")
@example(pieces=["\ufeffa,b\n"], head="item,time\n")
@example(pieces=['a,"b'], head="item,time\n")
def test_csv_reads_as_the_model_does(tmp_path: Path, block_bytes: int, pieces: list[str | bytes], head: str) -> None:
    content = head.encode() + b"".join(p if isinstance(p, bytes) else p.encode() for p in pieces)

    assert read_csv(file_of(tmp_path, content)) == model_csv(content)


TABLES = st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6)), max_size=6)


@IN_TINY_BLOCKS
@given(table=TABLES, line_end=st.sampled_from(["\n", "\r\n"]), delimiter=st.sampled_from([",", "\t", ";"]))
def test_what_a_csv_writer_wrote_is_read_back(
    tmp_path: Path, block_bytes: int, table: list[tuple[str, str]], line_end: str, delimiter: str
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=line_end, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerows([("item", "time"), *table])
    path = file_of(tmp_path, text.getvalue().encode("utf-8", "replace"))

    expected = [tuple(field.encode("utf-8", "replace").decode() for field in row) for row in table]
    assert [row[4:] for row in read_csv(path, delimiter=delimiter)] == expected


def test_a_field_over_a_mebibyte_is_unreadable_and_reading_goes_on(tmp_path: Path) -> None:
    long = "x" * ((1 << 20) + 1)
    plain = file_of(tmp_path, f"item,time\na,b\n{long},c\nd,e\n", "plain.csv")
    quoted = file_of(tmp_path, f'item,time\na,b\n"{long}",c\nd,e\n', "quoted.csv")
    unclosed = file_of(tmp_path, 'item,time\n"a,b\n' + "ccc,ddd\n" * 150_000, "unclosed.csv")

    for path in (plain, quoted):
        assert [row[3:] for row in read_csv(path)] == [
            (None, "a", "b"),
            ("unreadable_row", None, None),
            (None, "d", "e"),
        ]
    rows = read_csv(unclosed)
    assert [row[3] for row in rows[:2]] == ["unreadable_row", None]
    assert len(rows) == 150_001
    assert rows[-1][:2] == (150_000, 150_002)


@pytest.mark.parametrize("content", ["", "\ufeff", "\n\r\n", "item,time", "item,time\r\n\r\n"])
def test_a_csv_without_rows_is_fine(tmp_path: Path, content: str) -> None:
    assert read_csv(file_of(tmp_path, content)) == []


def test_a_csv_lacking_a_column_names_those_it_has(tmp_path: Path) -> None:
    with pytest.raises(UnknownColumnError, match="no column 'time': name one of item, when"):
        read_csv(file_of(tmp_path, "item,when\n"))


def test_a_csv_with_a_wanted_column_twice_is_refused_and_another_twice_is_fine(tmp_path: Path) -> None:
    with pytest.raises(RepeatedColumnError, match="more than one column 'item'"):
        read_csv(file_of(tmp_path, "item,time,item\na,b,c\n"))
    assert read_csv(file_of(tmp_path, "x,item,time,x\n1,a,b,2\n"))[0][4:] == ("a", "b")


@pytest.mark.parametrize("header", ['"item,time\na,b\n', 'item,ti"me"x\n"', b"item,\xff,time\n"])
def test_a_header_that_cannot_be_read_is_refused(tmp_path: Path, header: str | bytes) -> None:
    with pytest.raises((UnreadableHeaderError, UnknownColumnError)):
        read_csv(file_of(tmp_path, header))


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "é", "\0"])
def test_a_delimiter_that_cannot_part_fields_is_refused(tmp_path: Path, delimiter: str) -> None:
    with pytest.raises(BadDelimiterError, match="--delimiter"):
        read_csv(file_of(tmp_path, "item,time\n"), delimiter=delimiter)


JSON_LINES = [
    '{"item": "a", "time": "t"}',
    '{"item": "caf\\u00e9", "time": "\\ud83d\\ude00", "more": [1, {"x": null}]}',
    '  {"time": 5, "item": 12345678901234567890123}  ',
    '{"item": null}',
    '{"item": 1.50, "time": 1.50}',
    '{"item": true, "time": ["x"]}',
    "",
    "   ",
    '{"item": "cut',
    "[1]",
    "7",
    "{} {}",
    '{"item": "\\ud800", "time": "t"}',
]


@IN_TINY_BLOCKS
@given(lines=st.lists(st.sampled_from(JSON_LINES), max_size=6), line_end=st.sampled_from(["\n", "\r\n"]))
def test_json_lines_read_as_the_model_does(tmp_path: Path, block_bytes: int, lines: list[str], line_end: str) -> None:
    fields = Fields(item=FIELDS.item, time=FIELDS.time, optional=frozenset({"item", "time"}))
    with open_jsonl(file_of(tmp_path, line_end.join(lines)), fields) as reader:
        found = rows_of(reader)

    expected = [(text.encode(), number) for number, text in enumerate(lines, start=1) if text.strip()]
    assert [(row[2], row[1]) for row in found] == expected
    assert [row[3:] for row in found] == [model_json(text) for text in lines if text.strip()]


def model_json(text: str) -> tuple[Any, ...]:
    try:
        thing = json.loads(text, parse_float=Decimal)
        json.dumps(thing, default=str, ensure_ascii=False).encode()
    except ValueError:
        return ("unreadable_row", None, None)
    if not isinstance(thing, dict):
        return ("unreadable_row", None, None)
    return (None, *(model_value(thing.get(name), numeric=name == "time") for name in ("item", "time")))


def model_value(value: Any, *, numeric: bool) -> str | None:
    if value is None or (isinstance(value, str | int) and not isinstance(value, bool)):
        return None if value is None else str(value)
    if isinstance(value, Decimal):
        return str(value) if numeric else f"\x00{value}"
    return "\x00" + json.dumps(value, separators=(",", ":"))


def test_json_keys_may_be_paths_and_keys_with_dots_come_first(tmp_path: Path) -> None:
    fields = Fields(item=Field.parse("song.id"), time=Field.parse("time"))
    path = file_of(tmp_path, '{"song": {"id": 7}, "time": "t"}\n{"song.id": "x", "song": {"id": 7}}\n{"song": 1}\n')
    with open_jsonl(path, fields) as reader:
        chunk = next(iter(reader.chunks()))

    assert chunk.parsed.columns["song.id"].to_pylist() == ["7", "x", None]


def test_bytes_that_are_no_utf8_refuse_a_json_line(tmp_path: Path) -> None:
    with open_jsonl(
        file_of(tmp_path, b'{"item": "\xff", "time": "t"}\n{"item": "a", "time": "t"}\n'), FIELDS
    ) as reader:
        rows = rows_of(reader)

    assert [row[3] for row in rows] == ["not_utf8", None]


def test_a_key_that_no_json_object_has_is_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path, '{"item": "a", "when": 1}\n{broken\n')
    with (
        pytest.raises(UnknownColumnError, match="no column 'time': name one of item, when"),
        open_jsonl(path, FIELDS),
    ):
        pass


ARRAYS = st.lists(st.fixed_dictionaries({"item": st.none() | st.text(max_size=5), "time": st.none() | st.integers()}))


@IN_TINY_BLOCKS
@given(things=ARRAYS, indent=st.none() | st.just(1), ascii_only=st.booleans())
def test_json_arrays_are_read_back(
    tmp_path: Path, block_bytes: int, things: list[dict[str, Any]], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(things, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")
    with open_json_array(file_of(tmp_path, text), FIELDS) as reader:
        found = rows_of(reader)

    assert [json.loads(row[2]) for row in found] == json.loads(text)
    assert [row[3] for row in found] == [None] * len(things)
    lines = text.decode().split("\n")
    assert all(lines[row[1] - 1].strip().startswith(("{", "[{")) or indent is None for row in found)


def test_a_broken_element_of_a_json_array_ends_at_the_next_brace(tmp_path: Path) -> None:
    text = (
        '[\n{"item": "a", "time": 1},\n{"item": "b" "time": 2},\n{"item": "c", "time": 3}, 7, {"item": "\\ud800"}\n]\n'
    )
    with open_json_array(file_of(tmp_path, text), FIELDS) as reader:
        rows = rows_of(reader)

    assert [(row[1], row[3]) for row in rows] == [
        (2, None), (3, "unreadable_row"), (4, None), (4, "unreadable_row"), (4, None)
    ]  # fmt: skip
    assert rows[4][4] == "\x00\\ud800"  # half of a pair can be no id


def test_a_json_file_that_holds_no_array_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(NotAnArrayError, match="jsonl"),
        open_json_array(file_of(tmp_path, '{"a": 1}'), FIELDS),
    ):
        pass


def parquet_file(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = folder / "plays.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["a", None]), ["a", None]),
        (pa.array(["a", None], pa.large_string()), ["a", None]),
        (pa.array(["a", None]).dictionary_encode(), ["a", None]),
        (pa.array([b"a", None]), ["a", None]),
        (pa.array([5, None], pa.uint64()), ["5", None]),
        (pa.array([1.5, None]), ["\x001.5", None]),
        (pa.array([True, None]), ["\x00True", None]),
        (pa.array([["x"], None]), ["\x00['x']", None]),
        (pa.array([date(2024, 2, 29), None]), ["2024-02-29", None]),
        (pa.nulls(2), [None, None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_parquet_items_of_any_type(tmp_path: Path, column: pa.Array, expected: list[str | None]) -> None:
    with open_parquet(parquet_file(tmp_path, {"item": column, "time": ["t", "t"]}), FIELDS) as reader:
        assert [row[4] for row in rows_of(reader)] == expected


@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime(2024, 1, 1)], pa.timestamp("ms")),
        pa.array([1], pa.timestamp("ns", "UTC")),
        pa.array([date(2024, 2, 29)]),
    ],
    ids=lambda column: str(column.type),
)
def test_parquet_times_stay_times(tmp_path: Path, column: pa.Array) -> None:
    with open_parquet(parquet_file(tmp_path, {"item": ["a"], "time": column}), FIELDS) as reader:
        chunk = next(iter(reader.chunks()))

    assert pa.types.is_temporal(chunk.parsed.columns["time"].type)
    assert json.loads(chunk.records[0])["item"] == "a"


def test_parquet_numbers_with_decimals_are_texts_where_they_make_sense(tmp_path: Path) -> None:
    path = parquet_file(tmp_path, {"item": ["a", "b"], "time": pa.array([1442059191.5, float("nan")])})
    with open_parquet(path, FIELDS) as reader:
        assert [row[5] for row in rows_of(reader)] == ["1442059191.5", None]


def test_parquet_bytes_that_are_no_utf8_refuse_their_row(tmp_path: Path) -> None:
    path = parquet_file(tmp_path, {"item": [b"a", b"\xff", None], "time": ["t", "t", "t"]})
    with open_parquet(path, FIELDS) as reader:
        assert [(row[3], row[4]) for row in rows_of(reader)] == [
            (None, "a"),
            ("not_utf8", None),
            (None, None),
        ]


def test_parquet_rows_are_numbered_through_row_groups(tmp_path: Path) -> None:
    path = parquet_file(tmp_path, {"item": [str(n) for n in range(10)], "time": ["t"] * 10}, row_group_size=3)
    with open_parquet(path, FIELDS) as reader:
        assert [(row[0], row[1], row[4]) for row in rows_of(reader)] == [(n, None, str(n)) for n in range(10)]


def test_a_parquet_text_does_not_depend_on_how_the_file_is_packed(tmp_path: Path) -> None:
    moment = datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    columns = {"item": ["a"], "time": [moment], "nested": [{"x": [1, None]}], "money": [Decimal("1.10")]}
    texts = []
    for codec in ("none", "zstd"):
        with open_parquet(parquet_file(tmp_path, columns, compression=codec), FIELDS) as reader:
            texts.append(rows_of(reader)[0][2])

    assert (
        texts[0]
        == texts[1]
        == (b'{"item":"a","time":"2024-01-01T00:00:00.000001Z","nested":{"x":[1,null]},"money":"1.10"}')
    )


@pytest.mark.parametrize("content", ["", "PAR1", "item,time\n"])
def test_what_is_no_parquet_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(NotParquetError, match="--format"), open_parquet(file_of(tmp_path, content), FIELDS):
        pass


def test_packed_files_are_known_by_their_first_bytes(tmp_path: Path) -> None:
    text = b"item,time\na,b\n" * 1000
    zstd = pa.compress(text, codec="zstd", asbytes=True)
    packed = file_of(tmp_path, text, "plays.csv.gz").read_bytes()

    for name, content in (("a", zstd), ("b", packed), ("c", zstd + zstd), ("d", packed + packed)):
        with open_stream(file_of(tmp_path, content, name)) as stream:
            assert stream.read(1 << 20) == text * (2 if name in "cd" else 1)
            assert stream.share_done == 1


@pytest.mark.parametrize("packed", ["gzip", "zstd"])
def test_a_packed_file_that_ends_too_early_is_no_short_file(tmp_path: Path, packed: str) -> None:
    text = b"item,time\n" + b"".join(b"item-%d,2024-01-01\n" % n for n in range(50_000))
    whole = (
        file_of(tmp_path, text, "x.gz").read_bytes()
        if packed == "gzip"
        else pa.compress(text, codec="zstd", asbytes=True)
    )
    path = file_of(tmp_path, whole[: len(whole) // 2], "plays.csv")

    with pytest.raises(DamagedFileError, match="incomplete"):
        read_csv(path)


def test_files_that_cannot_be_opened_say_why(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.csv", tmp_path):
        with pytest.raises(UnopenableFileError, match="cannot be opened"):
            read_csv(path)
        with pytest.raises(UnopenableFileError, match="cannot be opened"), open_parquet(path, FIELDS):
            pass


def test_utf16_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotUtf8FileError, match="iconv"):
        read_csv(file_of(tmp_path, "item,time\n".encode("utf-16")))


def test_a_line_that_does_not_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_LINE_BYTES", 5 << 20)
    with pytest.raises(LineTooLongError, match="line of more than"):
        read_csv(file_of(tmp_path, b"item,time\n" + b"x" * (12 << 20)))


@pytest.mark.parametrize("cuts", [[], [0], [1], [1, 2, 3], [3, 9], [5]])
def test_a_chunk_cut_anywhere_has_the_same_rows(tmp_path: Path, cuts: list[int]) -> None:
    text = 'item,time\na,b\n"x\ny",c\nd\n"e",f\ng,h\n'
    with open_csv(file_of(tmp_path, text), FIELDS) as reader:
        (chunk,) = reader.chunks()

    pieces = list(chunk.pieces(cuts))

    assert [row for piece in pieces for row in chunk_rows(piece)] == list(chunk_rows(chunk))
    assert b"".join(piece.records.canonical() for piece in pieces) == chunk.records.canonical()
    assert [piece.end_row for piece in pieces] == [*[cut for cut in cuts if 0 < cut < 5], 5]
