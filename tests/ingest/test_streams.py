from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingest.importers import streams
from ingest.importers.csv import open_csv
from ingest.importers.parquet import open_parquet
from ingest.importers.streams import (
    DamagedFileError,
    LineTooLongError,
    NotUtf8FileError,
    UnopenableFileError,
    open_stream,
)
from tests.ingest.importing import file_of
from tests.ingest.reading import FIELDS, rows_of

pytestmark = pytest.mark.fast


def read_csv(path: Path, **options: Any) -> list[tuple[Any, ...]]:
    with open_csv(path, FIELDS, **options) as reader:
        return rows_of(reader)


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
