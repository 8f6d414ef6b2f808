import json
import subprocess
import sys
from pathlib import Path

import pytest

from domain.tables import HOURS
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.e2e

PROGRAM = Path(sys.executable).with_name("lakeboard")
NEVER_LOADED = ("pyspark", "pandas", "pyarrow")


def model() -> ModelLake:
    model = ModelLake()
    model.release([Play("e1", "é", at(1), "IN"), Play("e2", "b", at(1))], frontier=at(0, day=15))
    return model


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    model().write(home / "lake")
    return home


def lakeboard(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"LAKEBOARD_HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C", "TZ": "Asia/Kathmandu"}
    return subprocess.run(
        [PROGRAM, *arguments], env=environment, capture_output=True, encoding="utf-8", check=False, timeout=60
    )


def test_a_chart_is_printed_as_json_in_utf_8_whatever_the_locale_and_zone(home: Path) -> None:
    result = lakeboard(home, "chart", "--json")

    assert (result.returncode, result.stderr) == (0, "")
    body = json.loads(result.stdout)
    assert [entry["item_id"] for entry in body["entries"]] == ["b", "é"]
    assert body["window_start"] == "2026-11-14T00:00:00Z"
    assert "é" in lakeboard(home, "chart").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chart", "--start", "2026-11-14T00:30Z", "--window", "1h"], "nearest before is 2026-11-14T00:00:00+00:00"),
        (["count", "--item", "b", "--from", "2026-11-14", "--to", "2026-11-13"], "--to must be later"),
        (["sql", "select * from read_csv('/etc/passwd')"], "refused: the table function read_csv"),
        (["sql", "select nothing from plays"], 'column "nothing" not found'),
        (["tables", "--columns", "nothing"], "choose among plays"),
        (["verify", "--only", "nothing"], "choose among bronze_is_complete"),
        (["changes", "--since", "7"], "from 1 to 1"),
    ],
)
def test_bad_use_is_one_sentence_and_exit_code_2(home: Path, arguments: list[str], words: str) -> None:
    result = lakeboard(home, *arguments)

    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert words in result.stderr


@pytest.mark.parametrize("command", [["chart"], ["verify"], ["releases"]])
def test_a_home_without_lake_is_one_sentence_and_exit_code_1(tmp_path: Path, command: list[str]) -> None:
    result = lakeboard(tmp_path, *command)

    assert result.returncode == 1
    assert "lakeboard import" in result.stderr.splitlines()[0]
    assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_verify_fails_when_a_proof_does(home: Path, tmp_path: Path) -> None:
    broken = model()
    broken.rows[HOURS.name].pop()
    broken.write(tmp_path / "lake")

    assert lakeboard(home, "verify").returncode == 0
    assert lakeboard(tmp_path, "verify").returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["chart"],
        ["count", "--item", "b", "--from", "2026-11-14", "--to", "2026-11-15", "--as-of", "1"],
        ["sql", "from hours"],
        ["tables"],
        ["releases"],
        ["changes", "--since", "0"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_reading_loads_nothing_that_takes_seconds(home: Path, arguments: list[str]) -> None:
    code = f"""
import importlib, sys
from pathlib import Path
from tests.command_line import SettingsOfATest
command = importlib.import_module("lakeboard.commands.{arguments[0]}").{arguments[0]}_command
command.main({arguments[1:]!r}, obj=SettingsOfATest(Path({str(home / "lake")!r})), standalone_mode=False)
print(sorted(set(sys.modules) & set({NEVER_LOADED!r})), file=sys.stderr)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)

    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1] == "[]"
