"""Wikipedia's edits of a day as if they came now: asked every half hour, each answer is held against all edits."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from domain.live_windows import MINUTE
from domain.windows import HOUR
from tests.end_to_end.test_live_replay import DAY, edits_of_the_day
from tests.end_to_end.test_real_data import EDITS
from tests.serving.api_server import until
from tests.serving.live_world import ROWS, Answer, Event, World, as_of, hour_of, live_world

pytestmark = pytest.mark.redis

STEP, ASKED = 10 * MINUTE, 30 * MINUTE
QUESTIONS = [(window, region) for window in ("1m", "1h", "1d") for region in ("*", "US", "ZZ")]


def test_each_chart_of_a_whole_day_is_true_at_its_moment(tmp_path: Path) -> None:
    exact = asked = 0
    with live_world(tmp_path) as world:
        for now, events in steps_of_the_day():
            world.write(now, events)
            world.catch_up()
            if (now - DAY) % HOUR == 20 * MINUTE:  # batch is done with the hour before
                certify(world, hour_of(now))
            if (now - DAY) % ASKED == timedelta(0):
                for answer in answers(world, now):
                    world.require_true(answer)
                    assert "partial" not in answer
                    exact += answer["exact"]
                    asked += 1

        whole = next(answer for answer in answers(world, now) if (answer["window"], answer["region"]) == ("1d", "*"))
    assert len(world.plays) == EDITS
    assert exact > asked / 2
    assert (asked, len(world.views)) == (47 * len(QUESTIONS), 24)
    assert whole["frontier"] == "2015-09-12T23:00:00Z"


def steps_of_the_day() -> Iterator[tuple[datetime, list[Event]]]:
    """Moments of the day and the edits since the one before; the last includes the end of the day."""
    edits, done = edits_of_the_day(), 0
    for number in range(1, 24 * 6 + 1):
        now = DAY + number * STEP
        end = next((n for n in range(done, len(edits)) if edits[n].at >= now), len(edits))
        yield (
            now - timedelta(milliseconds=1) if end == len(edits) else now,
            [Event(edit.page, edit.region, edit.at) for edit in edits[done:end]],
        )
        done = end


def certify(world: World, frontier: datetime) -> None:
    world.publish(frontier)
    for number in range(len(world.publishers.parts)):
        world.hand_over(number)


def answers(world: World, now: datetime) -> Iterator[Answer]:
    for window, region in QUESTIONS:
        found: list[Answer] = []

        def is_of_now(path: str, found: list[Answer] = found) -> bool:
            found[:] = [world.serving.get(path).json()]
            return "as_of" in found[0] and as_of(found[0]) == now

        path = f"/v1/charts/top?window={window}&region={region}&n={ROWS}"
        until(lambda path=path: is_of_now(path), f"{path} is of {now}")
        yield found[0]
