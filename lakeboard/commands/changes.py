"""`lakeboard changes`: which certified numbers later releases changed."""

from typing import Any

import click

from domain.answers import iso
from domain.questions import parse_item, parse_region
from ingest.lake_reader import Change
from lakeboard.commands.reading import (
    JSON_OPTION,
    REGION_OPTION,
    ReadingSettings,
    open_reader,
    print_json,
    print_table,
)


@click.command(
    "changes",
    epilog="""\b
Examples:
  lakeboard changes --since 3
  lakeboard changes --since 3 --until 4 --item ATL --json""",
)
@click.option("--since", type=click.IntRange(min=0), required=True, help="Changes of the releases after this one.")
@click.option("--until", type=click.IntRange(min=1), help="Up to this release, included. Default: the newest.")
@click.option("--item", help="Only this item.")
@REGION_OPTION
@click.option("--limit", type=click.IntRange(min=0), default=1000, show_default=True, help="Most rows; 0 = all.")
@JSON_OPTION
@click.pass_obj
def changes_command(
    settings: ReadingSettings,
    *,
    since: int,
    until: int | None,
    item: str | None,
    region: str,
    limit: int,
    as_json: bool,
) -> None:
    """List every certified number that was changed after a release, with what it was, what it is, and why.

    A changed hour is one row a measure, and so is its day when the day was certified.
    """
    region, item_id = parse_region(region), None if item is None else parse_item(item)
    with open_reader(settings) as reader:
        for release in {since, until} - {None, 0}:
            reader.releases.numbered(int(release or 0))
        most = limit or None
        changes = reader.changes(since=since, until=until, region=region, item_id=item_id, most=most and most + 1)
    shown = changes[:most]
    if as_json:
        print_json([_facts(change) for change in shown])
    else:
        _print(shown)
    if len(shown) < len(changes):
        click.echo(f"Only the first {limit:,} changes are shown: --limit 0 shows all.", err=True)


def _print(changes: list[Change]) -> None:
    if not changes:
        click.echo("No certified number changed.")
        return
    headings = ["release", "window", "start", "region", "item", "measure", "old", "new", "cause"]
    rows = [
        (
            str(c.release),
            c.window_length,
            c.window_start,
            c.region,
            c.item_id,
            c.measure,
            c.old,
            c.new,
            c.cause,
        )
        for c in changes
    ]
    print_table(headings, rows, right=["release", "old", "new"], folding=["region", "item", "cause"])


def _facts(change: Change) -> dict[str, Any]:
    return {
        "release": change.release,
        "window": change.window_length,
        "window_start": iso(change.window_start),
        "region": change.region,
        "item_id": change.item_id,
        "measure": change.measure,
        "old": change.old,
        "new": change.new,
        "cause": change.cause,
    }
