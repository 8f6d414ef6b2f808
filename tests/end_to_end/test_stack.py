"""`lakeboard up` as its user sees it: starts, survives kills, stops, and leaves nothing behind."""

import json
import os
import re
import signal
import stat
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.clock import utc_now
from domain.live_windows import MINUTE
from tests.stacks import FAST_COMMITS, LAKEBOARD, Stack, free_port, running_stack, until

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("stack") / "home") as running:
        yield running


def test_the_printed_curl_works_as_it_stands_and_the_play_reaches_bronze(stack: Stack) -> None:
    curl = next(line.strip() for line in stack.said.splitlines() if line.strip().startswith("curl "))

    answer = subprocess.run(["bash", "-c", curl], capture_output=True, text=True, timeout=30, check=True).stdout

    assert json.loads(answer) == {"accepted": 1, "duplicates": 0, "errors": []}
    until(lambda: stack.ids_in_bronze() == ["first-play"], "the play is in bronze")


def test_status_shows_every_part_and_leaves_with_0_when_all_is_well(stack: Stack) -> None:
    shown, as_json = stack.run("status"), stack.run("status", "--json")

    assert (shown.returncode, as_json.returncode) == (0, 0), shown.stdout
    assert shown.stdout.endswith("all is well\n")
    facts = json.loads(as_json.stdout)
    assert [(part["name"], part["state"]) for part in facts["parts"]] == [
        ("log", "up"),
        ("views", "up"),
        ("lake-writer", "up"),
        ("speed", "up"),
        ("merger", "up"),
        ("boards", "up"),
        ("api", "up"),
    ]
    assert {part["pid"] for part in facts["parts"]} <= set(stack.processes())
    assert (facts["url"], facts["problems"]) == (stack.url, [])
    assert facts["log"]["refusal"] is None
    assert facts["log"]["readers"] == ["boards", "lake_writer", "speed_layer"]
    assert (facts["speed"]["partitions"], facts["speed"]["held"]) == (8, {})
    assert facts["log"]["max_memory"] == 128 << 20
    assert facts["lake"]["last_commit_age_seconds"] < 30


def test_secrets_and_sockets_are_their_owners_alone(stack: Stack) -> None:
    def mode(name: str) -> int:
        return stat.S_IMODE((stack.home / name).stat().st_mode)

    assert {name: oct(mode(name)) for name in ("dev.key", "keys.json")} == {"dev.key": "0o600", "keys.json": "0o600"}
    assert {name: oct(mode(name)) for name in ("run", "log", "views", "logs")} == dict.fromkeys(
        ("run", "log", "views", "logs"), "0o700"
    )
    secret = (stack.home / "dev.key").read_text().strip()
    assert secret not in stack.said
    assert not [path for path in (stack.home / "logs").iterdir() if secret in path.read_text()]


def test_a_second_stack_in_the_same_home_is_refused_with_the_process_of_the_first(stack: Stack) -> None:
    assert stack.process is not None

    second = stack.run("up", "--port", str(free_port()))

    assert second.returncode == 1
    assert f"is run by process {stack.process.pid} already" in second.stderr
    assert stack.run("status").returncode == 0


def test_a_taken_port_is_said_before_anything_is_started(stack: Stack, tmp_path: Path) -> None:
    other = Stack(tmp_path / "other", port=stack.port)

    other.begin()
    until(other.has_ended, "it gives up")

    assert other.process is not None
    assert other.process.returncode == 1
    assert f"port {stack.port} on 127.0.0.1 cannot be used (another program listens there)" in other.said
    assert f"`lakeboard up --port {stack.port + 1}`" in other.said
    assert not list((other.home / "logs").iterdir())
    assert not (other.home / "dev.key").exists()


def test_the_doctor_finds_the_running_servers_safe(stack: Stack) -> None:
    checks = {check["check"]: check for check in json.loads(stack.run("doctor", "--json").stdout)}

    assert checks["log server"]["state"] == "ok"
    assert checks["log server"]["found"].endswith("is safe")
    assert checks["views server"]["found"].endswith("is fit")


@pytest.mark.parametrize("name", ["log", "views", "lake-writer", "speed", "merger", "boards", "api"])
def test_a_part_that_is_killed_is_started_again_and_well(stack: Stack, name: str) -> None:
    before = stack.part(name)

    os.kill(before["pid"], signal.SIGKILL)

    until(lambda: stack.part(name)["restarts"] == before["restarts"] + 1, f"{name} is started again")
    until(lambda: stack.part(name)["state"] == "up", f"{name} is up again")
    after = stack.part(name)
    assert after["pid"] != before["pid"]
    assert after["last_end"] == "was ended by SIGKILL"
    until(lambda: posted(stack, f"after-{name}"), "it accepts again")
    until(lambda: f"after-{name}" in stack.ids_in_bronze(), "what it accepted is in bronze")


def posted(stack: Stack, event_id: str) -> bool:
    try:
        return stack.post({"item_id": "a", "event_id": event_id})[0] == 202
    except OSError:
        return False


def test_a_part_that_does_not_answer_makes_status_leave_with_1(stack: Stack) -> None:
    before = stack.part("views")
    os.kill(before["pid"], signal.SIGSTOP)
    try:
        until(lambda: stack.part("views")["state"] == "unwell", "it is noticed")
        status = stack.run("status")
    finally:
        os.kill(before["pid"], signal.SIGCONT)

    assert status.returncode == 1
    assert "not well: views is unwell (does not answer" in status.stdout
    until(lambda: stack.part("views")["state"] == "up", "it is up again")
    assert stack.part("views")["restarts"] == before["restarts"]


def test_a_killed_supervisor_takes_everything_with_it_and_a_stop_leaves_no_process(tmp_path: Path) -> None:
    with running_stack(tmp_path / "home", settings={**FAST_COMMITS, "LAKEBOARD_WORKERS": "2"}) as stack:
        assert stack.process is not None
        left, key = stack.processes(), (stack.home / "dev.key").read_text()
        assert len(stack.workers()) == 2
        assert {
            stack.part(name)["pid"] for name in ("log", "views", "lake-writer", "speed", "merger", "boards", "api")
        } <= set(left)

        stack.process.kill()
        stack.process.wait()
        stack.start()  # at once

        assert not set(left) & set(stack.processes())
        assert (stack.home / "dev.key").read_text() == key
        stack.post([{"item_id": "a", "event_id": f"e{number}"} for number in range(100)])
        assert stack.stop(signal.SIGTERM) == 0, stack.said
        assert stack.processes() == {}
        assert len(stack.ids_in_bronze()) == 100  # the lake writer committed them before it left
        assert not (stack.home / "run" / "stack.json").exists()
        status = stack.run("status")
        assert status.returncode == 1
        assert "no stack runs" in status.stdout


def test_a_replay_stamps_plays_by_its_clock(tmp_path: Path) -> None:
    command = (str(LAKEBOARD), "up", "--clock", "2015-09-12T06:00Z,60")
    with running_stack(tmp_path / "home", command=command) as stack:
        assert posted(stack, "e1")
        until(lambda: stack.ids_in_bronze() == ["e1"], "the play is in bronze")

        status = stack.run("status")

        assert status.returncode == 0, status.stdout
        assert "a replay" in status.stdout
        replay = re.search(r"LAKEBOARD_REPLAY='(\S+)' lakeboard recount", stack.said)
        assert replay is not None
        assert replay[1].startswith("2015-09-12T06:00:00+00:00,")
        day = (stack.home / "lake" / "bronze" / "plays" / "event_date=2015-09-12").exists()
        assert day


def test_a_bad_clock_is_one_sentence(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "home")

    result = stack.run("up", "--clock", "yesterday")

    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "write START,SPEED, such as" in result.stderr


def test_a_chart_moves_while_generated_plays_are_sent_and_has_all_of_them_in_the_end(stack: Stack) -> None:
    def indian() -> int:
        curl = ["curl", "-sf", f"{stack.url}/v1/charts/top?window=1h&region=IN&n=10"]
        return int(json.loads(subprocess.run(curl, capture_output=True, check=True).stdout)["total"])

    environment = stack.environment | {"LAKEBOARD_PORT": str(stack.port)}
    a_minute_ago = f"{utc_now() - MINUTE:%Y-%m-%dT%H:%M:%SZ}"
    pipeline = (
        f"{LAKEBOARD} generate --events 3000 --regions IN --start {a_minute_ago} --days 0.0005 -o - --format jsonl"
        f" | {LAKEBOARD} send - --url {stack.url} --format jsonl"
        " --id event_id --item item_id --time event_time --region region --rate 500 --batch 50"
    )
    before, seen = indian(), set[int]()
    with subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", pipeline], env=environment, stderr=subprocess.PIPE
    ) as sending:
        while sending.poll() is None:
            seen.add(indian())
            time.sleep(0.1)
        assert sending.returncode == 0, sending.stderr and sending.stderr.read()
    until(lambda: indian() == before + 3000, "all plays are in the chart", 10)

    assert any(before < total < before + 3000 for total in seen), seen  # it took 6 s or more, and moves each second


def test_the_feed_moves_the_charts_until_it_is_asked_to_end(stack: Stack) -> None:
    def total() -> int:
        with urllib.request.urlopen(f"{stack.url}/v1/top?window=1h&k=1", timeout=10) as answer:  # noqa: S310
            return int(json.load(answer)["total"])

    before = total()
    environment = stack.environment | {"LAKEBOARD_PORT": str(stack.port)}
    with subprocess.Popen([LAKEBOARD, "feed", "--rate", "100"], env=environment, stderr=subprocess.DEVNULL) as feed:
        try:
            until(lambda: total() >= before + 100, "a hundred made-up plays are in the chart")
            feed.send_signal(signal.SIGTERM)
            assert feed.wait(timeout=15) == 0
        finally:
            feed.kill()
    assert json.loads((stack.home / "run" / "feed.json").read_bytes())["state"] == "stopped"
