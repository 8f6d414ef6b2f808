"""`lakeboard race`: exact counts against a sketch, side by side."""

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from domain.race import DEFAULT_SEED, DEFAULT_WIDTH, FRAME_SECONDS, MOST_SEED, PLAYS, SONGS, TOP, WIDTHS, Frame, Race
from lakeboard.commands.reading import print_json

if TYPE_CHECKING:
    from rich.table import Table

_WRONG = "✗"  # for terminals, and eyes, without colours


@click.command(
    "race",
    epilog="""\b
Examples:
  lakeboard race
  lakeboard race --width 64 --seed 7
  lakeboard race --json                     every width, as numbers

The same race runs in a browser at /race of a running stack.""",
)
@click.option(
    "--width",
    type=click.Choice([str(width) for width in WIDTHS]),
    default=str(DEFAULT_WIDTH),
    show_default=True,
    help="Cells in each of the sketch's 4 rows.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, MOST_SEED),
    default=DEFAULT_SEED,
    show_default=True,
    help="The same seed, the same plays.",
)
@click.option("--json", "as_json", is_flag=True, help="Print how the race ends for every width, as JSON.")
def race_command(width: str, seed: int, as_json: bool) -> None:
    """Watch a sketch make its errors: 60,000 plays of 5,000 songs, exact on the left, the sketch on the right.

    The sketch is the bare one, 4 rows of cells and nothing else; places where it has another song than the truth are
    red. Live charts do better: their buckets are exact while small, keep the best items apart, and say how far off a
    count can be.
    """
    if as_json:
        print_json({"plays": PLAYS, "songs": SONGS, "seed": seed, "top": TOP, "widths": _every_width(seed)})
        return
    race = Race(int(width), seed)
    last = _watched(race) if sys.stdout.isatty() else _printed(race)
    click.echo(_summary(last, race))


def _every_width(seed: int) -> list[dict[str, Any]]:
    return [{"width": width, **Race(width, seed).result().body()} for width in WIDTHS]


def _watched(race: Race) -> Frame:
    """Show the race as it runs, about ten seconds; return how it ended."""
    from rich.live import Live  # noqa: PLC0415  only where somebody watches

    frames = list(race.frames())
    with Live(_table(frames[0], race), auto_refresh=False) as live:
        for frame in frames:
            live.update(_table(frame, race), refresh=True)
            time.sleep(FRAME_SECONDS)  # for the eye; nothing waits for it
    return frames[-1]


def _printed(race: Race) -> Frame:
    """Print how the race ends, and return it."""
    from rich.console import Console  # noqa: PLC0415  not for JSON

    end = race.result()
    Console(highlight=False, width=80).print(_table(end, race))
    return end


def _table(frame: Frame, race: Race) -> "Table":
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title=f"{frame.played:,} of {PLAYS:,} plays, seed {race.seed}", title_justify="left")
    table.add_column("", justify="right")
    for head in (f"exact, {_kilobytes(frame.exact_bytes)}", f"sketch of width {race.width}, "
                 f"{_kilobytes(frame.sketch_bytes)}"):  # fmt: skip
        table.add_column(head)
        table.add_column("plays", justify="right")
    table.add_column("")
    for row in frame.rows:
        style = "red" if row.wrong else ""
        table.add_row(
            str(row.rank),
            row.song,
            f"{row.count:,}",
            Text(row.guessed, style=style),
            Text(f"{row.estimate:,}", style=style),
            Text(_WRONG if row.wrong else "", style=style),
        )
    return table


def _summary(end: Frame, race: Race) -> str:
    larger = end.sketch_bytes > end.exact_bytes
    lines = [
        f"{end.wrong_rows} of {TOP} places are wrong; the worst estimate is {end.worst_error:,} plays too high, none "
        "is too low.",
        f"The sketch takes {_kilobytes(end.sketch_bytes)} however many songs there are, the exact counts of these "
        f"songs {_kilobytes(end.exact_bytes)}{': here the sketch is the larger one' if larger else ''}.",
        _next(race, larger=larger),
    ]
    return "\n".join(lines)


def _next(race: Race, *, larger: bool) -> str:
    if larger or race.width == WIDTHS[-1]:
        return f"Try `lakeboard race --width {WIDTHS[0]}` to see it fail, and `--json` for every width."
    return f"Try `lakeboard race --width {2 * race.width}`, and `--json` for every width."


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.0f} kB"
