"""`lakeboard import`: files into the lake."""

from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from domain.clock import utc_now
from ingest.importers.request import FileSummary, Format, ImportRequest, ImportSummary
from ingest.importers.run import import_files
from ingest.local_time import Ambiguous
from ingest.validate import DurationUnit
from lakeboard.commands.import_progress import progress_display
from lakeboard.commands.reading import JSON_OPTION, ReadingSettings, print_json, print_table

_COLUMN = "COLUMN"
_NUMBERS = ("read", "accepted", "rejected", "new", "there before")


def _names(choices: type[StrEnum]) -> list[str]:
    """Return what users write; click would offer the names of the members."""
    return [choice.value for choice in choices]


@click.command(
    "import",
    epilog="""\b
Examples:
  lakeboard import plays.csv --item title --time played_at --region country
  lakeboard import plays.csv.gz --item '{track} ({artist})' --time ts --time-format epoch_ms
  lakeboard import logs/*.jsonl --source player-logs --item song.id --time '@timestamp' --id event.uuid
  lakeboard import flights.csv --item dest --time time_hour --time-zone America/New_York
  lakeboard import my_spotify_data/*.json --format spotify --source me

A COLUMN may also be a template with column names in braces. Importing the same files again adds nothing,
and an import that was stopped goes on where it was.""",
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--format", type=click.Choice(_names(Format)), help="Default: by the file's name.")
@click.option("--item", metavar=_COLUMN, help="What was played. Needed, but for --format spotify.")
@click.option("--time", metavar=_COLUMN, help="When it was played. Needed, but for --format spotify.")
@click.option("--region", metavar=_COLUMN, help="Where. Without it, or empty: ZZ, unknown.")
@click.option("--user", metavar=_COLUMN, help="Who played.")
@click.option("--id", "event_id", metavar=_COLUMN, help="Id of the play. Without it: source, file and row.")
@click.option("--duration", metavar=_COLUMN, help="How long it was played.")
@click.option("--count", metavar=_COLUMN, help="How many plays the row stands for. Without it, or empty: 1.")
@click.option(
    "--time-format",
    default="iso",
    show_default=True,
    metavar="FORMAT",
    help="iso (ISO 8601), epoch_s, epoch_ms, epoch_us, epoch_ns, or a pattern such as '%d.%m.%Y %H:%M:%S'.",
)
@click.option(
    "--time-zone",
    default="UTC",
    show_default=True,
    metavar="ZONE",
    help="Clock of times that name no zone (IANA name). A bare date is midnight UTC all the same.",
)
@click.option(
    "--ambiguous",
    type=click.Choice(_names(Ambiguous)),
    default=Ambiguous.REFUSE.value,
    show_default=True,
    help="What to do with local times that the clock showed twice, in the night it was set back.",
)
@click.option(
    "--duration-unit",
    type=click.Choice(_names(DurationUnit)),
    default=DurationUnit.MILLISECONDS.value,
    show_default=True,
)
@click.option("--delimiter", metavar="CHARACTER", help="Of CSV. Default: comma, or tab for .tsv.")
@click.option("--source", metavar="NAME", help="Default: the file's name without extensions.")
@click.option("--append", is_flag=True, help="Add other files to a source that has files already.")
@click.option(
    "--dedup-by-content",
    is_flag=True,
    help="Rows with equal text are one play: `recount` leaves the later ones out. Default: each is a play.",
)
@JSON_OPTION
@click.pass_obj
def import_command(settings: ReadingSettings, /, *, files: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Import plays from CSV, JSON Lines, Parquet or Spotify exports, plain, gzip or zstd.

    Rows that cannot be taken go to bronze/rejects with the reason; nothing is left out silently. Run
    `lakeboard recount` afterwards to count what is new.
    """
    request = _request(files, options)
    with progress_display() as display:
        summary = import_files(
            request,
            lake_root=settings.lake_root,
            clock=utc_now,
            policy=settings.policy,
            on_progress=display.show,
            on_wait=display.wait,
        )
    if as_json:
        print_json({"new_rows": summary.new_rows, "files": [file.to_json() for file in summary.files]})
    else:
        _print(summary)


def _request(files: tuple[Path, ...], options: dict[str, Any]) -> ImportRequest:
    chosen = options | {
        "format": None if options["format"] is None else Format(options["format"]),
        "ambiguous": Ambiguous(options["ambiguous"]),
        "duration_unit": DurationUnit(options["duration_unit"]),
    }
    return ImportRequest(files=files, **chosen)


def _print(summary: ImportSummary) -> None:
    rows = [
        (file.path.name, file.source, file.read, file.accepted, file.rejected, file.new_rows, file.already)
        for file in summary.files
    ]
    print_table(["file", "source", *_NUMBERS], rows, right=_NUMBERS, folding=["file", "source"])
    for file in summary.files:
        for line in _remarks(file):
            click.echo(line)
    if summary.new_rows:
        click.echo("Count what is new with: lakeboard recount")
    else:
        click.echo("Nothing new: the lake had every row already.")


def _remarks(file: FileSummary) -> list[str]:
    """Return what a person should know of a file beside its numbers."""
    lines = [] if file.read else [f"{file.path.name} has no rows."]
    if file.rejected:
        reasons = sorted(file.rejected_by_reason.items(), key=lambda pair: (-pair[1], pair[0]))
        said = ", ".join(f"{reason} {rows:,}" for reason, rows in reasons)
        lines.append(f"{file.path.name}: {file.rejected:,} rejected: {said} (see `rejects` in `lakeboard sql`).")
    if file.repeated is not None:
        lines.append(f"{file.path.name}: {file.repeated:,} merged: rows that repeat an earlier one count once.")
    return lines
