"""Parts, supervisor, locks and folders of the stack, with small programs in place of servers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer

import pytest

from lakeboard.stack.part import Backoff, Part, PartPlan, PartState, rotate
from lakeboard.stack.processes import has_ended, is_alive, started
from lakeboard.stack.state import (
    ServerLeftError,
    StackReport,
    report_path,
    server_lock,
)
from lakeboard.stack.supervisor import Supervisor

pytestmark = pytest.mark.redis  # processes in place of servers: too slow for the fast ones

NOW = datetime(2026, 11, 14, 12, tzinfo=UTC)
SLEEPS = "import time; time.sleep(600)"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
SHORT = Backoff(first=0.05, longest=0.2, healthy=60)


def until(fact: Callable[[], object], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.01)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def part(tmp_path: Path, said: list[str]) -> Iterator[Callable[..., Part]]:
    """Makes parts that run Python code, and ends them after the test."""
    made: list[Part] = []

    def make(code: str, *, name: str = "part", backoff: Backoff = SHORT, **plan: object) -> Part:
        options = {"probe": lambda _: None, **plan}
        part = Part(
            plan=PartPlan(name=name, command=python(code), **options),  # type: ignore[arg-type]
            log=tmp_path / f"{name}.log",
            environment={},
            say=said.append,
            backoff=backoff,
        )
        made.append(part)
        return part

    yield make
    for each in made:
        each.kill()


def stepped(part: Part, fact: Callable[[], object], well: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    def step() -> object:
        part.step(well)
        return fact()

    until(step)


# --- processes ---


def test_a_child_is_killed_with_its_parent_however_the_parent_ends(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from lakeboard.stack.processes import started\n"
        f"child = started([sys.executable, '-c', {DEAF!r}], log=Path({str(tmp_path / 'log')!r}), environment={{}})\n"
        "print(child.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen(python(code), stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    until(lambda: (tmp_path / "log").read_text() == "deaf\n")
    assert is_alive(child)

    parent.kill()
    parent.wait()

    until(lambda: not is_alive(child))
    parent.stdout.close()


def test_what_a_part_leaves_behind_is_ended_with_it(tmp_path: Path) -> None:
    code = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {SLEEPS!r}]).pid, flush=True)"
    process = started(python(code), log=tmp_path / "log", environment={})

    until(lambda: has_ended(process))

    until(lambda: not is_alive(int((tmp_path / "log").read_text())))
    assert process.returncode == 0


# --- one part ---


def test_the_wait_doubles_up_to_thirty_seconds() -> None:
    assert [Backoff().before(end) for end in range(1, 9)] == [1, 2, 4, 8, 16, 30, 30, 30]


def test_a_part_that_ended_says_so_and_is_started_again(part: Callable[..., Part], said: list[str]) -> None:
    ends = part("import sys; print('no luck'); sys.exit(3)", probe=lambda _: "not yet")

    stepped(ends, lambda: ends.restarts == 2)

    assert [line.split(" (see")[0] for line in said[:2]] == [
        "part ended with code 3 (no luck); starting it again in 0.05 s",
        "part ended with code 3 (no luck); starting it again in 0.1 s",
    ]
    assert ends.state is PartState.STARTING


def test_health_for_long_enough_makes_the_next_end_the_first_one(part: Callable[..., Part], said: list[str]) -> None:
    runs = part(SLEEPS, backoff=Backoff(first=0.01, longest=5, healthy=0.1))
    for _ in range(2):
        stepped(runs, lambda: runs.state is PartState.UP)
        time.sleep(0.15)  # of health
        runs.kill()
        stepped(runs, lambda: runs.process is None)

    assert [line for line in said if "ended" in line] == [
        f"part was ended by SIGKILL; starting it again in 0.01 s (see {runs.log})"
    ] * 2


def test_a_part_waits_for_what_it_needs_and_tells_before_others_see_it_up(part: Callable[..., Part]) -> None:
    order: list[str] = []
    needy: Part = part(SLEEPS, needs=("log",), on_ready=lambda: order.append(needy.state.value))

    needy.step(set())
    assert needy.process is None
    stepped(needy, lambda: needy.state is PartState.UP, {"log"})

    assert order == ["starting"]


def test_a_part_that_stops_answering_is_unwell_and_up_again_when_it_answers(
    part: Callable[..., Part], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeboard.stack.part.PROBE_EVERY_SECONDS", 0.01)
    problem: list[str | None] = [None]
    silent = part(SLEEPS, probe=lambda _: problem[0])
    stepped(silent, lambda: silent.state is PartState.UP)

    problem[0] = "does not answer"
    stepped(silent, lambda: silent.state is PartState.UNWELL)
    pid = silent.pid
    problem[0] = None
    stepped(silent, lambda: silent.state is PartState.UP)

    assert silent.pid == pid
    assert said[1] == f"part (process {pid}) does not answer"


def test_a_long_log_is_put_aside(tmp_path: Path) -> None:
    log = tmp_path / "api.log"
    log.write_text("short")
    rotate(log)
    assert log.exists()
    with log.open("wb") as file:
        file.truncate((10 << 20) + 1)

    rotate(log)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["api.log.1"]


# --- the supervisor ---


def supervised(run: Path, parts: list[Part], on_all_up: Callable[[], None]) -> None:
    report = StackReport(pid=os.getpid(), started=NOW, host="h", port=1, replay="", parts=[])
    Supervisor(parts, run=run, report=report, clock=lambda: NOW, on_all_up=on_all_up, each_turn=lambda _: None).run()


def ask(number: int = signal.SIGTERM, after: float = 0.0) -> None:
    Timer(after, os.kill, (os.getpid(), number)).start()


NOTES_ITS_END = """
import signal, sys, time
def end(*_):
    with open({file!r}, "a") as file: file.write({name!r} + " ")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
open({ready!r}, "w").close()
time.sleep(600)
"""


def test_parts_are_stopped_in_reverse_and_none_is_left(tmp_path: Path, part: Callable[..., Part]) -> None:
    notes = tmp_path / "notes"
    names = ["log", "views", "lake-writer", "api"]

    def made(name: str) -> Part:
        ready = tmp_path / f"{name}.ready"
        code = NOTES_ITS_END.format(file=str(notes), name=name, ready=str(ready))
        return part(code, name=name, probe=lambda _: None if ready.exists() else "not yet")

    parts = [made(name) for name in names]

    supervised(tmp_path, parts, ask)

    assert notes.read_text().split() == names[::-1]
    report = report_path(tmp_path).read_text()
    assert report.count('"stopped"') == 4
    assert all(each.process is not None and each.process.returncode == 0 for each in parts)


@pytest.mark.parametrize("signals", [1, 2])
def test_a_part_that_does_not_end_is_killed_after_its_time_or_at_a_second_signal(
    tmp_path: Path, part: Callable[..., Part], said: list[str], signals: int
) -> None:
    deaf: Part = part(DEAF, probe=lambda _: None if deaf.log.read_text() else "not yet",
                stop_seconds=0.2 if signals == 1 else 60)  # fmt: skip

    def all_up() -> None:
        for count in range(signals):
            ask(signal.SIGINT, after=0.1 * count)

    began = time.monotonic()
    supervised(tmp_path, [deaf], all_up)

    assert time.monotonic() - began < 10
    assert deaf.process is not None
    assert deaf.process.returncode == -signal.SIGKILL
    assert said[-1] == "part does not end; killing it"


# --- locks ---


def test_the_lock_of_a_server_lives_as_long_as_the_server(tmp_path: Path) -> None:
    with server_lock(tmp_path, "log") as descriptor:
        server = started(python(SLEEPS), log=tmp_path / "out", environment={}, held=[descriptor])
    with pytest.raises(ServerLeftError, match="a log server that is not of this stack"):
        server_lock(tmp_path, "log", wait_seconds=0.1).__enter__()

    Timer(0.2, server.kill).start()

    with server_lock(tmp_path, "log", wait_seconds=5):
        until(lambda: has_ended(server))
