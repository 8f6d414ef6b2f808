"""`lakeboard count`: what one item counted in a span of hours."""

import click

from domain.answers import CountAnswer
from domain.events import ALL_REGIONS
from domain.questions import AsOf, parse_as_of, parse_hours, parse_item, parse_region
from lakeboard.commands.reading import (
    JSON_OPTION,
    REGION_OPTION,
    ReadingSettings,
    clock_time,
    open_reader,
    print_json,
    print_table,
)

_MEANING = {
    "received": "plays received, copies included",
    "duplicates": "left out: sent again with equal content",
    "conflicts": "left out: same event id, other content",
    "excluded": "left out by a counting rule",
    "counted": "plays that count",
}


@click.command(
    "count",
    epilog="""\b
Examples:
  lakeboard count --item ATL --from 2013-03-10 --to 2013-03-11
  lakeboard count --item ATL --from 2013-03-10T00:00Z --to 2013-03-10T12:00Z --region US-NY --json
  lakeboard count --item ATL --from 2013-03-01 --to 2013-12-01 --as-of 2026-11-14
  lakeboard count --item ATL --from 2013-03-01 --to 2013-12-01 --as-of 1

The days are of the bundled flights (`lakeboard demo`).""",
)
@click.option("--item", required=True, help="Id of the item.")
@click.option("--from", "start", required=True, help="First hour, included: ISO 8601 with zone, or a date (UTC).")
@click.option("--to", "end", required=True, help="End, excluded: a whole UTC hour.")
@REGION_OPTION
@click.option(
    "--as-of",
    help="As it was in a release: its number, a moment, or a date, which means the end of that UTC day.",
)
@JSON_OPTION
@click.pass_obj
def count_command(
    settings: ReadingSettings,
    *,
    item: str,
    start: str,
    end: str,
    region: str,
    as_of: str | None,
    as_json: bool,
) -> None:
    """Count the plays of one item from one whole UTC hour up to another, exactly.

    Certified numbers change only by restatements, so --as-of gives what was published then. Hours that were
    not certified then count 0 there and are listed as `hours_not_certified`.
    """
    span, item_id, region = parse_hours(start, end), parse_item(item), parse_region(region)
    asked = AsOf() if as_of is None else parse_as_of(as_of)
    with open_reader(settings) as reader:
        answer = reader.count(item_id, span, region=region, release=reader.releases.as_of(asked))
    if as_json:
        print_json(answer.body())
    else:
        _print(answer)


def _print(answer: CountAnswer) -> None:
    region = "all regions" if answer.region == ALL_REGIONS else f"region {answer.region}"
    span = f"{clock_time(answer.span.start)} to {clock_time(answer.span.end)}"
    rows = [(name, answer.numbers[name], meaning) for name, meaning in _MEANING.items()]
    print_table(
        ["", "plays", "meaning"],
        rows,
        title=f"{answer.item_id}, {region}, {span}",
        right=["plays"],
        folding=["meaning"],
    )
    release = f"release {answer.release.release} of {clock_time(answer.release.created_at)}"
    click.echo(f"{answer.status}; {release}.")
    if answer.hours_not_certified:
        hours = f"{answer.hours_not_certified:,} hours of the span"
        click.echo(f"{hours} were not certified in that release: they may still change.")
