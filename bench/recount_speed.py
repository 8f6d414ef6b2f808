"""How fast is `lakeboard recount`? Spark, plain and accelerated, and DuckDB on the same files.

  cold   the first release in a fresh session, as the command line makes it: copies, hours, days, charts, proofs
  warm   `--full` right after it in the same session
  hours  exact hourly counts with dedup alone, Delta in and out: what the target is about (24M events). DuckDB
         answers the same: same copies by id, same winners, same columns, but Parquet out

Every engine must count the same plays in the same number of rows, and as many as the data was made with.

  python -m bench.recount_speed --hours-only --events 24000000
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from bench.children import in_child
from bench.exact_hours import (
    Totals,
    count_with_duckdb,
    count_with_spark,
    totals_of_parquet,
    totals_of_release,
    totals_of_table,
)
from bench.made_up import START, batches, commit, stamped
from bench.report import print_line, print_machine, print_table, rate, ratio, require_equal, say, steps_of
from bench.spark import NO_ACCELERATOR, has_accelerator, request, session
from jobs import recount

EVENTS = 2_000_000
HOURS_EVENTS = 24_000_000  # what the target is about; a whole recount of it would take the rest of the morning
ROUNDS = 3
_BATCH_ROWS = 500_000  # rows of a commit, as the importers make them
_SPAN = timedelta(days=2)
_INGESTED = START + _SPAN
_NOW = _INGESTED + timedelta(hours=1)

Seconds = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTimes:
    """What one session took: seconds of its start, of each step of both recounts, and of each round of hours."""

    start: float
    cold: Seconds
    warm: Seconds
    hours: Sequence[float]


def make_bronze(lake_root: Path, events: int) -> int:
    """Write bronze as an import of one big file does; return how many plays count."""
    copies, first_row = 0, 0
    for batch in batches(events, of_rows=_BATCH_ROWS, span=_SPAN):
        commit(lake_root, stamped(batch.said, file=0, first_row=first_row, ingested_at=_INGESTED))
        first_row += len(batch.said)
        copies += batch.copies
    return events - copies


def measure_spark(
    bronze: Path, folder: Path, rounds: int, accelerator: bool, hours_only: bool
) -> tuple[SparkTimes, list[Totals]]:
    """Recount cold, then warm, then the hours alone, in one session, on a lake of its own with the same files."""
    name = "spark, accelerated" if accelerator else "spark"
    cold: Seconds = {}
    warm: Seconds = {}
    released: list[Totals] = []
    lake_root = folder / "lake"
    shutil.copytree(bronze, lake_root, copy_function=os.link)
    began = time.perf_counter()
    with session(folder / "home", accelerator=accelerator) as spark:
        start = time.perf_counter() - began
        say(f"{start:7.1f} s  {name}: start the session")
        if not hours_only:
            cold, first = _recounted(spark, lake_root, name=f"{name}, cold", full=False)
            warm, again = _recounted(spark, lake_root, name=f"{name}, warm", full=True)
            released = [first, again]
        count = partial(count_with_spark, spark, lake_root)
        if hours_only:  # else the recounts have warmed the session
            _rounds(f"{name}, hours, not measured: warms the session", folder, 1, count=count, totals=totals_of_table)
        hours, counted = _rounds(f"{name}, hours", folder, rounds, count=count, totals=totals_of_table)
    return SparkTimes(start=start, cold=cold, warm=warm, hours=hours), [*released, *counted]


def measure_duckdb(bronze: Path, folder: Path, rounds: int) -> tuple[Sequence[float], list[Totals]]:
    """Count the hours alone, from the same files; each round connects anew."""
    folder.mkdir()
    return _rounds(
        "DuckDB, hours",
        folder,
        rounds,
        count=lambda target: count_with_duckdb(bronze, target),
        totals=totals_of_parquet,
    )


def run(events: int, *, rounds: int, accelerator: bool, hours_only: bool = False) -> None:
    """Make bronze, measure every engine in a process of its own, compare what they counted, print the tables.

    With `hours_only` the whole recounts are left out.
    """
    with tempfile.TemporaryDirectory(prefix="lakeboard-bench-") as name:
        folder = Path(name)
        say(f"recount_speed: writing bronze with {events:,} events")
        counted = in_child(make_bronze, folder / "bronze-lake", events)
        measured: dict[str, SparkTimes] = {}
        all_totals: dict[str, list[Totals]] = {}
        for engine, on in _variants(accelerator):
            measured[engine], all_totals[engine] = in_child(
                measure_spark, folder / "bronze-lake", folder / engine, rounds, on, hours_only
            )
        peer, all_totals["DuckDB"] = in_child(measure_duckdb, folder / "bronze-lake", folder / "duckdb", rounds)
    agreed = _agreed(all_totals, events=events, counted=counted)
    if not hours_only:
        _print_recounts(measured, events)
        _print_steps(measured)
    _print_hours(measured, peer, events)
    print_line(f"All engines counted {agreed.counted:,} of {events:,} plays in {agreed.rows:,} rows, as made.")
    if accelerator and not has_accelerator():
        print_line(NO_ACCELERATOR)


def _variants(accelerator: bool) -> list[tuple[str, bool]]:
    variants = [("spark", False)]
    return [*variants, ("accelerated", True)] if accelerator and has_accelerator() else variants


def _recounted(spark: SparkSession, lake_root: Path, *, name: str, full: bool) -> tuple[Seconds, Totals]:
    with steps_of(name) as steps:
        recount.run(spark, request(lake_root, _NOW, full=full), on_step=steps.begin)
    return steps.seconds, totals_of_release(lake_root)


def _rounds(
    name: str, folder: Path, rounds: int, *, count: Callable[[Path], None], totals: Callable[[Path], Totals]
) -> tuple[Sequence[float], list[Totals]]:
    """Count several times, each into a folder of its own that is removed once its totals are known."""
    seconds, found = [], []
    for number in range(rounds):
        target = folder / f"hours-{number}"
        began = time.perf_counter()
        count(target)
        seconds.append(time.perf_counter() - began)
        say(f"{seconds[-1]:7.1f} s  {name}")
        found.append(totals(target))
        shutil.rmtree(target)
    return seconds, found


def _agreed(totals: Mapping[str, Sequence[Totals]], *, events: int, counted: int) -> Totals:
    """Return what all engines counted.

    Raises:
        WrongResultError: one of them counted something else than the data was made with, or in other rows.
    """
    first = totals["DuckDB"][0]
    made = Totals(rows=first.rows, counted=counted, counted_events=counted, received_events=events)
    for engine, of_engine in totals.items():
        for one in of_engine:
            require_equal(f"what {engine} counted", expected=made, found=one)
    return made


def _print_recounts(measured: Mapping[str, SparkTimes], events: int) -> None:
    rows = []
    for engine, times in measured.items():
        for name, steps in (("cold", times.cold), ("warm, --full", times.warm)):
            seconds = sum(steps.values())
            plain = sum((measured["spark"].cold if name == "cold" else measured["spark"].warm).values())
            rows.append(
                [
                    f"{engine}, {name}",
                    f"{seconds:.1f}",
                    rate(events, seconds),
                    ratio(plain, seconds),
                    f"{times.start:.1f}",
                ]
            )
    print_table(
        f"Recount of {events:,} events, all of it: copies, hours, days, charts, proofs, commits",
        ["engine, run", "seconds", "events/s", "rate / plain Spark", "session start, s"],
        rows,
        remark="The start of the session comes before a cold run and is not in its seconds.",
    )


def _print_hours(measured: Mapping[str, SparkTimes], peer: Sequence[float], events: int) -> None:
    hours = {engine: times.hours for engine, times in measured.items()} | {"DuckDB": peer}
    plain, duckdb = statistics.median(hours["spark"]), statistics.median(peer)
    rows = []
    for engine, rounds in hours.items():
        median = statistics.median(rounds)
        said = [f"{median:.2f}", f"{min(rounds):.2f}", f"{max(rounds):.2f}", rate(events, median)]
        rows.append([engine, *said, ratio(duckdb, median), ratio(plain, median)])
    print_table(
        f"Exact hourly counts with dedup alone, {events:,} events, warm, {len(peer)} rounds",
        ["engine", "median s", "best s", "worst s", "events/s", "rate / DuckDB", "rate / plain Spark"],
        rows,
        remark="Spark: Delta in and out. DuckDB: the same Parquet files in, Parquet out, no log and no checks.",
    )


def _print_steps(measured: Mapping[str, SparkTimes]) -> None:
    runs = {
        f"{engine}, {name}": of for engine, t in measured.items() for name, of in (("cold", t.cold), ("warm", t.warm))
    }
    steps = dict.fromkeys(_step_name(step) for of in runs.values() for step in of)
    by_step = {run_name: {_step_name(step): s for step, s in of.items()} for run_name, of in runs.items()}
    rows = [[step, *(f"{of.get(step, 0):.1f}" for of in by_step.values())] for step in steps]
    print_table("Where the seconds of a recount go", ["step", *runs], rows)


def _step_name(step: str) -> str:
    """Return the name of a step without the number of the release."""
    return "release" if step.startswith("release") else step


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.recount_speed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=EVENTS, help="events in bronze (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of hours (default: %(default)s)")
    parser.add_argument("--hours-only", action="store_true", help="leave the whole recounts out")
    parser.add_argument("--no-accelerator", action="store_true", help="leave the accelerator profile out")
    arguments = parser.parse_args(argv)
    print_machine()
    accelerator = not arguments.no_accelerator
    run(arguments.events, rounds=arguments.rounds, accelerator=accelerator, hours_only=arguments.hours_only)


if __name__ == "__main__":
    main()
