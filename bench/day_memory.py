"""How much memory does live counting take of a whole day that batch has not counted yet?

One partition of eight gets its share of 10,000 plays a second in 200 regions, through 24 hours of log time; lists are
read once a log minute. After each of some hours: what its buckets take beside what `lakeboard doctor --capacity` says
they take at most, and by how much the process has grown, which is everything: ids, sums, lists, the allocator.

  python -m bench.day_memory                 108 million plays, about ten minutes
  python -m bench.day_memory --hours 2
"""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

from bench.report import WrongResultError, print_machine, print_table, say
from bench.speed_core import REGIONS, Load, batches
from domain import capacity
from domain.speed_policy import DEFAULT_SPEED_POLICY
from speed_layer.partition import LivePartition

PLAYS_A_SECOND = 10_000  # of all partitions
PARTITIONS = 8
HOURS = 24
_SHOWN = (1, 2, 3, 6, 12, 18, 24)
_MS_AN_HOUR = 3_600_000
_MB = 1e6


def run(hours: int) -> None:
    """Count, and print a row for each hour shown."""
    load = Load(a_second=PLAYS_A_SECOND // PARTITIONS)
    partition = LivePartition(DEFAULT_SPEED_POLICY)
    before, began, plays, minute, start = _resident_bytes(), time.process_time(), 0, 0, 0
    rows: list[Sequence[str]] = []
    for batch in batches(load.a_second * 3600 * hours + 1, load):
        start = start or int(batch.positions[0] >> 20)
        passed = (int(batch.positions[-1] >> 20) - start) // _MS_AN_HOUR
        partition.count(batch)
        plays += len(batch.items)
        if partition.log_ms // 60_000 != minute:
            minute = partition.log_ms // 60_000
            partition.changed()
        if passed > len(rows):
            rows.append(_row(partition, passed, plays, grown=_resident_bytes() - before))
            say(f"day_memory: {passed} of {hours} hours, {time.process_time() - began:,.0f} s: {', '.join(rows[-1])}")
    seconds = time.process_time() - began
    print_table(
        f"Memory of one of {PARTITIONS} partitions, {PLAYS_A_SECOND:,} plays/s in {REGIONS} regions together, no batch",
        ["hours", "plays", "minutes and tens, MB", "hours, MB", "together", "at most", "ids", "process grew by, MB"],
        [row for hour, row in enumerate(rows, start=1) if hour in _SHOWN or hour == hours],
        remark=f"{seconds:,.0f} s of processor time, making the plays included. Times {PARTITIONS} for all of them.",
    )


def _row(partition: LivePartition, hour: int, plays: int, *, grown: int) -> Sequence[str]:
    buckets = partition.buckets
    of_hours = sum(block.size_bytes for block in buckets.hours.values())
    found, most = buckets.size_bytes, _at_most()
    if found > most:
        what = f"bytes of buckets after {hour} hours"
        raise WrongResultError(what, expected=f"at most {most:,}", found=found)
    return [f"{hour}", f"{plays:,}", f"{(found - of_hours) / _MB:,.1f}", f"{of_hours / _MB:,.1f}",
            f"{found / _MB:,.1f}", f"{most / _MB:,.1f}", f"{len(partition.items.ids):,}",
            f"{grown / _MB:,.1f}"]  # fmt: skip


def _at_most() -> int:
    load = capacity.Load(plays_per_second=PLAYS_A_SECOND, regions=REGIONS, partitions=PARTITIONS)
    sizes = capacity.bucket_sizes(DEFAULT_SPEED_POLICY, load)
    return sum(size.size_bytes for size in sizes if size.buckets) // PARTITIONS


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=HOURS, help=f"of log time (default: {HOURS})")
    arguments = parser.parse_args(argv)
    print_machine()
    run(arguments.hours)


if __name__ == "__main__":
    main()
