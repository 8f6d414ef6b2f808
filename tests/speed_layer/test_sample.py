"""The sample: exactly the plays of the items that are in it, hour by hour, through new numbers and restarts."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.rules import Rules
from speed_layer.names import Items
from speed_layer.partition import LivePartition
from speed_layer.play_batch import NOT_SAID, PlayBatch
from speed_layer.sample import SHARE, Sample, sampled
from speed_layer.snapshot import restored, snapshot

pytestmark = pytest.mark.law

Batch = list[tuple[int, str, int]]  # hour, item, plays

IDS = [f"item {number}" for number in range(600)]
START_MS = 1_794_650_400_000
plays = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(IDS), st.integers(1, 9)), max_size=200)


def chosen() -> set[str]:
    items = Items()
    items.numbers_of(IDS)
    return {item for item, is_in in zip(IDS, sampled(items.hashes).tolist(), strict=True) if is_in}


def test_one_item_in_64_is_in_it_whatever_cells_and_partitions_say() -> None:
    hashes = np.random.default_rng(7).integers(2**64, size=200_000, dtype=np.uint64)
    low = hashes & np.uint64(7) == 0  # as a partition or a cell might choose
    for some in (hashes, hashes[low], hashes[hashes >> np.uint64(54) == 3]):
        expected = len(some) / SHARE
        assert abs(int(sampled(some).sum()) - expected) < 5 * expected**0.5


@given(st.lists(plays, max_size=6), st.integers(0, 6))
def test_it_counts_its_items_exactly_by_hour_and_through_new_numbers(batches: list[Batch], forget: int) -> None:
    items, sample, within = Items(), Sample(), chosen()
    truth: Counter[tuple[int, str]] = Counter()
    for batch in batches:
        if not batch:
            continue
        hours, ids, counts = zip(*batch, strict=True)
        numbers = items.numbers_of(ids)
        sample.add(np.array(hours), numbers, np.array(counts), items.hashes)
        for hour, item, count in zip(hours, ids, counts, strict=True):
            if item in within:
                truth[hour, item] += count
        used = np.zeros(len(items), dtype=np.bool_)
        used[sample.used_items()] = True
        sample.renumber(items.keep(used))
    sample.forget_before(forget)
    found = {
        (hour, items.ids[int(key)]): int(count)
        for hour, (keys, counts) in sample.hours.items()
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True)
    }
    assert found == {(hour, item): count for (hour, item), count in truth.items() if hour >= forget}
    assert 4 < len(within) < 20


def test_a_partition_samples_what_counts_and_has_it_after_a_restart() -> None:
    live = LivePartition(rules=Rules.parse("[[minimum_duration]]\nduration_ms = 30000\n"))
    within = sorted(chosen())
    ids = [*within, *IDS[:20], within[0], within[1]]  # each once, then one again with its own id, one too short
    durations = [NOT_SAID] * (len(ids) - 1) + [1000]
    batch = PlayBatch(
        positions=np.full(len(ids), START_MS << 20),
        id_hashes=np.array([*range(1, len(ids) - 1), 1, len(ids)], dtype=np.uint64),
        items=ids,
        regions=["ZZ"] * len(ids),
        event_times_us=np.full(len(ids), NOT_SAID),
        durations_ms=np.array(durations),
        counts=np.ones(len(ids), dtype=np.int64),
    )
    live.count(batch)

    for partition in (live, restored(snapshot(live).encoded(), live.policy, live.rules)):
        ((hour, (keys, counts)),) = partition.sample.hours.items()
        assert hour == START_MS // 3_600_000
        found = {partition.items.ids[int(key)]: int(count) for key, count in zip(keys, counts, strict=True)}
        assert found == {item: 1 + (item in IDS[:20]) for item in within}
