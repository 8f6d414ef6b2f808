"""What `doctor --capacity` says is an upper bound: of buckets that real plays fill."""

import numpy as np
import pytest

from domain.capacity import Load, bucket_sizes
from domain.sketches.block import Block
from domain.sketches.shape import Shapes, SketchShape
from domain.speed_policy import DEFAULT_SPEED_POLICY, SpeedPolicy
from speed_layer.partition import LivePartition
from speed_layer.play_batch import NOT_SAID, PlayBatch

pytestmark = pytest.mark.law

START_MS = 1_794_650_400_000
ZZ_BYTES = 32  # the region of unknown ones, which this load does not have
SMALL = SpeedPolicy(
    minutes=Shapes(SketchShape(width=256, head=64), SketchShape(width=64, head=16)), hour_heads=(64, 32)
)


def filled(policy: SpeedPolicy, load: Load, *, seconds: int, items: int) -> LivePartition:
    """One partition after some time of a load whose regions are equal and whose items differ as much as they can."""
    live, random = LivePartition(policy), np.random.default_rng(20261201)
    for second in range(seconds):
        size = load.plays_per_second
        log_ms = np.full(size, START_MS + 1000 * second)
        live.count(
            PlayBatch(
                positions=log_ms << 20,
                id_hashes=random.integers(0, 2**63, size, dtype=np.int64).astype(np.uint64),
                items=[f"i{n}" for n in random.integers(0, items, size).tolist()],
                regions=[f"R{n % load.regions}" for n in range(size)],
                event_times_us=np.full(size, NOT_SAID),
                durations_ms=np.full(size, NOT_SAID),
                counts=np.ones(size, dtype=np.int64),
            )
        )
    return live


def open_bytes(block: Block) -> int:
    """Bytes of a bucket that is added to."""
    entries = block.keys.nbytes + block.counts.nbytes + block.before.nbytes
    return entries + block.cells.flat.nbytes + block.totals.nbytes + block.residuals.nbytes + block.cells.bases.nbytes


@pytest.mark.parametrize("policy", [DEFAULT_SPEED_POLICY, SMALL], ids=["default", "small"])
@pytest.mark.parametrize(("rate", "regions", "items"), [(5, 3, 10), (40, 4, 100_000), (300, 20, 100_000)])
def test_buckets_take_no_more_than_is_said(policy: SpeedPolicy, rate: int, regions: int, items: int) -> None:
    load = Load(plays_per_second=rate, regions=regions, partitions=1)
    tens, minutes, *_ = bucket_sizes(policy, load)
    live = filled(policy, load, seconds=420, items=items)

    at_rest, open_ = live.buckets.minutes.values(), live.buckets.fine.values()
    of_minutes = minutes.size_bytes * len(at_rest) // 62
    of_tens = tens.size_bytes * len(open_) // 18
    assert len(at_rest) >= 4
    assert len(open_) >= 12
    assert of_minutes / 12 < sum(block.size_bytes for block in at_rest) <= of_minutes + len(at_rest) * ZZ_BYTES
    assert 0 < sum(map(open_bytes, open_)) <= of_tens + len(open_) * ZZ_BYTES
    assert live.retry.size_bytes <= bucket_sizes(policy, load)[-1].size_bytes


def test_more_load_takes_more_until_everything_is_sketched() -> None:
    sizes = [bucket_sizes(DEFAULT_SPEED_POLICY, Load(plays_per_second=rate, regions=200, partitions=8))
             for rate in (100, 10_000, 10**9)]  # fmt: skip
    for small, middle, large in zip(*sizes, strict=True):
        assert small.size_bytes <= middle.size_bytes <= large.size_bytes
        assert large.ceiling_bytes is None or large.size_bytes == large.ceiling_bytes
