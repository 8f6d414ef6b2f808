import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from domain.errors import BadRequestError, LakeboardError
from lakeboard import cli as command_line
from lakeboard.cli import COMMANDS, cli, main

PROGRAM = Path(sys.executable).with_name("lakeboard")
# A command with everything it needs, so that only the empty home is in its way.
READING = {
    "chart": ["chart"],
    "count": ["count", "--item", "a", "--from", "2026-11-14", "--to", "2026-11-15"],
    "changes": ["changes", "--since", "0"],
    "releases": ["releases"],
    "verify": ["verify"],
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that is not there, and no setting of the person who runs the tests."""
    for name in [name for name in os.environ if name.startswith("LAKEBOARD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LAKEBOARD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def code_of(*arguments: str) -> int:
    """Run the command line in this process; return the code it leaves with."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return int(str(left.value.code))


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a command in place of `tables` that fails in this way."""

    @click.command("tables")
    def failing() -> None:
        raise error

    monkeypatch.setattr(command_line.LazyCommands, "get_command", lambda *_: failing)


@pytest.mark.fast
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(command, "--help") == 0

    said = capsys.readouterr()
    assert said.out.startswith(f"Usage: lakeboard {command}")
    assert "\nExamples:\n" in said.out.replace("  ", "")
    assert f"lakeboard {command}" in said.out.split("Examples:")[1]
    assert said.err == ""


@pytest.mark.fast
@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_alone_and_with_help_it_lists_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(*arguments) == 0

    listed = capsys.readouterr().out.split("Commands:")[1].split("A first tour")[0]
    assert re.findall(r"^  (\S+)", listed, re.MULTILINE) == list(COMMANDS)


@pytest.mark.fast
@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_a_command_what_its_own_help_says_first(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)

    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(limit=1000) == COMMANDS[name][1]


@pytest.mark.fast
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chrat"], "No such command 'chrat'"),
        (["chart", "--windw", "1d"], "No such option '--windw'"),
        (["chart", "--window", "1w"], "'1w' is not one of"),
        (["count"], "Missing option"),
        (["sql"], "Missing argument 'QUERY'"),
        (["chart", "extra"], "unexpected extra argument"),
    ],
)
def test_a_wrong_command_or_option_is_bad_use(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*arguments) == 2

    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


class OfTheTestError(LakeboardError):
    """Its text is its argument."""


class AskedWronglyError(BadRequestError):
    """Its text is its argument."""


@pytest.mark.fast
@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (OfTheTestError("a table is gone: bring it back"), 1, "a table is gone: bring it back"),
        (AskedWronglyError("no such day: name another"), 2, "no such day: name another"),
        (
            OSError(errno.ENOSPC, "No space left on device", "/lake/x"),
            1,
            "/lake/x: No space left on device; `lakeboard doctor` shows the disk and the home folder, then run again",
        ),
        (KeyboardInterrupt(), 130, "stopped; nothing is lost, run the same command again to go on"),
    ],
)
def test_a_failure_is_one_sentence_and_its_code(
    error: BaseException,
    code: int,
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raising(error, monkeypatch)

    assert code_of("tables") == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.strip() == f"lakeboard: {sentence}"


@pytest.mark.fast
def test_a_fault_of_the_program_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(ValueError("a bug"), monkeypatch)

    with pytest.raises(ValueError, match="a bug"):
        main(["tables"])


@pytest.mark.fast
@pytest.mark.parametrize("arguments", READING.values(), ids=READING)
def test_reading_before_anything_was_imported_says_what_to_do(
    arguments: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*arguments) == 1

    said = capsys.readouterr()
    assert "lakeboard import" in said.err
    assert (said.out, len(said.err.splitlines())) == ("", 1)
    assert not home.exists()


@pytest.mark.fast
def test_an_import_of_a_missing_file_is_bad_use_and_makes_no_lake(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("import", "absent.csv", "--item", "i", "--time", "t") == 2

    said = capsys.readouterr().err
    assert said.startswith("lakeboard: absent.csv cannot be opened")
    assert len(said.splitlines()) == 1
    assert not home.exists()


@pytest.mark.fast
def test_a_wrong_setting_stops_every_command_but_doctor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAKEBOARD_DRIVER_MEMORI", "8g")

    assert code_of("tables") == 2
    assert capsys.readouterr().err.startswith("lakeboard: LAKEBOARD_DRIVER_MEMORI: there is no setting")
    assert code_of() == 0
    assert code_of("doctor", "--help") == 0


# --- as a user runs it ---


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, **environment}
    return subprocess.run([PROGRAM, *arguments], env=given, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.e2e
def test_the_installed_program_leaves_with_the_codes_and_no_stack_trace(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "lake").write_text("in the way of a folder", encoding="utf-8")
    plays = tmp_path / "plays.csv"
    plays.write_text("i,t\na,2024-01-01\n", encoding="utf-8")
    results = {
        "version": run("--version"),
        "unknown": run("chrat"),
        "nothing there": run("recount", LAKEBOARD_HOME=str(tmp_path / "other")),
        "no folder": run("import", str(plays), "--item", "i", "--time", "t"),
        "wrong setting": run("chart", LAKEBOARD_SHUFFLE_PARTITIONS="none"),
    }

    codes = {name: result.returncode for name, result in results.items()}
    assert codes == {"version": 0, "unknown": 2, "nothing there": 1, "no folder": 1, "wrong setting": 2}
    assert "lakeboard import FILE" in results["nothing there"].stderr
    assert "doctor" in results["no folder"].stderr
    assert not [name for name, result in results.items() if "Traceback" in result.stdout + result.stderr]


@pytest.mark.e2e
def test_nobody_hears_of_it_when_the_reader_of_a_pipe_has_seen_enough() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        result = subprocess.run([PROGRAM, "--help"], stdout=write_end, stderr=subprocess.PIPE, check=False, timeout=60)
    finally:
        os.close(write_end)

    assert result.stderr == b""


@pytest.mark.e2e
def test_help_is_there_at_once() -> None:
    code = """
import sys
from lakeboard.cli import main
try:
    main(["--help"])
except SystemExit:
    print(sorted({"pyspark", "pyarrow", "duckdb", "deltalake", "rich"} & set(sys.modules)), file=sys.stderr)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert result.stderr.strip() == "[]"
