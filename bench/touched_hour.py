"""What does one touched hour cost as the lake grows? The line must be flat but for the search for the event's id.

Lakes of 1, 4, 16 and 64 days of the same kind of day, a file of a source each. After the first release one late
event comes into one hour of the middle day, and its recount is timed: in a warm session, several events one after
the other, each into an hour of its own. The search looks at the hashes of 35 days of ingestion, so from there on
it is flat as well, but for `silver/left_out`, which is kept for ever.

  python -m bench.touched_hour --days 1 8 --events-an-hour 500
"""

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from bench.children import in_child
from bench.made_up import START, Shape, batches, commit, stamped
from bench.report import print_machine, print_table, ratio, require_equal, say
from bench.scans import CONFIGURATION, LOGS, Read, Scans
from bench.spark import request, session
from domain.tables import PLAYS
from ingest.read_files import LakeFiles
from jobs import recount

DAYS = (1, 4, 16, 64)
EVENTS_AN_HOUR = 2_000
ROUNDS = 3
_WARM_UP_ROUNDS = 5
_SHAPE = Shape(items=2_000)
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_HOURS_A_DAY = 24
_ID_SEARCH = "find copies"


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """The recount of one late event: seconds, and what was read, by step; files that commits wrote, by table."""

    seconds: Mapping[str, float]
    reads: Mapping[str, Mapping[str, Read]]
    files_written: Mapping[str, int]

    @property
    def total(self) -> float:
        """Seconds of all steps."""
        return sum(self.seconds.values())

    @property
    def id_search(self) -> float:
        """Seconds of the search for copies."""
        return self.seconds[_ID_SEARCH]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One lake: its size, seconds of its first recount, and the recounts of late events."""

    days: int
    events: int
    bronze_files: int
    first: float
    rounds: Sequence[Touched]

    @property
    def typical(self) -> Touched:
        """The round with the median time."""
        return sorted(self.rounds, key=lambda one: one.total)[len(self.rounds) // 2]


def measure(folder: Path, all_days: Sequence[int], events_an_hour: int, rounds: int) -> list[Measured]:
    """Measure the lakes in one session, the smallest first; a first small lake warms it up and is not counted."""
    say("touched_hour: start Spark")
    with session(folder / "home", extra_conf=CONFIGURATION) as spark:
        _measured(spark, folder / "warm-up", 1, events_an_hour, _WARM_UP_ROUNDS)
        return [_measured(spark, folder / f"days-{days}", days, events_an_hour, rounds) for days in sorted(all_days)]


def _measured(spark: SparkSession, lake_root: Path, days: int, events_an_hour: int, rounds: int) -> Measured:
    name = f"touched_hour, {lake_root.name}"
    say(f"{name}: making bronze")
    _make_bronze(lake_root, days, events_an_hour)
    began = time.perf_counter()
    recount.run(spark, request(lake_root, _now(days, 0)))
    first = time.perf_counter() - began
    say(f"{first:7.1f} s  {name}: first recount")
    touched = [_touch(spark, lake_root, days, number) for number in range(rounds)]
    seconds = ", ".join(f"{one.total:.1f}" for one in touched)
    say(f"{sum(one.total for one in touched):7.1f} s  {name}: late events, one after the other ({seconds})")
    with LakeFiles(lake_root) as files:
        bronze = files.pin(PLAYS)
    return Measured(days=days, events=bronze.rows, bronze_files=len(bronze.files), first=first, rounds=touched)


def _make_bronze(lake_root: Path, days: int, events_an_hour: int) -> None:
    """Write a file of a source a day, each ingested when its day is over."""
    a_day = _HOURS_A_DAY * events_an_hour
    for day, batch in enumerate(batches(days * a_day, of_rows=a_day, span=days * _DAY, shape=_SHAPE)):
        commit(lake_root, stamped(batch.said, file=day, first_row=0, ingested_at=START + (day + 1) * _DAY))


def _touch(spark: SparkSession, lake_root: Path, days: int, number: int) -> Touched:
    """Let one late event come into an hour of the middle day, and recount."""
    hour = START + days // 2 * _DAY + (3 + 5 * number) % _HOURS_A_DAY * _HOUR
    late = next(batches(1, of_rows=1, span=_HOUR, start=hour, shape=_SHAPE, seed=number)).said
    now = _now(days, number + 1)
    commit(lake_root, stamped(late, file=days + number, first_row=0, ingested_at=now))
    watch = Watch(Scans(spark, lake_root))
    report = recount.run(spark, request(lake_root, now), on_step=watch.begin)
    watch.end()
    require_equal("hours computed for one late event", expected=1, found=report.release.hours_touched)
    written = {commit.table: commit.files_added for commit in report.commits.values()}
    return Touched(seconds=watch.seconds, reads=watch.reads, files_written=written)


class Watch:
    """Keeps seconds and reads of each step; looking up the reads is not in the seconds."""

    def __init__(self, scans: Scans) -> None:
        self.scans = scans
        self.seconds: dict[str, float] = {}
        self.reads: dict[str, Mapping[str, Read]] = {}
        self._step = "begin"
        self._began = time.perf_counter()

    def begin(self, step: str) -> None:
        """End the step before and begin this one."""
        self.end()
        self._step, self._began = step, time.perf_counter()

    def end(self) -> None:
        """End the running step."""
        self.seconds[self._step] = time.perf_counter() - self._began
        self.reads[self._step] = self.scans.take()


def _now(days: int, number: int) -> datetime:
    """Return the moment of a recount: a day after the lake's last day, and a minute later for each late event."""
    return START + (days + 1) * _DAY + number * timedelta(minutes=1)


def run(all_days: Sequence[int], *, events_an_hour: int, rounds: int) -> None:
    """Measure all lakes and print the tables."""
    with tempfile.TemporaryDirectory(prefix="lakeboard-bench-") as name:
        measured = in_child(measure, Path(name), all_days, events_an_hour, rounds)
    _print_seconds(measured)
    _print_reads(measured)
    _print_written(measured)


def _print_seconds(measured: Sequence[Measured]) -> None:
    smallest = measured[0].typical
    rows = []
    for one in measured:
        typical = one.typical
        rest = typical.total - typical.id_search
        rows.append(
            [
                f"{one.days}",
                f"{one.events:,}",
                f"{one.first:.1f}",
                f"{typical.total:.2f}",
                f"{typical.id_search:.2f}",
                f"{rest:.2f}",
                ratio(rest, smallest.total - smallest.id_search),
            ]
        )
    print_table(
        "One late event into one hour",
        ["days", "events", "first recount, s", "touched hour, s", "id search, s", "all but it, s", "/ smallest"],
        rows,
        remark=f"Warm session, median of {len(measured[0].rounds)} events; the first recounts of the lakes too.",
    )


def _print_reads(measured: Sequence[Measured]) -> None:
    """Print files and rows read: the id search apart from everything else."""
    by_place = [_places(one.typical) for one in measured]
    places = sorted({place for of in by_place for place in of}, key=lambda place: (place[0] == LOGS, place))
    rows = [[", ".join(place), *(f"{of[place].files:,} / {of[place].rows:,}" for of in by_place)] for place in places]
    print_table(
        "Files / rows read for it, by Spark's metrics",
        ["table, part of the recount", *(_days(one) for one in measured)],
        rows,
        remark="Rows that left the scan: files are skipped by folder and statistics, the rest is filtered after it.",
    )


def _print_written(measured: Sequence[Measured]) -> None:
    tables = dict.fromkeys(table for one in measured for table in one.typical.files_written)
    rows = [[table, *(f"{one.typical.files_written.get(table, 0):,}" for one in measured)] for table in tables]
    print_table("Files written for it, by Delta's metrics", ["table", *(_days(one) for one in measured)], rows)


def _places(touched: Touched) -> Mapping[tuple[str, str], Read]:
    """Return what was read by (table, part of the recount)."""
    sums: dict[tuple[str, str], Read] = defaultdict(Read)
    for step, reads in touched.reads.items():
        for table, read in reads.items():
            total = sums[table, "id search" if step == _ID_SEARCH else "all but it"]
            total.files += read.files
            total.rows += read.rows
    return sums


def _days(one: Measured) -> str:
    return "1 day" if one.days == 1 else f"{one.days} days"


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.touched_hour", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--days", type=int, nargs="+", default=DAYS, help="days of each lake (default: 1 4 16 64)")
    parser.add_argument("--events-an-hour", type=int, default=EVENTS_AN_HOUR, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="late events for each lake (default: %(default)s)")
    arguments = parser.parse_args(argv)
    print_machine()
    run(arguments.days, events_an_hour=arguments.events_an_hour, rounds=arguments.rounds)


if __name__ == "__main__":
    main()
