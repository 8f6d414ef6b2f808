"""What is asked wrongly, and how files and commits are laid out."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from domain.errors import BadRequestError
from domain.tables import PLAYS
from ingest.hashing import content_hash
from ingest.importers import file_import, streams
from ingest.importers.columns import BadTemplateError, UnknownColumnError
from ingest.importers.held import require_equal
from ingest.importers.plays import accepted_rows
from ingest.importers.request import (
    BadSourceNameError,
    ColumnNotGivenError,
    Format,
    Progress,
    RowsDoNotAddUpError,
    UnknownFormatError,
)
from ingest.importers.run import IdsTwiceError, MixedOptionsError, NoFilesError, import_files
from ingest.lake_writer import bronze_position
from ingest.local_time import UnknownZoneError
from ingest.times import UnknownTimeFormatError
from tests.ingest.importing import (
    HEADER,
    NOW,
    file_of,
    import_into,
    import_text,
    plays,
    rejects,
    request_of,
)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"item": "titel"}, UnknownColumnError),
        ({"region": "titel"}, UnknownColumnError),
        ({"item": None}, ColumnNotGivenError),
        ({"item": "{item"}, BadTemplateError),
        ({"item": "item}"}, BadTemplateError),
        ({"item": "{}"}, BadTemplateError),
        ({"time_zone": "Mars/Olympus"}, UnknownZoneError),
        ({"time_format": "%Q"}, UnknownTimeFormatError),
        ({"source": ""}, BadSourceNameError),
        ({"source": "x" * 129}, BadSourceNameError),
        ({"source": "a\nb"}, BadSourceNameError),
        ({"event_id": "item", "dedup_by_content": True}, IdsTwiceError),
    ],
)
def test_a_wrong_request_is_refused_before_the_lake_is_touched(
    tmp_path: Path, options: dict[str, Any], error: type[BadRequestError]
) -> None:
    with pytest.raises(error):
        import_text(tmp_path, HEADER, **options)
    assert not (tmp_path / "lake").exists()


def test_a_file_of_unknown_kind_needs_a_format(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match=r"--format csv\|jsonl\|parquet\|spotify"):
        import_text(tmp_path, HEADER, "plays.txt")
    assert import_text(tmp_path, HEADER + "a,2024-01-01\n", "plays.txt", format=Format.CSV).accepted == 1


def test_files_of_one_source_are_of_one_kind(tmp_path: Path) -> None:
    one, other = file_of(tmp_path, HEADER), file_of(tmp_path, '{"item": 1, "time": 1}', "plays.jsonl")

    with pytest.raises(MixedOptionsError, match="different kinds"):
        import_into(tmp_path / "lake", one, other)


def test_an_import_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoFilesError, match="at least one file"):
        import_into(tmp_path / "lake")


def test_without_a_source_each_file_is_its_own(tmp_path: Path) -> None:
    files = [file_of(tmp_path, HEADER + "a,2024-01-01\n", name) for name in ("x.csv", "y.csv.gz", "f/x.csv")]

    summary = import_into(tmp_path / "lake", *files)

    assert [(file.source, file.number, file.new_rows) for file in summary.files] == [
        ("x", 0, 1), ("y", 0, 1), ("x", 0, 0)
    ]  # fmt: skip


def test_commits_end_at_multiples_of_their_size(tmp_path: Path) -> None:
    rows = [f"a,{'soon' if n in (3, 4) else '2024-01-01'}\n" for n in range(7)]

    import_text(tmp_path, HEADER + "".join(rows), commit_rows=2)

    lake = tmp_path / "lake"
    assert [(play["log_index"], play["writer_seq"]) for play in plays(lake)] == [
        (0, 2), (1, 2), (2, 4), (5, 6), (6, 7)
    ]  # fmt: skip
    assert [(row["source_row"], row["writer_seq"]) for row in rejects(lake)] == [(3, 4), (4, 6)]
    assert dict(bronze_position(lake).writers) == {"lake_writer/import/plays/0": 7}


def test_a_file_of_refused_rows_only_is_read_once(tmp_path: Path) -> None:
    for new in (2, 0):
        summary = import_text(tmp_path, HEADER + "a,soon\nb,soon\n")
        assert (summary.read, summary.accepted, summary.rejected, summary.new_rows) == (2, 0, 2, new)
    assert len(rejects(tmp_path / "lake")) == 2


def test_progress_goes_by_the_bytes_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CHUNK_BYTES", 1 << 18)
    rows = "".join(f"{content_hash(b'%d' % n)},2024-01-01\n" for n in range(100_000))  # hardly to be packed
    path = file_of(tmp_path, HEADER + rows, "plays.csv.gz")
    seen: list[Progress] = []

    import_files(request_of(path), lake_root=tmp_path / "lake", clock=lambda: NOW, on_progress=seen.append)

    done = [progress.bytes_done for progress in seen]
    assert done == sorted(done)
    assert len(set(done)) > 1
    assert (seen[-1].bytes_done, seen[-1].rows) == (path.stat().st_size, 100_000)
    assert {progress.bytes_total for progress in seen} == {path.stat().st_size}


def test_rows_that_vanish_are_not_kept_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(*arguments: Any, **options: Any) -> pa.Table:
        return accepted_rows(*arguments, **options).slice(1)

    monkeypatch.setattr(file_import, "accepted_rows", losing)

    with pytest.raises(RowsDoNotAddUpError, match="rows accepted and rejected should be 3 and is 2"):
        import_text(tmp_path, HEADER + "a,2024-01-01\n" * 3)


def test_a_commit_that_was_lost_is_noticed(tmp_path: Path) -> None:
    import_text(tmp_path, HEADER + "a,2024-01-01\n" * 3)
    folder = tmp_path / "lake" / PLAYS.name
    newest = max(folder.glob("_delta_log/*.json"))
    newest.unlink()

    summary = import_text(tmp_path, HEADER + "a,2024-01-01\n" * 3)

    assert summary.new_rows == 3  # the transaction is gone with the rows, so they are imported again
    with pytest.raises(RowsDoNotAddUpError):
        require_equal("s", "rows", expected=1, found=2)
