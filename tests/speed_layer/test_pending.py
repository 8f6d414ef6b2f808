"""Plays that batch may not have: pending from their frontier on, until a view covers them."""

import numpy as np
import pytest

from speed_layer.pending import Pending

pytestmark = pytest.mark.fast

CHUNK = 2**20 * 600_000  # positions of 10 minutes


def numbers(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def test_a_tardy_play_is_pending_from_the_frontier_on_until_batch_has_read_it() -> None:
    pending = Pending()
    pending.add_tardy(numbers(100, 100), numbers(2, 2), numbers(5, CHUNK + 7), numbers(3, 4))

    def of_day(frontier: int | None) -> list[int]:
        return [int(plays) for plays in pending.of_window(3, hours=range(90, 110), frontier=frontier)]

    assert of_day(None) == of_day(100) == [0, 0, 0]  # its bucket has it
    assert of_day(101) == [0, 0, 7]
    pending.certified(101, 4)
    assert of_day(101) == [0, 0, 7]
    pending.certified(101, CHUNK + 6)
    assert of_day(101) == [0, 0, 4]
    pending.certified(101, CHUNK + 7)
    assert of_day(101) == [0, 0, 0]
    assert not pending.regions_used(3).any()


def test_a_play_dated_ahead_is_pending_in_windows_that_reach_its_hour() -> None:
    pending = Pending()
    for regions in (numbers(1, 1), numbers(0, 0)):
        pending.add_ahead(numbers(103, 9000), regions, numbers(2, 5), log_hour=100)

    assert pending.of_window(2, hours=range(90, 103), frontier=None).tolist() == [0, 0]
    assert pending.of_window(2, hours=range(90, 104), frontier=None).tolist() == [2, 2]
    assert pending.of_window(2, hours=range(90, 104), frontier=104).tolist() == [0, 0]  # the view has it
    assert pending.of_window(2, hours=range(8990, 9001), frontier=None).tolist() == [5, 5]
    pending.forget_before(104)
    assert pending.of_window(2, hours=range(90, 104), frontier=None).tolist() == [0, 0]
