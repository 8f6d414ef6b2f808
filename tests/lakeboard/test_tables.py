import json
from pathlib import Path

import pytest

from domain.table_docs import tables_markdown
from domain.tables import ALL, HOURS
from ingest.read_releases import NothingCountedError
from lakeboard.commands.changes import changes_command
from lakeboard.commands.releases import releases_command
from lakeboard.commands.tables import UnknownTableError, tables_command
from lakeboard.commands.verify import verify_command
from tests.command_line import ran, said
from tests.lakes import ModelLake, Play, at, replace_table


def model() -> ModelLake:
    model = ModelLake()
    model.release([Play("e1", "a", at(1), "IN")], frontier=at(0, day=15))
    model.release([Play("e2", "a", at(1), "IN"), Play("e3", "b", at(1), "SE")], frontier=at(0, day=15))
    return model


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model().write(tmp_path_factory.mktemp("lake"))


# --- tables ---


def test_tables_are_listed_as_the_release_names_them(lake: Path) -> None:
    listed = {table["table"]: table for table in json.loads(said(tables_command, lake, "--json"))}

    assert list(listed) == [table.view for table in ALL]
    assert (listed["plays"]["rows"], listed["hours"]["rows"], listed["rejects"]["rows"]) == (3, 24, 0)
    assert (listed["hours"]["version"], listed["hours"]["size_bytes"] > 0) == (1, True)
    assert listed["hours"]["grain"] == HOURS.grain


def test_a_person_reads_the_same(lake: Path) -> None:
    text = said(tables_command, lake)

    assert "one UTC hour of a day that has events, empty hours too" in text
    assert len([line for line in text.splitlines() if line.startswith("│")]) == len(ALL)


@pytest.mark.parametrize("name", ["hours", "gold/hours", "gold.hours"])
def test_the_columns_of_a_table_have_type_and_meaning(lake: Path, name: str) -> None:
    columns = json.loads(said(tables_command, lake, "--columns", name, "--json"))

    assert [column["column"] for column in columns] == HOURS.column_names
    assert columns[1] == {"column": "event_hour", "type": "int", "nullable": False, "meaning": HOURS.columns[1].meaning}
    assert "never had an event" in said(tables_command, lake, "--columns", name)


def test_a_table_that_does_not_exist_is_named_with_those_that_do(lake: Path) -> None:
    result = ran(tables_command, lake, "--columns", "hour")

    assert isinstance(result.exception, UnknownTableError)
    assert "hourly_counts" in str(result.exception)


def test_the_page_about_tables_is_written(lake: Path, tmp_path: Path) -> None:
    said(tables_command, lake, "--markdown", str(tmp_path / "tables.md"))

    assert (tmp_path / "tables.md").read_text(encoding="utf-8") == tables_markdown()


def test_a_lake_that_is_not_there_has_tables_without_rows(tmp_path: Path) -> None:
    listed = json.loads(said(tables_command, tmp_path / "nowhere", "--json"))

    assert {(table["rows"], table["version"]) for table in listed} == {(0, None)}
    assert not (tmp_path / "nowhere").exists()


# --- releases and changes ---


def test_releases_are_listed_newest_first(lake: Path) -> None:
    releases = json.loads(said(releases_command, lake, "--json"))

    assert [release["release"] for release in releases] == [2, 1]
    assert releases[0]["created_at"] == "2026-11-20T14:30:00Z"
    assert releases[0]["frontier"] == "2026-11-15T00:00:00Z"
    assert releases[0]["table_versions"]["gold/hours"] == 1
    assert releases[0]["verdicts"] == {"counts_balance": "holds"}


def test_more_releases_than_are_listed_are_told(lake: Path) -> None:
    result = ran(releases_command, lake, "-n", "1")

    assert "new events" in result.stdout
    assert "first count" not in result.stdout
    assert "Only the newest 1 are listed" in result.stderr


def test_a_lake_without_releases_says_so(tmp_path: Path) -> None:
    assert isinstance(ran(releases_command, tmp_path).exception, NothingCountedError)


def test_changes_are_the_restated_numbers_after_a_release(lake: Path) -> None:
    changes = json.loads(said(changes_command, lake, "--since", "1", "--item", "a", "--json"))

    assert [(c["window"], c["measure"], c["old"], c["new"]) for c in changes] == [
        ("1d", "counted", 1, 2),
        ("1d", "received", 1, 2),
        ("1h", "counted", 1, 2),
        ("1h", "received", 1, 2),
    ]
    assert changes[0]["window_start"] == "2026-11-14T00:00:00Z"


def test_changes_that_were_cut_off_are_told(lake: Path) -> None:
    result = ran(changes_command, lake, "--since", "1", "--limit", "3")

    assert len([line for line in result.stdout.splitlines() if line.startswith("│")]) == 3
    assert "Only the first 3 changes" in result.stderr
    assert "No certified number changed." in said(changes_command, lake, "--since", "2")


# --- verify ---


def test_verify_ends_with_0_when_all_holds_and_1_when_one_does_not(tmp_path: Path) -> None:
    sound = model()
    sound.write(tmp_path / "sound")
    broken = model()
    broken.rows[HOURS.name][1]["counted"] += 1
    broken.write(tmp_path / "broken")

    good, bad = (ran(verify_command, tmp_path / name) for name in ("sound", "broken"))

    assert (good.exit_code, bad.exit_code) == (0, 1)
    assert "FAILS" not in good.stdout
    assert "hours_are_whole: 2 of 2 contradicting rows" in bad.stdout
    assert "lakeboard sql - <<'SQL'" in bad.stdout


def test_verify_as_json_has_query_and_sample(tmp_path: Path) -> None:
    lake = model().write(tmp_path)
    replace_table(lake, HOURS, [])  # no release names it: not seen

    (verdict,) = json.loads(said(verify_command, lake, "--json", "--only", "hours_are_whole"))

    assert (verdict["proof"], verdict["holds"], verdict["compared"], verdict["failures"]) == (
        "hours_are_whole",
        True,
        24,
        0,
    )
    assert verdict["query"].startswith("SELECT")
