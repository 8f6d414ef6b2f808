"""An entry is what all scores say together, in whatever order they came."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.boards.entries import MOST_SCORE, entry_after, shown_score
from domain.boards.sort_key import Mode, Place, place_of

pytestmark = pytest.mark.fast

SCORES = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=1, max_size=7)


def entry_of(mode: Mode, scores: Sequence[tuple[int, int]]) -> bytes:
    entry: bytes | None = None
    for score, ended in scores:
        entry = entry_after(mode, entry, score, ended)
    assert entry is not None
    return entry


def said_plainly(mode: Mode, scores: Sequence[tuple[int, int]]) -> Place:
    """The definition over all scores at once."""
    if mode is Mode.SUM:
        moved = [ended for delta, ended in scores if delta]
        return Place(sum(delta for delta, _ in scores), max(moved) if moved else min(ended for _, ended in scores))
    best = max if mode is Mode.BEST_HIGH else min
    score = best(score for score, _ in scores)
    return Place(score, min(ended for found, ended in scores if found == score))


@given(st.sampled_from(Mode), SCORES, st.randoms(use_true_random=False))
def test_it_is_the_same_in_any_order_and_as_said_plainly(mode: Mode, scores: list[tuple[int, int]], random) -> None:  # type: ignore[no-untyped-def]  # hypothesis's own
    entry = entry_of(mode, scores)
    random.shuffle(scores)

    assert entry_of(mode, scores) == entry
    assert place_of(mode, entry) == said_plainly(mode, scores)


def test_an_equal_or_worse_score_later_changes_nothing_and_an_equal_one_that_ended_earlier_moves_it_back() -> None:
    entry = entry_of(Mode.BEST_HIGH, [(10, 100)])
    assert entry_of(Mode.BEST_HIGH, [(10, 100), (10, 200), (9, 50)]) == entry
    assert place_of(Mode.BEST_HIGH, entry_of(Mode.BEST_HIGH, [(10, 100), (10, 90)])) == (10, 90)
    assert place_of(Mode.BEST_HIGH, entry_of(Mode.BEST_HIGH, [(10, 100), (11, 90)])) == (11, 90)


def test_who_reached_the_total_first_leads_and_a_late_delta_is_added() -> None:
    a, b = entry_of(Mode.SUM, [(5, 1000), (5, 1005)]), entry_of(Mode.SUM, [(10, 1003)])
    assert b < a
    assert entry_of(Mode.SUM, [(5, 1000), (5, 1005), (10, 900)]) < b
    assert place_of(Mode.SUM, entry_of(Mode.SUM, [(5, 1005)])) == (5, 1005)  # its 10:00 event was removed


def test_a_zero_lists_a_new_player_and_moves_nobody() -> None:
    assert place_of(Mode.SUM, entry_of(Mode.SUM, [(0, 7)])) == (0, 7)
    assert entry_of(Mode.SUM, [(5, 3), (0, 9)]) == entry_of(Mode.SUM, [(5, 3)])
    assert place_of(Mode.SUM, entry_of(Mode.SUM, [(0, 7), (5, 3), (-5, 4)])) == (0, 4)


def test_totals_beyond_what_answers_show_are_cut_and_said_to_be() -> None:
    assert shown_score(MOST_SCORE) == (MOST_SCORE, False)
    assert shown_score(MOST_SCORE + 1) == (MOST_SCORE, True)
    assert shown_score(-MOST_SCORE - 1) == (-MOST_SCORE, True)
    high = entry_of(Mode.SUM, [(2**62, 1), (2**62, 2), (2**62, 3)])
    assert place_of(Mode.SUM, high) == (2**63 - 1, 3)
