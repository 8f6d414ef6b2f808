"""What became of plays, from the consumer to `/metrics` of a running API."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from domain.windows import EPOCH, HOUR
from ingest.redis_log import RedisLog
from speed_layer.store.connection import Views
from speed_layer.store.keys import MERGED_VIEW
from speed_layer.store.views import ViewStore
from tests.log_entries import play
from tests.serving.api_server import api
from tests.speed_layer.consuming import append, consume_once, view_of

pytestmark = pytest.mark.redis

MICROSECOND = timedelta(microseconds=1)


def metrics(text: str, name: str) -> Mapping[str, float]:
    """The values of one metric by its labels."""
    found = re.findall(rf"^{name}\{{(.*)\}} (\S+)$", text, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def test_late_and_repeated_plays_and_the_lag_are_metered_by_partition(
    log: RedisLog, views: Views, tmp_path: Path
) -> None:
    hour = (log.now() - EPOCH) // HOUR
    before_frontier = (hour - 3) * (HOUR // MICROSECOND)
    view = replace(view_of(log, "v1", hour - 1, 0), copies={"duplicate": 3, "conflict": 1})
    ViewStore(views).write(view)
    views.client.set(MERGED_VIEW, "v1")
    append(log, 0, play("a", "x"), play("b", "y"), play("a", "x"), play("late", "x", us=before_frontier))
    append(log, 1, play("c", "z"))

    consume_once(log.address, views, tmp_path)
    with api(tmp_path / "api", log.address, views_url=views.address) as found, found.client() as client:
        text = client.get("/metrics").text

    plays = metrics(text, "lakeboard_live_plays_total")
    outcomes = {name: plays[f'outcome="{name}",partition="0"'] for name in ("read", "copy", "counted", "late")}
    assert outcomes == {"read": 4, "copy": 1, "counted": 2, "late": 1}
    assert plays['outcome="late",partition="1"'] == 0
    lags = metrics(text, "lakeboard_live_lag_seconds")
    assert set(lags) == {'partition="0"', 'partition="1"'}
    assert all(0 <= lag < 60 for lag in lags.values())
    assert metrics(text, "lakeboard_batch_copies") == {'reason="duplicate"': 3, 'reason="conflict"': 1}
