"""How fast is live counting of one partition, and how much memory does it take?

Made-up plays of Zipf items in 200 regions of Zipf sizes, with copies, late plays and a log time that moves on, through
all of it: retry window, counting rules, buckets of regions and `*`, eviction, rest, sums and lists. Beside it, on the
same plays: a plain dictionary of Counters by (region, minute), without copies, bounds, windows or a limit.

Seconds are of the processor, not of the clock on the wall: all of it is one thread, and machines are shared.

  python -m bench.speed_core --plays 1000000
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.report import print_machine, print_table, rate, ratio, require_equal, say
from domain.rules import Rules
from domain.speed_policy import DEFAULT_SPEED_POLICY
from speed_layer.partition import LivePartition, Meter
from speed_layer.play_batch import PlayBatch

PLAYS = 2_000_000
BATCH = 8_192
ITEMS = 200_000
REGIONS = 200
A_SECOND = 10_000  # plays of this partition in a second of log time
_START_MS = 1_794_650_400_000
_RULES = Rules.parse("[[minimum_duration]]\nduration_ms = 30000\n")


@dataclass(frozen=True, slots=True)
class Load:
    """What plays are like.

    Attributes:
        a_second: Plays in a second of log time: the more, the more of them share a minute's buckets.
        items: How many there are; their shares are those of Zipf with exponent 1.
    """

    a_second: int = A_SECOND
    items: int = ITEMS


def batches(plays: int, load: Load, *, seed: int = 20261114) -> Iterator[PlayBatch]:
    """Yield made-up plays: 1% copies, 1% up to 50 minutes late, the others up to 20 s, 2% too short."""
    random = np.random.default_rng(seed)
    names = np.array([f"track-{number:07d}" for number in range(load.items)], dtype=object)
    regions = np.array([f"R{number:03d}" for number in range(REGIONS - 1)], dtype=object)
    item_shares, region_shares = (np.cumsum(1 / np.arange(1, n + 1)) for n in (load.items, REGIONS - 1))
    for first in range(0, plays, BATCH):
        number = np.arange(first, min(first + BATCH, plays))
        size = len(number)
        log_ms = _START_MS + number * 1000 // load.a_second
        copied = random.random(size) < 0.01  # noqa: PLR2004 see the docstring
        ids = np.where(copied, np.maximum(number - random.integers(1, 50_000, size), 0), number).astype(np.uint64)
        late = random.random(size) < 0.01  # noqa: PLR2004
        delay_ms = np.where(late, random.integers(0, 3_000_000, size), random.integers(0, 20_000, size))
        yield PlayBatch(
            positions=log_ms << 20,
            id_hashes=(ids + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15),
            items=names[np.searchsorted(item_shares, random.random(size) * item_shares[-1])].tolist(),
            regions=regions[np.searchsorted(region_shares, random.random(size) * region_shares[-1])].tolist(),
            event_times_us=(log_ms - delay_ms) * 1000,
            durations_ms=np.where(random.random(size) < 0.02, 10_000, 200_000),  # noqa: PLR2004
            counts=np.ones(size, dtype=np.int64),
        )


def count_live(made: Sequence[PlayBatch], *, lists: bool) -> tuple[float, float, LivePartition]:
    """Count all batches; return seconds of counting, seconds of reading lists once a log second, and the state."""
    partition = LivePartition(DEFAULT_SPEED_POLICY, _RULES)
    counting = reading = 0.0
    second = -1
    for batch in made:
        began = time.process_time()
        partition.count(batch)
        counted = time.process_time()
        if lists and partition.log_ms // 1000 != second:
            second = partition.log_ms // 1000
            partition.changed()
        counting += counted - began
        reading += time.process_time() - counted
    return counting, reading, partition


def count_plainly(made: Sequence[PlayBatch]) -> tuple[float, int]:
    """Count all batches into dictionaries; return seconds and plays counted."""
    buckets: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    began = time.process_time()
    for batch in made:
        minutes = (batch.event_times_us // 60_000_000).tolist()
        for item, region, minute in zip(batch.items, batch.regions, minutes, strict=True):
            buckets[region, minute][item] += 1
            buckets["*", minute][item] += 1
    seconds = time.process_time() - began
    return seconds, sum(counts.total() for (region, _), counts in buckets.items() if region == "*")


def run(plays: int, load: Load | None = None) -> None:
    """Make plays, measure, print the table."""
    load = load or Load()
    say(f"speed_core: making {plays:,} plays")
    made = list(batches(plays, load))
    say("speed_core: dictionaries")
    plain, counted = count_plainly(made)
    require_equal("plays in dictionaries", expected=plays, found=counted)
    say("speed_core: live buckets")
    alone, _, _ = count_live(made, lists=False)
    say("speed_core: live buckets, lists read")
    seconds, reading, partition = count_live(made, lists=True)
    met = partition.meters
    require_equal("plays met", expected=plays, found=met[Meter.COPY] + met[Meter.EXCLUDED] + met[Meter.COUNTED])
    rows = [
        ["dictionaries of Counters, copies counted too", f"{plain:.2f}", rate(plays, plain), ratio(plain, plain)],
        ["live buckets", f"{alone:.2f}", rate(plays, alone), ratio(plain, alone)],
        ["live buckets, lists read each log second", f"{seconds:.2f}", rate(plays, seconds), ratio(plain, seconds)],
        ["  reading the lists", f"{reading:.2f}", "", ""],
    ]
    print_table(
        f"Live counting of {plays:,} plays, {load.a_second:,} a second of log time, {load.items:,} items, "
        f"{REGIONS} regions and *",
        ["what", "CPU seconds", "plays/s", "rate / dictionaries"],
        rows,
        remark=_memory(partition),
    )


def _memory(partition: LivePartition) -> str:
    buckets = partition.buckets
    packed = [*buckets.at_rest(), *(buckets.packed_fine(moment) for moment in buckets.fine)]
    number = sum(int(np.sum(block.totals > 0)) for block in packed)
    exact = sum(block.exact_regions for block in packed)
    ids = sum(len(item.encode()) for item in partition.items.ids)
    return (
        f"{number:,} buckets, {exact:,} of them exact, {buckets.size_bytes / number:,.0f} bytes each "
        f"({buckets.size_bytes / 1e6:,.1f} MB); retry window {partition.retry.size_bytes / 1e6:,.1f} MB; "
        f"{len(partition.items.ids):,} ids of {ids / 1e6:,.1f} MB."
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plays", type=int, default=PLAYS, help=f"how many (default: {PLAYS:,})")
    parser.add_argument("--a-second", type=int, default=A_SECOND, help="plays in a second of log time")
    parser.add_argument("--items", type=int, default=ITEMS, help="how many items there are")
    arguments = parser.parse_args(argv)
    print_machine()
    run(arguments.plays, Load(a_second=arguments.a_second, items=arguments.items))


if __name__ == "__main__":
    main()
