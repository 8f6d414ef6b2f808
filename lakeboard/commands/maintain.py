"""`lakeboard maintain`: fewer and larger files, without touching a count."""

import click

from lakeboard.batch import started_spark
from lakeboard.commands.reading import JSON_OPTION, print_json, print_table
from lakeboard.commands.steps import shown_steps
from lakeboard.settings import Settings

_NUMBERS = ("files before", "files after")


@click.command(
    "maintain",
    epilog="""\b
Examples:
  lakeboard maintain                 once a night is enough
  lakeboard maintain --json""",
)
@JSON_OPTION
@click.pass_obj
def maintain_command(settings: Settings, /, *, as_json: bool) -> None:
    """Compact every table and remove files that no release of the last 30 days needs.

    Waits for a running recount, and a recount waits for it. Counts, charts and positions stay as they are.
    """
    from jobs.maintain import run  # noqa: PLC0415  loads pyspark, which `--help` can do without

    with shown_steps() as steps:
        steps.begin("start Spark")
        with started_spark(settings, "maintain") as spark:
            done = run(spark, settings.lake_root.absolute(), clock=settings.clock, on_step=steps.begin,
                       on_wait=steps.wait)  # fmt: skip
    rows = [(each.table, each.files_before, each.files_after) for each in done]
    if as_json:
        names = ("table", "files_before", "files_after")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table(["table", *_NUMBERS], rows, right=_NUMBERS)
