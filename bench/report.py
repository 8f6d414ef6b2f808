"""What a benchmark says: progress on stderr, tables and the facts of the machine on stdout."""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from jobs.guard import find_java_home, java_version
from lakeboard.settings import Settings

_PACKAGES = ("pyspark", "delta-spark", "deltalake", "duckdb", "pyarrow", "numpy")
_WIDTH = 118  # where the output is no terminal
_GIB = 1 << 30


class WrongResultError(Exception):
    """Two engines disagree, or one disagrees with how the data was made."""

    def __init__(self, what: str, *, expected: object, found: object) -> None:
        super().__init__(what, expected, found)
        self.what = what
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, found {self.found}; no number of this run can be trusted"


class Steps:
    """Says on stderr what runs now, and keeps how many seconds each step took, by name, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seconds: dict[str, float] = {}
        self._step: str | None = None
        self._began = time.perf_counter()

    def begin(self, step: str) -> None:
        """End the step before and begin this one; a name that comes again is added up."""
        self.end()
        self._step, self._began = step, time.perf_counter()

    def end(self) -> None:
        """End the running step, if there is one."""
        if self._step is not None:
            seconds = time.perf_counter() - self._began
            self.seconds[self._step] = self.seconds.get(self._step, 0.0) + seconds
            say(f"{seconds:7.1f} s  {self.name}: {self._step}")
            self._step = None

    @property
    def total(self) -> float:
        """Seconds of all steps that ended."""
        return sum(self.seconds.values())


@contextmanager
def steps_of(name: str) -> Iterator[Steps]:
    """Give `Steps` whose last step ends with the block."""
    steps = Steps(name)
    yield steps
    steps.end()


def say(text: str) -> None:
    """Print a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)


def require_equal(what: str, *, expected: object, found: object) -> None:
    """Stop a benchmark whose numbers are about different results.

    Raises:
        WrongResultError: they differ.
    """
    if expected != found:
        raise WrongResultError(what, expected=expected, found=found)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, remark: str = "") -> None:
    """Print a table to stdout; all columns but the first are numbers."""
    table = Table()
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = _console()
    console.print(f"\n{title}", style="bold", markup=False, highlight=False)
    console.print(table)
    if remark:
        console.print(remark, markup=False, highlight=False)


def print_machine() -> None:
    """Print what the numbers were measured on."""
    settings = Settings.load()
    java_home = find_java_home(java_home=settings.java_home, search_path=settings.search_path)
    java = java_version(java_home) if java_home else None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    versions = ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
    lines = [
        f"Machine: {len(os.sched_getaffinity(0))} cores ({_processor()}), {memory:.0f} GiB; load before it: {load}",
        f"Java {java}, Python {sys.version.split()[0]}, {versions}",
        f"Spark: {settings.spark_master}, heap {settings.driver_memory}, {settings.shuffle_partitions} partitions",
    ]
    _console().print("\n".join(lines), markup=False, highlight=False)


def plays_asked_for(argv: Sequence[str] | None, says: str | None, usual: int) -> int:
    """Read the arguments of a benchmark that only asks how many plays, and print the machine."""
    parser = argparse.ArgumentParser(description=says, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plays", type=int, default=usual, help=f"how many (default: {usual:,})")
    plays: int = parser.parse_args(argv).plays
    print_machine()
    return plays


def print_line(text: str) -> None:
    """Print a sentence to stdout."""
    _console().print(text, markup=False, highlight=False)


def rate(events: int, seconds: float) -> str:
    """Return events a second for people."""
    return f"{events / seconds:,.0f}"


def ratio(one: float, other: float) -> str:
    """Return how many times as much one is as the other."""
    return f"{one / other:.2f}"


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _WIDTH)


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.exists() else []
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), "unknown")
