"""The lag of each partition of the live counting, as `/metrics` has it."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from domain.windows import EPOCH
from ingest.log_clock import ENTRY_CLOCK_NOW, ReplayClock
from serving.live_state import LiveCollector, LiveState, read_live_state
from speed_layer.store.connection import Views, ViewsUnavailableError, connect
from speed_layer.store.lists import PartitionStatus
from speed_layer.store.publishing import Publishing
from speed_layer.store.state import StateStore
from tests.views_server import views_server

SECOND = timedelta(seconds=1)


@pytest.fixture
def views(tmp_path: Path) -> Iterator[Views]:
    with views_server(tmp_path) as server, connect(server.address) as views:
        yield views


def say(views: Views, partition: int, *, as_of_ms: int, written_ms: int) -> None:
    lease = StateStore(views).acquire(partition)
    assert lease is not None
    status = PartitionStatus(
        log_id="log",
        position=1,
        as_of_ms=as_of_ms,
        complete_from_ms=0,
        view=None,
        frontier_hour=None,
        folding=False,
        policy="p",
        cycle=1,
        written_ms=written_ms,
        plays={"read": 7, "late": 2},
    )
    Publishing(views).publish(lease, status, {}, whole=True)


@pytest.mark.redis
def test_each_partition_has_its_lag_and_its_silence(views: Views) -> None:
    now = views.now_ms()
    say(views, 0, as_of_ms=now - 90_000, written_ms=now - 500)
    say(views, 2, as_of_ms=now + 90_000, written_ms=now)  # a clock that steps back makes no lag below none
    state = read_live_state(views.address, range(4), clock=ENTRY_CLOCK_NOW)
    assert 90 * SECOND <= state.lags[0] < 100 * SECOND
    assert 0.5 * SECOND <= state.silences[0] < 10 * SECOND
    assert state.lags[2] == timedelta(0)
    assert set(state.lags) == set(state.silences) == {0, 2}
    assert state.plays == {0: {"read": 7, "late": 2}, 2: {"read": 7, "late": 2}}


@pytest.mark.redis
def test_in_a_replay_the_lag_is_of_its_clock(views: Views) -> None:
    start = EPOCH + timedelta(days=10_000)
    say(views, 0, as_of_ms=10_000 * 86_400_000 - 5000, written_ms=0)
    clock = ReplayClock(start=start, began=start, speed=0.0)
    assert read_live_state(views.address, [0], clock=clock).lags == {0: 5 * SECOND}


@pytest.mark.fast
def test_the_numbers_are_seconds_by_partition() -> None:
    state = LiveState(lags={3: 2 * SECOND}, silences={3: SECOND}, plays={3: {"late": 4}}, copies={"conflict": 5})
    families = list(LiveCollector(state).collect())
    assert [(f.name, [(s.labels, s.value) for s in f.samples]) for f in families] == [
        ("lakeboard_live_lag_seconds", [({"partition": "3"}, 2.0)]),
        ("lakeboard_live_silence_seconds", [({"partition": "3"}, 1.0)]),
        ("lakeboard_live_plays", [({"partition": "3", "outcome": "late"}, 4)]),
        ("lakeboard_batch_copies", [({"reason": "conflict"}, 5)]),
    ]


@pytest.mark.fast
def test_a_views_server_that_is_away_is_said_to_be() -> None:
    with pytest.raises(ViewsUnavailableError):
        read_live_state("redis://127.0.0.1:1", [0], clock=ENTRY_CLOCK_NOW)
