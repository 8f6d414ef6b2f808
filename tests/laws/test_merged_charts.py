"""Merged charts against brute force over random logs: partitions that lag, stall and take views at their own pace."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from domain import merge
from domain.live_chart import Lack, LiveChart, unlisted
from domain.live_windows import LiveWindow
from domain.ranking import Scored, ranked
from domain.sketches.shape import Shapes, SketchShape
from domain.speed_policy import SpeedPolicy
from domain.windows import EPOCH, HOUR
from speed_layer import merger as merger_module
from speed_layer import moments
from speed_layer.store.lists import PartitionStatus
from speed_layer.store.ready import (
    ChartsStatus,
    decode_chart,
    decode_charts_status,
    encode_chart,
    encode_charts_status,
)
from tests.speed_layer.live_model import START, Played
from tests.speed_layer.merging import Merging

pytestmark = pytest.mark.law

ITEMS = ["ärger", "夜に駆ける", "🎵", *(f"track-{n}" for n in range(24))]
REGIONS = ["ZZ", "IN", "US-CA", "DE", "BR"]
TINY = SpeedPolicy(
    minutes=Shapes(SketchShape(width=64, head=5, exact=6), SketchShape(width=64, head=3, exact=4)),
    hour_heads=(7, 4),
    regions=4,  # of the five above, so one is folded into ZZ
    list_size=3,
)
ROOMY = SpeedPolicy()
SECOND = timedelta(seconds=1)
STEPS = [timedelta(seconds=s) for s in (0, 1, 3, 9, 60, 125, 3600)]


def log_of(random: Random, *, longest: int = 50) -> list[Played]:
    """Plays of a few items, now and then late or ahead, with pauses between."""
    logged, plays = START, []
    for position in range(random.randint(1, longest)):
        if random.random() < 0.3:
            logged += random.choice(STEPS)
        delay = timedelta(seconds=random.choice((0, 0, 0, 5, 70, 3700, -30, -400)))
        item = random.choice(ITEMS[:6] if random.random() < 0.6 else ITEMS)
        region = random.choice(REGIONS)
        count = random.choice((1, 1, 2, 5))
        plays.append(Played(position, logged, position, item, region, logged - delay, count=count))
    return plays


def require_charts(merging: Merging) -> None:
    """Every item of every chart within its bounds and rank range, and what is exact the truth."""
    for kind, moment in merging.moments.items():
        out = {one.partition for one in moment.partial if one.lack in (Lack.MISSING, Lack.LEFT_OUT)}
        inside = [number for number in range(len(merging.parts)) if number not in out]
        assert moment.as_of == min(at for n, at in enumerate(merging.as_of[kind]) if n in inside and at is not None)
        own = {one.partition: one.window for one in moment.partial if one.window is not None}
        assert all(kind.at(merging.as_of[kind][n] or START) == own.get(n, moment.window) for n in inside)
        for region in ("*", *REGIONS, "NOBODY"):
            truth: Counter[str] = Counter()
            plain: Counter[str] = Counter()
            truth.update(merging.of_batch[kind].get(region, {}))
            plain.update(merging.of_batch[kind].get(region, {}))
            for counted, sent in (merging.truths[kind][number] for number in inside):
                truth += counted.get(region, Counter())
                plain += sent.get(region, Counter())
            chart = merging.charts.get((kind, region), unlisted(moment))
            require_chart(chart, truth, plain, whole=not moment.partial)


def require_chart(chart: LiveChart, truth: Mapping[str, int], plain: Mapping[str, int], *, whole: bool) -> None:
    top = chart.top
    places = {scored.item_id: at for at, scored in enumerate(ranked(map(Scored, truth, truth.values())), 1)}
    rows = {row.item_id: row for row in top.rows}
    for item, row in rows.items():
        assert row.lower <= truth.get(item, 0) <= row.upper
        if item in places:
            assert row.rank_min <= places[item] <= row.rank_max
    for counts in (truth, plain):  # what is folded into ZZ may be plays of this region
        assert max((count for item, count in counts.items() if item not in rows), default=0) <= top.missed_max
    assert sum(truth.values()) <= top.total
    if top.exact and whole:
        assert [(row.item_id, row.lower) for row in top.rows] == [(i, truth[i]) for i in places][: len(top.rows)]


def check_a_log(seed: int, policy: SpeedPolicy, *, certify: bool = False) -> Counter[str]:
    """Read a random log in pieces; some partitions idle, some stall, some publish late. Count what was met."""
    random = Random(seed)
    merging, plays = Merging(4, policy), log_of(random)
    met: Counter[str] = Counter()
    while plays:
        taken, plays = plays[:8], plays[8:]
        merging.read(taken)
        stalled = random.randrange(5)
        for number, part in enumerate(merging.parts):
            if number != stalled:
                part.live.advance(taken[-1].logged)
        publishing = [n for n in range(4) if n != stalled and random.random() < 0.9]
        if certify and random.random() < 0.4:
            read_to = min(part.live.as_of for part in merging.parts) - policy.grace
            merging.publish_view(EPOCH + (read_to - EPOCH) // HOUR * HOUR, most=random.choice((2, 100)))
        if merging.views:
            for number in [n for n in publishing if random.random() < 0.7]:
                merging.take_view(number)
        merging.cycle(publishing)
        require_charts(merging)
        met.update(lack.lack for moment in merging.moments.values() for lack in moment.partial)
        met.update(joined=len(merging.of_batch.get(LiveWindow.DAY, {})))
        met.update(exact="exact" * any(c.top.exact and c.top.rows for c in merging.charts.values()) != "")
    return met


@settings(max_examples=settings().max_examples // 2)
@given(st.integers(0, 2**32), st.sampled_from([TINY, ROOMY]))
@example(11548, TINY)  # plays that go into ZZ, of a region of which there is a chart and no list
def test_merged_rows_ranks_and_exactness_hold_whatever_stalls(seed: int, policy: SpeedPolicy) -> None:
    check_a_log(seed, policy)


@settings(max_examples=settings().max_examples // 2)
@given(st.integers(0, 2**32), st.sampled_from([TINY, ROOMY]))
def test_they_hold_while_batch_takes_over_hour_after_hour(seed: int, policy: SpeedPolicy) -> None:
    """Views come and are taken by some partitions sooner than by others: no hole, no overlap, in any cycle."""
    check_a_log(seed, policy, certify=True)


def test_the_law_meets_charts_with_batch_in_them() -> None:
    assert sum(check_a_log(seed, ROOMY, certify=True)["joined"] for seed in range(15)) > 15


def test_the_law_meets_partitions_that_lag_are_left_out_and_missing_and_charts_that_are_exact() -> None:
    met = sum((check_a_log(seed, ROOMY) for seed in range(20)), Counter[str]())

    assert {"lagging", "left_out", "missing", "exact"} <= set(met), met


def test_charts_and_moments_come_back_from_their_bytes_as_they_were() -> None:
    for seed in range(20):
        merging, plays = Merging(4, TINY), log_of(Random(seed))
        merging.read(plays)
        found = merging.cycle(range(3))
        assert found.charts
        for chart in found.charts.values():
            assert chart is None or decode_chart(encode_chart(chart)) == chart
        status = ChartsStatus(written_ms=7, cycle=seed, view="v", moments=found.moments)
        assert decode_charts_status(encode_charts_status(status)) == status


# --- the law sees what breaks it ---


def some_log_fails(*, certify: bool = False) -> bool:
    for seed in range(25):
        try:
            check_a_log(seed, TINY, certify=certify)
        except AssertionError:
            return True
    return False


def test_the_law_sees_residuals_that_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge.LocalTop, "missed_max", property(lambda top: 0 if top.cut is None else top.cut.upper))
    assert some_log_fails()


def test_the_law_sees_cuts_that_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge.LocalTop, "missed_max", property(lambda top: top.residual))
    assert some_log_fails()


def test_the_law_sees_plays_in_zz_that_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merger_module, "hidden_top", lambda _: merge.LocalTop(rows=(), cut=None, residual=0, total=0))
    assert some_log_fails()


def test_the_law_sees_lists_of_another_span_that_are_joined_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = moments._behind
    monkeypatch.setattr(moments, "_behind", lambda *given: replace(whole(*given), window=None))
    assert some_log_fails()


def test_the_law_sees_partitions_of_different_views_that_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    last: list[str | None] = [None]

    def any_view(kind: LiveWindow, status: PartitionStatus) -> str | None:
        if kind is LiveWindow.DAY and status.view is not None:
            last[0] = max(last[0] or "", status.view)
        return last[0] if kind is LiveWindow.DAY else None

    monkeypatch.setattr(moments, "_view", any_view)
    assert some_log_fails(certify=True)
