"""Whatever happens to a lake, what a release said can be asked of it again."""

from datetime import datetime, timedelta

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from domain.policy import Policy
from domain.rules import Rules
from domain.windows import DAY, HOUR, Granularity, Window
from ingest.lake_reader import LakeReader
from tests.lakes import ModelLake, Play, at

EXCLUDE_ALL = Rules.parse('[[minimum_duration]]\nduration_ms = 1\nmissing = "exclude"')

_ITEMS, _REGIONS = ("a", "b", "B", "é", "\U0001f3b5"), ("IN", "ZZ")
_MOMENTS = [at(0), at(1), at(1, 59), at(23), at(0, day=15), at(7, day=15)]
_PLAYS = st.builds(
    Play,
    st.sampled_from(["e1", "e2", "e3", "e4", "e5", "e6"]),
    st.sampled_from(_ITEMS),
    st.sampled_from(_MOMENTS),
    st.sampled_from(_REGIONS),
    st.integers(1, 3),
)
_STEPS = st.tuples(st.lists(_PLAYS, max_size=6), st.integers(0, 30), st.sampled_from([Rules(), EXCLUDE_ALL]))
_SPANS = st.tuples(st.integers(0, 47), st.integers(1, 48)).map(
    lambda span: Window(at(span[0]), at(span[0]) + timedelta(hours=span[1]))
)


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0)


_WINDOWS = st.one_of(
    st.sampled_from(_MOMENTS).map(lambda moment: (_hour(moment), Granularity.HOUR)),
    st.sampled_from([at(0), at(0) + DAY]).map(lambda moment: (moment, Granularity.DAY)),
)


def played(steps: list[tuple[list[Play], int, Rules]]) -> ModelLake:
    model = ModelLake(policy=Policy(chart_size=3))
    frontier = at(0) - HOUR
    for plays, hours, rules in steps:
        frontier += timedelta(hours=hours)
        model.rules = rules
        model.release(plays, frontier=frontier)
    return model


# Every try writes a lake, so a failing one is shown as it was found: shrinking it would take minutes.
@settings(max_examples=15, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(steps=st.lists(_STEPS, min_size=2, max_size=4), data=st.data())
def test_any_chart_and_count_as_of_any_release_is_what_that_release_said(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[Play], int, Rules]], data: st.DataObject
) -> None:
    model = played(steps)
    with LakeReader(model.write(tmp_path_factory.mktemp("any"))) as reader:
        for number in range(1, len(steps) + 1):
            release = reader.releases.numbered(number)
            for start, length in data.draw(st.lists(_WINDOWS, min_size=4, max_size=4)):
                region = data.draw(st.sampled_from([*_REGIONS, "*"]))
                window = Window.starting(start, length)
                answer = reader.chart(length, window, region=region, n=3, release=release)
                said = model.charts_of[number].get((start, region, length.value), [])
                assert [(r.rank, r.item_id, r.counted, r.total, r.items, r.tie_at_cut) for r in answer.rows] == [
                    (r["rank"], r["item_id"], r["counted"], r["total"], r["items"], r["tie_at_cut"]) for r in said
                ]
            for span in data.draw(st.lists(_SPANS, min_size=3, max_size=3)):
                item, region = (
                    data.draw(st.sampled_from(_ITEMS)),
                    data.draw(st.sampled_from([*_REGIONS, "*"])),
                )
                counted = reader.count(item, span, region=region, release=release)
                assert counted.numbers == model.count_as_of(number, item, region, span)
