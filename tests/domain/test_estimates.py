"""Rank ranges against every truth that the bounds allow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.estimates import Estimate, ranked_estimates
from domain.ranking import Scored, rank_key

pytestmark = pytest.mark.fast

World = tuple[list[Estimate], dict[str, int], int]

NAMES = ["a", "b", "c", "d", "é", "z", "日"]


@st.composite
def possible_worlds(draw: st.DrawFn) -> World:
    """Rows with bounds, one truth within them, and unlisted items that the residual allows."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    truth = {name: draw(st.integers(0, 8)) for name in names}
    rows = [
        Estimate(name, max(0, truth[name] - draw(st.integers(0, 4))), truth[name] + draw(st.integers(0, 4)))
        for name in names
    ]
    residual = draw(st.integers(0, 6))
    unlisted = {f"hidden{n}": draw(st.integers(0, residual)) for n in range(draw(st.integers(0, 5)))}
    return rows, truth | unlisted, residual


@given(possible_worlds())
def test_the_true_rank_lies_in_the_range_whatever_the_truth_is(world: World) -> None:
    rows, truth, residual = world
    counted = sorted((Scored(name, count) for name, count in truth.items() if count > 0), key=rank_key)
    true_rank = {scored.item_id: place for place, scored in enumerate(counted, start=1)}

    found = ranked_estimates(rows, n=len(rows), residual=residual, total=sum(truth.values()))

    for row in found:
        if truth[row.item_id] > 0:
            assert row.rank_min <= true_rank[row.item_id] <= row.rank_max, row
        assert row.rank_min <= row.rank <= row.rank_max


@given(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 5), min_size=1))
def test_exact_rows_with_nothing_hidden_have_one_rank_each_in_chart_order(counts: dict[str, int]) -> None:
    rows = [Estimate(name, count, count) for name, count in counts.items()]

    found = ranked_estimates(rows, n=len(rows), residual=0, total=sum(counts.values()))

    order = sorted((Scored(name, count) for name, count in counts.items()), key=rank_key)
    assert [row.item_id for row in found] == [scored.item_id for scored in order]
    assert all(row.exact and row.rank_min == row.rank == row.rank_max for row in found)


def test_ranges_worked_by_hand() -> None:
    rows = [Estimate("a", 10, 10), Estimate("b", 8, 9), Estimate("c", 7, 8), Estimate("d", 2, 2)]

    found = ranked_estimates(rows, n=3, residual=3, total=33)

    assert [(row.item_id, row.rank, row.rank_min, row.rank_max) for row in found] == [
        ("a", 1, 1, 1),  # nobody can have 10
        ("b", 2, 2, 2),  # c has 8 at most, and b with 8 goes first by its id
        ("c", 3, 3, 3),
    ]


def test_as_many_unlisted_items_as_the_events_left_over_allow_may_stand_before_a_row() -> None:
    rows = [Estimate("a", 10, 10), Estimate("d", 3, 3)]

    found = ranked_estimates(rows, n=2, residual=4, total=13 + 7)

    assert [(row.rank_min, row.rank_max) for row in found] == [(1, 1), (2, 2 + 7 // 3)]
