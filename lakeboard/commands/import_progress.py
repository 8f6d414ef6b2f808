"""How far an import, or sending, is: a bar on a terminal, a line every few seconds elsewhere; always on stderr."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from ingest.importers.request import Progress

_SECONDS_BETWEEN_LINES = 5.0


class Display(Protocol):
    """Shows the progress of an import, or of sending."""

    def show(self, progress: Progress) -> None:
        """Show how far a file is."""

    def wait(self, name: str, holder: str) -> None:
        """Say that another process holds what is needed."""

    def say(self, text: str) -> None:
        """Say something else that a person should know now."""


class _Rate(ProgressColumn):
    """Rows read a second."""

    def render(self, task: Task) -> Text:
        seconds = task.finished_time or task.elapsed or 0.0
        rows = int(task.fields["rows"])
        return Text(f"{rows:,} rows, {rows / seconds:,.0f}/s" if seconds > 0 else f"{rows:,} rows")


class BarDisplay:
    """One bar for each file and stage."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[tuple[Path, str], TaskID] = {}

    def show(self, progress: Progress) -> None:
        """Move the bar of this file and stage, adding it when it is new."""
        key = (progress.path, progress.stage)
        if key not in self._tasks:
            label = f"{progress.stage} {progress.path.name}".replace("[", r"\[")  # else it is markup
            self._tasks[key] = self._bars.add_task(label, total=progress.bytes_total or None, rows=0)
        self._bars.update(self._tasks[key], completed=progress.bytes_done, rows=progress.rows)

    def wait(self, name: str, holder: str) -> None:
        """Say it above the bars."""
        self.say(f"waiting for {holder}, which holds {name}")

    def say(self, text: str) -> None:
        """Say it above the bars."""
        self._bars.console.print(Text(text))


class LineDisplay:
    """A line now and then, for logs."""

    def __init__(self) -> None:
        self._started: dict[tuple[Path, str], float] = {}
        self._shown = time.monotonic()

    def show(self, progress: Progress) -> None:
        """Print a line when the last one is a few seconds old."""
        now = time.monotonic()
        started = self._started.setdefault((progress.path, progress.stage), now)
        if now - self._shown >= _SECONDS_BETWEEN_LINES:
            self._shown = now
            click.echo(progress_line(progress, seconds=now - started), err=True)

    def wait(self, name: str, holder: str) -> None:
        """Print it."""
        self.say(f"waiting for {holder}, which holds {name}")

    def say(self, text: str) -> None:
        """Print it."""
        click.echo(text, err=True)


def progress_line(progress: Progress, *, seconds: float) -> str:
    """Return how far a file is, its rate, and the time left as it looks after so many seconds."""
    share = progress.bytes_done / max(progress.bytes_total, 1)
    done = f"{share:.0%}, " if progress.bytes_total else ""  # of a pipe nobody knows the end
    line = f"{progress.stage} {progress.path.name}: {done}{progress.rows:,} rows"
    if seconds > 0 and (share > 0 or not done):
        line += f", {progress.rows / seconds:,.0f} rows/s"
    if seconds > 0 and share > 0:
        line += f", {seconds / share - seconds:.0f} s left"
    return line


@contextmanager
def progress_display() -> Iterator[Display]:
    """Yield the display that suits stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield LineDisplay()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        _Rate(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        yield BarDisplay(bars)
