"""How much memory live counting takes at most, from its bounds and a load: an inequality for each part, not measured.

A bucket in its exact form has an entry of 8 bytes an item, and no more items than plays; in its sketched form it has
one size. So a region's bucket takes at most `min(8 n, sketched)` for n plays. That grows ever more slowly with n:
regions of equal size take the most, and that is what is computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from domain.live_windows import MINUTE, TEN_SECONDS
from domain.sketches.shape import HEAD_ENTRY_BYTES, Shapes, SketchShape
from domain.speed_policy import SpeedPolicy
from domain.windows import HOUR

ENTRY_BYTES = 8
OPEN_ENTRY_BYTES = 24  # while it is added to: key, events, the most before them
REGION_BYTES = 28  # of each region in a block: where its entries and cells begin, its total, its residual
HASH_BYTES = 8
_HOURS_WITH_BATCH = 3  # the present one, the one before, whose grace is not over, and one that is being certified


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is counted: plays of all partitions together, and regions that have buckets, without `*`."""

    plays_per_second: int
    regions: int
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSize:
    """Memory of one part, over all partitions.

    Attributes:
        part: Its name.
        buckets: How many buckets it has at most; 0 where it has none.
        size_bytes: At most, at this load.
        ceiling_bytes: At most, at any load. None where it grows with the load.
    """

    part: str
    buckets: int
    size_bytes: int
    ceiling_bytes: int | None


def bucket_sizes(policy: SpeedPolicy, load: Load) -> Sequence[PartSize]:
    """Return what each part of live counting takes at most, over all partitions.

    Left out, as no bound of ours holds them: ids of items, sums of windows, which are about as large as the minutes,
    and what the allocator keeps (measured: docs/sketches.md).
    """
    tens = (policy.fine + MINUTE) // TEN_SECONDS
    return [
        _part("buckets of 10 seconds", policy.minutes, load, TEN_SECONDS, tens, is_open=True),
        _part("minutes", policy.minutes, load, MINUTE, policy.coarse // MINUTE),
        _part("hours, with batch in time", policy.hours, load, HOUR, _HOURS_WITH_BATCH),
        _part("hours more, while batch is late", policy.hours, load, HOUR, policy.hours_kept + 1 - _HOURS_WITH_BATCH),
        PartSize(
            part="retry window",
            buckets=0,
            size_bytes=HASH_BYTES * load.plays_per_second * int((policy.retry_window + MINUTE).total_seconds()),
            ceiling_bytes=None,
        ),
    ]


def _part(name: str, shapes: Shapes, load: Load, width: timedelta, number: int, *, is_open: bool = False) -> PartSize:
    """Return the size of `number` buckets of each region and of `*`, each as wide as `width`, in every partition."""
    plays = load.plays_per_second * int(width.total_seconds()) // load.partitions
    kinds = ((shapes.everywhere, plays, 1), (shapes.region, -(-plays // load.regions), load.regions))
    blocks = number * load.partitions
    return PartSize(
        part=name,
        buckets=blocks * (load.regions + 1),
        size_bytes=blocks * sum(many * _most(shape, n, is_open=is_open) for shape, n, many in kinds),
        ceiling_bytes=blocks * sum(many * _sketched(shape, is_open=is_open) for shape, _, many in kinds),
    )


def _most(shape: SketchShape, plays: int, *, is_open: bool) -> int:
    entry = OPEN_ENTRY_BYTES if is_open else ENTRY_BYTES
    return min(entry * plays + REGION_BYTES, _sketched(shape, is_open=is_open))


def _sketched(shape: SketchShape, *, is_open: bool) -> int:
    """Return what a region takes at most in either form."""
    sketch = shape.size_bytes + (shape.head * (OPEN_ENTRY_BYTES - HEAD_ENTRY_BYTES) if is_open else 0)
    exact = shape.exact_items * (OPEN_ENTRY_BYTES if is_open else ENTRY_BYTES)
    return max(sketch, exact) + REGION_BYTES
