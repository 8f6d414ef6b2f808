"""`lakeboard generate`: made-up plays to try things out with."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import BinaryIO

import click

from lakeboard.generating.plays import made_up
from lakeboard.generating.shape import DEFAULT_DAYS, DEFAULT_SHAPE, BadShapeError, Shape
from lakeboard.generating.writing import GeneratedFormat, new_file, write_plays

STANDARD_OUTPUT = Path("-")
COLUMNS = "--id event_id --item item_id --time event_time --region region --user user_id --duration duration_ms"
_SHARE = click.FloatRange(min=0, max=1)


@click.command(
    "generate",
    epilog=f"""\b
Examples:
  lakeboard generate --events 100000 --seed 1 -o plays.csv
  lakeboard generate --events 10000000 --hot-item 0.1 --duplicates 0.02 --late 0.01 -o plays.parquet
  lakeboard generate --events 50000 -o - --format jsonl | lakeboard send - --format jsonl \\
    {COLUMNS}

The same options and seed give the same bytes. The columns are what the API takes, so
`lakeboard import` and `lakeboard send` read them with
  {COLUMNS}""",
)
@click.option("--events", type=click.IntRange(min=1), required=True, metavar="N", help="Rows, repeats included.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--items", type=int, default=DEFAULT_SHAPE.items, show_default=True, help="Different items.")
@click.option(
    "--skew",
    type=float,
    default=DEFAULT_SHAPE.skew,
    show_default=True,
    help="The n-th item is played n^-SKEW times the best.",
)
@click.option(
    "--regions", default=",".join(DEFAULT_SHAPE.regions), show_default=True, metavar="CODES", help="The busiest first."
)
@click.option("--users", type=int, default=DEFAULT_SHAPE.users, show_default=True, help="Different users.")
@click.option(
    "--start", default=DEFAULT_SHAPE.start.date().isoformat(), show_default=True, help="First moment, ISO 8601, UTC."
)
@click.option("--end", help="Where the span ends, excluded; instead of --days.")
@click.option("--days", type=float, help=f"How long the span is.  [default: {DEFAULT_DAYS:g}]")
@click.option(
    "--hot-item", type=_SHARE, default=0.0, show_default=True, help="Share of the plays that are of one item."
)
@click.option(
    "--duplicates",
    type=_SHARE,
    default=0.0,
    show_default=True,
    help="Share of the rows that come again with the same id; a fifth of them with another item.",
)
@click.option(
    "--late",
    type=_SHARE,
    default=0.0,
    show_default=True,
    help="Share of the plays that come 1 minute to 26 hours late.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in GeneratedFormat]),
    help="Default: by the file's name, CSV for -.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FILE", help="- = standard output."
)
def generate_command(
    *, events: int, seed: int, form: str | None, output: Path, regions: str, **options: str | float | None
) -> None:
    """Make plays up, to try things out with: the same seed, the same bytes.

    Items follow Zipf's law and nights are quiet; on request there are a hot item, repeats and late events. Rows
    come in the order of event time, but for the late ones and the repeats. Memory does not grow with their number.
    """
    shape = _shape(regions, options)
    chosen = _format(form, output)
    with _sink(output) as sink, _progress(events) as on_rows:
        write_plays(made_up(events, seed=seed, shape=shape), sink, chosen, on_rows=on_rows)
    if output != STANDARD_OUTPUT:
        click.echo(f"{events:,} rows in {output}; read them with {COLUMNS}", err=True)


def _shape(regions: str, options: dict[str, str | float | None]) -> Shape:
    start = _moment("start", str(options["start"]))
    if options["end"] is not None and options["days"] is not None:
        option = "end"
        raise BadShapeError(option, "and --days both say where the span ends: give only one of them")
    if options["end"] is not None:
        end = _moment("end", str(options["end"]))
    else:
        end = start + timedelta(days=_number(options["days"], DEFAULT_DAYS))
    return Shape(
        items=int(_number(options["items"])),
        skew=_number(options["skew"]),
        regions=tuple(code.strip() for code in regions.split(",")),
        users=int(_number(options["users"])),
        start=start,
        end=end,
        hot_share=_number(options["hot_item"]),
        duplicate_share=_number(options["duplicates"]),
        late_share=_number(options["late"]),
    )


def _number(value: str | float | None, default: float = 0.0) -> float:
    return default if value is None else float(value)


def _moment(option: str, text: str) -> datetime:
    """Return a moment; one without a zone is UTC.

    Raises:
        BadShapeError: it is none.
    """
    try:
        if len(text) == len("2026-03-02"):
            return datetime.combine(date.fromisoformat(text), time(), tzinfo=UTC)
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadShapeError(option, f"must be a moment in ISO 8601 such as 2026-03-02T06:00Z, not {text!r}") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _format(form: str | None, output: Path) -> GeneratedFormat:
    if form is not None:
        return GeneratedFormat(form)
    by_name = {".csv": GeneratedFormat.CSV, ".jsonl": GeneratedFormat.JSONL, ".ndjson": GeneratedFormat.JSONL,
               ".parquet": GeneratedFormat.PARQUET}  # fmt: skip
    if output == STANDARD_OUTPUT:
        return GeneratedFormat.CSV
    if output.suffix not in by_name:
        option = "format"
        raise BadShapeError(option, f"must be given, as the name {output.name!r} does not tell it")
    return by_name[output.suffix]


@contextmanager
def _sink(output: Path) -> Iterator[BinaryIO]:
    if output != STANDARD_OUTPUT:
        with new_file(output) as sink:
            yield sink
        return
    try:
        yield sys.stdout.buffer
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the last flush complains


@contextmanager
def _progress(events: int) -> Iterator[Callable[[int], None]]:
    """Yield what moves a bar on stderr; where that is no terminal only its name is shown."""
    with click.progressbar(length=events, label="generating", file=sys.stderr, show_eta=True) as bar:
        yield bar.update
