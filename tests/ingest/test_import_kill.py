"""An import killed at any step, and run again, ends with the rows of one that was not."""

import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from ingest.importers.ledger import OtherContentError
from ingest.importers.request import Progress
from ingest.importers.run import import_files
from ingest.manifest import load_manifest, manifest_path, save_manifest
from tests.ingest.importing import (
    HEADER,
    NOW,
    contents,
    file_of,
    import_into,
    plays,
    rejects,
    request_of,
)

ROOT = Path(__file__).parents[2]
COMMIT_ROWS = 3
# Rows 0 to 7: commits end at 3, 6 and 8; each has a refused row. The last time is ahead of a first, slow clock only.
AHEAD = NOW + timedelta(minutes=6)
TEXT = HEADER + "".join(
    f"{name},2024-01-0{day}\n" for name, day in zip(["a", "", "b", "c", "", "d", "e"], range(1, 8), strict=True)
)
KILLED_IMPORT = """
import os, sys
from datetime import datetime
from pathlib import Path
from ingest.importers.request import ImportRequest
from ingest.importers.run import import_files

lake, file, now, dying_step = sys.argv[1], sys.argv[2], datetime.fromisoformat(sys.argv[3]), int(sys.argv[4])
steps = []

def die(step):
    steps.append(step)
    if len(steps) == dying_step:
        os.kill(os.getpid(), 9)

request = ImportRequest(files=tuple(map(Path, file.split("|"))), item="item", time="time", source="s")
import_files(request, lake_root=Path(lake), clock=lambda: now, commit_rows=3, on_step=die)
"""
STEPS_OF_ONE_FILE = 10  # manifest, rejects, plays, three times; then finished


def killed_import(lake: Path, *files: Path, at_step: int, now: str = NOW.isoformat()) -> None:
    arguments = [str(lake), "|".join(map(str, files)), now, str(at_step)]
    process = subprocess.run([sys.executable, "-c", KILLED_IMPORT, *arguments], cwd=ROOT, check=False)
    assert process.returncode == -signal.SIGKILL


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    import_into(folder / "lake", file_of(folder, text_with(AHEAD)), commit_rows=COMMIT_ROWS, source="s")
    return contents(folder / "lake"), manifest_path(folder / "lake", "s").read_text(encoding="utf-8")


def text_with(moment: object) -> str:
    return TEXT + f"f,{moment}\n"


@pytest.mark.parametrize("step", range(1, STEPS_OF_ONE_FILE + 1))
def test_a_killed_import_run_again_ends_as_if_it_had_not_been(
    tmp_path: Path, undisturbed: tuple[object, str], step: int
) -> None:
    lake, path = tmp_path / "lake", file_of(tmp_path, text_with(AHEAD))
    killed_import(lake, path, at_step=step)

    summary = import_into(lake, path, commit_rows=COMMIT_ROWS, source="s").files[0]

    assert (contents(lake), manifest_path(lake, "s").read_text(encoding="utf-8")) == undisturbed
    assert (summary.read, summary.accepted, summary.rejected) == (8, 5, 3)
    assert summary.already == [0, 0, 3, 3, 3, 6, 6, 6, 8, 8][step - 1]


@pytest.mark.parametrize("step", [7, 8, 9])
def test_rows_that_were_refused_before_the_kill_stay_refused_under_a_later_clock(tmp_path: Path, step: int) -> None:
    lake, path = tmp_path / "lake", file_of(tmp_path, text_with(AHEAD.isoformat()))
    killed_import(lake, path, at_step=step)

    summary = import_into(lake, path, commit_rows=COMMIT_ROWS, source="s", now=NOW + timedelta(days=1)).files[0]

    accepted_now = step == 7  # nothing of that row had been committed, so the later clock judges it
    assert [play["source_row"] for play in plays(lake) if play["source_row"] > 5] == [6, 7][: 1 + accepted_now]
    assert [row["source_row"] for row in rejects(lake) if row["source_row"] > 5] == [7][accepted_now:]
    assert summary.read == summary.accepted + summary.rejected == 8
    assert {play["ingested_at"] for play in plays(lake)} == {NOW}  # the interrupted segment keeps its begin


@pytest.mark.parametrize("step", [1, 4, 7, 10, 11, 13, 20])
def test_a_killed_import_of_two_files_goes_on_with_both(tmp_path: Path, step: int) -> None:
    files = [file_of(tmp_path, text_with(AHEAD), "x.csv"), file_of(tmp_path, TEXT, "y.csv")]
    lake = tmp_path / "lake"
    killed_import(lake, *files, at_step=step)

    summary = import_into(lake, *files, commit_rows=COMMIT_ROWS, source="s")

    assert [(file.number, file.read) for file in summary.files] == [(0, 8), (1, 7)]
    assert [play["event_id"] for play in plays(lake) if play["log_partition"] == 1] == [
        f"s#1:{row}" for row in (0, 2, 3, 5, 6)
    ]


@pytest.mark.parametrize("commit_rows", [1, 2, 5, 100])
def test_a_rerun_may_commit_in_other_sizes(
    tmp_path: Path, undisturbed: tuple[dict[str, list[dict[str, object]]], str], commit_rows: int
) -> None:
    lake, path = tmp_path / "lake", file_of(tmp_path, text_with(AHEAD))
    killed_import(lake, path, at_step=5)  # rejects of the second commit are there, its plays are not

    import_into(lake, path, commit_rows=commit_rows, source="s")

    for table, rows in contents(lake).items():
        expected = [{**row, "writer_seq": 0} for row in undisturbed[0][table]]
        assert [{**row, "writer_seq": 0} for row in rows] == expected


def test_nothing_is_committed_before_all_that_is_known_has_been_compared(tmp_path: Path) -> None:
    lake, path = tmp_path / "lake", file_of(tmp_path, text_with(AHEAD))
    killed_import(lake, path, at_step=5)  # rejects up to row 6 are there, plays up to row 3
    changed = text_with(AHEAD).replace("d,2024-01-06", "x,2024-01-06")

    def change_it(progress: Progress) -> None:
        if progress.stage == "comparing":
            file_of(tmp_path, changed)

    with pytest.raises(OtherContentError):
        import_files(
            request_of(path, source="s"), lake_root=lake, clock=lambda: NOW, commit_rows=1, on_progress=change_it
        )
    assert [play["source_row"] for play in plays(lake)] == [0, 2]


def test_rows_are_not_imported_twice_where_the_manifest_lacks_a_checkpoint(tmp_path: Path) -> None:
    lake, path = tmp_path / "lake", file_of(tmp_path, text_with(AHEAD))
    killed_import(lake, path, at_step=5)
    manifest = load_manifest(lake, "s")
    assert manifest is not None
    (file,) = manifest.files
    assert [checkpoint.rows for checkpoint in file.checkpoints] == [3, 6]  # plays end at 3
    save_manifest(lake, manifest.with_file(msgspec.structs.replace(file, checkpoints=file.checkpoints[1:])))

    import_into(lake, path, commit_rows=100, source="s")

    assert [play["source_row"] for play in plays(lake)] == [0, 2, 3, 5, 6]


def test_a_file_that_was_killed_before_anything_was_committed_may_be_another_one(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    killed_import(lake, file_of(tmp_path, text_with(AHEAD)), at_step=1)

    import_into(lake, file_of(tmp_path, HEADER + "z,2024-01-01\n", "other.csv"), source="s")

    assert [play["item_id"] for play in plays(lake)] == ["z"]
    manifest = load_manifest(lake, "s")
    assert manifest is not None
    assert [(file.name, file.rows) for file in manifest.files] == [("other.csv", 1)]
