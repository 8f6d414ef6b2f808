"""`lakeboard hourly`: counts and publishes by the clock."""

import click

from lakeboard.commands.service import AskedToEnd, json_lines
from lakeboard.settings import Settings


@click.command(
    "hourly",
    epilog="""\b
Examples:
  lakeboard hourly                    as `lakeboard up` runs it

It leaves on SIGTERM and Ctrl-C. `lakeboard up --no-hourly` leaves it out: something else does it then.""",
)
@click.pass_obj
def hourly_command(settings: Settings, /) -> None:
    """Recount and publish by the clock, once another hour can be certified.

    It also restores the live views when their server lost them, and rebuilds boards once a day, when the lake has every
    score up to midnight UTC and the grace after it, and when a board has grown by much.
    What it does stands on stderr as JSON lines, and how it is in run/hourly.json of LAKEBOARD_HOME.
    """
    from lakeboard.hourly import STATE_FILE, HourlyJob, run  # noqa: PLC0415  with the next ones: not for `--help`
    from lakeboard.live.lost import incomplete  # noqa: PLC0415
    from lakeboard.part_state import PartStateFile  # noqa: PLC0415
    from lakeboard.publishing import is_unpublished  # noqa: PLC0415
    from lakeboard.rebuild_due import rebuild_due  # noqa: PLC0415

    job = HourlyJob(
        lake_root=settings.lake_root.absolute(),
        policy=settings.policy,
        clock=settings.clock,
        incomplete=lambda: incomplete(settings),
        unpublished=lambda: is_unpublished(settings),
        rebuild_due=lambda: rebuild_due(settings),
        state=PartStateFile(settings.run_folder / STATE_FILE, settings.machine_clock),
        tell=json_lines("hourly").info,
    )
    run(job, AskedToEnd())
