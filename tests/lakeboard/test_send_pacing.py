"""When rows are due, how they are cut into requests, and from which row sending would go on. No clock, no socket."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeboard.sending.pacing import TICK_SECONDS, cuts, pace_of
from lakeboard.sending.request import FileTally
from lakeboard.sending.tally import RowsLostError, Tally

pytestmark = pytest.mark.fast

SECOND_US = 1_000_000


def us(*seconds: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return (np.array(seconds) * SECOND_US).astype(np.int64)


def test_a_rate_spaces_rows_evenly_over_all_calls() -> None:
    pace = pace_of(rate=4, speed=None)

    assert pace.due(us(9, 9, 9)).tolist() == [0, 0.25, 0.5]
    assert pace.due(us(1, 1)).tolist() == [0.75, 1.0]


def test_a_speed_replays_the_gaps_and_old_rows_wait_for_none() -> None:
    pace = pace_of(rate=None, speed=60)

    assert pace.due(us(100, 160, 130, 220)).tolist() == [0, 1, 1, 2]
    assert pace.due(us(40, 280)).tolist() == [2, 3]
    assert pace.due(us()).tolist() == []


def test_full_speed_is_now() -> None:
    assert pace_of(rate=None, speed=None).due(us(5, 500)).tolist() == [0, 0]


@given(gaps=st.lists(st.floats(0, 3), max_size=60), most=st.integers(1, 20))
def test_cuts_cover_all_rows_in_order_and_none_goes_out_early(gaps: list[float], most: int) -> None:
    due = np.cumsum(np.array(gaps, dtype=np.float64))

    found = list(cuts(due, most))

    assert [row for cut in found for row in range(cut.start, cut.stop)] == list(range(len(due)))
    for cut in found:
        rows = due[cut.start : cut.stop]
        assert 1 <= len(rows) <= most
        assert cut.due == rows.max()
        assert rows.max() - rows.min() <= TICK_SECONDS


@given(order=st.permutations(range(8)))
def test_it_stands_before_the_first_span_that_is_not_done(order: list[int]) -> None:
    tally = Tally((FileTally(Path("f"), "s"),), from_row=50)
    done: set[int] = set()
    for place in order:
        tally.done(0, (50 + 10 * place, 60 + 10 * place), accepted=10, refused=[], repeated=0)
        done.add(place)
        whole = next((n for n in range(8) if n not in done), 8)
        assert tally.stands_at == 50 + 10 * whole


def test_a_row_that_is_neither_accepted_nor_refused_is_an_error() -> None:
    tally = Tally((FileTally(Path("f"), "s"),), from_row=0)
    tally.read(0, 10, ["time_invalid"])
    tally.done(0, (0, 10), accepted=8, refused=[], repeated=0)

    with pytest.raises(RowsLostError, match="10 rows were read, and 9 were"):
        tally.require_whole()
    tally.done(0, (10, 10), accepted=0, refused=["in_the_future"], repeated=0)
    tally.require_whole()
