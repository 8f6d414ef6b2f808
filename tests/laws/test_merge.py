"""Joining the partitions' lists against ranking everything at once."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.estimates import Estimate
from domain.merge import LocalTop, local_top, merged_top
from domain.ranking import Scored, ranked

pytestmark = pytest.mark.fast

Counts = dict[str, int]

counts = st.dictionaries(st.sampled_from([f"i{n}" for n in range(30)]), st.integers(1, 12))
partitions = st.integers(1, 5)


def split(truth: Counts, number: int) -> dict[int, Counts]:
    """Items of a model, each in one partition; Python's own text hash is not stable, so by the name's digits."""
    return {p: {item: c for item, c in truth.items() if int(item[1:]) % number == p} for p in range(number)}


@given(counts, partitions, st.integers(1, 6), st.integers(1, 12))
def test_exact_lists_join_to_the_exact_chart_or_ask_for_longer_lists(
    truth: Counts, number: int, n: int, size: int
) -> None:
    parts = split(truth, number)
    while True:
        tops = {
            p: local_top(
                [Estimate(item, c, c) for item, c in items.items()], size=size, residual=0, total=sum(items.values())
            )
            for p, items in parts.items()
        }
        merged = merged_top(tops, n=n)
        if not merged.deeper:
            break
        size += 1

    everything = ranked(Scored(item, c) for item, c in truth.items())
    assert [(row.item_id, row.lower) for row in merged.rows] == [
        (scored.item_id, scored.event_count) for scored in everything[:n]
    ]
    assert merged.total == sum(truth.values())
    outside = Counter(truth)
    for row in merged.rows:
        del outside[row.item_id]
    assert max(outside.values(), default=0) <= merged.missed_max


@given(counts, partitions, st.integers(1, 6), st.integers(1, 8), st.data())
def test_whatever_the_bounds_no_item_outside_has_more_than_missed_max(
    truth: Counts, number: int, n: int, size: int, data: st.DataObject
) -> None:
    tops = {}
    for p, items in split(truth, number).items():
        known = data.draw(st.sets(st.sampled_from(sorted(items)))) if items else set()
        residual = max((c for item, c in items.items() if item not in known), default=0) + data.draw(st.integers(0, 2))
        rows = [Estimate(i, max(0, items[i] - data.draw(st.integers(0, 2))), items[i] + 1) for i in sorted(known)]
        tops[p] = local_top(rows, size=size, residual=residual, total=sum(items.values()))

    merged = merged_top(tops, n=n)

    inside = {row.item_id for row in merged.rows}
    assert all(c <= merged.missed_max for item, c in truth.items() if item not in inside)
    true_rank = {scored.item_id: place for place, scored in enumerate(ranked(map(Scored, truth, truth.values())), 1)}
    assert all(row.rank_min <= true_rank[row.item_id] <= row.rank_max for row in merged.rows)
    if merged.exact:
        assert [row.item_id for row in merged.rows] == [
            item for item, place in true_rank.items() if place <= len(merged.rows)
        ]


def test_equal_counts_across_the_cut_are_not_guessed() -> None:
    """b and c tie with d; c is cut off and stands before d by its id."""
    first = local_top([Estimate("b", 5, 5), Estimate("c", 5, 5)], size=1, residual=0, total=10)
    second = local_top([Estimate("d", 5, 5)], size=1, residual=0, total=5)

    assert merged_top({0: first, 1: second}, n=2).deeper == [0]
    assert merged_top({0: first, 1: second}, n=1).deeper == []


def test_a_cut_that_hides_a_possible_row_asks_that_partition_alone() -> None:
    deep = local_top([Estimate(f"a{n}", 9, 9) for n in range(4)], size=2, residual=0, total=36)
    shallow = local_top([Estimate("b", 1, 1)], size=2, residual=0, total=1)

    merged = merged_top({0: deep, 1: shallow}, n=4)

    assert merged.deeper == [0]
    assert not merged.exact
    assert merged_top({0: deep, 1: shallow}, n=2).deeper == []


@given(counts, st.integers(1, 6), st.integers(1, 6), st.integers(1, 12), st.data())
def test_lists_joined_in_groups_first_give_the_same_chart(
    truth: Counts, number: int, n: int, size: int, data: st.DataObject
) -> None:
    tops = {
        p: local_top(
            [Estimate(item, c, c + 1) for item, c in items.items()], size=size, residual=p, total=sum(items.values())
        )
        for p, items in split(truth, number).items()
    }
    groups: dict[int, list[LocalTop]] = {}
    for p, top in tops.items():
        groups.setdefault(data.draw(st.integers(0, number - 1), label=f"group of {p}"), []).append(top)

    whole, in_groups = merged_top(tops, n=n), merged_top({g: one_of(some) for g, some in groups.items()}, n=n)

    assert replace(whole, deeper=()) == replace(in_groups, deeper=())
    assert bool(whole.deeper) == bool(in_groups.deeper)


def one_of(tops: list[LocalTop]) -> LocalTop:
    """What a partition would say that had all the items of these."""
    cuts = [top.cut for top in tops if top.cut is not None]
    return LocalTop(
        rows=[row for top in tops for row in top.rows],
        cut=min(cuts, key=lambda cut: (-cut.upper, cut.item_id.encode()), default=None),
        residual=max(top.residual for top in tops),
        total=sum(top.total for top in tops),
    )
