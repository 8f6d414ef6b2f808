"""Numbers of items and regions: one for each id, in the order of ids by bytes when asked, and bounded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.hashing import ID_SEED, PARTITION_SEED
from speed_layer.names import ITEM_SEED, Items, Regions

pytestmark = pytest.mark.fast

# Ids that begin alike, beyond the bytes that are kept for sorting, and beyond ASCII.
ids = st.lists(
    st.builds(
        lambda lead, rest: lead + rest,
        st.sampled_from(["", "spotify:track:" * 3, "é" * 16]),
        st.text("aé🎵~", max_size=9),
    ),
    max_size=40,
)


@given(ids, st.data())
def test_items_are_sorted_by_columns_and_then_by_the_bytes_of_their_ids(names: list[str], data: st.DataObject) -> None:
    items = Items()
    numbers = items.numbers_of(names)
    distinct = np.unique(numbers)
    counts = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(distinct), max_size=len(distinct))), dtype=int)

    order = items.in_order(distinct, counts)

    found = [(int(counts[at]), items.ids[distinct[at]].encode()) for at in order.tolist()]
    assert found == sorted(found)
    assert [items.ids[number] for number in numbers.tolist()] == names
    assert len(items) == len(set(names))


def test_dropping_items_keeps_the_others_in_order_with_their_hashes() -> None:
    items = Items()
    items.numbers_of([f"t{n}" for n in range(3000)])
    hashes = items.hashes.copy()
    used = np.arange(3000) % 3 == 0

    moved = items.keep(used)

    assert items.ids == [f"t{n}" for n in range(0, 3000, 3)]
    assert np.array_equal(items.hashes, hashes[used])
    assert moved[used].tolist() == list(range(1000))
    assert items.numbers_of(["t3", "new", "t0"]).tolist() == [1, 1000, 0]
    alone = Items()
    alone.numbers_of(["new"])
    assert items.hashes[1000] == alone.hashes[0]


def test_items_are_hashed_with_a_seed_of_their_own() -> None:
    """With that of the log's partitions, the items of a partition would share bits and meet in the same cells."""
    assert len({ITEM_SEED, ID_SEED, PARTITION_SEED}) == 3


def test_regions_beyond_the_most_are_unknown_until_their_plays_are_gone() -> None:
    regions = Regions(3)

    numbers, folded = regions.numbers_of(["IN", "ZZ", "DE", "US", "IN", "US"])

    assert numbers.tolist() == [2, 1, 3, 1, 2, 1]
    assert folded.tolist() == [False, False, False, True, False, True]
    assert regions.folding
    regions.forget(np.array([True, True, False, True]))
    assert not regions.folding
    assert regions.number("IN") is None
    again, folded = regions.numbers_of(["US", "IN"])
    assert again.tolist() == [2, 1]
    assert folded.tolist() == [False, True]
    assert regions.names == ["*", "ZZ", "US", "DE"]


def test_a_region_is_not_told_apart_while_some_of_its_plays_may_stand_in_another() -> None:
    regions = Regions(2)
    regions.numbers_of(["IN", "DE"])
    regions.most = 9

    assert regions.numbers_of(["DE", "FR"])[1].tolist() == [True, True]
