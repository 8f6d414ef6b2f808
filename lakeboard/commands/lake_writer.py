"""`lakeboard lake-writer`: moves accepted plays from the event log to the lake."""

from functools import partial

import click

from lakeboard.commands.service import LOG_OPTION, AskedToEnd, json_lines
from lakeboard.settings import Settings


@click.command(
    "lake-writer",
    epilog="""\b
Examples:
  lakeboard lake-writer                      as `lakeboard up` runs it
  lakeboard lake-writer --once               move what is there, then leave
  lakeboard lake-writer --log redis://10.0.0.5:6379 --every 5

It leaves on SIGTERM and Ctrl-C after committing what it has read. Killed at any point, the next one goes on
where the lake stands: nothing is lost, nothing is there twice.""",
)
@LOG_OPTION
@click.option(
    "--every", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Commit so often. Default: commit_seconds."
)
@click.option(
    "--rows", type=click.IntRange(min=1), metavar="N", help="Commit earlier after N events. Default: commit_rows."
)
@click.option("--once", is_flag=True, help="Leave when all that is in the log is in the lake.")
@click.option("--no-wait", is_flag=True, help="Leave with exit code 1 when another lake writer works on this lake.")
@click.pass_obj
def lake_writer_command(
    settings: Settings, /, *, log_address: str | None, every: float | None, rows: int | None, once: bool, no_wait: bool
) -> None:
    """Move accepted plays from the event log to the lake, exactly once, and let the log forget them.

    One lake writer works on a lake; a second one waits. What it does stands on stderr as JSON lines, and how it is
    in run/lake-writer.json of LAKEBOARD_HOME.
    """
    from ingest.log_to_lake_loop import LakeWriterJob, run  # noqa: PLC0415  with the next two: not for `--help`
    from ingest.log_to_lake_state import STATE_FILE  # noqa: PLC0415
    from ingest.redis_log import RedisLog  # noqa: PLC0415

    job = LakeWriterJob(
        lake_root=settings.lake_root,
        open_log=partial(RedisLog.open, log_address or settings.log_address, clock=settings.entry_clock),
        state_file=settings.run_folder / STATE_FILE,
        clock=settings.machine_clock,
        tell=json_lines("lake-writer").info,
        every_seconds=every or settings.commit_seconds,
        rows=rows or settings.commit_rows,
        once=once,
        wait=not no_wait,
    )
    run(job, AskedToEnd())
