"""`lakeboard demo`: the bundled flights from file to chart."""

from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import click

from domain.events import ALL_REGIONS
from domain.windows import Granularity, Window
from ingest.importers.request import Format, ImportRequest
from ingest.importers.run import import_files
from ingest.lake_reader import newest_release
from lakeboard.commands.chart import print_chart
from lakeboard.commands.import_progress import progress_display
from lakeboard.commands.reading import open_reader
from lakeboard.commands.recount import summary
from lakeboard.settings import Settings

SOURCE = "flights-sample"
DAY = Window.starting(datetime(2013, 3, 10, tzinfo=UTC), Granularity.DAY)
ROWS = 10

NEXT = """
What to try next (state is in {home}):
  lakeboard chart --window 1d --start 2013-11-03 --region US-NJ
  lakeboard chart --window 1h --start 2013-03-10T12:00Z --json
  lakeboard count --item ATL --from 2013-03-10 --to 2013-03-11
  lakeboard sql "select region, sum(counted) as flights from daily_counts group by all order by 2 desc"
  lakeboard verify
  lakeboard import YOUR.csv --item COLUMN --time COLUMN --region COLUMN && lakeboard recount
(the command is .venv/bin/lakeboard in this folder; --help says more)"""


@click.command(
    "demo",
    epilog="""\b
Examples:
  lakeboard demo                            the second time it only shows the chart
  LAKEBOARD_HOME=/tmp/try lakeboard demo    in a lake of its own""",
)
@click.option("--if-empty", is_flag=True, help="Do nothing when the lake has a release already.")
@click.pass_obj
def demo_command(settings: Settings, /, *, if_empty: bool) -> None:
    """Import the bundled flights from New York, count them exactly, prove it, and show a day's chart."""
    if if_empty and newest_release(settings.lake_root) is not None:
        return
    from lakeboard.counting import recounted  # noqa: PLC0415  loads pyspark, which `--help` can do without

    with resources.as_file(resources.files("lakeboard") / "sample" / "flights.csv.gz") as path:
        click.echo("1. Import: flights are plays, destinations are items, the airport's state is the region")
        _import(settings, path)
    click.echo("2. Recount: exact numbers per hour and day, proofs, a release")
    click.echo(summary(recounted(settings)))
    click.echo("3. Read: the top destinations of 10 March 2013, the night the clocks went forward")
    with open_reader(settings) as reader:
        release = reader.releases.newest()
        answer = reader.chart(Granularity.DAY, DAY, region=ALL_REGIONS, n=ROWS, release=release)
        print_chart(answer, known_region=True)
    click.echo(NEXT.format(home=settings.home))


def _import(settings: Settings, path: Path) -> None:
    request = ImportRequest(files=(path,), format=Format.CSV, item="dest", time="departure", region="region",
                            user="tailnum", event_id="flight_id", source=SOURCE)  # fmt: skip
    with progress_display() as display:
        result = import_files(
            request,
            lake_root=settings.lake_root,
            clock=settings.clock,
            policy=settings.policy,
            on_progress=display.show,
            on_wait=display.wait,
        )
    accepted = sum(file.accepted for file in result.files)
    click.echo(f"{accepted:,} flights in the lake, {result.new_rows:,} of them new.")
