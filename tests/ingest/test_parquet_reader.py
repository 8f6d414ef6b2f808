import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.importers.parquet import NotParquetError, open_parquet
from tests.ingest.importing import file_of
from tests.ingest.reading import FIELDS, rows_of

pytestmark = pytest.mark.fast


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
        pa.array([datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None)], pa.timestamp("ms")),
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
