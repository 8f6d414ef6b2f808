import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from deltalake import CommitProperties, Transaction, write_deltalake

from domain.rules import Rules
from domain.tables import HOURLY_COUNTS, HOURS, PLAYS, RELEASES
from ingest.arrow import arrow_schema
from jobs.guard import Versions
from lakeboard import checks_of_installation as installation
from lakeboard import checks_of_lake as lake
from lakeboard.checks import Check, State
from lakeboard.commands import doctor
from lakeboard.commands.doctor import doctor_command, examined
from lakeboard.settings import Settings
from tests import lake_rows
from tests.lakes import ModelLake, Play, at, replace_table

pytestmark = pytest.mark.lake

OK, WARNING, PROBLEM = State.OK, State.WARNING, State.PROBLEM


class SettingsAt(Settings, frozen=True, kw_only=True):
    """Settings of a moment: an hour after the model's frontier, unless told otherwise."""

    now: datetime = at(2, day=15)

    def clock(self) -> datetime:
        return self.now


def model(rules: Rules | None = None) -> ModelLake:
    counted = ModelLake(rules=rules or Rules())
    counted.release([Play("e1", "a", at(1)), Play("e2", "b", at(3))], frontier=at(1, day=15))
    return counted


def written(counted: ModelLake, home: Path) -> Path:
    """Write a lake whose bronze knows its writer's last transaction, as the model's own does not."""
    counted.write(home / "lake")
    last = CommitProperties(app_transactions=[Transaction(lake_rows.WRITER, len(counted.releases))])
    nothing = arrow_schema(PLAYS).empty_table()
    write_deltalake(home / "lake" / PLAYS.name, nothing, mode="append", commit_properties=last)
    return home


@pytest.fixture(scope="module")
def written_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(model(), tmp_path_factory.mktemp("home"))


@pytest.fixture
def home(written_once: Path, tmp_path: Path) -> Path:
    shutil.copytree(written_once, tmp_path, dirs_exist_ok=True)
    return tmp_path


def checked(home: Path, now: datetime | None = None) -> dict[str, Check]:
    """Checks of the lake and its rules by name."""
    settings = SettingsAt(home=home) if now is None else SettingsAt(home=home, now=now)
    return {check.name: check for check in (*lake.rules(settings), *lake.lake(settings))}


def states(checks: dict[str, Check]) -> dict[str, State]:
    return {name: check.state for name, check in checks.items() if check.state is not OK}


# --- the lake ---


def test_a_lake_with_everything_counted_is_well(home: Path) -> None:
    checks = checked(home)

    assert states(checks) == {}
    assert not [check for check in checks.values() if check.step]
    assert checks["not counted"].found == "all 2 events are counted"
    assert checks["release"].found.startswith("release 1 of 2026-11-20")
    assert checks["frontier"].found == "certified up to 2026-11-15 01:00 UTC, 1 hours ago"
    assert checks["tables"].found.startswith("all 7 derived tables")
    assert checks["reader version"].found.startswith("1 in all 10 tables")


def test_before_an_import_it_says_how_to_begin(tmp_path: Path) -> None:
    checks = checked(tmp_path)

    assert states(checks) == {"lake": WARNING}
    assert "lakeboard import" in checks["lake"].step
    assert list(tmp_path.iterdir()) == []


def test_before_a_recount_it_says_how_many_events_wait(home: Path) -> None:
    replace_table(home / "lake", RELEASES, [])

    checks = checked(home)

    assert states(checks) == {"release": WARNING, "not counted": WARNING}
    assert checks["not counted"].found == "2 events"
    assert "recount" in checks["not counted"].step


def test_new_events_are_counted_by_their_number(home: Path) -> None:
    later = model()
    later.release([Play("e3", "a", at(2))], frontier=at(1, day=15))
    replace_table(home / "lake", PLAYS, later.rows[PLAYS.name])

    checks = checked(home)

    assert states(checks) == {"not counted": WARNING}
    assert checks["not counted"].found == "1 of 3 events"


def test_bronze_that_lost_what_was_counted_is_a_problem(home: Path) -> None:
    replace_table(home / "lake", PLAYS, model().rows[PLAYS.name][:1])

    check = checked(home)["not counted"]

    assert check.state is PROBLEM
    assert "went back: the number of rows was 2 and is 1" in check.found


def test_a_frontier_of_long_ago_is_a_warning(home: Path) -> None:
    assert states(checked(home, now=at(1, day=16))) == {}

    checks = checked(home, now=at(1, day=16) + timedelta(microseconds=1))

    assert states(checks) == {"frontier": WARNING}
    assert "24 hours ago" in checks["frontier"].found


def test_tables_that_a_killed_recount_left_are_named(home: Path) -> None:
    replace_table(home / "lake", HOURS, [])

    checks = checked(home)

    assert states(checks) == {"tables": WARNING}
    assert "gold/hours" in checks["tables"].found
    assert "gold/charts" not in checks["tables"].found
    assert "recount" in checks["tables"].step


def test_tables_that_lost_commits_are_a_problem(home: Path) -> None:
    log = home / "lake" / HOURLY_COUNTS.name / "_delta_log"
    max(log.glob("*.json")).unlink()

    checks = checked(home)

    assert states(checks) == {"tables": PROBLEM}
    assert "gold/hourly_counts" in checks["tables"].found


def test_a_table_that_old_readers_cannot_open_is_a_problem(home: Path) -> None:
    first = home / "lake" / HOURS.name / "_delta_log" / f"{0:020d}.json"
    first.write_text(first.read_text(encoding="utf-8").replace('"minReaderVersion":1', '"minReaderVersion":2'),
                     encoding="utf-8")  # fmt: skip

    checks = checked(home)

    assert states(checks) == {"reader version": PROBLEM}
    assert "gold/hours (2)" in checks["reader version"].found


RULE = "[[minimum_duration]]\nfrom = 2026-01-01\nduration_ms = 30000\n"


def test_rules_in_force_are_said_and_compared_with_the_release(home: Path) -> None:
    (home / "rules.toml").write_text(RULE, encoding="utf-8")

    checks = checked(home)

    assert "in force since 2026-01-01 00:00 UTC: plays shorter than 30,000 ms" in checks["rules.toml"].found
    assert states(checks) == {"rules": WARNING}
    written(model(Rules.parse(RULE)), home / "other")
    (home / "other" / "rules.toml").write_text(RULE, encoding="utf-8")
    assert states(checked(home / "other")) == {}


def test_rules_of_the_future_are_not_in_force() -> None:
    rules = Rules.parse(RULE)

    assert lake.in_force(rules, at(0)).startswith("in force")
    assert lake.in_force(rules, datetime(2025, 12, 31, tzinfo=UTC)).endswith("every play counts; 1 begin later")
    assert lake.in_force(Rules(), at(0)) == "no rule in force, every play counts"


@pytest.mark.parametrize("content", [b"[[minimum_duration]]\nduration_ms = -1", b"\xff"])
def test_rules_that_cannot_be_read_are_a_problem(home: Path, content: bytes) -> None:
    (home / "rules.toml").write_bytes(content)

    checks = checked(home)

    assert states(checks) == {"rules.toml": PROBLEM}
    assert "rules.toml" in checks["rules.toml"].step


# --- what is installed ---

WELL = Versions(
    java=17,
    java_home=Path("/java"),
    pyspark="4.1.4",
    delta_spark="4.4.0",
    pandas="2.3.3",
    jars=(
        "delta-spark_4.1_2.13-4.4.0.jar",
        "delta-storage-4.4.0.jar",
        "delta-kernel-api-4.4.0.jar",
        "delta-kernel-defaults-4.4.0.jar",
        "delta-kernel-unitycatalog-4.4.0.jar",
        "unitycatalog-client-0.6.0.jar",
        "hadoop-bare-naked-local-fs-0.1.0.jar",
    ),
)
NOTHING = Versions(java=None, java_home=None, pyspark=None, delta_spark=None, pandas=None, jars=())


def test_the_parts_of_spark_are_judged_by_the_guard() -> None:
    assert {check.name: check.state for check in installation.spark_parts(Settings(), WELL)} == {
        "packages": OK,
        "Java": OK,
        "jars": OK,
    }
    problems = [check for check in installation.spark_parts(Settings(), NOTHING) if check.state is PROBLEM]
    assert [check.name for check in problems] == ["packages", "packages", "Java"]
    assert problems[2].found == "no Java was found, and Spark needs Java 17"
    assert {check.step for check in problems} == {"run `make setup`"}


@pytest.mark.parametrize(("version", "state"), [((3, 11, 0), OK), ((3, 12, 1), PROBLEM), ((3, 10, 9), PROBLEM)])
def test_python_must_be_that_of_the_lock(version: tuple[int, ...], state: State) -> None:
    assert [check.state for check in installation.python_version(version)] == [state]


@pytest.mark.parametrize(
    ("switched_on", "fetched", "state"),
    [(False, False, OK), (False, True, OK), (True, True, OK), (True, False, PROBLEM)],
)
def test_the_accelerators_jar_is_needed_only_when_it_is_on(
    tmp_path: Path, switched_on: bool, fetched: bool, state: State
) -> None:
    if fetched:
        (tmp_path / "accelerator").mkdir()
        (tmp_path / "accelerator" / "comet.jar").touch()

    (check,) = installation.accelerator(Settings(jars=tmp_path, accelerator=switched_on))

    assert check.state is state
    assert ("make accelerator" in check.step) is (state is PROBLEM)


def program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_server_that_set_up_recorded_comes_before_the_one_on_path(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "redis-server", "Redis server v=7.2.4 sha=0")
    recorded = program(tmp_path / "own" / "valkey-server", "Server v=8.1.0 sha=0")
    settings, record = Settings(search_path=str(tmp_path / "bin")), tmp_path / ".venv" / "server_binary"
    record.parent.mkdir()

    record.write_text(f"{recorded}\n", encoding="utf-8")
    (first,) = installation.server(settings, tmp_path)
    recorded.unlink()
    (second,) = installation.server(settings, tmp_path)

    assert (first.state, first.found) == (OK, f"valkey-server 8 in {tmp_path / 'own'}")
    assert (second.state, second.found) == (OK, f"redis-server 7 in {tmp_path / 'bin'}")


def test_an_old_server_or_none_is_a_warning(tmp_path: Path) -> None:
    settings = Settings(search_path=str(tmp_path / "bin"))
    (none,) = installation.server(settings, tmp_path)
    program(tmp_path / "bin" / "redis-server", "Redis server v=6.0.16 sha=0")
    (old,) = installation.server(settings, tmp_path)

    assert none == old
    assert none.state is WARNING
    assert "redis-server 7.0" in none.step


def test_the_home_folder_must_be_one_that_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()

    def of(home: Path) -> Check:
        (check,) = installation.home(Settings(home=home))
        return check

    assert of(tmp_path) == Check("home folder", OK, str(tmp_path))
    assert of(tmp_path / "a" / "b").found.endswith("not there yet: the first import makes it")
    assert (of(tmp_path / "file").state, of(tmp_path / "file" / "a").state) == (PROBLEM, PROBLEM)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

    monkeypatch.setattr(installation, "_writable", lambda _: False)  # root may write everywhere
    assert of(tmp_path).state is PROBLEM


def test_a_folder_counts_as_writable_only_when_a_file_can_be_made_in_it() -> None:
    assert not installation._writable(Path("/proc"))


@pytest.mark.parametrize(
    ("free", "state"), [(10**12, OK), (5 * 10**9, OK), (5 * 10**9 - 1, WARNING), (10**9, WARNING), (10**9 - 1, PROBLEM)]
)
def test_free_disk_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: State) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free))

    (check,) = installation.disk(Settings(home=tmp_path / "later"))

    assert check.state is state
    assert bool(check.step) is (state is not OK)


class Usage:
    def __init__(self, free: int) -> None:
        self.free = free


def test_chosen_settings_are_shown(tmp_path: Path) -> None:
    (plain,) = installation.choices(Settings(home=tmp_path))
    (tmp_path / "lakeboard.toml").touch()
    (chosen,) = installation.choices(Settings(home=tmp_path, driver_memory="8g"))

    assert plain.found == "no lakeboard.toml; all are the defaults"
    assert chosen.found == f"{tmp_path / 'lakeboard.toml'} is read; driver_memory = 8g"


# --- the command ---


@pytest.fixture
def well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has everything, whatever the one has that runs the tests."""
    monkeypatch.setattr(installation, "found_versions", lambda **_: WELL)
    monkeypatch.setattr(installation, "find_java_home", lambda **_: Path("/java"))


@pytest.mark.usefixtures("well")
def test_the_command_prints_json_and_leaves_with_0_without_a_problem(home: Path) -> None:
    result = CliRunner().invoke(doctor_command, ["--json"], obj=SettingsAt(home=home))

    checks = json.loads(result.stdout)
    assert result.exit_code == 0
    assert [set(check) for check in checks] == [{"check", "state", "found", "next"}] * len(checks)
    assert {"settings", "Python", "packages", "Java", "jars", "accelerator", "server", "home folder", "free disk",
            "log server", "views server", "rules.toml", "release", "frontier", "not counted", "tables",
            "reader version"} == {
        check["check"] for check in checks}  # fmt: skip


@pytest.mark.usefixtures("well")
def test_the_command_leaves_with_1_when_there_is_a_problem_and_goes_on(home: Path) -> None:
    (home / "rules.toml").write_text("nonsense", encoding="utf-8")

    result = CliRunner().invoke(doctor_command, [], obj=SettingsAt(home=home))

    assert result.exit_code == 1
    assert "problem" in result.stdout
    assert "reader version" in result.stdout


@pytest.mark.usefixtures("well")
def test_a_warning_is_no_problem(tmp_path: Path) -> None:
    result = CliRunner().invoke(doctor_command, [], obj=SettingsAt(home=tmp_path))

    assert result.exit_code == 0
    assert "warning" in result.stdout


@pytest.mark.usefixtures("well")
def test_settings_that_cannot_be_read_are_a_problem_among_others(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOARD_HOME", str(home))
    monkeypatch.setenv("LAKEBOARD_SHUFFLE_PARTITIONS", "many")

    result = CliRunner().invoke(doctor_command, ["--json"])

    checks = {check["check"]: check for check in json.loads(result.stdout)}
    assert result.exit_code == 1
    assert checks["settings"]["state"] == "problem"
    assert checks["settings"]["found"].startswith("LAKEBOARD_SHUFFLE_PARTITIONS: shuffle_partitions must be")
    assert checks["release"]["found"].startswith("release 1")


@pytest.mark.usefixtures("well")
def test_a_check_that_fails_is_a_problem_and_the_others_are_made(home: Path) -> None:
    log = home / "lake" / RELEASES.name / "_delta_log"
    for commit in log.glob("*.json"):
        commit.write_text("nonsense", encoding="utf-8")

    checks = {check.name: check for check in examined(SettingsAt(home=home))}

    assert checks["lake"].state is PROBLEM
    assert "gold/releases" in checks["lake"].found
    assert checks["rules.toml"].state is OK


def test_a_doctor_does_not_faint() -> None:
    def fainting() -> Iterator[Check]:
        yield Check("y", OK, "before")
        message = "first line\nsecond line"
        raise ValueError(message)

    assert doctor._survived("x", fainting) == [
        Check("y", OK, "before"),
        Check("x", PROBLEM, "ValueError: first line", lake.LOOK_UP),
    ]
