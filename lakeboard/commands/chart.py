"""`lakeboard chart`: the best items of an hour or a day."""

import click

from domain.answers import FINAL, ChartAnswer
from domain.errors import BadRequestError
from domain.events import ALL_REGIONS
from domain.questions import checked_length, parse_moment, parse_region
from domain.releases import Release
from domain.windows import Granularity, Window
from ingest.lake_reader import LakeReader
from lakeboard.commands.reading import (
    JSON_OPTION,
    REGION_OPTION,
    ReadingSettings,
    clock_time,
    open_reader,
    print_json,
    print_table,
)


class NoChartsError(BadRequestError):
    """The newest window was asked for and no window has a chart."""

    def __init__(self, granularity: Granularity, release: int) -> None:
        super().__init__(granularity, release)
        self.granularity = granularity
        self.release = release

    def __str__(self) -> str:
        return (
            f"release {self.release} has no {self.granularity.value} chart, as nothing counts in it: "
            "say --start for an empty one, and see what `gold/hours` holds with `lakeboard tables`"
        )


@click.command(
    "chart",
    epilog="""\b
Examples:
  lakeboard chart
  lakeboard chart --window 1d --start 2013-03-10 --region US-NY -n 20
  lakeboard chart --window 1h --start 2013-03-10T18:00-04:00 --json
  lakeboard chart --window 1d --start 2013-11-03 --version 1

The days are of the bundled flights (`lakeboard demo`).""",
)
@click.option("--window", type=click.Choice([g.value for g in Granularity]), default="1d", show_default=True)
@click.option(
    "--start",
    help="A whole UTC hour or day: ISO 8601 with zone, or a date. Default: the newest with plays.",
)
@REGION_OPTION
@click.option("-n", "length", type=int, default=10, show_default=True, help="Rows, up to 1000.")
@click.option("--version", type=int, help="As it was in this release (`lakeboard releases`).")
@JSON_OPTION
@click.pass_obj
def chart_command(
    settings: ReadingSettings,
    *,
    window: str,
    start: str | None,
    region: str,
    length: int,
    version: int | None,
    as_json: bool,
) -> None:
    """Show the best items of one UTC hour or day, exactly as counted.

    Highest count first, equal counts by item id. A chart is final once every hour of it is certified.
    """
    granularity = Granularity(window)
    region = parse_region(region)
    length = checked_length(length, most=settings.policy.chart_size)
    with open_reader(settings) as reader:
        release = reader.releases.newest() if version is None else reader.releases.numbered(version)
        asked = _window(reader, granularity, start, release)
        answer = reader.chart(granularity, asked, region=region, n=length, release=release)
        if as_json:
            print_json(answer.body())
        else:
            print_chart(answer, known_region=bool(answer.rows) or reader.region_is_known(region))


def _window(reader: LakeReader, granularity: Granularity, start: str | None, release: Release) -> Window:
    if start is not None:
        return Window.starting(parse_moment(start), granularity)
    newest = reader.newest_window(granularity, release=release)
    if newest is None:
        raise NoChartsError(granularity, release.release)
    return newest


def print_chart(answer: ChartAnswer, *, known_region: bool) -> None:
    """Print a chart for a person; a region that was never seen is said to be so."""
    region = "all regions" if answer.region == ALL_REGIONS else f"region {answer.region}"
    span = f"{clock_time(answer.window.start)} to {clock_time(answer.window.end)}"
    title = f"Top {len(answer.rows)}, {region}, {span}"
    if answer.rows:
        rows = [(str(row.rank), row.item_id, row.counted) for row in answer.rows]
        print_table(["rank", "item", "plays"], rows, title=title, right=["rank", "plays"], folding=["item"])
    elif known_region:
        click.echo(f"{title}: no plays.")
    else:
        click.echo(f"{title}: no plays; no event of region {answer.region} was ever received.")
    click.echo(_totals(answer))


def _totals(answer: ChartAnswer) -> str:
    release = f"release {answer.release.release} of {clock_time(answer.release.created_at)}"
    state = answer.status
    if state != FINAL:
        state += f", certified up to {clock_time(answer.release.frontier)}"
    lines = [f"{answer.total:,} plays of {answer.items:,} items; {state}; {release}."]
    if answer.tie_at_cut:
        lines.append(f"Tie at the cut: the next item also has {answer.missed_max:,} plays.")
    return "\n".join(lines)
