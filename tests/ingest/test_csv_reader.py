"""CSV against a plain model of it, whole and in tiny blocks."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingest.importers import streams
from ingest.importers.columns import RepeatedColumnError, UnknownColumnError
from ingest.importers.csv import BadDelimiterError, UnreadableHeaderError, open_csv
from tests.ingest.importing import file_of
from tests.ingest.reading import FIELDS, IN_TINY_BLOCKS, chunk_rows, rows_of

pytestmark = pytest.mark.fast


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

    for path in (plain, quoted):
        assert [row[3:] for row in read_csv(path)] == [
            (None, "a", "b"),
            ("unreadable_row", None, None),
            (None, "d", "e"),
        ]


def test_a_quote_that_never_ends_costs_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.importers.csv.MAX_FIELD_CHARACTERS", 1 << 12)
    monkeypatch.setattr(streams, "CHUNK_BYTES", 1 << 13)
    path = file_of(tmp_path, 'item,time\n"a,b\n' + "c,d\n" * 5000)

    rows = read_csv(path)

    assert [row[3] for row in rows[:2]] == ["unreadable_row", None]
    assert len(rows) == 5001
    assert rows[-1][:2] == (5000, 5002)


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


@pytest.mark.parametrize("cuts", [[], [0], [1], [1, 2, 3], [3, 9], [5]])
def test_a_chunk_cut_anywhere_has_the_same_rows(tmp_path: Path, cuts: list[int]) -> None:
    text = 'item,time\na,b\n"x\ny",c\nd\n"e",f\ng,h\n'
    with open_csv(file_of(tmp_path, text), FIELDS) as reader:
        (chunk,) = reader.chunks()

    pieces = list(chunk.pieces(cuts))

    assert [row for piece in pieces for row in chunk_rows(piece)] == list(chunk_rows(chunk))
    assert b"".join(piece.records.canonical() for piece in pieces) == chunk.records.canonical()
    assert [piece.end_row for piece in pieces] == [*[cut for cut in cuts if 0 < cut < 5], 5]
