"""Files get the numbers that an import gives them, whichever of the two met a file first."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ingest.importers.ledger import OtherOptionsError
from ingest.importers.prefixes import PrefixDigest
from ingest.importers.run import files_by_source
from ingest.manifest import Checkpoint
from lakeboard.sending.numbers import FileNumbers
from lakeboard.sending.request import SourceChangedError
from tests.ingest.importing import HEADER, file_of, import_into, request_of

pytestmark = pytest.mark.lake

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Sending:
    def __init__(self, folder: Path) -> None:
        self.lake = folder / "lake"
        self.numbers = FileNumbers(sent_root=folder / "sent", lake_root=self.lake, now=NOW)

    def assign(self, *files: Path, **options: Any) -> list[int]:
        request = request_of(*files, source="s", **options)
        ((source, group),) = files_by_source(request).items()
        found = self.numbers.assign(source, group, request)
        return [found[path] for path in files]


def rows(folder: Path, name: str, *items: str) -> Path:
    return file_of(folder, HEADER + "".join(f"{item},2024-01-01\n" for item in items), name)


def test_files_are_numbered_in_order_and_keep_their_numbers(tmp_path: Path) -> None:
    sending = Sending(tmp_path)
    a, b = rows(tmp_path, "a.csv", "x"), rows(tmp_path, "b.csv", "y")

    assert sending.assign(a, b) == [0, 1]
    assert sending.assign(b) == [1]
    assert sending.assign(b, a) == [1, 0]


def test_the_same_content_is_the_same_file_and_a_grown_one_keeps_its_number(tmp_path: Path) -> None:
    sending = Sending(tmp_path)
    a, copy = rows(tmp_path, "a.csv", "x", "y"), rows(tmp_path, "copy.csv.gz", "x", "y")

    assert sending.assign(a, copy) == [0, 0]
    assert sending.assign(rows(tmp_path, "a.csv", "x", "y", "z")) == [0]


def test_a_file_that_goes_on_behind_another_of_the_same_command_is_its_own(tmp_path: Path) -> None:
    a, longer = rows(tmp_path, "a.csv", "x"), rows(tmp_path, "longer.csv", "x", "y")

    assert Sending(tmp_path).assign(a, longer) == [0, 1]


def test_other_content_of_a_known_source_is_refused_unless_it_is_to_be_added(tmp_path: Path) -> None:
    sending = Sending(tmp_path)
    sending.assign(rows(tmp_path, "a.csv", "x"))
    other = rows(tmp_path, "other.csv", "y")

    with pytest.raises(SourceChangedError, match="--append"):
        sending.assign(other)
    assert sending.assign(other, append=True) == [1]
    assert sending.assign(other) == [1]


def test_what_an_import_numbered_is_known(tmp_path: Path) -> None:
    sending = Sending(tmp_path)
    a, b, c = (rows(tmp_path, f"{name}.csv", name) for name in "abc")
    import_into(sending.lake, a, b, source="s")

    assert sending.assign(b) == [1]
    with pytest.raises(SourceChangedError):
        sending.assign(c)
    assert sending.assign(c, append=True) == [2]


def test_options_that_read_rows_differently_are_refused(tmp_path: Path) -> None:
    sending = Sending(tmp_path)
    a = rows(tmp_path, "a.csv", "x")
    sending.assign(a)

    with pytest.raises(OtherOptionsError, match="time_zone was UTC, now Asia/Kathmandu"):
        sending.assign(a, time_zone="Asia/Kathmandu")


def test_rows_that_were_read_later_are_remembered_too(tmp_path: Path) -> None:
    sending = Sending(tmp_path)
    a = rows(tmp_path, "a.csv", *("x" * 400_000))  # more than the first chunk
    sending.assign(a)
    changed = rows(tmp_path, "changed.csv", *("x" * 399_999), "y")
    assert sending.assign(changed) == [0]

    with files_by_source(request_of(a))["a"][0].open() as reader:
        digest = PrefixDigest(reader.header)
        for chunk in reader.chunks():
            digest.update(chunk)
    sending.numbers.remember("s", 0, Checkpoint(digest.rows, digest.hex(), NOW), a)

    assert sending.assign(a) == [0]
    with pytest.raises(SourceChangedError):
        sending.assign(changed)
