"""JSON lines and arrays against a plain model of them, whole and in tiny blocks."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.importers import json_array, streams
from ingest.importers.columns import Field, Fields, UnknownColumnError
from ingest.importers.json_array import NotAnArrayError, check_json_array, open_json_array
from ingest.importers.jsonl import check_jsonl, open_jsonl
from ingest.importers.streams import DamagedFileError
from tests.ingest.importing import file_of
from tests.ingest.reading import FIELDS, IN_TINY_BLOCKS, rows_of

pytestmark = pytest.mark.fast

Check = Callable[[Path, Fields], None]

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


@pytest.mark.parametrize("check", [check_jsonl, check_json_array])
def test_a_key_that_no_json_object_has_is_refused(tmp_path: Path, block_bytes: int, check: Check) -> None:
    text = '{"item": "a", "when": 1}\n{broken\n' if check is check_jsonl else '[{"item": "a", "when": 1}, {broken}]'

    with pytest.raises(UnknownColumnError, match="no column 'time': name one of item, when"):
        check(file_of(tmp_path, text), FIELDS)
    with pytest.raises(UnknownColumnError, match="no column 'item': name one of titel, when"):
        check(file_of(tmp_path, text.replace("item", "titel")), FIELDS)


LATE_KEYS = [
    '{"item": "a", "time": "t"}',
    '{"item": "a", "time": null}',
    '{"item": "a", "\\u0074ime": 1}',
    '{"item": {"time": 1}, "time": 1}',
]


@pytest.mark.parametrize("late", LATE_KEYS)
@pytest.mark.parametrize("check", [check_jsonl, check_json_array])
def test_a_key_may_come_up_late(tmp_path: Path, check: Check, late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (streams, json_array):
        monkeypatch.setattr(module, "CHUNK_BYTES", 64)
    lines = ['{"item": "a", "when": "some time"}'] * 20
    text = "\n".join([*lines, late]) if check is check_jsonl else f"[{','.join([*lines, late])}]"

    check(file_of(tmp_path, text), FIELDS)

    with pytest.raises(UnknownColumnError, match="no column 'time': name one of item, when"):
        check(file_of(tmp_path, text.replace(late, lines[0])), FIELDS)


def test_a_path_of_keys_may_come_up_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CHUNK_BYTES", 64)
    fields = Fields(item=Field.parse("song.id"), time=Field.parse("time"))
    text = '{"song": {"name": "x"}, "time": 1}\n' * 20

    check_jsonl(file_of(tmp_path, text + '{"song": {"id": 7}}\n'), fields)

    with pytest.raises(UnknownColumnError, match=r"no column 'song\.id'"):
        check_jsonl(file_of(tmp_path, text), fields)


@pytest.mark.parametrize("text", ["", "\n\n", "broken\n[1]\n"])
def test_a_file_without_objects_lacks_no_key(tmp_path: Path, text: str) -> None:
    check_jsonl(file_of(tmp_path, text), FIELDS)


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


def test_a_broken_element_of_a_json_array_ends_at_the_next_brace(tmp_path: Path, block_bytes: int) -> None:
    text = (
        '[712,\n{"item": "a", "time": 1},\n{"item": "b" "time": 2},\n{"item": "c", "time": 3}, {"item": "\\ud800"}\n]\n'
    )
    with open_json_array(file_of(tmp_path, text), FIELDS) as reader:
        rows = rows_of(reader)

    assert [(row[1], row[3]) for row in rows] == [
        (1, "unreadable_row"), (2, None), (3, "unreadable_row"), (4, None), (4, None)
    ]  # fmt: skip
    assert rows[0][2] == b"712"  # whole, though a block ends inside it
    assert rows[4][4] == "\x00\\ud800"  # half of a pair can be no id


def test_a_json_file_that_holds_no_array_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(NotAnArrayError, match="jsonl"),
        open_json_array(file_of(tmp_path, '{"a": 1}'), FIELDS),
    ):
        pass


WHOLE = '[{"item": "a", "time": 1},\n {"item": "b", "time": [2]}]\n'


def test_an_array_that_is_cut_off_anywhere_is_damaged(tmp_path: Path, block_bytes: int) -> None:
    for length in range(1, len(WHOLE.rstrip())):
        path = file_of(tmp_path, WHOLE[:length])
        with (
            pytest.raises(DamagedFileError, match="its array does not end with ]"),
            open_json_array(path, FIELDS) as reader,
        ):
            pytest.fail(f"cut at {length}, read as {rows_of(reader)}")


def test_the_end_of_an_array_is_no_part_of_a_broken_element(tmp_path: Path, block_bytes: int) -> None:
    with open_json_array(file_of(tmp_path, '[{"item": "a", "time": 1}, {"item" "b"} ]\n'), FIELDS) as reader:
        rows = rows_of(reader)

    assert [(row[2], row[3]) for row in rows] == [
        (b'{"item": "a", "time": 1}', None),
        (b'{"item" "b"}', "unreadable_row"),
    ]


@pytest.mark.parametrize("more", [WHOLE, "]", "x", '{"item": "c", "time": 1}]'])
def test_what_follows_an_array_is_not_left_out_silently(tmp_path: Path, block_bytes: int, more: str) -> None:
    path = file_of(tmp_path, WHOLE + more)
    with (
        pytest.raises(DamagedFileError, match=r"its array (ends in line \d, and more follows|does not end with \])"),
        open_json_array(path, FIELDS) as reader,
    ):
        rows_of(reader)
