"""Whose turn it is, what is free, and what is said: the parts of the stack that start nothing."""

import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from lakeboard.commands.demo import demo_command
from lakeboard.commands.status import ago
from lakeboard.commands.up import banner
from lakeboard.replay import replay_clock, replay_from, replay_text
from lakeboard.settings import Settings
from lakeboard.stack.facts import LakeFacts, batch_lateness
from lakeboard.stack.health import is_listening, state_probe
from lakeboard.stack.launch import LogKeeper, PortTakenError, UnsafeFolderError, make_folders, require_port
from lakeboard.stack.state import (
    PartReport,
    StackReport,
    StackRunningError,
    only_supervisor,
    read_report,
    report_path,
    write_report,
)
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.fast

NOW = datetime(2026, 11, 14, 12, tzinfo=UTC)


# --- one supervisor a home ---


def test_a_second_supervisor_is_told_who_the_first_one_is(tmp_path: Path) -> None:
    with only_supervisor(Path("home"), tmp_path):
        with pytest.raises(StackRunningError, match=f"is run by process {os.getpid()} already"):
            only_supervisor(Path("home"), tmp_path).__enter__()
        write_report(tmp_path, report := StackReport(pid=1, started=NOW, host="h", port=1, replay="", parts=[]))
        assert read_report(tmp_path) == report

    assert report_path(tmp_path).exists()
    assert read_report(tmp_path) is None  # what a killed one left says nothing


def test_a_socket_file_that_a_killed_server_left_is_not_a_server(tmp_path: Path) -> None:
    path = tmp_path / "log.sock"
    assert not is_listening(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert is_listening(path)
    assert path.exists()
    assert not is_listening(path)


def test_a_port_that_is_taken_is_named_with_the_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError) as caught:
            require_port("127.0.0.1", port)
    assert f"port {port} on 127.0.0.1" in str(caught.value)
    assert f"lakeboard up --port {port + 1}" in str(caught.value) or port == 65535
    require_port("127.0.0.1", port)
    with pytest.raises(PortTakenError, match=r"no\.such\.host\.invalid"):
        require_port("no.such.host.invalid", 8080)


def test_folders_with_sockets_and_events_are_their_owners_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=tmp_path / "home")
    (tmp_path / "home" / "log").mkdir(parents=True, mode=0o755)

    make_folders(settings)

    assert {name: oct((settings.home / name).stat().st_mode & 0o777) for name in ("run", "log", "views", "logs")} == (
        dict.fromkeys(("run", "log", "views", "logs"), "0o700")
    )
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(UnsafeFolderError, match="another user's"):
        make_folders(settings)


# --- what is said ---


def test_the_keeper_tells_when_the_log_begins_and_ends_to_refuse() -> None:
    said: list[str] = []
    answers = iter([None, "the disk is full", "the disk is fuller", None])
    keeper = LogKeeper(lambda: next(answers), said.append)

    for _ in range(4):
        keeper.look()

    assert said == ["the log refuses events: the disk is full", "the log accepts events again"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "has not written its state yet"),
        ('{"pid": 6, "state": "working"}', "has not written its state yet"),
        ('{"pid": 7, "state": "working"}', None),
        ('{"pid": 7, "state": "waiting", "problem": "the disk is full"}', "is waiting: the disk is full"),
    ],
)
def test_the_lake_writer_is_well_when_its_own_state_says_so(
    tmp_path: Path, content: str | None, problem: str | None
) -> None:
    path = tmp_path / "lake-writer.json"
    if content is not None:
        path.write_text(content)

    assert state_probe(path)(7) == problem


def test_the_banner_has_a_curl_that_reads_the_key_and_the_clock_of_a_replay() -> None:
    clock = replay_from("2015-09-12,60", lambda: NOW)

    plain = banner(Settings(home=Path("/srv/h"), port=9000, host="0.0.0.0"), home=Path("h"))  # noqa: S104  named only
    replay = banner(Settings(replay=clock), home=Path("my home"))

    assert (
        'curl -s -X POST http://127.0.0.1:9000/v1/events -H "Authorization: Bearer $(cat h/dev.key)" '
        """-d '{"item_id":"first-song","event_id":"first-play"}'"""
    ) in plain
    assert "\n  lakeboard recount\n" in plain
    assert """$(cat 'my home/dev.key')""" in replay
    assert "LAKEBOARD_REPLAY='2015-09-12T00:00:00+00:00,2026-11-14T12:00:00+00:00,60.0' lakeboard recount" in replay


def test_a_clock_is_the_same_after_it_was_written_and_read() -> None:
    clock = replay_from("2015-09-12T03:00+03:00,0.5", lambda: NOW)

    assert replay_clock(replay_text(clock)) == clock
    assert clock.start == datetime(2015, 9, 12, tzinfo=UTC)
    assert clock.of_server(datetime(2026, 11, 14, 12, 2, tzinfo=UTC)) == datetime(2015, 9, 12, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "soon,60", "2015-09-12T00:00,60", "2015-09-12,0", "2015-09-12,fast", "1,2,3"])
def test_a_clock_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        replay_from(text, lambda: NOW)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (61, "1 min 1 s"), (90_061, "1 d 1 h"), (3_600, "1 h")])
def test_spans_are_said_by_their_two_largest_units(seconds: int, text: str) -> None:
    assert ago(seconds) == text


def test_reports_of_parts_survive_their_file(tmp_path: Path) -> None:
    part = PartReport(name="log", pid=7, state="up", since=NOW, restarts=2, last_end="was ended", problem="")
    report = StackReport(pid=1, started=NOW, host="h", port=1, replay="", parts=[part])
    with only_supervisor(Path("home"), tmp_path):
        write_report(tmp_path, report)
        assert read_report(tmp_path) == report


def test_the_demo_of_an_empty_lake_leaves_a_lake_with_a_release_alone(tmp_path: Path) -> None:
    counted = ModelLake()
    counted.release([Play("e1", "a", at(1))], frontier=at(1, day=15))
    counted.write(tmp_path / "lake")

    result = CliRunner().invoke(demo_command, ["--if-empty"], obj=Settings(home=tmp_path))

    assert (result.exit_code, result.output) == (0, "")
    assert not (tmp_path / "lake" / "_imports").exists()


def test_batch_that_missed_two_hours_is_said_with_how_long_the_live_day_lasts() -> None:
    def said(frontier: datetime | None) -> list[str]:
        lake = LakeFacts(
            last_commit=NOW, last_commit_age_seconds=0, release=1, release_age_seconds=0, frontier=frontier
        )
        return batch_lateness(lake, NOW)

    assert said(None) == said(NOW.replace(hour=9)) == []
    (problem,) = said(NOW.replace(hour=8))
    assert problem.startswith("batch is late: certified up to 2026-11-14 08:00 UTC only")
    assert "has all until 2026-11-15 09:00 UTC" in problem
