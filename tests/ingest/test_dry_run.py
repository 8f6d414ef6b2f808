"""A dry run says what the import would do, and leaves no trace."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from domain.errors import LakeboardError
from domain.events import Reject
from ingest.importers.dry_run import REJECTS_SHOWN, DryRun, RejectedRow, try_files
from ingest.importers.ledger import OtherContentError, OtherOptionsError
from ingest.importers.request import Format, ImportRequest, Progress
from ingest.importers.run import import_files
from ingest.table_lock import TableLockedError, locked, locked_for_reading
from tests.ingest.importing import HEADER, NOW, file_of, import_into, request_of

TEXT = HEADER + "a,2024-01-01\n,2024-01-02\nb,soon\nc,2024-01-04\n"


def tried(lake: Path, *files: Path, **options: object) -> DryRun:
    """A dry run, which must change nothing below the lake's parent folder."""
    before = everything(lake.parent)
    try:
        return try_files(request_of(*files, **options), lake_root=lake, clock=lambda: NOW)
    finally:
        assert everything(lake.parent) == before


def everything(folder: Path) -> Mapping[str, tuple[bytes, int]]:
    """Every file and folder, with content and the time of the last change."""
    return {
        str(path): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def as_imported(lake: Path, *files: Path, **options: object) -> None:
    """What a dry run says is what the import then does, or its error."""
    dry = tried(lake, *files, **options)
    done = import_into(lake, *files, **options)  # type: ignore[arg-type]  # columns and flags alike
    assert dry.summary == done


def test_an_import_into_nothing_is_told_and_makes_no_lake(tmp_path: Path) -> None:
    file = file_of(tmp_path, TEXT)

    dry = tried(tmp_path / "lake", file)

    (said,) = dry.summary.files
    assert (said.read, said.accepted, said.rejected, said.new_rows, said.already) == (4, 2, 2, 4, 0)
    assert said.rejected_by_reason == {Reject.ITEM_MISSING: 1, Reject.TIME_INVALID: 1}
    assert dry.first_rejected == (
        RejectedRow("plays.csv", 1, 3, Reject.ITEM_MISSING, "", ",2024-01-02"),
        RejectedRow("plays.csv", 2, 4, Reject.TIME_INVALID, "soon", "b,soon"),
    )
    as_imported(tmp_path / "lake", file)


def test_a_dry_run_knows_what_the_lake_has(tmp_path: Path) -> None:
    lake, file = tmp_path / "lake", file_of(tmp_path, TEXT)
    import_into(lake, file)
    as_imported(lake, file)

    file_of(tmp_path, TEXT + "d,2024-01-05\n,2024-01-05\n")
    as_imported(lake, file)
    assert tried(lake, file).first_rejected == ()


def test_several_files_of_one_source_are_told_apart_as_by_the_import(tmp_path: Path) -> None:
    files = [
        file_of(tmp_path, TEXT, "1.csv"),
        file_of(tmp_path, TEXT + "d,2024-01-05\n", "2.csv"),
        file_of(tmp_path, TEXT, "3.csv.gz"),
        file_of(tmp_path, "", "4.csv"),
    ]

    as_imported(tmp_path / "lake", *files, source="s")
    files.append(file_of(tmp_path, HEADER + "z,2024-01-01\n", "5.csv"))
    as_imported(tmp_path / "lake", *files, source="s", append=True)


@pytest.mark.parametrize("step", range(1, 8))
def test_after_a_killed_import_it_tells_what_is_left_to_do(tmp_path: Path, step: int) -> None:
    lake, file = tmp_path / "lake", file_of(tmp_path, TEXT)
    steps: list[str] = []

    def die(name: str) -> None:
        steps.append(name)
        if len(steps) == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_files(request_of(file), lake_root=lake, clock=lambda: NOW, commit_rows=2, on_step=die)

    as_imported(lake, file)


def test_what_an_import_refuses_a_dry_run_refuses(tmp_path: Path) -> None:
    lake, file = tmp_path / "lake", file_of(tmp_path, TEXT)
    import_into(lake, file)
    other = file_of(tmp_path, HEADER + "z,2024-01-01\n", "other.csv")
    wrong: list[tuple[type[LakeboardError], Mapping[str, object]]] = [
        (OtherContentError, {"source": "plays"}),
        (OtherOptionsError, {"source": "plays", "time_zone": "Asia/Kolkata"}),
    ]

    for error, options in wrong:
        with pytest.raises(error):
            tried(lake, other, **options)


def test_only_the_first_refused_rows_are_shown_but_all_are_counted(tmp_path: Path) -> None:
    files = [file_of(tmp_path, HEADER + ",2024-01-01\n" * 7, name) for name in ("1.csv", "2.csv")]

    dry = tried(tmp_path / "lake", *files)

    assert [(row.file, row.line) for row in dry.first_rejected][-4:] == [(f"{n}.csv", k) for n, k in
                                                                         ((1, 8), (2, 2), (2, 3), (2, 4))]  # fmt: skip
    assert len(dry.first_rejected) == REJECTS_SHOWN
    assert [file.rejected for file in dry.summary.files] == [7, 7]


def test_what_would_be_merged_is_not_told(tmp_path: Path) -> None:
    file = file_of(tmp_path, HEADER + "a,2024-01-01\n" * 3)

    dry = tried(tmp_path / "lake", file, dedup_by_content=True)

    done = import_into(tmp_path / "lake", file, dedup_by_content=True)
    assert done.files[0].repeated == 2
    assert dry.summary.files == (replace(done.files[0], repeated=None),)


def test_an_import_that_is_running_is_waited_for(tmp_path: Path) -> None:
    lake, file = tmp_path / "lake", file_of(tmp_path, TEXT)
    import_into(lake, file)
    waited: list[str] = []

    def stop(name: str, _holder: str) -> None:
        waited.append(name)
        raise KeyboardInterrupt

    with locked(lake, "import/plays"), pytest.raises(KeyboardInterrupt):
        try_files(request_of(file), lake_root=lake, clock=lambda: NOW, on_wait=stop)

    assert waited == ["import/plays"]


def test_readers_keep_writers_away_and_not_each_other(tmp_path: Path) -> None:
    with locked_for_reading(tmp_path, "t"):
        assert list(tmp_path.iterdir()) == []  # what nobody wrote needs no lock
    with locked(tmp_path, "t"):
        pass

    with (
        locked_for_reading(tmp_path, "t"),
        locked_for_reading(tmp_path, "t", wait_seconds=0),
        pytest.raises(TableLockedError),
        locked(tmp_path, "t", wait_seconds=0),
    ):
        pass
    with locked(tmp_path, "t"), pytest.raises(TableLockedError), locked_for_reading(tmp_path, "t", wait_seconds=0):
        pass
    with locked(tmp_path, "t", wait_seconds=0):
        pass


def test_progress_says_that_it_only_checks(tmp_path: Path) -> None:
    seen: list[Progress] = []
    request = request_of(file_of(tmp_path, TEXT))

    try_files(request, lake_root=tmp_path / "lake", clock=lambda: NOW, on_progress=seen.append)

    assert {progress.stage for progress in seen} == {"checking"}


def test_a_truncated_export_is_refused_before_the_lake_is_touched(tmp_path: Path) -> None:
    play = '{"endTime": "2021-04-22 05:41", "artistName": "Shindy", "trackName": "Dreams", "msPlayed": 6408}'
    file = file_of(tmp_path, f"[{play}, {play}\n", "StreamingHistory0.json")
    request = ImportRequest(files=(file,), format=Format.SPOTIFY)

    for run in (try_files, import_files):
        with pytest.raises(LakeboardError, match=r"incomplete \(its array does not end with \]\): get it again"):
            run(request, lake_root=tmp_path / "lake", clock=lambda: NOW + timedelta(hours=1))
        assert not (tmp_path / "lake").exists()
