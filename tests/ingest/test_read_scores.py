"""What the lake gives to boards that are made again, with a base and without."""

from pathlib import Path
from random import Random

import pytest

from domain.boards.events import EventKind, PlacedEvent
from ingest.read_scores import score_history
from tests.board_lake import DAY_US, LOGS, BoardLake, Logged
from tests.speed_layer.boards.shard import event

DECISIONS = {EventKind.BAN, EventKind.RESTORE}


@pytest.fixture
def lake(tmp_path: Path) -> BoardLake:
    """Some days of two logs, all of it in the lake."""
    found = BoardLake(tmp_path / "lake")
    found.happen(Random(1), 60, LOGS[0])
    found.happen(Random(2), 60, LOGS[1])
    found.write()
    return found


def given(lake: BoardLake, base: dict[str, int] | None = None) -> list[tuple[str, PlacedEvent]]:
    history = score_history(lake.root, LOGS[1], base)
    return [(source, placed) for source, some in history.events for placed in some]


def source(one: Logged) -> str:
    return f"{one.log}/{one.partition}"


def positions(events: list[Logged]) -> dict[str, int]:
    return {source(one): one.placed.position.version for one in events}


def test_without_a_base_all_of_it_comes_each_source_in_the_order_of_its_log_the_log_in_use_last(
    lake: BoardLake,
) -> None:
    found = given(lake)
    in_order = sorted(lake.events, key=lambda one: (one.log, one.partition, one.placed.position))

    assert [(where, placed.position) for where, placed in found] == [
        (source(one), one.placed.position) for one in in_order
    ]
    newest = {one.partition: one.placed.position.version for one in lake.events if one.log == LOGS[1]}
    assert score_history(lake.root, LOGS[1]).positions == newest


def test_with_a_base_what_it_lacks_two_days_before_that_and_every_ban_come(lake: BoardLake) -> None:
    half = len(lake.events) * 3 // 4
    found = given(lake, positions(lake.events[:half]))
    first = min(one.placed.logged_us for one in lake.events[half:])
    since = (first // DAY_US - 1) * DAY_US
    wanted = {
        (source(one), one.placed.position)
        for one in lake.events
        if one.placed.logged_us >= since or one.placed.event.kind in DECISIONS
    }

    got = {(where, placed.position) for where, placed in found}
    assert got == wanted
    assert len(got) < len(lake.events)
    assert any(placed.event.kind in DECISIONS and placed.logged_us < since for _, placed in found)


def test_a_base_that_has_everything_needs_two_days_and_one_that_knows_no_source_all(lake: BoardLake) -> None:
    days = {placed.logged_us // DAY_US for _, placed in given(lake, positions(lake.events)) if placed.event.kind
            not in DECISIONS}  # fmt: skip
    last = lake.events[-1].placed.logged_us // DAY_US

    assert days <= {last - 1, last}
    assert len(given(lake, {})) == len(lake.events)


def test_a_source_that_the_base_does_not_know_comes_from_its_beginning(lake: BoardLake) -> None:
    known = positions(lake.events)
    known.pop(f"{LOGS[0]}/0")

    got = {(where, placed.position) for where, placed in given(lake, known)}
    assert got >= {(source(one), one.placed.position) for one in lake.events if source(one) == f"{LOGS[0]}/0"}


def test_a_lake_without_scores_gives_nothing(tmp_path: Path) -> None:
    assert given(BoardLake(tmp_path)) == []
    lake = BoardLake(tmp_path)
    lake.add([event(game="sum", match_id="1", score=1)])
    lake.write()
    assert len(given(lake, {})) == 1
