"""The table of `lakeboard doctor --capacity`."""

from collections.abc import Sequence

import click

from domain.capacity import Load, PartSize, bucket_sizes
from domain.speed_policy import SpeedPolicy
from lakeboard.commands.reading import print_json, print_table

_COLUMNS = ["part", "buckets", "MiB at most", "MiB at any load"]
_MIB = 1 << 20


def show_capacity(policy: SpeedPolicy, load: Load, *, as_json: bool) -> None:
    """Print what live counting takes at most under a load."""
    sizes = bucket_sizes(policy, load)
    if as_json:
        print_json([{"part": s.part, "buckets": s.buckets, "bytes": s.size_bytes, "ceiling_bytes": s.ceiling_bytes}
                    for s in sizes])  # fmt: skip
        return
    print_table(_COLUMNS, [*map(_row, sizes), _row(_sum(sizes))], right=_COLUMNS[1:])
    click.echo(
        f"At {load.plays_per_second:,} plays/s in {load.regions} regions and {load.partitions} partitions. Ids and "
        "sums of windows come on top: docs/sketches.md has what was measured. The views server holds the same again, "
        "compressed, as checkpoints."
    )


def _row(size: PartSize) -> Sequence[str]:
    ceiling = "grows with the load" if size.ceiling_bytes is None else f"{size.ceiling_bytes / _MIB:,.0f}"
    return size.part, f"{size.buckets:,}" if size.buckets else "", f"{size.size_bytes / _MIB:,.0f}", ceiling


def _sum(sizes: Sequence[PartSize]) -> PartSize:
    known = [size.ceiling_bytes or size.size_bytes for size in sizes]
    return PartSize(
        part="together",
        buckets=sum(size.buckets for size in sizes),
        size_bytes=sum(size.size_bytes for size in sizes),
        ceiling_bytes=sum(known),
    )
