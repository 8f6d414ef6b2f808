"""Counting plays a minute and region: live buckets beside what people build first, on the same plays.

A plain dictionary of Counters, one ZINCRBY a play in Redis, and one frequent-items sketch of Apache DataSketches a
bucket. None of the peers looks for copies, has windows, bounds of them, or checkpoints; ours has all of it. Seconds of
the clock on the wall: Redis works in a process of its own.

  python -m bench.speed_peers --plays 300000
"""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence

import redis
from datasketches import frequent_strings_sketch

from bench.ingest_builds import redis_server
from bench.report import plays_asked_for, print_table, rate, ratio, require_equal, say
from bench.speed_core import Load, batches
from domain.rules import Rules
from domain.speed_policy import DEFAULT_SPEED_POLICY
from speed_layer.partition import LivePartition
from speed_layer.play_batch import PlayBatch

PLAYS = 300_000
_PIPELINED = 1_000  # plays in one round trip
_LOG_MAP_SIZE = 9  # of 512 places, for 384 items: the nearest to a bucket of 256 listed items and four rows of 1,024
_MINUTE_US = 60_000_000

Measured = tuple[str, float, int, str]  # what, seconds, bytes, of what the bytes are


def run(plays: int) -> None:
    """Make plays, measure, print the table."""
    say(f"speed_peers: making {plays:,} plays")
    made = list(batches(plays, Load()))
    rows = [_live(made), _dictionaries(made), _frequent_items(made), _zincrby(made)]
    print_table(
        f"Counting {plays:,} plays by minute and region, and everywhere: {Load().items:,} items, wall clock",
        ["what", "seconds", "plays/s", "lakeboard / it", "MB", "of"],
        [
            [what, f"{seconds:.2f}", rate(plays, seconds), ratio(seconds, rows[0][1]), f"{size / 1e6:,.1f}", of]
            for what, seconds, size, of in rows
        ],
        remark="Only live buckets drop copies, apply rules, and have windows with bounds; the peers count everything.",
    )


def _live(made: Sequence[PlayBatch]) -> Measured:
    say("speed_peers: live buckets")
    partition = LivePartition(DEFAULT_SPEED_POLICY, Rules())
    began = time.perf_counter()
    for batch in made:
        partition.count(batch)
    seconds = time.perf_counter() - began
    return "lakeboard, one partition", seconds, partition.buckets.size_bytes, "buckets"


def _dictionaries(made: Sequence[PlayBatch]) -> Measured:
    say("speed_peers: dictionaries")
    buckets: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    plays = _plays(made)
    began = time.perf_counter()
    for item, region, minute in plays:
        buckets[region, minute][item] += 1
        buckets["*", minute][item] += 1
    seconds = time.perf_counter() - began
    size = sum(sys.getsizeof(counts) for counts in buckets.values())  # without ids and numbers, which are shared
    return "dictionaries of Counters", seconds, size, "tables alone"


def _frequent_items(made: Sequence[PlayBatch]) -> Measured:
    say("speed_peers: frequent items")
    buckets: dict[tuple[str, int], frequent_strings_sketch] = {}
    plays = _plays(made)
    began = time.perf_counter()
    for item, region, minute in plays:
        for key in ((region, minute), ("*", minute)):
            sketch = buckets.get(key)
            if sketch is None:
                sketch = buckets[key] = frequent_strings_sketch(_LOG_MAP_SIZE)
            sketch.update(item)
    seconds = time.perf_counter() - began
    size = sum(len(sketch.serialize()) for sketch in buckets.values())
    return "frequent items of DataSketches", seconds, size, "serialized"


def _zincrby(made: Sequence[PlayBatch]) -> Measured:
    say("speed_peers: ZINCRBY")
    with redis_server(durable=False) as (_, url), redis.Redis.from_url(url) as client:
        before = client.info("memory")["used_memory"]
        plays = _plays(made)
        began = time.perf_counter()
        pipeline, waiting, counted = client.pipeline(transaction=False), 0, 0
        for item, region, minute in plays:
            pipeline.zincrby(f"{region}|{minute}", 1, item)
            pipeline.zincrby(f"*|{minute}", 1, item)
            waiting += 1
            if waiting == _PIPELINED:
                counted += len(pipeline.execute()) // 2
                waiting = 0
        counted += len(pipeline.execute()) // 2
        seconds = time.perf_counter() - began
        size = client.info("memory")["used_memory"] - before
    require_equal("plays in Redis", expected=len(plays), found=counted)
    return f"Redis, ZINCRBY, {_PIPELINED:,} plays a round trip", seconds, size, "server"


def _plays(made: Sequence[PlayBatch]) -> list[tuple[str, str, int]]:
    """Return item, region and minute of each play."""
    return [
        play
        for batch in made
        for play in zip(batch.items, batch.regions, (batch.event_times_us // _MINUTE_US).tolist(), strict=True)
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    run(plays_asked_for(argv, __doc__, PLAYS))


if __name__ == "__main__":
    main()
