"""The retry window against a dictionary of ids, over cuts into batches, restarts and minutes that pass."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speed_layer.retry_window import LogWentBackError, RetryWindow

pytestmark = pytest.mark.fast

MINUTES = 3

# Steps of log time between events and ids of few values, so that most are copies of something, some too old.
events = st.lists(st.tuples(st.sampled_from([0, 0, 0, 0, 1, 2, 5]), st.integers(0, 12)), max_size=60)
cuts = st.lists(st.integers(0, 60), max_size=6)


def modelled(minutes: list[int], ids: list[int]) -> list[bool]:
    """The rule said plainly: a copy is what was read in this minute or the three before."""
    last: dict[int, int] = {}
    first = []
    for minute, each in zip(minutes, ids, strict=True):
        first.append(each not in last or last[each] < minute - MINUTES)
        last[each] = minute
    return first


def hashed(ids: list[int]) -> npt.NDArray[np.uint64]:
    return (np.array(ids, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)


def restored(window: RetryWindow, minute: int | None) -> RetryWindow:
    return RetryWindow.of_chunks(window.chunks(), minute=minute, minutes=MINUTES)


@given(events, cuts, st.booleans())
def test_first_copies_are_the_models_whatever_the_batches_and_restarts(
    steps: list[tuple[int, int]], at: list[int], restart: bool
) -> None:
    minutes = np.cumsum([step for step, _ in steps]).astype(np.int64) if steps else np.zeros(0, dtype=np.int64)
    ids = [each for _, each in steps]
    window, found, last = RetryWindow(MINUTES), [], None
    edges = sorted({0, *(cut for cut in at if cut < len(ids)), len(ids)})
    for start, end in pairwise(edges):
        found += window.first_copies(hashed(ids[start:end]), minutes[start:end]).tolist()
        last = int(minutes[end - 1])
        if restart:
            window = restored(window, last)

    assert found == modelled(minutes.tolist(), ids)
    held = {int(each) for chunk in window.chunks().values() for each in chunk}
    wanted = {int(h) for h, m in zip(hashed(ids), minutes, strict=True) if last is not None and m >= last - MINUTES}
    assert held == wanted
    assert all(np.all(chunk[1:] > chunk[:-1]) for chunk in window.chunks().values())


def test_an_id_takes_eight_bytes_for_the_window_only() -> None:
    window = RetryWindow(15)
    for minute in range(40):
        window.first_copies(hashed(list(range(minute * 100, minute * 100 + 100))), np.full(100, minute))

    assert window.size_bytes == 16 * 100 * 8
    window.advance(60)
    assert window.size_bytes == 0


def test_log_time_that_goes_back_is_refused_and_remembers_nothing() -> None:
    window = RetryWindow(MINUTES)
    window.first_copies(hashed([1]), np.array([7]))

    with pytest.raises(LogWentBackError, match="from minute 7 to 6"):
        window.first_copies(hashed([2]), np.array([6]))
    with pytest.raises(LogWentBackError, match="from minute 9 to 8"):
        window.first_copies(hashed([3, 4]), np.array([9, 8]))

    assert window.first_copies(hashed([1, 2, 3, 4]), np.array([7, 7, 7, 7])).tolist() == [False, True, True, True]
