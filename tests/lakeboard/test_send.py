"""`lakeboard send` against a service on a real socket: what is sent, sent again, refused, and where it stood."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from domain.clock import utc_now
from domain.policy import Policy
from ingest.importers.request import Format
from lakeboard.commands.send import send_command
from tests.event_service import HANG_UP, KEY, EventService, Reply, running
from tests.ingest.importing import import_into, plays, rejects

pytestmark = pytest.mark.e2e

COLUMNS = ("--item", "item", "--time", "time")


@dataclass
class Settings:
    home: Path
    policy: Policy = field(default_factory=Policy)

    @property
    def lake_root(self) -> Path:
        return self.home / "lake"

    def clock(self) -> datetime:
        return utc_now()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    (path / "dev.key").write_text(f"{KEY}\n")
    return path


def send(home: Path, service: EventService, *arguments: str | Path) -> Result:
    given = [*map(str, arguments), "--url", service.url]
    return CliRunner().invoke(send_command, given, obj=Settings(home))


def summary(result: Result) -> dict[str, Any]:
    assert result.exception is None, (result.exception, result.stderr)
    body: dict[str, Any] = json.loads(result.stdout)
    return body


def numbered(path: Path, rows: int) -> Path:
    """A file whose row n happened in second n of 2024."""
    lines = (f"song {n % 7},2024-01-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z\n" for n in range(rows))
    path.write_text("item,time\n" + "".join(lines))
    return path


def rejected(home: Path, source: str) -> list[dict[str, Any]]:
    path = home / "sent" / f"{source}.rejects.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


ODD = """item,time,where,who,ms,n
a,2024-01-01T00:00:00.123456Z,in,u1,1000,3
b,soon,,,,
,2024-01-01,,,,
e\u0301x,2024-01-01,,,,
c,2024-01-01T12:00:00+05:30,bad region,,,
d,2024-01-01,se,u2,-1,
e,1999-12-31T23:59:59.9999999Z,,,2.9,1
f,2024-01-01,de,,,,too many
"""
MORE: dict[str, Any] = {"region": "where", "user": "who", "duration": "ms", "count": "n"}
MORE_OPTIONS = [part for name, column in MORE.items() for part in (f"--{name}", column)]


def as_event(row: dict[str, Any]) -> dict[str, Any]:
    """A row of bronze in the words of an event."""
    said = {name: row[name] for name in ("event_id", "item_id", "region", "user_id", "duration_ms", "count")}
    return said | {"event_time": row["event_time"].astimezone(UTC)}


def as_row(event: dict[str, Any]) -> dict[str, Any]:
    unsaid = {"region": "ZZ", "user_id": None, "duration_ms": None, "count": 1}
    return unsaid | event | {"event_time": datetime.fromisoformat(event["event_time"])}


@pytest.mark.parametrize("options", [{}, {"dedup_by_content": True}, {"source": "s", "event_id": "time"}])
def test_rows_ids_and_rejects_are_those_of_an_import(tmp_path: Path, home: Path, options: dict[str, Any]) -> None:
    file = tmp_path / "odd.csv"
    file.write_text(ODD, encoding="utf-8")
    import_into(tmp_path / "lake", file, now=utc_now(), **MORE, **options)
    flags = {"dedup_by_content": ["--dedup-by-content"], "source": ["--source", "s"], "event_id": ["--id", "time"]}

    with running(EventService()) as service:
        result = send(home, service, file, *COLUMNS, *MORE_OPTIONS, *(part for name in options for part in flags[name]))

    imported = [as_event(row) for row in plays(tmp_path / "lake")]
    assert [as_row(event) for event in service.taken] == imported
    assert len(imported) == 3
    names = ("reason", "detail", "source_row", "source_line", "payload")
    there = [{name: row[name] for name in names} for row in rejects(tmp_path / "lake")]
    here = [{name: row[name] for name in names} for row in rejected(home, options.get("source", "odd"))]
    assert here == there
    assert f"{len(there)} refused" in result.stdout
    assert "time_invalid 1" in result.stdout


def test_every_row_is_accounted_for_and_refusals_of_the_service_are_kept(tmp_path: Path, home: Path) -> None:
    file = numbered(tmp_path / "plays.csv", 2_500)
    with running(
        EventService(refuse=lambda event: "in_the_future" if event["item_id"] == "song 3" else None)
    ) as service:
        body = summary(send(home, service, file, *COLUMNS, "--batch", "100", "--json"))

    refused = [n for n in range(2_500) if n % 7 == 3]
    assert (body["accepted"], body["refused"]) == (2_500 - len(refused), len(refused))
    assert body["files"][0]["refused_by_reason"] == {"in_the_future": len(refused)}
    assert sorted(service.ids()) == sorted(f"plays#0:{n}" for n in range(2_500) if n % 7 != 3)
    kept = rejected(home, "plays")
    assert sorted(row["row"] for row in kept) == sorted(row["source_row"] for row in kept) == refused
    assert json.loads(kept[0]["payload"])["event_id"] == f"plays#0:{kept[0]['row']}"
    assert body["rejects"] == str(home / "sent" / "plays.rejects.jsonl")


def test_a_request_of_which_no_row_is_good_is_no_failure(tmp_path: Path, home: Path) -> None:
    with running(EventService(refuse=lambda _event: "in_the_future")) as service:
        body = summary(send(home, service, numbered(tmp_path / "p.csv", 5), *COLUMNS, "--json"))

    assert (body["accepted"], body["refused"]) == (0, 5)


def flaky(number: int, _events: list[dict[str, Any]]) -> Reply | None:
    """Every kind of trouble once, some of it after the events were taken."""
    return {
        0: Reply(503, {"retry-after": "0"}),
        1: Reply(429, {"retry-after": "0"}, take_first=True),
        3: Reply(500),
        4: Reply(HANG_UP, take_first=True),
        6: Reply(502, take_first=True),
        8: Reply(408),
    }.get(number)


def test_troubles_are_tried_again_with_the_same_ids_until_every_row_is_taken(tmp_path: Path, home: Path) -> None:
    file = numbered(tmp_path / "plays.csv", 400)
    with running(EventService(script=flaky)) as service:
        result = send(home, service, file, *COLUMNS, "--batch", "50", "--json")
        body = summary(result)

    assert body["accepted"] == 400
    assert set(service.ids()) == {f"plays#0:{n}" for n in range(400)}
    assert len(service.ids()) == 400 + 3 * 50  # taken without an answer, and taken again
    assert "does not take events" in result.stderr


def test_it_waits_for_as_long_as_the_service_asks(tmp_path: Path, home: Path) -> None:
    once = {0: Reply(503, {"retry-after": "1"})}
    with running(EventService(script=lambda number, _events: once.get(number))) as service:
        summary(send(home, service, numbered(tmp_path / "p.csv", 3), *COLUMNS, "--json"))

    first, second = service.arrivals
    assert second - first >= 1


def environment(home: Path) -> dict[str, str]:
    return os.environ | {"LAKEBOARD_HOME": str(home)}


def test_a_service_that_comes_back_is_found(tmp_path: Path, home: Path) -> None:
    """It is not there when sending begins; the port is free until then."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "lakeboard", "send", str(numbered(tmp_path / "p.csv", 30)), *COLUMNS]
    sender = subprocess.Popen([*command, "--url", f"http://127.0.0.1:{port}", "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment(home))  # fmt: skip
    assert sender.stderr is not None
    assert sender.stdout is not None
    assert "does not take events" in sender.stderr.readline()
    with running(EventService(), port=port) as service:
        assert sender.wait(60) == 0
    assert len(service.taken) == json.loads(sender.stdout.read())["accepted"] == 30


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (Reply(401, {}, {"detail": "no key"}), "does not take this key (401: no key)"),
        (Reply(403, {}, {"code": "role_missing"}), "does not take this key (403: role_missing)"),
        (Reply(400, {}, {"detail": "bad\nbody"}), "refused the request (400: bad body)"),
        (Reply(200, {}, {"accepted": 2}), "does not account for the 50 rows"),
    ],
)
def test_what_cannot_get_better_ends_it_with_one_sentence(
    tmp_path: Path, home: Path, reply: Reply, sentence: str
) -> None:
    with running(EventService(script=lambda number, _events: reply if number == 4 else None)) as service:
        file = numbered(tmp_path / "p.csv", 1_000)
        result = send(home, service, file, *COLUMNS, "--batch", "50", "--connections", "1")

    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)
    assert len(service.requests) == 5
    assert "--from-row 200" in result.stderr


def test_it_gives_up_when_nothing_is_taken_for_long(tmp_path: Path, home: Path) -> None:
    with running(EventService(script=lambda _number, _events: Reply(503, {"retry-after": "0"}))) as service:
        result = send(home, service, numbered(tmp_path / "p.csv", 3), *COLUMNS, "--give-up", "0.3")

    assert "took nothing for" in str(result.exception)
    assert len(service.requests) > 1


def test_going_on_from_a_row_sends_the_others_under_the_ids_of_the_whole_file(tmp_path: Path, home: Path) -> None:
    first, second = numbered(tmp_path / "a.csv", 300), tmp_path / "b.csv"
    second.write_text("item,time\n" + "x,2024-01-01\ny,soon\n" * 50)
    with running(EventService(script=lambda number, _e: Reply(400) if number == 3 else None)) as stopped:
        result = send(home, stopped, first, second, *COLUMNS, "--source", "s", "--batch", "100", "--connections", "1")
    assert "--from-row 300" in result.stderr
    assert len(stopped.taken) == 300

    with running(EventService()) as service:
        rest = (*COLUMNS, "--source", "s", "--from-row", "310", "--json")
        body = summary(send(home, service, first, second, *rest))

    assert sorted(service.ids()) == sorted(f"s#1:{n}" for n in range(10, 100, 2))
    assert [file["read"] for file in body["files"]] == [0, 90]
    assert sorted(row["row"] for row in rejected(home, "s")) == list(range(301, 400, 2))  # those from before stay


def test_ctrl_c_says_where_it_stood_and_loses_nothing(tmp_path: Path, home: Path) -> None:
    file = numbered(tmp_path / "plays.csv", 3_000)
    command = [sys.executable, "-m", "lakeboard", "send", str(file), *COLUMNS, "--rate", "1000", "--connections", "2"]
    with running(EventService()) as service:
        sender = subprocess.Popen([*command, "--url", service.url], stderr=subprocess.PIPE, text=True,
                                  env=environment(home))  # fmt: skip
        deadline = time.monotonic() + 60
        while len(service.taken) < 300:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        sender.send_signal(signal.SIGINT)
        _, complaint = sender.communicate(timeout=60)

    assert sender.returncode == 130
    stood = int(complaint.split("--from-row ")[1].split()[0])
    assert 300 <= stood < 3_000
    assert {f"plays#0:{n}" for n in range(stood)} <= set(service.ids())
    assert "stopped" in complaint


def test_a_rate_and_a_speed_hold_it_back(tmp_path: Path, home: Path) -> None:
    file = numbered(tmp_path / "p.csv", 61)  # a minute of its own time
    with running(EventService()) as service:
        at_rate = summary(send(home, service, file, *COLUMNS, "--rate", "100", "--json"))
    with running(EventService()) as replay:
        at_speed = summary(send(home, replay, file, *COLUMNS, "--speed", "60x", "--json"))

    assert at_rate["seconds"] >= 0.5
    assert at_speed["seconds"] >= 0.9
    assert len(service.requests) > 4
    assert len(replay.requests) > 4


def test_the_standard_input_is_sent_when_its_rows_have_ids(home: Path) -> None:
    lakeboard = [sys.executable, "-m", "lakeboard"]
    with running(EventService()) as service:
        made = subprocess.Popen(
            [*lakeboard, "generate", "--events", "8000", "-o", "-", "--format", "jsonl"], stdout=subprocess.PIPE
        )
        sent = subprocess.run(
            [*lakeboard, "send", "-", "--format", "jsonl", "--id", "event_id", "--item", "item_id", "--time",
             "event_time", "--url", service.url, "--json"],
            stdin=made.stdout, env=environment(home), capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        assert made.wait(60) == 0

    assert json.loads(sent.stdout)["accepted"] == len(set(service.ids())) == 8_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-", "--format", "csv", *COLUMNS], "its rows need ids of their own"),
        (["-", "--format", "parquet", *COLUMNS, "--id", "i"], "can only be csv or jsonl"),
        (["{file}", "--item", "nothing", "--time", "time"], "no column 'nothing'"),
        (["{file}", *COLUMNS, "--rate", "5", "--speed", "2x"], "give only one of them"),
        (["{file}", *COLUMNS, "--speed", "fast"], "'fast' is no speed"),
        (["{file}", *COLUMNS, "--key-file", "{file}x"], "has no key"),
        (["{file}", *COLUMNS, "--key-file", "{file}"], "has no key (it is no text of a key)"),
        ([], "nothing to import"),
    ],
)
def test_wrong_use_is_one_sentence(tmp_path: Path, home: Path, arguments: list[str], sentence: str) -> None:
    file = numbered(tmp_path / "p.csv", 3)
    with running(EventService()) as service:
        result = send(home, service, *(argument.format(file=file) for argument in arguments))

    assert sentence in str(result.exception) + result.stderr
    assert service.requests == []


def test_a_url_that_is_none_is_refused(tmp_path: Path, home: Path) -> None:
    given = [str(numbered(tmp_path / "p.csv", 3)), *COLUMNS, "--url", "127.0.0.1:8080"]
    result = CliRunner().invoke(send_command, given, obj=Settings(home))

    assert "no address of a service" in str(result.exception)


def test_other_formats_are_read_as_an_import_reads_them(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "plays.jsonl"
    file.write_text('{"song": {"id": 7}, "at": 1704067200}\n{"song": {}, "at": 1}\nbroken\n')
    options: dict[str, Any] = {"item": "song.id", "time": "at", "time_format": "epoch_s", "format": Format.JSONL}
    import_into(tmp_path / "lake", file, now=utc_now(), **options)

    with running(EventService()) as service:
        send(home, service, file, "--item", "song.id", "--time", "at", "--time-format", "epoch_s")

    assert [as_row(event) for event in service.taken] == [as_event(row) for row in plays(tmp_path / "lake")]
    assert [row["reason"] for row in rejected(home, "plays")] == ["item_missing", "unreadable_row"]
