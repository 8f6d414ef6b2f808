"""Rules over columns judge as the one definition in `domain.rules` does."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.rules import MinimumDuration, Missing, Rules
from domain.windows import EPOCH
from speed_layer.counting_rules import counting
from speed_layer.play_batch import NOT_SAID

pytestmark = pytest.mark.fast

DAY0 = datetime(2026, 11, 14, tzinfo=UTC)
moments = st.integers(-3, 3).map(lambda n: DAY0 + timedelta(microseconds=n)) | st.just(datetime(1900, 1, 1, tzinfo=UTC))
durations = st.none() | st.sampled_from([0, 29_999, 30_000, 30_001])
rules = st.lists(
    st.builds(
        MinimumDuration,
        effective_from=moments,
        duration_ms=st.sampled_from([0, 30_000]),
        missing=st.sampled_from(Missing),
    ),
    max_size=4,
    unique_by=lambda rule: rule.effective_from,
).map(lambda found: Rules(tuple(sorted(found, key=lambda rule: rule.effective_from))))


@given(rules, st.lists(st.tuples(moments, durations), max_size=20))
def test_a_batch_is_judged_as_each_play_alone(in_force: Rules, plays: list[tuple[datetime, int | None]]) -> None:
    happened = np.array([(at - EPOCH) // timedelta(microseconds=1) for at, _ in plays], dtype=np.int64)
    lengths = np.array([NOT_SAID if length is None else length for _, length in plays], dtype=np.int64)

    found = counting(in_force, happened_us=happened, durations_ms=lengths)

    assert found.tolist() == [not in_force.too_short(at, length) for at, length in plays]
