import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from domain.errors import LakeboardError
from domain.policy import Policy
from ingest.importers.request import Progress
from lakeboard.commands.import_ import import_command
from lakeboard.commands.import_progress import LineDisplay, progress_line


@dataclass
class Settings:
    lake_root: Path
    policy: Policy = field(default_factory=Policy)


def run(lake: Path, *arguments: str | Path) -> Result:
    return CliRunner().invoke(import_command, [str(a) for a in arguments], obj=Settings(lake))


@pytest.fixture
def plays(tmp_path: Path) -> Path:
    path = tmp_path / "plays.csv"
    path.write_text("item,time\na,2024-01-01\n[b],2024-01-01\nc,soon\na,2024-01-01\n", encoding="utf-8")
    return path


def test_import_prints_what_became_of_the_rows_and_what_to_do_next(tmp_path: Path, plays: Path) -> None:
    result = run(tmp_path / "lake", plays, "--item", "item", "--time", "time")

    assert result.exit_code == 0
    assert "plays.csv" in result.stdout
    assert "1 rejected: time_invalid 1" in result.stdout
    assert "lakeboard recount" in result.stdout
    again = run(tmp_path / "lake", plays, "--item", "item", "--time", "time")
    assert "Nothing new" in again.stdout


def test_import_says_what_it_merged(tmp_path: Path, plays: Path) -> None:
    result = run(tmp_path / "lake", plays, "--item", "item", "--time", "time", "--dedup-by-content")

    assert "1 merged" in result.stdout


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("")

    assert "empty.csv has no rows" in run(tmp_path / "lake", path, "--item", "i", "--time", "t").stdout


def test_import_prints_json(tmp_path: Path, plays: Path) -> None:
    result = run(tmp_path / "lake", plays, "--item", "item", "--time", "time", "--json", "--source", "s")

    assert json.loads(result.stdout) == {
        "new_rows": 4,
        "files": [
            {
                "file": str(plays),
                "source": "s",
                "file_number": 0,
                "read": 4,
                "accepted": 3,
                "rejected": 1,
                "rejected_by_reason": {"time_invalid": 1},
                "already": 0,
                "new_rows": 4,
                "repeated": None,
            }
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing to import"),
        (["absent.csv", "--item", "i", "--time", "t"], "cannot be opened"),
        (["{plays}", "--item", "i", "--time", "time"], "no column 'i': name one of item, time"),
        (["{plays}", "--time", "time"], "needs --item COLUMN"),
        (["{plays}", "--item", "item", "--time", "time", "--time-zone", "x"], "no time zone 'x'"),
    ],
)
def test_wrong_use_is_one_sentence(tmp_path: Path, plays: Path, arguments: list[str], sentence: str) -> None:
    result = run(tmp_path / "lake", *(argument.format(plays=plays) for argument in arguments))

    assert isinstance(result.exception, LakeboardError)  # the command line turns it into its sentence
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)


def test_help_has_examples_and_every_option_of_the_contract() -> None:
    text = CliRunner().invoke(import_command, ["--help"]).stdout

    for option in ("format", "item", "time", "region", "user", "id", "duration", "time-zone", "time-format", "source"):
        assert f"--{option} " in text
    assert "lakeboard import plays.csv --item title" in text
    assert "--dedup-by-content" in text


def progress(done: int) -> Progress:
    return Progress(path=Path("f/p.csv"), stage="importing", bytes_done=done, bytes_total=200, rows=1000)


def test_a_line_of_progress_has_rate_and_time_left() -> None:
    assert progress_line(progress(50), seconds=2) == "importing p.csv: 25%, 1,000 rows, 500 rows/s, 6 s left"
    assert progress_line(progress(0), seconds=0) == "importing p.csv: 0%, 1,000 rows"


def test_lines_of_progress_keep_quiet_in_short_imports(capsys: pytest.CaptureFixture[str]) -> None:
    display = LineDisplay()
    display.show(progress(50))
    display.wait("import/s", "process 1")

    assert capsys.readouterr().err == "waiting for process 1, which holds import/s\n"


def test_a_dry_run_says_what_would_become_of_the_rows_and_writes_nothing(tmp_path: Path, plays: Path) -> None:
    arguments = (plays, "--item", "item", "--time", "time", "--dry-run")

    said = run(tmp_path / "lake", *arguments).stdout

    assert "plays.csv: 1 would be rejected: time_invalid 1." in said
    assert "The first rows that would be rejected:" in said
    assert [line for line in said.splitlines() if all(part in line for part in ("4", "time_invalid", "soon", "c,soon"))]
    assert said.endswith("Nothing was written. Without --dry-run the lake would get 4 new rows.\n")
    assert not (tmp_path / "lake").exists()

    body = json.loads(run(tmp_path / "lake", *arguments, "--json").stdout)
    assert body["dry_run"] is True
    assert (body["new_rows"], body["files"][0]["rejected_by_reason"]) == (4, {"time_invalid": 1})
    assert body["first_rejected"] == [
        {"file": "plays.csv", "row": 2, "line": 4, "reason": "time_invalid", "detail": "soon", "payload": "c,soon"}
    ]
    assert not (tmp_path / "lake").exists()
