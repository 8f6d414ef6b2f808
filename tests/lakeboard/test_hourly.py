"""`lakeboard hourly`: when a recount is due, and what is done again when it failed."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from domain.clock import utc_now
from domain.policy import DEFAULT_POLICY
from domain.tables import PLAYS
from domain.windows import HOUR, milliseconds
from ingest.arrow import arrow_schema
from ingest.lake_writer import BronzeWriter
from lakeboard.hourly import REBUILD, STATE_FILE, HourlyJob, Incomplete, certifiable, due_end, run
from lakeboard.part_state import PartStateFile
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.lake

GRACE = DEFAULT_POLICY.grace
SECOND = timedelta(seconds=1)


def read_through(lake: Path, *moments: datetime) -> None:
    """The lake writer of log `a` has read each partition to its end at these moments."""
    bronze = BronzeWriter(lake)
    bronze.create()
    marks = {f"read_to/a/{number}": milliseconds(moment) for number, moment in enumerate(moments)}
    bronze.append_from(PLAYS, arrow_schema(PLAYS).empty_table(), after={}, transactions={"log_in_use/a": 1, **marks})


def due(lake: Path, now: datetime, *, since: datetime) -> datetime | None:
    return due_end(lake, now, DEFAULT_POLICY, since=since)


def test_without_a_lake_nothing_is_due(tmp_path: Path) -> None:
    assert certifiable(tmp_path, at(12), DEFAULT_POLICY) is None
    assert not due(tmp_path, at(12), since=at(0))


def test_the_first_hour_to_end_after_the_start_makes_a_lake_without_release_due(tmp_path: Path) -> None:
    read_through(tmp_path, at(12) + GRACE, at(13))

    assert certifiable(tmp_path, at(13), DEFAULT_POLICY) == at(12)
    assert not due(tmp_path, at(13), since=at(12) + GRACE)
    assert due(tmp_path, at(13), since=at(12) + GRACE - SECOND) == at(12)


def test_an_hour_is_due_once_every_partition_was_read_past_its_grace(tmp_path: Path) -> None:
    model = ModelLake()
    model.release([Play("e", "a", at(11))], frontier=at(12))
    read_through(tmp_path, at(13) + GRACE, at(13) + GRACE - SECOND)
    model.write(tmp_path)
    now = at(13) + GRACE + HOUR

    assert not due(tmp_path, now, since=now)
    read_through(tmp_path, at(13) + GRACE, at(13) + GRACE)
    assert due(tmp_path, now, since=now) == at(13)
    assert not due(tmp_path, at(13) + GRACE - SECOND, since=now)  # whatever the log says, by our own clock it is early


class Turns:
    """Stops after so many looks; time goes on by ten minutes with each."""

    def __init__(self, turns: int, clock: list[datetime]) -> None:
        self.left = turns
        self.clock = clock
        self.waited: list[float] = []

    def is_set(self) -> bool:
        return self.left <= 0

    def wait(self, timeout: float) -> None:
        self.left -= 1
        self.waited.append(timeout)
        self.clock[0] += timedelta(minutes=10)


def commands_run(
    lake: Path,
    home: Path,
    *,
    turns: int,
    codes: dict[str, list[int]],
    incomplete: Callable[[], Incomplete] = frozenset,
    unpublished: bool = False,
    rebuild_due: Callable[[], str] = str,
) -> tuple[list[str], Turns]:
    """Which commands the loop runs, in order; each ends with the next of its codes, then with 0."""
    ran: list[str] = []
    now = [at(13)]
    stop = Turns(turns, now)

    def command(name: str, _: object) -> tuple[int, str]:
        ran.append(name)
        return (codes[name].pop(0) if codes.get(name) else 0), "said"

    run(
        HourlyJob(
            lake_root=lake,
            policy=DEFAULT_POLICY,
            clock=lambda: now[0],
            incomplete=incomplete,
            unpublished=lambda: unpublished,
            rebuild_due=rebuild_due,
            state=PartStateFile(home / STATE_FILE, utc_now),
            tell=lambda *_, **__: None,
            command=command,
        ),
        stop,
    )
    return ran, stop


def test_a_recount_that_certifies_nothing_is_not_run_over_and_over(tmp_path: Path) -> None:
    model = ModelLake()
    model.release([Play("e", "a", at(11))], frontier=at(12))
    read_through(tmp_path, at(13) + GRACE)
    model.write(tmp_path)

    ran, stop = commands_run(tmp_path, tmp_path, turns=12, codes={})

    assert ran == ["recount"]  # though the frontier stays where it was
    assert set(stop.waited) == {5.0}


def test_what_fails_is_tried_again_later_and_later(tmp_path: Path) -> None:
    model = ModelLake()
    model.release([Play("e", "a", at(11))], frontier=at(12))
    read_through(tmp_path, at(13) + GRACE)
    model.write(tmp_path)
    lost = frozenset({(3, "log")})

    ran, stop = commands_run(
        tmp_path,
        tmp_path,
        turns=9,
        codes={"restore": [1, 1], "recount": [1], "publish": [1]},
        incomplete=lambda: lost,
        unpublished=True,
    )

    assert ran == ["restore", "publish", "restore", "recount", "publish", "restore", "recount", "publish"]
    assert stop.waited[:4] == [30.0, 60.0, 5.0, 5.0]


def test_what_is_lost_again_is_restored_again(tmp_path: Path) -> None:
    one, two = frozenset({(1, "log")}), frozenset({(1, "log"), (2, "log")})
    looks = [one, one, frozenset(), one, two, two]

    ran, _ = commands_run(tmp_path, tmp_path, turns=len(looks), codes={}, incomplete=lambda: looks.pop(0))

    assert ran == ["restore", "restore", "restore"]


def test_boards_are_rebuilt_when_it_is_due_and_what_refuses_it_stays_said_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count(0, 20)
    monkeypatch.setattr("lakeboard.hourly.time.monotonic", lambda: float(next(seconds)))
    due = ["", "the day is over", "the day is over", ""]
    codes = {REBUILD: [3]}

    ran, stop = commands_run(tmp_path, tmp_path, turns=60, codes=codes, rebuild_due=lambda: due.pop(0) if due else "")

    assert ran == [REBUILD, REBUILD]
    assert set(stop.waited) == {5.0}
