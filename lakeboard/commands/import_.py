"""`lakeboard import`: files into the lake."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from domain.clock import utc_now
from ingest.importers.dry_run import DryRun, try_files
from ingest.importers.request import FileSummary, ImportRequest, ImportSummary
from ingest.importers.run import import_files
from lakeboard.commands.import_progress import progress_display
from lakeboard.commands.reading import JSON_OPTION, ReadingSettings, print_json, print_table
from lakeboard.commands.source_options import source_options, source_request

_PAYLOAD_SHOWN = 120
_NUMBERS = ("read", "accepted", "rejected", "new", "there before")


@click.command(
    "import",
    epilog="""\b
Examples:
  lakeboard import plays.csv --item title --time played_at --region country --dry-run
  lakeboard import plays.csv --item title --time played_at --region country
  lakeboard import plays.csv.gz --item '{track} ({artist})' --time ts --time-format epoch_ms
  lakeboard import logs/*.jsonl --source player-logs --item song.id --time '@timestamp' --id event.uuid
  lakeboard import flights.csv --item dest --time time_hour --time-zone America/New_York
  lakeboard import my_spotify_data/*.json --format spotify --source me

A COLUMN may also be a template with column names in braces. Importing the same files again adds nothing,
and an import that was stopped goes on where it was.""",
)
@source_options
@click.option(
    "--dry-run", is_flag=True, help="Read and check everything and say what an import would do; write nothing."
)
@JSON_OPTION
@click.pass_obj
def import_command(
    settings: ReadingSettings, /, *, files: tuple[Path, ...], dry_run: bool, as_json: bool, **options: Any
) -> None:
    """Import plays from CSV, JSON Lines, Parquet or Spotify exports, plain, gzip or zstd.

    Rows that cannot be taken go to bronze/rejects with the reason; nothing is left out silently. Run
    `lakeboard recount` afterwards to count what is new.
    """
    request = source_request(files, options)
    if dry_run:
        _show_dry_run(settings, request, as_json=as_json)
        return
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


def _show_dry_run(settings: ReadingSettings, request: ImportRequest, *, as_json: bool) -> None:
    with progress_display() as display:
        tried = try_files(
            request,
            lake_root=settings.lake_root,
            clock=utc_now,
            policy=settings.policy,
            on_progress=display.show,
            on_wait=display.wait,
        )
    if as_json:
        summary = {"new_rows": tried.summary.new_rows, "files": [file.to_json() for file in tried.summary.files]}
        print_json({"dry_run": True, **summary, "first_rejected": [asdict(row) for row in tried.first_rejected]})
    else:
        _print_dry_run(tried)


def _print_dry_run(tried: DryRun) -> None:
    _print_files(tried.summary)
    for file in tried.summary.files:
        for line in _remarks(file, "would be "):
            click.echo(line)
    if tried.first_rejected:
        rows = [
            (row.file, row.row if row.line is None else row.line, row.reason, row.detail, _shortened(row.payload))
            for row in tried.first_rejected
        ]
        print_table(["file", "line", "reason", "value", "row"], rows, title="The first rows that would be rejected:",
                    right=["line"], folding=["file", "value", "row"])  # fmt: skip
    click.echo(f"Nothing was written. Without --dry-run the lake would get {tried.summary.new_rows:,} new rows.")


def _shortened(text: str) -> str:
    return text if len(text) <= _PAYLOAD_SHOWN else f"{text[:_PAYLOAD_SHOWN]}..."


def _print(summary: ImportSummary) -> None:
    _print_files(summary)
    for file in summary.files:
        for line in _remarks(file, ""):
            click.echo(line)
    if summary.new_rows:
        click.echo("Count what is new with: lakeboard recount")
    else:
        click.echo("Nothing new: the lake had every row already.")


def _print_files(summary: ImportSummary) -> None:
    rows = [
        (file.path.name, file.source, file.read, file.accepted, file.rejected, file.new_rows, file.already)
        for file in summary.files
    ]
    print_table(["file", "source", *_NUMBERS], rows, right=_NUMBERS, folding=["file", "source"])


def _remarks(file: FileSummary, mood: str) -> list[str]:
    """Return what a person should know of a file beside its numbers; `mood` says that it is not so yet."""
    lines = [] if file.read else [f"{file.path.name} has no rows."]
    if file.rejected:
        reasons = sorted(file.rejected_by_reason.items(), key=lambda pair: (-pair[1], pair[0]))
        said = ", ".join(f"{reason} {rows:,}" for reason, rows in reasons)
        where = "" if mood else " (see `rejects` in `lakeboard sql`)"
        lines.append(f"{file.path.name}: {file.rejected:,} {mood}rejected: {said}{where}.")
    if file.repeated is not None:
        lines.append(f"{file.path.name}: {file.repeated:,} merged: rows that repeat an earlier one count once.")
    return lines
